"""`compress` and `decompress`: what they make of a model, copies, names, refusals; the variance of `initialise`."""
import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import (
    assign,
    block_sizes,
    compress,
    constraint_of,
    decompress,
    inherit,
    initialise,
    matrices,
)
from circulant.training.models.cells import PeepholeLstm, ResetBeforeGru
from circulant.training.models.models import SequenceClassifier
from tests.refused import refused

NO_ONEDNN = "ignore:LSTM with projections is not supported with oneDNN:UserWarning"
"""torch says once that it takes its other kernel."""

RECURRENT = [
    pytest.param(nn.GRU, {"num_layers": 2, "bidirectional": True}, id="gru"),
    pytest.param(nn.LSTM, {"num_layers": 2, "bidirectional": True}, id="lstm"),
    pytest.param(nn.LSTM, {"proj_size": 6, "bidirectional": True}, id="projected"),
    pytest.param(PeepholeLstm, {"num_layers": 2, "proj_size": 6, "bidirectional": True}, id="peephole"),
    pytest.param(ResetBeforeGru, {"num_layers": 2, "bidirectional": True}, id="reset"),
]


def classifier(seed: int = 0, **sizes: int) -> SequenceClassifier:
    torch.manual_seed(seed)
    return SequenceClassifier(**{"inputs": 8, "hidden": 16, "classes": 10, **sizes})


def test_compress_projects_every_matrix_and_leaves_the_original():
    model = classifier()
    before = copy.deepcopy(model.state_dict())
    small = compress(model, 8)
    assert block_sizes(small) == {"gru.weight_ih_l0": 8, "gru.weight_hh_l0": 8, "linear.weight": 8}
    for name, matrix in matrices(small).items():
        wanted = matrix.constraint(8).project(before[name])
        assert torch.equal(matrix.weight, wanted), f"{name} must be the projection of the dense weight"
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), f"{name} of the original was changed"
    assert torch.equal(small.linear.bias, model.linear.bias)


def test_each_gate_is_padded_on_its_own():
    small = compress(classifier(hidden=12), {"gru": 8})
    assert small.gru.parametrizations.weight_hh_l0.original.shape == (3, 2, 2, 8)
    gates = small.gru.weight_hh_l0.detach().reshape(3, 12, 12)
    for gate in gates:
        block = gate[:8, :8]
        assert torch.equal(block, block.roll((1, 1), (0, 1))), "each gate must start with a whole circulant block"


def test_the_fused_forward_uses_the_constrained_weights():
    small = compress(classifier(), 8)
    x = torch.rand(4, 5, 8)
    plain = SequenceClassifier(8, 16, 10)
    plain.load_state_dict(decompress(small).state_dict())
    for cached in (False, True):
        for _ in range(2):
            with torch.no_grad():
                for parameter in small.parameters():
                    parameter.add_(0.01)
            plain.load_state_dict(decompress(small).state_dict())
            if cached:
                with parametrize.cached():
                    got = small(x)
            else:
                got = small(x)
            assert torch.equal(got, plain(x)), f"the GRU must follow its first columns (cached={cached})"


def test_gradients_reach_the_first_columns():
    small = compress(classifier(), 8).double()
    x = torch.rand(3, 4, 8, dtype=torch.float64)
    for cached in (False, True):
        small.zero_grad()
        if cached:
            with parametrize.cached():
                small(x).square().sum().backward()
        else:
            small(x).square().sum().backward()
        for name, parameter in small.named_parameters():
            assert parameter.grad is not None, f"{name} must get a gradient (cached={cached})"
            with torch.no_grad():
                flat, index, step = parameter.view(-1), parameter.numel() // 2, 1e-6
                values = []
                for sign in (1, -1):
                    flat[index] += sign * step
                    values.append(float(small(x).square().sum()))
                    flat[index] -= sign * step
            numeric = (values[0] - values[1]) / (2 * step)
            assert parameter.grad.view(-1)[index] == pytest.approx(numeric, rel=1e-5, abs=1e-8), name


def test_compress_twice_is_compress_once():
    once = compress(classifier(), 8)
    twice = compress(once, 8)
    for (name, a), (_, b) in zip(once.state_dict().items(), twice.state_dict().items(), strict=True):
        assert torch.equal(a, b), f"{name} must not change when it is projected again"


