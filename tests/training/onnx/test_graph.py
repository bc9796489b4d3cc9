"""ONNX files that say what nobody can compute: paths that are no files, sizes that no memory holds."""
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from circulant.sim.refusal import Refusal
from circulant.training import from_onnx, inspect
from circulant.training.conversion import reference
from circulant.training.onnx import graph, operators
from tests.training.onnx.nodes import floats, written

HUGE = 10**12
GEMM = [helper.make_node("Gemm", ["x", "a"], ["y"])]


def behind(op, inputs):
    """A node that makes the weights of constants, and a Gemm with them."""
    return [helper.make_node(op, inputs, ["a"]), *GEMM]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: None])
def test_what_is_no_file_is_refused(tmp_path, make):
    make(tmp_path / "net.onnx")
    with pytest.raises(Refusal, match=r"net.onnx must be a file that can be read, but it cannot be \(.+\); give anoth"):
        from_onnx(tmp_path / "net.onnx")


@pytest.mark.parametrize(("nodes", "shape", "constants", "named"), [
    (GEMM, [HUGE, 4], {"a": floats(4, 6)}, r"'y' is \(1000000000000, 6\)"),
    (GEMM, ["n", HUGE], {"a": floats(4, 6)}, r"'x' is \(2, 1000000000000\)"),
    (behind("ConstantOfShape", ["s"]), ["n", 4], {"s": np.array([4, HUGE])}, r"'a' is \(4, 1000000000000\)"),
    (behind("Expand", ["c", "s"]), ["n", 4], {"c": floats(1, 1), "s": np.array([4, HUGE])}, r"'a' is \(4, 10+\)"),
    (behind("Tile", ["c", "s"]), ["n", 4], {"c": floats(4, 1), "s": np.array([1, HUGE])}, r"'a' is \(4, 10+\)"),
    ([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[HUGE, HUGE])], ["n", 1, 4, 4], {}, "'y' is .* -9+5"),
    ([helper.make_node("Conv", ["x", "a"], ["y"], pads=[HUGE] * 4)], ["n", 1, 4, 4], {"a": floats(2, 1, 3, 3)}, "'y'"),
], ids=["batch", "features", "ConstantOfShape", "Expand", "Tile", "MaxPool", "Conv"])
def test_sizes_that_no_memory_holds_are_refused_unread(tmp_path, nodes, shape, constants, named):
    path = written(tmp_path / "net.onnx", nodes, shape, ["n"] + ["m"] * (len(shape) - 1), **constants)
    with pytest.raises(Refusal, match=rf"must have tensors of at most {graph.VALUES:,} values, .* but {named}"):
        from_onnx(path)


@pytest.mark.parametrize(("inputs", "message"), [
    (["c", "i"], r"^Node 'gather_0' \(Gather\) of the ONNX file must be computable, as it depends on no data, but it "
                 r"is not \(index 9 is out of bounds .*\); export the file again$"),
    (["x", "i"], r"net.onnx must be computable for inputs \(2, 4\), but it is not \(index 9 is out of bounds .*\); e")])
def test_an_index_that_nothing_has_is_refused(tmp_path, inputs, message):
    nodes = [helper.make_node("Gather", inputs, ["g"], axis=1), helper.make_node("Gemm", ["x", "a"], ["h"]),
             helper.make_node("Add", ["h", "g"], ["y"])]
    path = written(tmp_path / "net.onnx", nodes, ["n", 4], ["n", 2], a=floats(4, 2), c=floats(1, 2),
                   i=np.array([9], np.int64))
    with pytest.raises(Refusal, match=message):
        from_onnx(path)


def test_what_a_file_says_of_its_weights_is_inferred_again(tmp_path):
    """As torch's exporter writes it since 2.9: ``value_info`` of initializers, too."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2],
                                                                           strides=[2, 2]),
             helper.make_node("Reshape", ["m", "s"], ["f"]), helper.make_node("Gemm", ["f", "a"], ["y"])]
    path = written(tmp_path / "net.onnx", nodes, ["n", 1, 6, 6], ["n", 3], w=floats(2, 1, 3, 3), a=floats(8, 3),
                   s=np.array([0, -1]))
    model = onnx.load(path)
    model.graph.value_info.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [2, 1, 3, 3]))
    model.graph.value_info.append(helper.make_tensor_value_info("s", onnx.TensorProto.INT64, [2]))
    onnx.save(model, path)
    assert inspect(from_onnx(path), torch.zeros(2, 1, 6, 6)).exportable


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 17])
def test_constants_are_computed_under_the_opset_of_the_file(tmp_path, opset):
    """Zeros as initial states, of the batch size, as torch's older exporter writes them."""
    new = opset >= 13
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "at"], ["n"], axis=0),
             helper.make_node("Unsqueeze", ["n", "first"][:1 + new], ["n1"], **({} if new else {"axes": [0]})),
             helper.make_node("Concat", ["one", "n1", "h"], ["dims"], axis=0),
             helper.make_node("ConstantOfShape", ["dims"], ["zero"]),
             helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
             helper.make_node("GRU", ["t", "W", "R", "", "", "zero"], ["Y"], hidden_size=4),
             helper.make_node("Squeeze", ["Y", "second"][:1 + new], ["s"], **({} if new else {"axes": [1]})),
             helper.make_node("Gather", ["s", "last"], ["y"], axis=0)]
    numbers = {"at": np.array(0), "one": np.array([1]), "h": np.array([4]), "last": np.array(-1)}
    path = written(tmp_path / "net.onnx", nodes, ["n", 5, 3], ["n", 4], W=floats(1, 12, 3), R=floats(1, 12, 4),
                   **numbers, **({"first": np.array([0]), "second": np.array([1])} if new else {}))
    model = onnx.load(path)
    model.opset_import[0].version = opset
    onnx.save(model, path)
    x = torch.randn(8, 5, 3)
    assert [layer.returns for layer in reference(from_onnx(path, x[:2]), x).layers] == ["last"]


def test_the_table_of_operators_is_that_of_the_registry():
    """If it is not: paste what `operators.table()` gives into docs/onnx.md."""
    page = (Path(__file__).parents[3] / "docs" / "onnx.md").read_text("utf-8")
    assert operators.table() in page
    assert not set(operators.OPERATORS) & set(operators.WAYS_OUT)
