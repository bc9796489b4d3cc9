"""The block-circulant constraint: its matrix and its projection by definition, `compress`, copies, refusals."""
import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrize

from circulant.sim import circulant
from circulant.sim.refusal import Refusal
from circulant.training.constraint import BlockCirculant, block_sizes, compress, decompress, matrices
from circulant.training.models import SequenceClassifier

shapes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from((1, 2, 4, 8, 16)), st.sampled_from((1, 3))
                   ).filter(lambda s: s[2] <= max(s[0], s[1]))


def definition(first: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The dense matrix, entry by entry."""
    k = first.shape[-1]
    return np.array([[first[i // k, j // k, (i - j) % k] for j in range(columns)] for i in range(rows)])


def classifier(seed: int = 0, **sizes: int) -> SequenceClassifier:
    torch.manual_seed(seed)
    return SequenceClassifier(**{"inputs": 8, "hidden": 16, "classes": 10, **sizes})


@given(shapes, st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_forward_is_the_definition(shape, seed):
    m, n, k, groups = shape
    constraint = BlockCirculant(groups * m, n, k, groups)
    first = np.random.default_rng(seed).normal(size=constraint.shape)
    wanted = np.concatenate([definition(gate, m, n) for gate in first])
    np.testing.assert_array_equal(constraint(torch.from_numpy(first)).numpy(), wanted)


@given(shapes, st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_right_inverse_is_the_least_squares_solution(shape, seed):
    m, n, k, groups = shape
    constraint = BlockCirculant(groups * m, n, k, groups)
    dense = np.random.default_rng(seed).normal(size=(groups, m, n))
    _, p, q, _ = constraint.shape
    basis = np.stack([definition(unit.reshape(p, q, k), m, n).ravel() for unit in np.eye(p * q * k)], axis=1)
    wanted = [np.linalg.lstsq(basis, gate.ravel(), rcond=None)[0] for gate in dense]
    got = constraint.right_inverse(torch.from_numpy(dense.reshape(groups * m, n)))
    np.testing.assert_allclose(got.numpy().reshape(groups, -1), wanted, atol=1e-12)


def test_right_inverse_is_the_mean_of_wrapped_diagonals_not_their_last_entry():
    dense = torch.arange(16.0).reshape(4, 4)
    wanted = [np.mean([dense[(r + b) % 4, b] for b in range(4)]) for r in range(4)]
    got = BlockCirculant(4, 4, 4).right_inverse(dense)[0, 0, 0]
    np.testing.assert_allclose(got, wanted)
    last = torch.stack([dense[(r + 3) % 4, 3] for r in range(4)]) / 4
    assert not torch.allclose(got, last), "overwriting along a diagonal would give its last entry divided by k"


@given(shapes, st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_projection_is_orthogonal_and_idempotent(shape, seed):
    m, n, k, groups = shape
    constraint = BlockCirculant(groups * m, n, k, groups)
    rng = np.random.default_rng(seed)
    dense = torch.from_numpy(rng.normal(size=(groups * m, n)).astype(np.float32))
    member = constraint(torch.from_numpy(rng.normal(size=constraint.shape)))
    nearest = constraint.project(dense)
    residual = (dense - nearest).double()
    assert abs(float((residual * member).sum())) < 1e-5, "the residual must be orthogonal to every member of the set"
    assert torch.equal(constraint.project(nearest), nearest), "a member must be its own projection, bit for bit"


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 8), (10, 64, 8), (10, 6, 8), (5, 3, 4)])
def test_right_inverse_equals_the_projection_of_sim(m, n, k):
    dense = np.random.default_rng(0).normal(size=(m, n))
    got = BlockCirculant(m, n, k).right_inverse(torch.from_numpy(dense))[0]
    np.testing.assert_allclose(got, circulant.project(dense, k), atol=1e-15)


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
    for size in (True, "8", None):
        with pytest.raises(Refusal, match=rf"^Block size must be a power of two from 1 to 64, not {size!r}$"):
            compress(classifier(), size)


def test_block_size_must_not_exceed_the_matrix():
    with pytest.raises(Refusal, match=r"^linear\.weight: Block size must not exceed both sides of its matrix "
                                      r"\(10 × 16\), but 32 does; choose 16 or less$"):
        compress(classifier(), {"linear": 32})
    assert block_sizes(compress(classifier(), {"linear": 16}))["linear.weight"] == 16


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(Refusal, match=r"not to 'gru\.weight_hh_10'; did you mean 'gru\.weight_hh_l0'\?; legal are gru, "
                                      r"gru\.weight_ih_l0, gru\.weight_hh_l0, linear, linear\.weight$"):
        compress(classifier(), {"gru.weight_hh_10": 8})


def test_all_problems_are_listed_at_once():
    with pytest.raises(Refusal) as refusal:
        compress(classifier(), {"gruu": 8, "gru": 12, "linear": 64})
    text = str(refusal.value)
    for part in ("'gruu'", "gru.weight_ih_l0: Block size", "gru.weight_hh_l0: Block size", "linear.weight: Block size"):
        assert part in text, f"{part} must be in {text}"


def test_models_without_matrices_are_refused():
    with pytest.raises(Refusal, match=r"^The model must have at least one Linear or GRU"):
        compress(nn.Conv1d(1, 1, 1), 8)


def test_shared_weights_are_refused():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model[1].weight = model[0].weight
    with pytest.raises(Refusal, match=r"^1\.weight: the weight must belong to one module, but 0\.weight shares it"):
        compress(model, {"1": 8})


def test_other_parametrizations_are_refused():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)))
    with pytest.raises(Refusal, match=r"^0\.weight: the weight must carry no other parametrization, but has _Weight"):
        compress(model, 8)


def test_groups_must_divide_the_rows():
    with pytest.raises(Refusal, match=r"^The rows must be a multiple of the 3 groups, not 16"):
        BlockCirculant(16, 8, 8, groups=3)
