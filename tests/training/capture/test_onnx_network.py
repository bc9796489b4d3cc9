"""ONNX files as torch writes them, and as nobody should: what they become, and what is refused by name."""
import warnings

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training import export, from_onnx, inspect, reference
from tests.modules import Net
from tests.training.onnx.nodes import RNG, floats, written


class Reader(nn.Module):
    """A recurrent layer and a classifier of its last step, or of both ends."""

    def __init__(self, kind=nn.LSTM, layers=1, ends=False, both=False):
        super().__init__()
        self.rnn = kind(6, 8, num_layers=layers, batch_first=True, bidirectional=both)
        self.fc, self.ends, self.both = nn.Linear(16 if both else 8, 3), ends, both

    def forward(self, x):
        out, h = self.rnn(x)
        h = h[0] if isinstance(h, tuple) else h
        if self.both:
            return self.fc(torch.cat((h[-2], h[-1]), -1))
        return torch.log_softmax(self.fc(h[-1] if self.ends else out[:, -1]), -1)


def over_time(reduced):
    """The mean or the maximum of all steps, and a classifier."""
    return Net(lambda m, x: m.fc(reduced(m.rnn(x)[0], 1)), rnn=nn.GRU(6, 8, batch_first=True), fc=nn.Linear(8, 3))


def images():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(4, 6, 3), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3),
                          nn.Softmax(-1))
    model(torch.randn(8, 2, 8, 8) + 1)  # Running statistics that are not those of the start.
    return model


MODELS = {
    "lstm": (Reader, (4, 5, 6), ["lstm", "linear"]),
    "two gru": (lambda: Reader(nn.GRU, 2), (4, 5, 6), ["gru", "gru", "linear"]),
    "ends": (lambda: Reader(layers=2, ends=True), (4, 5, 6), ["lstm", "lstm", "linear"]),
    "both": (lambda: Reader(nn.GRU, both=True), (4, 5, 6), ["bidirectional", "linear"]),
    "mean": (lambda: over_time(torch.mean), (4, 5, 6), ["gru", "over_time", "linear"]),
    "maximum": (lambda: over_time(torch.amax), (4, 5, 6), ["gru", "over_time", "linear"]),
    "images": (images, (4, 2, 8, 8), ["conv", "pool", "conv", "activation", "pool", "flatten", "linear"]),
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU6(), nn.Linear(8, 3),
                                         nn.Sigmoid()), (4, 6),
                   ["linear", "activation", "linear", "activation", "linear", "activation"]),
}


def of_a_length(tmp_path, scale, length="T", **constants):
    """A file of a recurrent layer, whose last steps are scaled by what nodes make of the number of steps."""
    weights = {"w": floats(1, 4, 3), "r": floats(1, 4, 4), "zero": np.int64([0]), "axis": np.int64([1]),
               "one": np.int64([1])}
    nodes = [helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]),
             helper.make_node("RNN", ["turned", "w", "r"], ["steps", "h"], hidden_size=4),
             helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "axis"], ["T"], axis=0),
             *scale]
    return written(tmp_path / "length.onnx", nodes, [2, length, 3], [2, 4], **weights, **constants)


LAST = (helper.make_node("Sub", ["T", "one"], ["end"]),
        helper.make_node("Slice", ["steps", "end", "T", "zero"], ["cut"]),
        helper.make_node("Squeeze", ["cut", "both"], ["y"]))
DIVIDED = (helper.make_node("Squeeze", ["h", "zero"], ["last"]),
           helper.make_node("Cast", ["T"], ["count"], to=TensorProto.FLOAT),
           helper.make_node("Div", ["last", "count"], ["y"]))


def test_a_file_of_any_length_is_tried_with_a_longer_sequence(tmp_path):
    """Its module has the number of steps as a constant, and would be right for that one alone."""
    x = RNG.normal(0, 1, (5, 6, 3)).astype(np.float32)
    model = from_onnx(of_a_length(tmp_path, DIVIDED), x)
    with pytest.raises(Refusal, match=r"^The model must do the same with sequences of any length, .* but 6 steps and 7 "
                                      "are not alike to it; "):
        reference(model, x)