def test_compress_by_name():
    model = classifier()
    assert block_sizes(compress(model, {"gru": 8})) == {
        "gru.weight_ih_l0": 8, "gru.weight_hh_l0": 8, "linear.weight": 1}
    assert block_sizes(compress(model, {"gru.weight_hh_l0": 16, "gru": 4, "linear": 2})) == {
        "gru.weight_ih_l0": 4, "gru.weight_hh_l0": 16, "linear.weight": 2}
    assert block_sizes(compress(compress(model, 8), {"linear": 1})) == {
        "gru.weight_ih_l0": 8, "gru.weight_hh_l0": 8, "linear.weight": 1}
    assert block_sizes(compress(model, {})) == dict.fromkeys(matrices(model), 1)
    assert block_sizes(compress(nn.Linear(8, 8), {"weight": 8})) == {"weight": 8}


def test_compress_all_layers_of_a_deep_gru():
    sizes = block_sizes(compress(classifier(layers=2), {"gru": 8, "gru.weight_ih_l1": 16}))
    assert sizes == {"gru.weight_ih_l0": 8, "gru.weight_hh_l0": 8, "gru.weight_ih_l1": 16, "gru.weight_hh_l1": 8,
                     "linear.weight": 1}


def test_decompress_computes_the_same_with_plain_weights():
    small = compress(classifier(), 8)
    plain = decompress(small)
    x = torch.rand(4, 5, 8)
    assert type(plain.gru) is nn.GRU
    assert set(plain.state_dict()) == set(classifier().state_dict())
    assert torch.equal(plain(x), small(x))
    assert block_sizes(small)["linear.weight"] == 8, "the compressed model must stay as it is"


@pytest.mark.parametrize(("size", "way"), [(12, "8 or 16"), (0, "1"), (-8, "1"), (128, "64"), (2.5, "2 or 4")])
def test_block_size_must_be_a_power_of_two(size, way):
    with pytest.raises(Refusal, match=rf"^Block size must be a power of two from 1 to 64, not {size}; choose {way}$"):
        compress(classifier(), size)


def test_block_size_must_be_a_number():
    with pytest.raises(Refusal, match=r"^Block size must be a power of two from 1 to 64, not True$"):
        compress(classifier(), True)
    for size in ("8", None):
        with pytest.raises(Refusal, match=rf"must be given an integer or a dictionary as block_size, not {size!r}; "):
            compress(classifier(), size)


def test_block_size_must_not_exceed_the_matrix():
    with pytest.raises(Refusal, match=r"^linear\.weight: Block size must not exceed both sides of its matrix "
                                      r"\(10 × 16\), but 32 does; choose 16 or less$"):
        compress(classifier(), {"linear": 32})
    assert block_sizes(compress(classifier(), {"linear": 16}))["linear.weight"] == 16


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(Refusal, match=r"not to 'gru\.weight_hh_10'; did you mean 'gru\.weight_hh_l0'\?; legal are gru, "
                                      r"gru\.weight_ih_l0, gru\.weight_hh_l0, linear, linear\.weight "
                                      r"\(compression\.block_size of an experiment\)$"):
        compress(classifier(), {"gru.weight_hh_10": 8})


def test_all_problems_are_listed_at_once():
    text = refused(compress, classifier(), {"gruu": 8, "gru": 12, "linear": 64})
    for part in ("'gruu'", "gru.weight_ih_l0: Block size", "gru.weight_hh_l0: Block size", "linear.weight: Block size"):
        assert part in text, f"{part} must be in {text}"


def test_models_without_matrices_are_refused():
    with pytest.raises(Refusal, match=r"^The model must have at least one Linear, convolution, GRU or LSTM"):
        compress(nn.Conv1d(4, 4, 1, groups=4), 8)


def test_shared_weights_are_refused():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model[1].weight = model[0].weight
    with pytest.raises(Refusal, match=r"^1\.weight: the weight must belong to one module, but 0\.weight shares it"):
        compress(model, {"1": 8})


def test_other_parametrizations_are_refused():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)))
    with pytest.raises(Refusal, match=r"^0\.weight: the weight must carry no other parametrization, but has _Weight"):
        compress(model, 8)


