"""The way out of torch: the reference equals torch in double precision, and nothing changes its meaning silently."""
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from circulant.sim.real import float_model as sim
from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress
from circulant.training.capture import inspect
from circulant.training.conversion import export, reference
from circulant.training.kinds import cell
from circulant.training.models.models import ModelSettings, build
from circulant.training.models.sequences import SequenceClassifier, SequenceLabeller
from tests.modules import Net


class Steps(nn.Module):
    """A model that gives an output for each step."""

    def __init__(self, inputs=8, hidden=16, outputs=4, **options):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True, **options)
        self.linear = nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.linear(self.gru(x)[0])


def classifier(seed=0, inputs=8, hidden=16, classes=10, layers=1):
    torch.manual_seed(seed)
    return SequenceClassifier(inputs, hidden, classes, layers=layers)


def sequences(seed=0, shape=(5, 6, 8)):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def in_double(model, x):
    with torch.no_grad():
        return model.double().eval()(torch.from_numpy(x).double()).numpy()


@pytest.mark.parametrize("block_size", [1, 2, 8, 16, {"gru": 8}, {"gru": 8, "linear": 4}])
@pytest.mark.parametrize("hidden", [16, 12])
def test_reference_equals_torch(block_size, hidden):
    if hidden == 12 and block_size == 16:
        block_size = {"linear": 8}
    model = compress(classifier(hidden=hidden), block_size)
    got = reference(model, sequences()).run(sequences())
    assert got.shape == (5, 10)
    np.testing.assert_allclose(got, in_double(model, sequences()), rtol=0, atol=1e-12)


def test_deep_gru_becomes_one_layer_each():
    model = compress(classifier(layers=3), 8)
    result = reference(model, sequences())
    assert [layer.name for layer in result.layers] == ["gru_l0", "gru_l1", "gru_l2", "linear"]
    assert [layer.returns for layer in result.layers[:3]] == ["sequence", "sequence", "last"]
    np.testing.assert_allclose(result.run(sequences()), in_double(model, sequences()), rtol=0, atol=1e-12)


NO_ONEDNN = "ignore:LSTM with projections is not supported with oneDNN:UserWarning"

CELLS = [
    {"cell": "gru"}, {"cell": "reset_gru"}, {"cell": "lstm"}, {"cell": "lstm", "projection": 6},
    {"cell": "lstm", "peephole": True}, {"cell": "lstm", "peephole": True, "projection": 6},
]


@pytest.mark.filterwarnings(NO_ONEDNN)
@pytest.mark.parametrize("block_size", [1, 4])
@pytest.mark.parametrize("kind", [SequenceClassifier, SequenceLabeller])
@pytest.mark.parametrize("shape", [{}, {"layers": 2, "bidirectional": True}])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell) + f"-{cell['cell']}")
def test_every_recurrent_layer(cell, shape, kind, block_size):
    torch.manual_seed(0)
    model = compress(kind(8, 12, 10, **cell, **shape), block_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # gates that leave their linear range
    result = reference(model, sequences())
    np.testing.assert_allclose(result.run(sequences()), in_double(model, sequences()), rtol=0, atol=1e-12)
    assert [layer.name for layer in result.layers if "." not in layer.name] == (
        [f"{cell['cell']}_l0", f"{cell['cell']}_l1", "linear"] if shape else [cell["cell"], "linear"])


@pytest.mark.parametrize("cell", [CELLS[1], CELLS[5] | {"bidirectional": True}])
def test_they_become_integers(cell):
    torch.manual_seed(0)
    model = compress(SequenceClassifier(8, 16, 10, **cell), 8)
    network = export(model, sequences(), weight_bits=18, activation_bits=20, twiddle_bits=20, segments=1024)
    np.testing.assert_allclose(network.run(sequences()).real, in_double(model, sequences()), rtol=0, atol=1e-3)


def test_steps_before_the_batch():
    torch.manual_seed(0)
    model = Net(lambda m, x: m.linear(m.lstm(x.transpose(0, 1))[0][-1]), lstm=nn.LSTM(8, 6, num_layers=2),
                linear=nn.Linear(6, 3))
    np.testing.assert_allclose(reference(model, sequences()).run(sequences()), in_double(model, sequences()),
                               rtol=0, atol=1e-12)


def test_what_has_no_golden_layer_is_refused_in_one_sentence():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.Softmax(-1), nn.Flatten(), nn.Linear(4 * 9, 2))
    with pytest.raises(Refusal, match=r"^The golden model must have a layer for everything that is exported, but has "
                                      r"none for 2 \(Softmax: no golden layer within a network; leave it"):
        reference(model, np.zeros((2, 1, 8, 8)))
    with pytest.raises(Refusal, match=r"gru \(GRU: .*its matrices have block sizes 4, 8, but those of a recurrent"):
        reference(compress(classifier(), {"gru": 8, "gru.weight_ih_l0": 4}), sequences())