def test_the_last_step_may_be_found_by_the_number_of_steps(tmp_path):
    """The file is right for any length, though its module has the number of the step."""
    x = RNG.normal(0, 1, (5, 6, 3)).astype(np.float32)
    file = of_a_length(tmp_path, LAST, both=np.int64([0, 1]))
    exact = reference(from_onnx(file, x), x)
    assert [node.layer.kind for node in exact.nodes] == ["rnn"]


def test_a_length_that_the_file_says_is_its_contract(tmp_path):
    x = RNG.normal(0, 1, (5, 6, 3)).astype(np.float32)
    assert reference(from_onnx(of_a_length(tmp_path, DIVIDED, 6), x), x).run(x).shape == (5, 4)


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_what_torch_writes_comes_back(name, open_batch, tmp_path):
    make, shape, kinds = MODELS[name]
    torch.manual_seed(1)
    model, x, path = make().eval(), torch.randn(shape), tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of the older exporter, which needs no further package.
        torch.onnx.export(model, (x,), path, dynamo=False, input_names=["x"],
                          dynamic_axes={"x": {0: "n"}} if open_batch else None)
    again = from_onnx(path, x)
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x), rtol=0, atol=1e-5)
    assert inspect(again, x).exportable, str(inspect(again, x))
    network = export(again, x)
    assert [layer.kind for layer in network.stages] == kinds
    assert np.array_equal(network.run(x.numpy()).integers.argmax(-1), model(x).argmax(-1).numpy())


def test_a_product_and_a_sum_are_a_linear_layer(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "a"], ["p"]), helper.make_node("Add", ["b", "p"], ["s"]),
             helper.make_node("Clip", ["s", "low", "high"], ["c"]), helper.make_node("HardSigmoid", ["c"], ["y"],
                                                                                     alpha=1 / 6, beta=0.5)]
    model = from_onnx(written(tmp_path / "net.onnx", nodes, ["n", 4], ["n", 3], a=floats(4, 3), b=floats(3),
                              low=np.float32(-1), high=np.float32(2)))
    network = export(model, torch.randn(20, 4))
    assert [layer.kind for layer in network.layers] == ["linear", "activation", "activation"]


