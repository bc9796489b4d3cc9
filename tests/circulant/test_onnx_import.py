import json

import numpy as np
import pytest
import torch
from onnx import helper
from torch import nn

from circulant.sim.golden.network import Network
from circulant.sim.vectors import Vectors
from tests.circulant.conftest import contents
from tests.processes import call
from tests.training.onnx.nodes import floats, written
from tests.training.onnx.test_quantizers import perceptron


@pytest.fixture
def net(tmp_path):
    nodes = [helper.make_node("Gemm", ["x", "a"], ["p"]), helper.make_node("Tanh", ["p"], ["t"]),
             helper.make_node("Gemm", ["t", "b"], ["y"])]
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(0, 1, (30, 4)))
    return written(tmp_path / "net.onnx", nodes, ["n", 4], ["n", 3], a=floats(4, 6), b=floats(6, 3))


def test_a_file_becomes_a_run_folder(net, tmp_path, capsys):
    out = tmp_path / "out"
    assert call("import", net, "--data", tmp_path / "data.npz", "--out", out, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    network, vectors = Network.load(out), Vectors.load(out / "vectors.npz")
    assert (said["network"], said["inspection"]["exportable"]) == (network.hash, True)
    assert [layer.kind for layer in network.layers] == ["linear", "activation", "linear"]
    assert vectors.network == network.hash
    assert len(vectors.inputs) == 30
    assert call("generate", out, "--multipliers", 12) == 0
    assert (out / "hardware" / "manifest.json").exists()
    assert call("quantize", out, "--set", "quantization.weight_bits=9") == 0
    assert Network.load(out).hash != network.hash


def test_a_data_set_with_targets(net, tmp_path, capsys):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "set.npz", x=rng.normal(0, 1, (40, 4)), y=rng.integers(0, 3, 40))
    assert call("import", net, "--data", tmp_path / "set.npz", "--out", tmp_path / "out") == 0
    assert "go on with: circulant generate" in capsys.readouterr().out
    assert len(Vectors.load(tmp_path / "out" / "vectors.npz").inputs) == 8


def test_a_quantized_file_says_how_many_outputs_are_equal(tmp_path, capsys):
    path, x = perceptron(tmp_path / "net.onnx"), np.random.default_rng(0).normal(0, 0.4, (60, 10))
    np.savez(tmp_path / "data.npz", x=x)
    assert call("import", path, "--data", tmp_path / "data.npz", "--out", tmp_path / "out", "--json") == 0
    said = json.loads(capsys.readouterr().out)["quantizers"]
    assert said["values"] == 300
    assert 270 < said["equal"] <= 300
    assert said["greatest_difference"] in (0, 1 / 16, 2 / 16)
    network = Network.load(tmp_path / "out")
    assert network.layers[1].product.weight.width == 8
    assert call("import", path, "--data", tmp_path / "data.npz", "--out", tmp_path / "two") == 0
    assert f"Against the quantized file: {said['equal']} of 300 output values are equal" in capsys.readouterr().out
    assert call("import", path, "--data", tmp_path / "data.npz", "--out", tmp_path / "three", "--ignore-quantizers",
                "--json") == 0
    assert json.loads(capsys.readouterr().out)["quantizers"] is None
    assert Network.load(tmp_path / "three").layers[1].product.weight.width == 12


def test_a_run_is_not_replaced_unasked(net, tmp_path, capsys, finished):
    arguments = "import", net, "--data", tmp_path / "data.npz"
    old = contents(finished.folder)
    assert call(*arguments, "--out", finished.folder) == 2
    assert capsys.readouterr().err == (
        f"{finished.folder} must hold no run, but has experiment.toml; choose another name, or replace "
        "it with --force (force=True in Python)\n")
    assert contents(finished.folder) == old
    assert call(*arguments, "--out", finished.folder, "--force") == 0
    assert call(*arguments, "--out", tmp_path / "new") == 0
    assert {*contents(finished.folder)} == {*contents(tmp_path / "new")}, "nothing of the old run is beside the new one"


def test_refusals(net, tmp_path, capsys):
    np.savez(tmp_path / "wrong.npz", inputs=np.zeros((3, 4)))
    assert call("import", net, "--data", tmp_path / "wrong.npz") == 2
    assert "must hold the keys x, but lacks x; it has inputs" in capsys.readouterr().err
    assert call("import", tmp_path / "none.onnx", "--data", tmp_path / "wrong.npz") == 2
    assert capsys.readouterr().err == (
        f"An ONNX file must be a file that exists, but {tmp_path}/none.onnx does not; name another\n")
    assert call("import", tmp_path / "none.onnx") == 2
    assert "An ONNX file must be a file that exists" in capsys.readouterr().err
    assert call("import", net) == 2
    assert capsys.readouterr().err == (
        "Formats are fitted to inputs, which --data names, but it is not given; write it with "
        f"numpy.savez('FILE.npz', x=inputs), or see first what becomes of the file: circulant inspect {net}\n")
    assert call("import", net, "--data", tmp_path / "none.npz") == 2
    assert f"The data of --data must be a file that exists, but {tmp_path}/none.npz " in capsys.readouterr().err


def test_the_module_is_one_of_torch(net):
    from circulant import from_onnx

    model = from_onnx(net)
    assert isinstance(model, nn.Module)
    assert sum(parameter.numel() for parameter in model.parameters()) == 4 * 6 + 6 + 6 * 3 + 3
    assert model(torch.zeros(2, 4)).shape == (2, 3)