def test_a_norm_of_a_dense_layer_is_folded():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 4))
    x = sequences(shape=(32, 8))
    for _ in range(3):
        model(torch.from_numpy(x))
    model[1].weight.data.uniform_(0.5, 2)
    result = reference(model, x)
    assert [layer.name for layer in result.layers] == ["linear_0", "linear_2"]
    np.testing.assert_allclose(result.run(x), in_double(model, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("block_size", [1, 4])
def test_a_perceptron_over_images(block_size):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(24, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 8), nn.ReLU(),
                          nn.Linear(8, 3))
    model, x = compress(model, block_size), sequences(shape=(32, 2, 3, 4))
    result = reference(model, x)
    assert [layer.relu for layer in result.layers] == [True, True, False]
    assert (result.flow.size, result.sequence, result.shape) == (24, False, (2, 3, 4))
    np.testing.assert_allclose(result.run(x), in_double(model, x), rtol=0, atol=1e-12)
    network = export(model.float(), x, weight_bits=18)
    assert np.abs(network.run(x).real - in_double(model, x)).max() < 2e-3


@pytest.mark.parametrize("block_size", [1, 4])
@pytest.mark.parametrize(("kind", "shape"), [
    ("lenet5", (1, 14, 12)), ("lenet_caffe", (1, 16, 18)), ("vgg", (3, 8, 6)), ("resnet8", (3, 8, 9)),
    ("crnn", (10, 8))])
def test_networks_over_images(kind, shape, block_size):
    model = build(ModelSettings(kind), shape, 10)
    x = sequences(shape=(16, *shape))
    model.train()(torch.from_numpy(x))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.uniform_(module.bias, -1, 1)
    if block_size > 1:
        model = compress(model, {name: block_size for name, module in model.named_modules()
                                 if isinstance(module, nn.Linear | nn.Conv2d | nn.GRU)
                                 and name not in ("conv", "conv1")})
    result = reference(model, x)
    wanted = in_double(model, x)
    np.testing.assert_allclose(result.run(x), wanted, rtol=0, atol=1e-12 * np.abs(wanted).max() + 1e-12)
    assert any(layer.kind in ("add", "scale") for layer in result.layers) == (
        kind == "resnet8" or (kind == "vgg" and block_size > 1))
    assert np.abs(export(model.float(), x, weight_bits=18).run(x).real - wanted).max() < 2e-3 * np.abs(wanted).max()


def test_a_conv1d_becomes_steps_of_a_sequence():
    model = Net(lambda m, x: m.gru(torch.relu(m.conv(x)).transpose(1, 2))[0][:, -1],
                conv=nn.Conv1d(8, 6, 3, stride=2, padding=1), gru=nn.GRU(6, 4, batch_first=True))
    x = sequences(shape=(5, 8, 9))
    result = reference(model, x)
    assert [layer.kind for layer in result.layers] == ["conv", "flatten", "gru"]
    assert (result.shape, result.layers[1].outputs) == ((8, 9), 6)
    np.testing.assert_allclose(result.run(x), in_double(model, x), rtol=0, atol=1e-12)


def test_a_model_of_steps_stays_one():
    torch.manual_seed(0)
    model = Steps()
    result = reference(model, sequences())
    assert result.layers[0].returns == "sequence", "a sequence must never become its last step"
    assert result.run(sequences()).shape == (5, 6, 4)
    np.testing.assert_allclose(result.run(sequences()), in_double(model, sequences()), rtol=0, atol=1e-12)


def test_axes_are_never_swapped():
    torch.manual_seed(0)
    x = sequences(shape=(6, 6, 6))  # batch, steps and features alike: only the meaning of an axis tells them apart
    model = Steps(inputs=6, hidden=6, outputs=6)
    got = reference(model, x).run(x)
    np.testing.assert_allclose(got, in_double(model, x), rtol=0, atol=1e-12)
    assert not np.allclose(got, in_double(model, x.transpose(1, 0, 2)), atol=1e-3)
    changed = x.copy()
    changed[:, -1] += 1
    later = reference(model, x).run(changed)
    np.testing.assert_array_equal(later[:, :-1], got[:, :-1], err_msg="a step must not see the steps after it")


def test_without_bias():
    torch.manual_seed(0)
    model = Steps(bias=False)
    model.linear = nn.Linear(16, 4, bias=False)
    result = reference(model, sequences())
    assert not result.layers[0].bias_ih.any()
    assert not result.layers[1].bias.any()
    np.testing.assert_allclose(result.run(sequences()), in_double(model, sequences()), rtol=0, atol=1e-12)


def test_vectors():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    x = sequences(shape=(5, 8))
    result = reference(model, x)
    assert not result.sequence
    assert [layer.name for layer in result.layers] == ["linear_0", "linear_2"]
    assert model.training, "the mode of the model must stay as it was"
    np.testing.assert_allclose(result.run(x), in_double(model, x), rtol=0, atol=1e-12)


def test_first_columns_are_taken_as_they_are():
    model = compress(classifier(), 8)
    layer = reference(model, sequences()).layers[0]
    np.testing.assert_array_equal(layer.weight_hh, model.gru.parametrizations.weight_hh_l0.original.detach().numpy())
    assert layer.weight_ih.shape == (3, 2, 1, 8)
    assert reference(classifier(), sequences()).layers[0].weight_ih.shape == (3, 16, 8, 1)


class Twins(nn.Module):
    """Two modules whose names are the same where a point becomes an underscore."""

    def __init__(self):
        super().__init__()
        self.a, self.a_b = nn.ModuleDict({"b": nn.Linear(8, 8)}), nn.Linear(8, 2)

    def forward(self, x):
        return self.a_b(self.a["b"](x))


def test_names():
    result = reference(Twins(), sequences())
    assert [layer.name for layer in result.layers] == ["a_b", "a_b_2"]
    assert result.name == "twins"
    assert reference(classifier(), sequences()).name == "sequence_classifier"
    assert reference(compress(classifier(), 8), sequences(), name="digits").name == "digits"


def test_other_parametrizations_are_taken_by_value():
    torch.manual_seed(0)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(8, 4)))
    got = reference(model, sequences()).run(sequences())
    np.testing.assert_allclose(got, in_double(model, sequences()), rtol=0, atol=1e-12)