def test_refusals(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(Refusal, match=r"must be a valid ONNX model, but it is not"):
        from_onnx(path)
    with pytest.raises(Refusal, match=r"^Nodes of the ONNX file must be of the operators of docs/onnx.md, not Det "):
        from_onnx(written(path, [helper.make_node("Det", ["x"], ["y"], name="d")], ["n", 4, 4], ["n"]))
    gelu = [helper.make_node("Erf", ["x"], ["y"], name="bell")]
    with pytest.raises(Refusal, match=r"not Erf \('bell'\); export with opset 20, in which Gelu is a node$"):
        from_onnx(written(path, gelu, ["n", 4], ["n", 4]))
    steps = [helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(Refusal, match=r"must say the size of every axis but the batch, or data must, but its input is "
                                      r"\(any, any, 4\); give data of that shape$"):
        from_onnx(written(path, steps, ["n", "t", 4], ["n", "t", 4]))
    with pytest.raises(Refusal, match=r"takes inputs of the shape \(any, any, 4\), not \(any, 3\); rearrange the axes"):
        from_onnx(path, np.zeros((2, 3)))
    wrong = [helper.make_node("Gemm", ["x", "a"], ["y"])]
    with pytest.raises(Refusal, match=r"the shapes of its nodes contradict each other for inputs \(2, 4\)"):
        from_onnx(written(path, wrong, ["n", 4], ["n", 3], a=floats(5, 3)))


@pytest.mark.parametrize("bias", [np.nan, np.inf])
def test_a_file_whose_outputs_are_not_finite_is_refused(bias, tmp_path):
    path = written(tmp_path / "net.onnx", [helper.make_node("Gemm", ["x", "a", "b"], ["y"])], ["n", 4], ["n", 2],
                   a=floats(4, 2), b=np.array([0, bias], np.float32))
    with pytest.raises(Refusal, match=r"must give finite outputs, but gives NaN or infinity for inputs \(2, 4\)"):
        from_onnx(path)


def test_unknown_operators_are_named_the_commonest_first(tmp_path):
    nodes = [helper.make_node("Det", ["x"], ["a"], name="d"), helper.make_node("Erf", ["a"], ["b"], name="e0"),
             *(helper.make_node("Erf", [f"b{n}" if n else "b"], [f"b{n + 1}"], name=f"e{n + 1}") for n in range(3)),
             helper.make_node("InstanceNormalization", ["b3", "s", "s"], ["y"], name="l")]
    with pytest.raises(Refusal, match=r"^Nodes of the ONNX file must be of the operators of docs/onnx.md, not Erf "
                                      r"\('e0', 'e1', 'e2' and 1 more\), Det \('d'\), InstanceNormalization \('l'\); "
                                      r"export with opset 20, in which Gelu is a node, use BatchNormalization, whose"):
        from_onnx(written(tmp_path / "net.onnx", nodes, ["n", 4, 4], ["n"], s=np.ones(4, np.float32)))


ARITHMETIC = {
    "Sub": {"c": floats(4)}, "Mul": {"c": floats(1, 4)}, "Div": {"c": floats(4)}, "Max": {"c": np.float32(0)},
    "Where": {"c": np.array([True, False, True, True]), "d": floats(4), "x": None}, "Sum": {"c": floats(4)},
    "Mean": {"c": floats(4)}, "PRelu": {"c": np.array([0.1, 0.2, 0.3, 0.4], np.float32)}, "Neg": {},
    "Min": {"c": np.float32(0.5)}, "Add": {"c": np.float32(2)},
}


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_with_constants(op, tmp_path):
    given = {name: value for name, value in ARITHMETIC[op].items() if value is not None}
    inputs = ["c", "x", "d"] if op == "Where" else ["x", *given]
    path = written(tmp_path / "net.onnx", [helper.make_node(op, inputs, ["y"])], ["n", 4], ["n", 4], **given)
    x = RNG.normal(0, 1, (40, 4)).astype(np.float32)
    network, model = export(from_onnx(path), x), from_onnx(path)
    wanted = model(torch.tensor(x)).numpy()
    assert abs(network.run(x).real - wanted).max() < 2e-3 * max(1, abs(wanted).max())


@pytest.mark.parametrize(("node", "shape", "constants", "message"), [
    (("Div", ["c", "x"]), ["n", 4], {"c": floats(4)}, "it must divide by a constant"),
    (("Mul", ["x", "c"]), [2, 4], {"c": floats(2, 4)}, "a constant must be the same for all samples of a batch"),
    (("Clip", ["x", "c", "d"]), ["n", 4], {"c": np.float32(1), "d": np.float32(0)}, "its ends must ascend"),
    (("Dropout", ["x", "c", "d"]), ["n", 4], {"c": np.float32(0.5), "d": np.array(True)}, "drops values by chance"),
    (("Mul", ["i", "i"]), ["n", 4], {}, "floating-point numbers, as integers wrap around"),
    (("Slice", ["x", "a", "b"]), [2, 4], {"a": np.array([0, 0]), "b": np.array([1, 4])}, "must leave the batch, axis "),
    (("Pad", ["x", "p"]), ["n", 4], {"p": np.array([0, -1, 0, 0])}, "its pads must not be negative; use Slice"),
    (("ReduceSum", ["x"]), [2, 4], {}, r"it must not reduce the batch, axis 0"),
    (("Sin", ["x"]), ["n", 4], {}, "must be of the operators of docs/onnx.md"),
    (("Identity", ["i"]), ["n", 4], {}, "it must give floating-point numbers")])
def test_arithmetic_that_is_refused(node, shape, constants, message, tmp_path):
    op, inputs = node
    nodes = [helper.make_node(op, inputs, ["y"])]
    if "i" in inputs:
        nodes = [helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT32), helper.make_node(op, inputs, ["j"]),
                 helper.make_node("Cast", ["j"], ["y"], to=TensorProto.FLOAT)]
    path = tmp_path / "net.onnx"
    result = [] if op == "ReduceSum" else [None, None]
    with pytest.raises(Refusal, match=message):
        export(from_onnx(written(path, nodes, shape, result, **constants)), floats(2, 4))


@pytest.mark.parametrize(("node", "shape", "constants", "wanted"), [
    (("Relu", ["x"], {}), [6], {}, lambda x: np.maximum(x, 0)),
    (("Abs", ["x"], {}), [6], {}, np.abs),
    (("Softmax", ["x"], {"axis": 0}), [6], {}, lambda x: x),
    (("MatMul", ["x", "a"], {}), [2, 6], {"a": np.eye(6, dtype=np.float32)[:, :2] / 2}, lambda x: x[..., :2] / 2),
    (("Mul", ["x", "a"], {}), [6], {"a": np.arange(6, dtype=np.float32)}, lambda x: x * np.arange(6)),
    (("ReduceMax", ["x"], {"axes": [0], "keepdims": 0}), [3, 6], {}, lambda x: x.max(1)),
    (("Transpose", ["x"], {}), [1, 6], {}, lambda x: x.swapaxes(1, 2))], ids=lambda part: str(part)[:12])
def test_a_file_without_an_axis_for_the_batch_takes_each_sample(node, shape, constants, wanted, tmp_path):
    op, inputs, options = node
    path = written(tmp_path / "net.onnx", [helper.make_node(op, inputs, ["y"], **options)], shape,
                   [None] * (1 if op == "ReduceMax" else len(shape)), **constants)
    x = floats(9, *shape)
    network = export(from_onnx(path, x), x)
    assert abs(network.run(x).real.reshape(9, -1) - wanted(x).reshape(9, -1)).max() < 2e-3


@pytest.mark.parametrize(("node", "shape", "constants", "wanted"), [
    (("Pad", ["x", "p", "c"], {}), ["n", 4], {"p": np.array([0, 1, 0, 2]), "c": np.float32(0.5)},
     lambda x: np.pad(x, ((0, 0), (1, 2)), constant_values=0.5)),
    (("Pad", ["x", "p"], {"mode": "reflect"}), ["n", 4], {"p": np.array([0, 1, 0, 2])},
     lambda x: np.pad(x, ((0, 0), (1, 2)), mode="reflect")),
    (("Concat", ["c", "x"], {"axis": 1}), [2, 4], {"c": np.ones((2, 2), np.float32)},
     lambda x: np.concatenate((np.ones((len(x), 2)), x), 1)),
    (("Concat", ["x", "c"], {"axis": 0}), [4], {"c": np.ones(2, np.float32)},
     lambda x: np.concatenate((x, np.ones((len(x), 2))), 1)),
    (("Slice", ["x", "a", "b", "d", "e"], {}), ["n", 5], {"a": np.array([-1]), "b": np.array([-6]), "d": np.array([1]),
                                                         "e": np.array([-2])}, lambda x: x[:, ::-2]),
    (("Gather", ["x", "p"], {"axis": 1}), ["n", 5], {"p": np.array([[3, -1], [0, 0]])},
     lambda x: x[:, [3, 4, 0, 0]]),
    (("Tile", ["x", "p"], {}), ["n", 3], {"p": np.array([1, 2])}, lambda x: np.tile(x, (1, 2))),
    (("Expand", ["x", "p"], {}), [1, 3], {"p": np.array([2, 2, 3])}, lambda x: np.tile(x.reshape(-1, 3), (1, 4)))])
def test_moves_of_values(node, shape, constants, wanted, tmp_path):
    op, inputs, options = node
    path = written(tmp_path / "net.onnx", [helper.make_node(op, inputs, ["y"], **options)], shape,
                   [None] * (3 if op in ("Expand", "Gather") and len(shape) + constants["p"].ndim > 2 else len(shape)),
                   **constants)
    x = floats(9, *(shape[1:] if "n" in shape or shape == [2, 4] else shape))
    network = export(from_onnx(path, x), x)
    assert abs(network.run(x).real.reshape(9, -1) - wanted(x).reshape(9, -1)).max() < 2e-3


def test_sizes_that_follow_from_computed_ones_are_found(tmp_path):
    """Half of the features, a state of zeros and a loop, as torch writes them for any number of samples."""
    def halved(m, x):
        h = torch.zeros(x.shape[0], 4)
        for step in range(2):
            h = m.cell(x[:, step].chunk(2, -1)[1], h)
        return m.fc(h)

    model = Net(halved, cell=nn.RNNCell(4, 4), fc=nn.Linear(4, 2)).eval()
    x, path = torch.randn(9, 2, 8), tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    network = export(from_onnx(path, x), x)
    assert abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 5e-3


def test_an_output_that_is_constant_is_refused(tmp_path):
    nodes = [helper.make_node("Shape", ["x"], ["y"], start=1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    with pytest.raises(Refusal, match="must have an output that depends on its input, not 'y', which is constant; exp"):
        from_onnx(tmp_path / "n.onnx")


def test_one_output_of_several_and_an_open_batch_of_minus_one(tmp_path):
    given, *results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [-1, 4]) for name in ("x", "y", "z")]
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Det", ["x"], ["q"]),
             helper.make_node("Sigmoid", ["x"], ["z"])]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [given], results), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    x = floats(9, 4)
    assert abs(export(from_onnx(path, x, output="y"), x).run(x).real - np.maximum(x, 0)).max() < 1e-3
    with pytest.raises(Refusal, match=r"^Of .*net.onnx one output must be named, not None: y, z; import it with "):
        from_onnx(path, x)
    with pytest.raises(Refusal, match=r"one output must be named, not 'q': y, z;"):
        from_onnx(path, x, output="q")
    with pytest.raises(Refusal, match=r"has no output 'q', only y; leave it out$"):
        from_onnx(written(path, nodes[:1], ["n", 4], ["n", 4]), output="q")


