"""The examples of models that others know: each exports, and the generated C computes the integers of golden."""
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.hw.c import Emulator
from circulant.training.conversion import reference

ROOT = Path(__file__).parents[1]

EXAMPLES = {"mnist_rnn": 4, "rnnoise": 2, "dpd_gru": 4, "autoencoder": 8, "resnet8": 1}
"""Samples of each."""


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "zoo" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_among_them_and_short():
    files = {path.stem: path.read_text("utf-8") for path in (ROOT / "examples" / "zoo").glob("*.py")}
    assert files.keys() == EXAMPLES.keys()
    assert max(text.count("\n") for text in files.values()) < 80


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
    if name == "resnet8":
        with pytest.raises(circulant.Refusal, match=r"^The layers of the C target must be of the kinds activation, "):
            Emulator(network)
    else:
        assert np.array_equal(Emulator(network).run_integers(vectors.inputs), vectors.outputs)


@pytest.mark.soak
def test_an_example_runs(tmp_path, monkeypatch, capsys):
    """The smallest one, to its end, under Verilator."""
    monkeypatch.chdir(tmp_path)
    loaded("dpd_gru").main("design")
    assert " words compared, 0 mismatches, " in capsys.readouterr().out


def test_activations_under_verilator(tmp_path):
    """Functions of every form behind images and vectors, in one design."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Tanh(), nn.Flatten(),
                          nn.Linear(12, 6), nn.ReLU6(), nn.Linear(6, 5), nn.Hardtanh(-0.3, 0.4), nn.Linear(5, 4),
                          nn.Sigmoid(), nn.Softmax(-1))
    x = torch.randn(12, 2, 6, 6)
    network = circulant.export(model, x, activation_bits=10, weight_bits=8)
    assert [layer.kind for layer in network.layers].count("activation") == 5
    circulant.generate(network, multipliers=24).write(tmp_path / "design")
    check = circulant.verify(tmp_path / "design", network.vectors(x.numpy()))
    assert check.mismatches == 0
    assert check.words_compared >= 12
