"""Nodes with weights or a window: padding, strides, and statistics of normalisations."""
import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from circulant.sim.refusal import Refusal
from circulant.training import export, from_onnx
from tests.training.onnx.nodes import floats, written


@pytest.mark.parametrize(("stride", "dilation", "padded"), [(1, 1, True), (1, 2, False), (2, 1, False), (2, 2, True)])
def test_zeros_in_front_of_steps_make_a_causal_convolution(stride, dilation, padded, tmp_path):
    """With a stride over sequences of one length, as images."""
    reach = 2 * dilation
    conv = helper.make_node("Conv", ["q" if padded else "t", "w"], ["c"], strides=[stride], dilations=[dilation],
                            **({} if padded else {"pads": [reach, 0]}))
    nodes = [*([] if stride > 1 else [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1])]),
             *([helper.make_node("Pad", ["x" if stride > 1 else "t", "p"], ["q"])] if padded else []), conv,
             helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 1])]
    if stride > 1 and not padded:
        conv.input[0] = "x"
    shape = ["n", 3, 9] if stride > 1 else ["n", 9, 3]
    constants = {"w": floats(4, 3, 3)} | ({"p": np.array([0, 0, reach, 0, 0, 0])} if padded else {})
    x = floats(8, *shape[1:])
    model = from_onnx(written(tmp_path / "net.onnx", nodes, shape, [None] * 3, **constants), x)
    kinds = [layer.kind for layer in export(model, x).layers]
    assert kinds == (["taps", "linear"] if stride == 1 else ["conv", "flatten"])


WINDOWS = {
    "zeros in front": ([helper.make_node("Pad", ["x", "p"], ["q"]), helper.make_node("Conv", ["q", "w"], ["y"])], 6),
    "more of them": ([helper.make_node("Pad", ["x", "p"], ["q"]),
                      helper.make_node("Conv", ["q", "w"], ["y"], pads=[1, 0, 1, 0])], 6),
    "same": ([helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER")], 6),
    "an end that no window reaches": ([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 0, 0],
                                                        strides=[2, 2])], 6),
    "a ceiling without effect": ([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2],
                                                   ceil_mode=1)], 6),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_padding_that_comes_to_the_same(name, tmp_path):
    """`from_onnx` compares with the evaluator of the package."""
    nodes, size = WINDOWS[name]
    constants = {"w": floats(2, 3, 3, 3)} if any("w" in node.input for node in nodes) else {}
    constants |= {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])} if nodes[0].op_type == "Pad" else {}
    x = floats(8, 3, size, size)
    model = from_onnx(written(tmp_path / "net.onnx", nodes, ["n", 3, size, size], [None] * 4, **constants), x)
    assert [layer.kind for layer in export(model, x).layers] == ["conv" if constants else "pool", "flatten"]


@pytest.mark.parametrize(("node", "message"), [
    (("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}), r"alike on both sides, not \[0, 0, 1, 1\]; pad both"),
    (("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}), "ceil_mode=1 adds windows beyond"),
    (("MaxPool", {"kernel_shape": [6, 6]}), r"its windows \[6, 6\] must fit into the images, which are \[5, 5\]; give"),
    (("MaxPool", {"kernel_shape": [3, 3], "pads": [2] * 4}), r"at most half of its windows \[3, 3\], not \[2, 2\]; p")])
def test_padding_that_is_refused(node, message, tmp_path):
    op, options = node
    size, constants = (6, {"w": floats(2, 3, 3, 3)}) if op == "Conv" else (5, {})
    node = helper.make_node(op, ["x", *constants], ["y"], **options)
    with pytest.raises(Refusal, match=message):
        from_onnx(written(tmp_path / "net.onnx", [node], ["n", 3, size, size], [None] * 4, **constants))


def test_a_batch_normalisation_of_an_old_opset_has_the_statistics_of_the_file(tmp_path):
    """As exporters write it before opset 14, with a momentum that inference does not use."""
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], momentum=0.9)
    given = {"s": floats(3), "b": floats(3), "m": floats(3), "v": abs(floats(3)) + 0.5}
    path = written(tmp_path / "net.onnx", [node], ["n", 3], ["n", 3], **given)
    model = onnx.load(path)
    model.opset_import[0].version = 11
    onnx.save(model, path)
    x = floats(9, 3)
    wanted = (x - given["m"]) / np.sqrt(given["v"] + 1e-5) * given["s"] + given["b"]
    assert abs(export(from_onnx(path, x), x).run(x).real - wanted).max() < 2e-3


def test_what_needs_a_batch_must_have_one(tmp_path):
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["y"], name="mean")]
    with pytest.raises(Refusal, match=r"'mean' .* it must take a batch, for which the file has no axis; give data "):
        from_onnx(written(tmp_path / "net.onnx", nodes, [1, 3, 4, 4], [None] * 4), floats(2, 1, 3, 4, 4))


def test_a_layer_normalisation_goes_over_the_last_axis(tmp_path):
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], epsilon=0.01)
    values, x = {"s": floats(4), "b": floats(4)}, floats(3, 5, 4)
    model = from_onnx(written(tmp_path / "net.onnx", [node], ["n", 5, 4], ["n", 5, 4], **values), x)
    wanted = torch.nn.functional.layer_norm(torch.from_numpy(x), (4,), *map(torch.from_numpy, values.values()), 0.01)
    assert torch.allclose(model(torch.from_numpy(x)), wanted, atol=1e-6)
    odd = helper.make_node("LayerNormalization", ["x", "s"], ["y"], axis=1)
    with pytest.raises(Refusal, match=r"it must normalise the last axis alone, not those from 1 on; flatten them"):
        from_onnx(written(tmp_path / "odd.onnx", [odd], ["n", 5, 4], ["n", 5, 4], s=floats(5, 4)), x)