def test_several_inputs_are_named(tmp_path):
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "h", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "h"], ["y"])], "g", given[:2], given[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    with pytest.raises(Refusal, match=r"must have one input, not 2 \(x, h\); export the model without states, "):
        from_onnx(tmp_path / "n.onnx")


@pytest.mark.parametrize(("opset", "options", "right"), [
    (11, {}, False), (11, {"axis": 2}, True), (11, {"axis": -1}, True), (13, {}, True)])
def test_a_softmax_goes_over_the_axes_of_its_opset(opset, options, right, tmp_path):
    path = written(tmp_path / "net.onnx", [helper.make_node("MatMul", ["x", "a"], ["p"]),
                                           helper.make_node("Softmax", ["p"], ["y"], name="soft", **options)],
                   ["n", 3, 4], ["n", 3, 5], a=floats(4, 5))
    model = onnx.load(path)
    model.opset_import[0].version = opset
    onnx.save(model, path)
    if right:
        assert inspect(from_onnx(path), torch.zeros(2, 3, 4)).exportable
    else:
        with pytest.raises(Refusal, match=r"^Node 'soft' \(Softmax\) of the ONNX file cannot be imported: before opset "
                                          r"13 it goes over all axes from axis 1 on; give it the last axis$"):
            from_onnx(path)
