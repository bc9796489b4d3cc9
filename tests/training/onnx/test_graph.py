"""ONNX files that say what nobody can compute: paths that are no files, sizes that no memory holds."""
import os

import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training import from_onnx
from circulant.training.onnx import graph
from tests.training.onnx.test_network import floats, helper, written

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
