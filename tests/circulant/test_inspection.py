"""`circulant inspect` of an ONNX file, or of a class in a Python file, before there is any data."""
import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from circulant.cli import cli
from circulant.sim.refusal import Refusal

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.conv(x).relu().mean((2, 3)))

class Sum(nn.Module):
    def forward(self, x, y):
        return x + y

three = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    weight = numpy_helper.from_array(np.ones((3, 2), np.float32), "w")
    for name, batch, size in (("net.onnx", "N", 3), ("open.onnx", "N", "size")):
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, size])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 2])], [weight])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)


def inspect(*arguments):
    found = CliRunner().invoke(cli, ["inspect", *arguments], standalone_mode=False)
    if found.exception:
        raise found.exception
    return found


@pytest.mark.parametrize("arguments", [
    ("net.py:Net", "--shape", "1,16,65"), ("net.py:Sum", "--shape", "4", "--shape", "4"), ("net.onnx",),
    ("open.onnx", "--shape", "3")])
def test_a_model_without_an_experiment_is_inspected(folder, arguments):
    found = inspect(*arguments, "--json")
    assert found.return_value == 0
    said = json.loads(found.stdout)
    assert said["exportable"] and said["nodes"]
    assert " converted" in inspect(*arguments).stdout.splitlines()[-1]


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("net.py:Net",), r"^net\.py:Net must come with the shape of a sample, as no data says it; give it, with"),
    (("net.py:Net", "--shape", "1,a"), r"^--shape must be positive numbers with commas between them, such as "),
    (("net.py:three", "--shape", "3"), r"^The model to inspect = 'net\.py:three' must run, but "),
    (("net.py:Sum", "--shape", "3"), r"^The sample must be of the inputs of the model, x, y, not of 1; "),
    (("net.py:Net", "--shape", "3,16,65"), r"^1 part of the model cannot be converted: conv \(Conv2d: it fails on"),
    (("missing.onnx",), r"^An ONNX file must be a file that exists, but missing\.onnx does not; name another$"),
    (("open.onnx",), r"^open\.onnx must say the size of every axis but the batch, or data must, but its input is"),
    (("digits-gru", "--shape", "3"), r"^--shape and --output must come with an ONNX file or a FILE\.py:NAME, "),
])
def test_what_cannot_be_inspected_is_refused(folder, arguments, sentence):
    with pytest.raises(Refusal, match=sentence):
        inspect(*arguments)
