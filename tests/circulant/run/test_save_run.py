"""A run folder of what was made in Python: the commands go on with it, and it holds one network."""
import json

import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.run.kept import FLOAT
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from tests.circulant.conftest import contents
from tests.processes import call

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (40, 5, 6)).astype(np.float32)
DATA = circulant.Dataset("mine", X, np.arange(40) % 3, X[:12], np.arange(12) % 3, classes=3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.linear = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.linear(self.gru(x)[0][:, -1])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return circulant.compress(Net(), {"gru": 4})


@pytest.fixture
def folder(model, tmp_path):
    network = circulant.export(model, DATA.train_x, weight_bits=9)
    assert circulant.save_run(tmp_path / "mine", model, network, DATA) == tmp_path / "mine"
    assert Network.load(tmp_path / "mine").hash == network.hash
    return tmp_path / "mine"


def test_commands_go_on_with_it(folder, capsys):
    assert call("generate", folder, "--multipliers", 16) == 0
    assert call("generate", folder, "--target", "c") == 0
    assert call("quantize", folder, "--set", "quantization.weight_bits=7") == 0
    assert Network.load(folder).layers[0].products["input_product"].weight.width == 7
    text = (folder / "experiment.toml").read_text()
    assert "weight_bits = 7" in text
    assert 'block_size = {"gru.weight_ih_l0" = 4' in text
    assert call("generate", folder) == 0
    capsys.readouterr()
    assert call("train", folder) == 2
    assert "data.name = 'saved' must stand in a run folder" in capsys.readouterr().err
    assert call("quantize", folder, "--set", "quantization.finetune_epochs=2") == 2
    assert "train it in Python, and save the run again" in capsys.readouterr().err
    (folder / FLOAT).write_bytes(b"")
    assert call("quantize", folder) == 2
    assert "float.npz must be the file of training.json beside it" in capsys.readouterr().err


def test_widths_are_those_of_the_network(model, tmp_path):
    network = circulant.export(model, DATA.train_x, weight_bits=9, activation_bits=14,
                               tensors={"linear.weight_bits": 6})
    circulant.save_run(tmp_path, model, network, DATA, name="widths")
    from circulant.experiment import load

    bits = load(tmp_path).quantization
    assert bits.weight_bits == {"gru.input_product": 9, "gru.recurrent_product": 9, "linear.product": 6}
    assert (bits.activation_bits, bits.spectrum_bits, load(tmp_path).name) == (14, 15, "widths")


@pytest.mark.parametrize("other", [Net(), nn.Sequential(nn.Flatten(), nn.Linear(30, 3))], ids=["weights", "layers"])
def test_a_network_of_another_model(model, tmp_path, other):
    network = circulant.export(model, DATA.train_x)
    with pytest.raises(Refusal, match=r"^The network 'net' must be of the model as it is, but it has other layers"):
        circulant.save_run(tmp_path / "mine", other, network, DATA)
    assert not (tmp_path / "mine").exists()


def test_a_run_is_not_replaced_unasked(model, finished):
    network, old = circulant.export(model, DATA.train_x), contents(finished.folder)
    with pytest.raises(Refusal, match=r"^.* must hold no run, but has experiment.toml; choose another n"):
        circulant.save_run(finished.folder, model, network, DATA)
    with pytest.raises(Refusal, match=r"^The network 'net' must be of the model as it is"):
        circulant.save_run(finished.folder, Net(), network, DATA, force=True)
    assert contents(finished.folder) == old
    circulant.save_run(finished.folder, model, network, DATA, force=True)
    assert Network.load(finished.folder).hash == network.hash
    assert not finished.path("hardware").exists()
    assert not finished.path("verification.json").exists()


def test_arguments_of_another_type(model, tmp_path):
    network = circulant.export(model, DATA.train_x)
    with pytest.raises(Refusal, match=r"^save_run must be given a Dataset as data, not a tuple; "):
        circulant.save_run(tmp_path, model, network, (X, X))
    with pytest.raises(Refusal, match=r"^experiment: name must be letters"):
        circulant.save_run(tmp_path / "a b", model, network, DATA)


def test_a_regression_of_arrays(tmp_path):
    torch.manual_seed(0)
    trained = circulant.train_direct(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)),
                                     (X[:, 0], X[:, 0].sum(1)), block_size=4, epochs=20, lr=0.05, progress=False)
    network = circulant.export(trained.model, trained.data.train_x)
    circulant.save_run(tmp_path / "mine", trained.model, network, trained.data)
    record = json.loads((tmp_path / "mine" / "quantization.json").read_text())
    assert record["metric"] == "r2"
    assert record["r2"]["quantized"] == pytest.approx(trained.score, abs=0.01)
