"""Recurrent nodes of an ONNX file: which cells they become, where the batch is, and what becomes of their states."""
import numpy as np
import pytest
import torch
from onnx import helper
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training import export, from_onnx, inspect
from circulant.training.models.cells import LinearRnn, PeepholeLstm, ResetBeforeGru
from tests.training.onnx.nodes import floats, written


def recurrent(path, op, *, hidden=4, w=None, peephole=False, batch=2, **options):
    """A recurrent node over x (T, N, inputs) behind a transposition, whose last step is given."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    inputs = ["t", "W", "R", "B", *(["", "", "", "P"] if peephole else [])]
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
             helper.make_node(op, inputs, ["", "h"], name="cell", hidden_size=hidden, **options),
             helper.make_node("Squeeze", ["h", "zero"], ["y"])]
    more = {"P": floats(1, 3 * hidden)} if peephole else {}
    return written(path, nodes, [batch, 5, 3], [batch, hidden], W=floats(1, gates * hidden, 3) if w is None else w,
                   R=floats(1, gates * hidden, hidden), B=floats(1, 2 * gates * hidden), zero=np.array([0]), **more)


@pytest.mark.parametrize(("op", "options", "kind"), [
    ("GRU", {"linear_before_reset": 1}, nn.GRU), ("GRU", {}, ResetBeforeGru), ("LSTM", {}, nn.LSTM),
    ("GRU", {"activations": ["Sigmoid", "Relu"]}, ResetBeforeGru), ("LSTM", {"peephole": True}, PeepholeLstm),
    ("RNN", {}, nn.RNN), ("RNN", {"activations": ["Relu"]}, nn.RNN),
    ("RNN", {"activations": ["Affine"], "activation_alpha": [1.0]}, LinearRnn)])
def test_both_grus_and_peepholes(op, options, kind, tmp_path):
    """`from_onnx` compares with the evaluator of the package."""
    model = from_onnx(recurrent(tmp_path / "cell.onnx", op, **options))
    assert type(model.cell) is kind
    rectified = "Relu" in options.get("activations", ())  # The package would take a tanh: nothing is compared.
    wanted = "relu" if rectified else "identity" if kind is LinearRnn else "tanh"
    assert getattr(model.cell, "nonlinearity", "tanh") == wanted
    x = torch.randn(6, 5, 3)
    assert inspect(model, x).exportable
    assert export(model, x).layers[0].kind == op.lower()


@pytest.mark.parametrize(("change", "message"), [
    ({"w": floats(1, 16, 4)}, r"its sizes contradict each other: W must be \(1, 16, 3\) for 3 inputs and hidden_size"),
    ({"clip": 1.0}, r"^Node 'cell' \(LSTM\) of the ONNX file cannot be imported: its activations must be Sigm"),
    ({"input_forget": 1}, r"Sigmoid, Tanh, Tanh without a clip, not Sigmoid, Tanh, Tanh with input_forget=1; train it"),
    ({"direction": "reverse"}, r"its direction must be forward or bidirectional, not reverse; reverse the data$"),
    ({"activations": ["Sigmoid", "Relu", "Tanh"]}, r"its activations must be Sigmoid, Tanh, Tanh without a clip, not")])
def test_recurrent_nodes_that_are_refused(change, message, tmp_path):
    with pytest.raises(Refusal, match=message):
        from_onnx(recurrent(tmp_path / "cell.onnx", "LSTM", **change))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("output", ["Y", "Y_h"])
def test_the_batch_is_where_a_recurrent_node_has_it(layout, output, tmp_path):
    """Steps come first in layout 0. Data has the batch first, and so has what comes out."""
    names = ["y", ""] if output == "Y" else ["", "y"]
    node = helper.make_node("GRU", ["x", "W", "R"], names, hidden_size=4, linear_before_reset=1, layout=layout)
    shape = [2, 5, 3] if layout else [5, 2, 3]
    path = written(tmp_path / "net.onnx", [node], shape, [None] * (4 if output == "Y" else 3), W=floats(1, 12, 3),
                   R=floats(1, 12, 4))
    x = floats(20, 5, 3)
    model = from_onnx(path, x[:2])
    assert (model.batch, model.batch_of_output) == ((0, 0) if layout else (1, 2 if output == "Y" else 1))
    wanted = model.gru_0(torch.tensor(x.swapaxes(0, 1)))[0].detach().numpy().swapaxes(0, 1)
    got = export(model, x).run(x).real
    assert abs(got - (wanted if output == "Y" else wanted[:, -1])).max() < 1e-2


def test_an_output_behind_whose_axes_the_batch_comes_is_refused(tmp_path):
    nodes = [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             helper.make_node("LSTM", ["steps", "W", "R"], ["", "y"], hidden_size=4, direction="bidirectional")]
    path = written(tmp_path / "net.onnx", nodes, ["n", 5, 3], [None] * 3, W=floats(2, 16, 3), R=floats(2, 16, 4))
    with pytest.raises(Refusal, match=r"^The output 'y' of the ONNX file must have the batch first, as its input has, "
                                      r"but it comes behind axes of 2; transpose it in the model$"):
        from_onnx(path, floats(2, 5, 3))


STATES = {
    "transposed and reshaped": ([helper.make_node("Transpose", ["H"], ["t"], perm=[1, 0, 2]),
                                 helper.make_node("Reshape", ["t", "flat"], ["y"])], ["n", 8], ""),
    "one by one": ([helper.make_node("Gather", ["H", "zero"], ["f"], axis=0),
                    helper.make_node("Gather", ["H", "one"], ["b"], axis=0),
                    helper.make_node("Concat", ["f", "b"], ["y"], axis=1)], ["n", 8], ""),
    "rectified": ([helper.make_node("Transpose", ["H"], ["t"], perm=[1, 0, 2]),
                   helper.make_node("Reshape", ["t", "flat"], ["r"]), helper.make_node("Relu", ["r"], ["y"])],
                  ["n", 8], ""),
    "all of them": ([helper.make_node("Relu", ["H"], ["y"])], [2, "n", 4], "must have the batch first"),
    "of one direction": ([helper.make_node("Gather", ["H", "zero"], ["y"], axis=0)], ["n", 4], ""),
    "cells": ([helper.make_node("Gather", ["C", "zero"], ["y"], axis=0)], ["n", 4], r"indexing with \[0\] is not supp"),
    "output": ([helper.make_node("Identity", ["H"], ["y"])], [2, "n", 4], "must have the batch first"),
    "cells at the end": ([helper.make_node("Identity", ["C"], ["y"])], [2, "n", 4], "must have the batch first"),
}


@pytest.mark.parametrize("name", STATES)
def test_last_states_are_tensors_like_all_others(name, tmp_path):
    """`from_onnx` compares with the evaluator of the package; what has no layer is refused by name."""
    nodes, result, refused = STATES[name]
    nodes = [helper.make_node("Transpose", ["x"], ["T"], perm=[1, 0, 2]),
             helper.make_node("LSTM", ["T", "W", "R"], ["", "H", "C"], hidden_size=4, direction="bidirectional"),
             *nodes]
    used = {each for node in nodes for each in node.input}
    numbers = {"zero": np.array(0), "one": np.array(1), "flat": np.array([-1, 8])}
    path = written(tmp_path / "net.onnx", nodes, ["n", 5, 3], result, W=floats(2, 16, 3), R=floats(2, 16, 4),
                   **{key: value for key, value in numbers.items() if key in used})
    x = torch.randn(8, 5, 3)
    if refused:
        with pytest.raises(Refusal, match=refused):
            export(from_onnx(path, x[:2]), x)
    else:
        assert export(from_onnx(path, x[:2]), x).stages[0].kind == "bidirectional"