@pytest.mark.filterwarnings(NO_ONEDNN)
@pytest.mark.parametrize(("kind", "options"), RECURRENT)
def test_recurrent_layers_of_every_kind(kind, options):
    torch.manual_seed(0)
    model = kind(8, 12, batch_first=True, **options)
    small = compress(model, 4)
    assert set(block_sizes(small).values()) == {4}
    weights = {name for name, _ in model.named_parameters() if "weight" in name}
    assert set(block_sizes(small)) == weights, "every weight matrix must be found, and nothing else"
    for name, matrix in matrices(small).items():
        wanted = matrix.constraint(4).project(model.get_parameter(name))
        assert torch.equal(matrix.weight, wanted), f"{name} must be the projection of the dense weight"
        assert matrix.groups == (1 if "_hr_" in name else 3 if kind in (nn.GRU, ResetBeforeGru) else 4)
    x = torch.rand(3, 5, 8)
    with torch.no_grad():
        for parameter in small.parameters():
            parameter.add_(0.01)
    plain = decompress(small)
    assert set(plain.state_dict()) == set(model.state_dict())
    with parametrize.cached():
        got = small(x)[0]
    assert torch.equal(got, plain(x)[0]), "the layer must follow its first columns"
    got.square().sum().backward()
    for name, parameter in small.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), f"{name} must get a gradient"


@pytest.mark.parametrize("conv", [nn.Conv1d(6, 10, 3), nn.Conv2d(6, 10, (3, 2))])
def test_convolutions(conv):
    small = compress(conv, 4)
    constraint = constraint_of(matrices(small)["weight"])
    assert constraint is not None and constraint.shape[0] == conv.weight[0, 0].numel()
    assert torch.equal(small.weight, constraint.project(conv.weight))
    x = torch.rand(2, 6, *(7,) * (conv.weight.ndim - 2))
    assert torch.equal(decompress(small)(x), small(x))
    small(x).sum().backward()
    assert small.parametrizations.weight.original.grad.shape == constraint.shape


VARIED = [
    pytest.param(lambda: nn.Linear(256, 256, bias=False), lambda m: m(torch.randn(64, 256)), id="linear"),
    pytest.param(lambda: nn.Linear(250, 99, bias=False), lambda m: m(torch.randn(64, 250)), id="ragged"),
    pytest.param(lambda: nn.Conv2d(32, 64, 3, bias=False), lambda m: m(torch.randn(8, 32, 6, 6)), id="conv"),
    pytest.param(lambda: nn.LSTM(64, 128, bias=False), lambda m: m.weight_ih_l0 @ torch.randn(64, 64), id="lstm"),
]


@pytest.mark.parametrize(("make", "outputs"), VARIED)
@pytest.mark.parametrize("k", [4, 16])
def test_initialised_layers_keep_the_output_variance(make, outputs, k):
    torch.manual_seed(0)
    found = {"dense": [], "initialised": [], "projected": []}
    with torch.no_grad():
        for _ in range(12):
            dense = make()
            models = {"dense": dense, "initialised": initialise(dense, k), "projected": compress(dense, k)}
            for name, model in models.items():
                found[name].append(outputs(model).square().mean())
    mean = {name: float(torch.stack(values).mean()) for name, values in found.items()}
    assert mean["initialised"] == pytest.approx(mean["dense"], rel=0.05), mean
    assert mean["projected"] < 0.6 * mean["dense"], "the projection alone must be too small, by about k"


def test_initialise_scales_what_it_constrains_and_nothing_else():
    model = classifier()
    small = initialise(model, {"gru.weight_hh_l0": 8})
    plain = compress(model, {"gru.weight_hh_l0": 8})
    first = small.gru.parametrizations.weight_hh_l0.original
    assert torch.equal(first, plain.gru.parametrizations.weight_hh_l0.original * 8 ** 0.5)
    assert torch.equal(small.linear.weight, model.linear.weight)
    again = initialise(small, {"gru.weight_hh_l0": 8}).gru.parametrizations.weight_hh_l0.original
    assert torch.equal(again, first), "first columns that are there already must stay as they are"


@pytest.mark.parametrize(("cell", "k"), [(ResetBeforeGru(8, 16), 4), (PeepholeLstm(8, 16, proj_size=8), 8)])
def test_orthogonal_matrices_become_orthogonal_members_of_the_set(cell, k):
    made = initialise(cell, k)
    for gate in made.weight_hh_l0.detach().split(16):
        torch.testing.assert_close(gate.t() @ gate, torch.eye(gate.shape[1]), atol=1e-5, rtol=0)
    dense, scaled = cell.weight_ih_l0.detach(), made.weight_ih_l0.detach()
    torch.testing.assert_close(scaled, compress(cell, k).weight_ih_l0.detach() * k**0.5)
    assert scaled.shape == dense.shape