def test_the_model_stays_as_it_is():
    model = compress(classifier(), 8)
    model(torch.from_numpy(sequences())).sum().backward()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    reference(model, sequences())
    for name, value in model.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, before[name]), name


def test_export():
    model = compress(classifier(), 8)
    x = sequences()
    network = export(model, x, name="digits")
    assert network.name == "digits"
    assert network.sequence
    assert network.flow.size == 8
    wanted = in_double(model, x)
    coarse = export(model, torch.from_numpy(x), weight_bits=6, activation_bits=8)
    fine = export(model, x, weight_bits=18, activation_bits=20, twiddle_bits=20, segments=1024)
    errors = [float(np.abs(net.run(x).real - wanted).max()) for net in (coarse, network, fine)]
    assert errors[0] > errors[1] > errors[2], f"more bits must come closer to the mathematics: {errors}"
    assert errors[1] < 0.01


def test_export_passes_the_options_of_quantization_on():
    with pytest.raises(Refusal, match="twiddle_bits must be from 4 to 20, not 99"):
        export(classifier(), sequences(), twiddle_bits=99)


@pytest.mark.parametrize(("sample", "message"), [
    (np.zeros((5, 6, 7)), r"^Sample inputs must have 8 features, .*, not the shape \(5, 6, 7\)"),
    (np.zeros((5, 8, 6)), r"^Sample inputs must have 8 features, .*; rearrange the axes$"),
    (np.zeros((0, 6, 8)), r"be not empty, not \(0, 6, 8\)"),
    (np.zeros(8), r"^Sample inputs must have the shape \(N, T, inputs\) or \(N, inputs\)"),
    (np.full((5, 6, 8), np.inf), r"^Sample inputs must be finite"),
    (np.zeros((5, 8)), r"gru \(GRU: it must take a sequence \(N, T, inputs\), not a vector"),
])
def test_wrong_samples_are_refused(sample, message):
    with pytest.raises(Refusal, match=message):
        reference(classifier(), sample)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_must_be_finite(value):
    model = compress(classifier(), 8)
    with torch.no_grad():
        model.linear.bias[3] = value
    with pytest.raises(Refusal, match=r"^Weights must be finite, but linear\.bias hold NaN or infinity"):
        reference(model, sequences())


