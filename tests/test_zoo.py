"""The examples of models that others know: each exports, and the generated C computes the integers of golden."""
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.hw.c import Emulator
from circulant.sim.cosim import icarus
from circulant.sim.error.error_bound import error_bound
from circulant.training import ResetBeforeGru
from circulant.training.conversion import reference
from tests.modules import Net

ROOT = Path(__file__).parents[1]

EXAMPLES = {"mnist_rnn": 4, "dpd_gru": 4, "autoencoder": 8, "resnet8": 1}
"""Samples of each, in their own sizes."""

SMALL = {"dlrm": 12, "deepspeech": 4, "crnn_ocr": 2, "silero": 12, "m5": 1, "rnnoise": 2, "sklearn_mlp": 30,
         "keras_gru": 8, "lstm_autoencoder": 4, "keyword_se": 2, "ds_cnn": 1}
"""Samples of those that come in a small size, too, which is simulated."""


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "zoo" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_among_them_and_short():
    files = {path.stem: path.read_text("utf-8") for path in (ROOT / "examples" / "zoo").glob("*.py")}
    assert files.keys() == {*EXAMPLES, *SMALL}
    assert max(text.count("\n") for text in files.values()) <= 80


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_exports_exactly(name):
    torch.manual_seed(0)
    example = loaded(name)
    model, x = example.model(), example.samples(EXAMPLES[name])
    report = circulant.inspect(model, x)
    assert report.exportable, str(report)
    network, exact = circulant.export(model, x), reference(model, x).run(x.numpy())  # The latter equals torch.
    vectors = network.vectors(x.numpy())
    golden = network.output_format.real(vectors.outputs)
    assert golden.shape == exact.shape
    assert np.abs(golden - exact).max() < 0.03 * np.abs(exact).max()
    assert np.array_equal(Emulator(network).run_integers(vectors.inputs), vectors.outputs)


def small(name):
    """A small example as it is trained nowhere, its network, and samples by the names of its inputs."""
    torch.manual_seed(0)
    example = loaded(name)
    model, x = example.model(small=True), example.samples(SMALL[name], small=True)
    network = circulant.export(model, x)
    given = x if isinstance(x, torch.Tensor) else dict(zip((each.name for each in network.inputs), x, strict=True))
    return reference(model, x), network, given


@pytest.mark.parametrize("name", SMALL)
def test_a_small_one_is_near_torch(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some write a file of their network.
    exact, network, given = small(name)
    golden, wanted, bound = (each if network.many and len(network.outputs) > 1 else {network.exit: each} for each in (
        network.run(given), exact.run(given), error_bound(network, exact, given)))
    for each in network.outputs:
        assert (np.abs(golden[each].real - wanted[each]) <= bound[each] + 1e-9).all()


LIKE_OTHERS = ("silero", "deepspeech", "sklearn_mlp", "keras_gru", "lstm_autoencoder")
"""Those whose units other tests play together: only the soak simulates them."""


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.soak] * (n in LIKE_OTHERS)) for n in SMALL])
def test_a_small_one_is_exact_in_simulation(name, tmp_path, monkeypatch):
    """Every word of the Verilog, with stalls, is golden's."""
    monkeypatch.chdir(tmp_path)
    _, network, given = small(name)
    vectors = network.vectors(given)
    found = icarus.run(circulant.generate(network, multipliers=48).write("design"), vectors)
    assert found.mismatches == 0
    assert found.words >= sum(each.size for each in (vectors.outputs, *vectors.more_outputs.values()))


@pytest.mark.soak
@pytest.mark.parametrize("name", [*EXAMPLES, *SMALL])
def test_an_example_is_exact_under_verilator(name, tmp_path, monkeypatch, capsys):
    """From the model to its end, as a reader would run it; ResNet-8 takes the longest."""
    monkeypatch.chdir(tmp_path)
    loaded(name).main("design")
    assert " words compared, 0 mismatches, " in capsys.readouterr().out


STEPS = (12, 6, 5)
KINDS = {
    "mean": (STEPS, lambda m, x: m.out(m.rnn(x)[0].mean(1)), {"rnn": nn.GRU(5, 6, batch_first=True),
                                                              "out": nn.Linear(6, 3)}),
    "maximum": (STEPS, lambda m, x: m.out(x).amax(1), {"out": nn.Linear(5, 3)}),
    "plain": (STEPS, lambda m, x: m.rnn(x)[0], {"rnn": nn.RNN(5, 6, 2, nonlinearity="relu", batch_first=True)}),
    "rectified": (STEPS, lambda m, x: m.rnn(x)[0], {"rnn": ResetBeforeGru(5, 6, nonlinearity="relu",
                                                                          batch_first=True)}),
    "sum of steps": (STEPS, lambda m, x: m.rnn(x + m.down(torch.relu(m.up(x))))[0][:, -1], {
        "up": nn.Linear(5, 8), "down": nn.Linear(8, 5), "rnn": nn.LSTM(5, 4, batch_first=True)}),
    "rows": ((8, 2, 5, 4), lambda m, x: m.out(m.rnn(m.conv(x).permute(0, 2, 1, 3).flatten(2))[0]), {
        "conv": nn.Conv2d(2, 1, 1), "rnn": nn.GRU(4, 4, batch_first=True, bidirectional=True), "out": nn.Linear(8, 3)}),
    "positions": ((8, 3, 9), lambda m, x: m.out(torch.relu(m.conv(x)).transpose(1, 2)), {
        "conv": nn.Conv1d(3, 4, 3), "out": nn.Linear(4, 3)}),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_exact_under_verilator(name, tmp_path):
    shape, run, modules = KINDS[name]
    torch.manual_seed(0)
    model, x = Net(run, **modules).eval(), torch.randn(shape)
    network = circulant.export(model, x, activation_bits=12, weight_bits=9)
    circulant.generate(network, multipliers=40).write(tmp_path / "design")
    check = circulant.verify(tmp_path / "design", network.vectors(x.numpy()))
    assert (check.mismatches, check.words) == (0, network.vectors(x.numpy()).outputs.size)


@pytest.mark.soak
def test_activations_under_verilator(tmp_path):
    """Functions of every form behind images and vectors, in one design."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Tanh(), nn.Flatten(),
                          nn.Linear(12, 6), nn.ReLU6(), nn.Linear(6, 5), nn.Hardtanh(-0.3, 0.4), nn.Linear(5, 4),
                          nn.Sigmoid(), nn.Softmax(-1))
    x = torch.randn(12, 2, 6, 6)
    network = circulant.export(model, x, activation_bits=10, weight_bits=8)
    assert [layer.kind for layer in network.stages].count("activation") == 5
    circulant.generate(network, multipliers=24).write(tmp_path / "design")
    check = circulant.verify(tmp_path / "design", network.vectors(x.numpy()))
    assert check.mismatches == 0
    assert check.words_compared >= 12