SHAPES = [
    pytest.param(lambda: nn.GRU(16, 24), id="gates"), pytest.param(lambda: nn.Linear(27, 18), id="ragged"),
    pytest.param(lambda: nn.Conv2d(8, 16, 3), id="positions"),
]


@pytest.mark.parametrize("make", SHAPES)
def test_inherited_matrices_are_projections_of_the_former_norm(make):
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "weight" in name:  # Gates, or positions, whose sizes differ as those of trained ones do.
                weight.mul_(torch.linspace(0.1, 2, weight.shape[0]).view(-1, *(1,) * (weight.ndim - 1)))
    small, bare = inherit(model, 4), compress(model, 4)
    for name, matrix in matrices(small).items():
        constraint = constraint_of(matrix)
        real = constraint.right_inverse(torch.ones_like(matrix.weight))
        counts = constraint.counts * real
        first, projected = (each[name].first.detach() for each in (matrices(small), matrices(bare)))
        means, rests = zip(*((mean, each - real * mean) for each in (first, projected)
                             for mean in [(counts * each).sum(3, keepdim=True) / counts.sum(3, keepdim=True)]),
                           strict=True)
        torch.testing.assert_close(*means, rtol=1e-4, atol=1e-6, msg=f"{name}: a block must keep its mean")
        grown, rest = (each.flatten(1) for each in rests)
        scale = grown.norm(dim=1, keepdim=True) / rest.norm(dim=1, keepdim=True)
        assert scale.min() > 1.5, f"{name}: the projection alone is too small by about √4, not by 1/{scale.min()}"
        torch.testing.assert_close(grown, rest * scale, rtol=1e-3, atol=1e-5,
                                   msg=f"{name}: one factor for each stacked matrix")
        before, after = (matrix.constraint(1).right_inverse(weight.detach()).square().sum((1, 2, 3))
                         for weight in (model.get_parameter(name), matrix.weight))
        torch.testing.assert_close(after, before, rtol=1e-4, atol=0, msg=f"{name} must have its former norms")


def test_an_inherited_layer_behind_a_relu_stays_alive():
    """A mean that grew by √32 with the differences would leave every unit dead."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.randn(128, 256) / 16 - 0.003)
    x = torch.rand(512, 256)
    with torch.no_grad():
        alive = [float((each(x) > 0).float().mean()) for each in (model, inherit(model, 32))]
    assert 0.2 < alive[0] < 0.35
    assert alive[1] > alive[0] / 4


def test_what_is_not_compressed_is_inherited_as_it_is():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 8), nn.Linear(8, 3))
    model(torch.randn(16, 4, 3, 3))
    small, before = inherit(model, {"3": 8}), model.state_dict()
    kept = {name: value for name, value in small.state_dict().items() if "parametrizations" not in name}
    assert set(before) - set(kept) == {"3.weight"}
    assert all(torch.equal(value, before[name]) for name, value in kept.items()), "batch norm and biases, too"


def test_members_of_the_set_are_inherited_as_they_are():
    member = decompress(compress(classifier(), 8))
    with torch.no_grad():
        member.linear.weight.zero_()
    small = inherit(member, 8)
    for name, matrix in matrices(small).items():
        torch.testing.assert_close(matrix.weight, member.get_parameter(name), msg=f"{name} was in the set")
    again = inherit(small, {"gru.weight_hh_l0": 4})
    assert torch.equal(matrices(again)["gru.weight_ih_l0"].first, matrices(small)["gru.weight_ih_l0"].first)


def test_a_deep_stack_of_initialised_layers_keeps_its_signal():
    torch.manual_seed(0)
    layers = [nn.Linear(256, 256, bias=False) for _ in range(12)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=256 ** -0.5)
    x = torch.randn(64, 256)
    with torch.no_grad():
        ratio = float(initialise(nn.Sequential(*layers), 16)(x).square().mean() / x.square().mean())
    assert 0.3 < ratio < 3, "twelve layers of gain one must neither blow up nor fade away"


def test_compress_takes_what_assign_gives():
    model = classifier()
    assert block_sizes(compress(model, assign(model, 8, dense=["last"]))) == {
        "gru.weight_ih_l0": 8, "gru.weight_hh_l0": 8, "linear.weight": 1}