def test_a_wrong_conversion_is_caught(monkeypatch):
    good = cell.first_columns

    def reversed_columns(matrix):
        return good(matrix)[..., ::-1].copy()

    monkeypatch.setattr(cell, "first_columns", reversed_columns)
    with pytest.raises(AssertionError, match=r"^The converted model differs from torch by"):
        reference(compress(classifier(), 8), sequences())


@pytest.mark.parametrize("run", [
    lambda m, x: m.fc(m.rnn(x)[0][:, 5]), lambda m, x: m.fc(m.rnn(x)[0].sum(1)),
    lambda m, x: m.fc(m.rnn(x)[0]) * (x.shape[1] / 10),
    lambda m, x: m.fc(m.rnn(pack_padded_sequence(x, [6] * len(x), batch_first=True))[1][-1])])
def test_what_holds_for_the_length_of_the_sample_alone_is_refused(run):
    model = Net(run, fc=nn.Linear(4, 2), rnn=nn.GRU(3, 4, batch_first=True))
    with pytest.raises(Refusal, match=r"^The model must do the same with sequences of any length, as its hardware does"
                                      r", but 6 steps and 7 are not alike to it; write y\[:, -1\] for the last step "
                                      r"and y\.mean\(1\) for y\.sum\(1\), and leave x\.shape out of calculations$"):
        reference(model, sequences(shape=(5, 6, 3)))


def test_sizes_that_follow_the_sample_are_taken():
    """A sum by the number of its steps is a mean; what says itself that it takes one length is left alone."""
    def five(m, x):
        assert x.shape[1] == 5
        return m.fc(m.rnn(x)[0][:, 4])

    for run in (lambda m, x: m.fc(m.rnn(x)[0].sum(1) / x.shape[1]), five):
        reference(Net(run, fc=nn.Linear(4, 2), rnn=nn.GRU(3, 4, batch_first=True)), sequences(shape=(5, 5, 3)))


def test_the_result_is_a_model_of_sim():
    assert isinstance(reference(classifier(), sequences()), sim.Model)


class Named(nn.Module):
    """Layers of given names, as torch allows them."""

    def __init__(self, first, second):
        super().__init__()
        self.names = first, second
        self.add_module(first, nn.GRU(8, 8, batch_first=True))
        self.add_module(second, nn.Linear(8, 4))

    def forward(self, x):
        first, second = (getattr(self, name) for name in self.names)
        return second(first(x)[0][:, -1])


@pytest.mark.parametrize(("first", "second", "made"), [
    ("for", 'a"b', ["for", "a_b"]), ("x" * 300, "x" * 301, ["x" * 60, "x" * 60 + "_2"]), ("1", "ä\n;", ["gru_1", None]),
    ("int", "module", ["int", "module"]), ("a b", "a-b", ["a_b", "a_b_2"])])
def test_any_name_of_a_module_becomes_one_that_files_and_languages_take(first, second, made):
    x = sequences()
    model = compress(Named(first, second), 4)
    assert inspect(model, x).exportable
    network = export(model, x)
    assert all(layer.name == name or name is None for layer, name in zip(network.layers, made, strict=True))
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,63}", layer.name) for layer in network.layers)
    np.testing.assert_allclose(reference(model, x).run(x), in_double(model, x), rtol=0, atol=1e-12)


def test_a_model_of_a_long_name():
    kind = type("X" * 300, (nn.Sequential,), {})
    assert export(kind(nn.Linear(8, 4)), sequences(shape=(8, 8))).name == "x" * 60
