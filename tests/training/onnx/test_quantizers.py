"""Quantized ONNX files: what their quantizers become, exactly, and which are refused."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import circulant
from circulant.hw.c import Emulator
from circulant.sim.arith.fixed import Format
from circulant.sim.cosim import icarus
from circulant.sim.refusal import Refusal
from circulant.training import compress, export, from_onnx, inspect
from circulant.training.onnx import quant

QONNX = "qonnx.custom_op.general"
RNG = np.random.default_rng(0)


class File:
    """A graph from x to y, written node by node."""

    def __init__(self, shape, result):
        self.nodes, self.constants, self.shapes = [], {"zero": np.float32(0)}, (shape, result)

    def node(self, op, inputs, output, **options):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **options))
        return output

    def constant(self, name, value):
        self.constants[name] = np.asarray(value)
        return name

    def quant(self, source, output, scale, bits, *, zero="zero", **options):
        """A ``Quant`` of QONNX; of a constant where ``source`` is an array."""
        source = source if isinstance(source, str) else self.constant(f"{output}_float", source)
        names = [source, self.constant(f"{output}_scale", np.float32(scale)), zero,
                 self.constant(f"{output}_bits", np.float32(bits))]
        return self.node("Quant", names, output, domain=QONNX,
                         **{"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **options})

    def write(self, path):
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                  for name, shape in zip("xy", self.shapes, strict=True)]
        graph = helper.make_graph(self.nodes, "made", values[:1], values[1:],
                                  [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        domains = [helper.make_opsetid("", 17), helper.make_opsetid(QONNX, 1)]
        onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=8), path)
        return path


def floats(*shape, scale=0.4):
    return RNG.normal(0, scale, shape).astype(np.float32)


def perceptron(path):
    """Signed inputs, narrow weights, a bias on the grid of the sums, unsigned values of 6 bits, weights of 4."""
    file = File(["n", 10], ["n", 5])
    file.quant("x", "xq", 2 ** -6, 8)
    weight, bias = file.quant(floats(12, 10), "w", 2 ** -7, 8, narrow=1), file.quant(floats(12), "b", 2 ** -13, 16)
    file.node("Gemm", ["xq", weight, bias], "fc1", transB=1)
    file.quant(file.node("Relu", ["fc1"], "r"), "rq", 2 ** -5, 6, signed=0)
    file.quant(file.node("MatMul", ["rq", file.quant(floats(12, 5), "w2", 2 ** -5, 4)], "fc2"), "y", 2 ** -4, 8)
    return file.write(path)


def images(path):
    """One scale for each channel, batch normalisation left as a layer, both poolings, a residual sum."""
    file = File(["n", 2, 6, 6], ["n", 3])
    file.quant("x", "xq", 2 ** -5, 8)
    scales = 2.0 ** np.array([-6, -7, -7, -5]).reshape(4, 1, 1, 1)
    weight = file.quant(floats(4, 2, 3, 3), "w", scales, 6, narrow=1)
    file.node("Relu", [file.node("Conv", ["xq", weight], "c", pads=[1] * 4)], "r")
    file.quant("r", "rq", 2 ** -4, 8, signed=0)
    second = file.quant(floats(4, 4, 1, 1), "w2", 2 ** -4, 4)
    file.quant(file.node("Conv", ["rq", second], "c2"), "cq", 2 ** -4, 8)
    file.quant(file.node("Add", ["rq", "cq"], "s"), "sq", 2 ** -3, 7)
    file.node("MaxPool", ["sq"], "m", kernel_shape=[3, 3], strides=[3, 3])
    file.quant(file.node("AveragePool", ["m"], "a", kernel_shape=[2, 2]), "aq", 2 ** -3, 8)
    third = file.quant(floats(4, 3), "w3", 2 ** -6, 8)
    file.quant(file.node("MatMul", [file.node("Flatten", ["aq"], "f"), third], "fc"), "y", 2 ** -4, 10)
    return file.write(path)


def pairs(path):
    """QuantizeLinear and DequantizeLinear; the values of the unsigned one reach from -100/32 to 155/32."""
    file = File(["n", 8], ["n", 4])
    for name, (zero, scale) in {"u": (np.uint8(100), 2 ** -5), "s": (np.int8(0), 2 ** -3)}.items():
        file.constant(f"{name}_zero", zero)
        file.constant(f"{name}_scale", np.float32(scale))
    file.constant("w", RNG.integers(-127, 128, (8, 4)).astype(np.int8))
    file.constant("w_scale", np.float32(2 ** -8))
    file.node("DequantizeLinear", ["w", "w_scale", "s_zero"], "wq")
    for source, code, output, kind in (("x", "xc", "xq", "u"), ("fc", "yc", "y", "s")):
        if source == "fc":
            file.node("MatMul", ["xq", "wq"], "fc")
        file.node("QuantizeLinear", [source, f"{kind}_scale", f"{kind}_zero"], code)
        file.node("DequantizeLinear", [code, f"{kind}_scale", f"{kind}_zero"], output)
    return file.write(path)


FILES = {"perceptron": (perceptron, (400, 10)), "images": (images, (60, 2, 6, 6)), "pairs": (pairs, (400, 8))}


def half_up(values):
    return np.floor(values + 0.5)


@pytest.mark.parametrize("name", FILES)
def test_every_integer_is_that_of_the_file_but_for_ties(name, tmp_path, monkeypatch):
    """With ties rounded upwards in the file, too, nothing differs. As it is, ties differ; of the images' sums of 1/16
    that are rounded to 1/8, every second one is a tie."""
    write, shape = FILES[name]
    path, x = write(tmp_path / "net.onnx"), floats(*shape, scale=0.8)
    model = from_onnx(path, x[:2])
    assert inspect(model, x[:2]).exportable
    network = export(model, x)
    got = network.run(x).real
    assert (got == quant.file_outputs(path, x)).mean() > (0.4 if name == "images" else 0.95)
    monkeypatch.setitem(quant.ROUNDINGS, "ROUND", half_up)
    wanted = quant.file_outputs(path, x)
    assert np.array_equal(got, wanted)
    assert len(np.unique(wanted)) > 20
    vectors = network.vectors(x)
    assert np.array_equal(Emulator(network).run_integers(vectors.inputs), vectors.outputs)


def test_formats_are_those_of_the_quantizers(tmp_path):
    x = floats(50, 10)
    network = export(from_onnx(perceptron(tmp_path / "net.onnx"), x[:2]), x)
    kinds = [layer.kind for layer in network.layers]
    assert kinds == ["activation", "linear", "activation", "linear", "activation"]
    assert network.input_format == Format(8, 6)
    assert [layer.output_format for layer in network.layers[::2]] == [Format(8, 6), Format(7, 5), Format(8, 4)]
    first, second = network.layers[1].product, network.layers[3].product
    assert (first.weight, second.weight) == (Format(8, 7), Format(4, 5))
    assert first.output.frac == 13
    assert second.output.frac == 10


def test_a_scale_for_each_channel_takes_the_grid_of_the_finest(tmp_path):
    x = floats(20, 2, 6, 6)
    network = export(from_onnx(images(tmp_path / "net.onnx"), x[:2]), x)
    conv = network.layers[1].product
    assert conv.weight.frac == 7
    assert conv.weight.width > 6


def test_a_batch_normalisation_behind_quantized_weights_stays_a_layer(tmp_path):
    file = File(["n", 4], ["n", 3])
    file.quant("x", "xq", 2 ** -6, 8)
    file.node("MatMul", ["xq", file.quant(floats(4, 3), "w", 2 ** -7, 8)], "fc")
    names = [file.constant(name, value) for name, value in
             {"scale": floats(3), "shift": floats(3), "mean": floats(3), "variance": floats(3) ** 2 + 1}.items()]
    file.quant(file.node("BatchNormalization", ["fc", *names], "bn"), "y", 2 ** -5, 8)
    path, x = file.write(tmp_path / "net.onnx"), floats(300, 4)
    network = export(from_onnx(path, x[:2]), x, weight_bits=18)
    assert [layer.kind for layer in network.layers] == ["activation", "linear", "scale", "activation"]
    assert network.layers[1].product.weight == Format(8, 7)
    assert (network.run(x).real == quant.file_outputs(path, x)).mean() > 0.99


def recurrent(path):
    file = File([2, 5, 3], [2, 4])
    file.node("Transpose", ["x"], "t", perm=[1, 0, 2])
    names = [file.quant(floats(1, 12, size), name, 2 ** -6, 7) for name, size in (("W", 3), ("R", 4))]
    file.nodes.append(helper.make_node("GRU", ["t", *names], ["", "h"], name="cell", hidden_size=4,
                                       linear_before_reset=1))
    file.quant("h", "hq", 2 ** -7, 8)
    file.node("Squeeze", ["hq", file.constant("axis", np.array([0]))], "y")
    return file.write(path)


def test_weights_of_a_gru_keep_their_integers(tmp_path):
    x = floats(40, 5, 3)
    network = export(from_onnx(recurrent(tmp_path / "net.onnx")), x)
    gru, clip = network.layers
    assert {part.weight for part in gru.gates.parts} == {Format(7, 6)}
    assert clip.output_format == Format(8, 7)
    assert quant.file_outputs(tmp_path / "net.onnx", x).shape == (40, 4)


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize(("write", "shape", "multipliers"), [
    (pairs, (12, 8), 16), (images, (4, 2, 6, 6), 60), (recurrent, (4, 5, 3), 20)])
def test_a_quantized_design_is_exact_under_icarus(write, shape, multipliers, tmp_path):
    x = floats(*shape, scale=0.8)
    network = export(from_onnx(write(tmp_path / "net.onnx"), x[:2]), x)
    circulant.generate(network, multipliers=multipliers).write(tmp_path / "design")
    found = icarus.run(tmp_path / "design", network.vectors(x), seed=1)
    assert found.mismatches == 0
    assert found.words >= network.vectors(x).outputs.size


@pytest.mark.soak
def test_a_quantized_design_is_exact_under_verilator(tmp_path):
    x = floats(40, 10, scale=1.5)
    network = export(from_onnx(perceptron(tmp_path / "net.onnx"), x[:2]), x)
    circulant.generate(network, multipliers=24).write(tmp_path / "design")
    check = circulant.verify(tmp_path / "design", network.vectors(x))
    assert (check.mismatches, check.words) == (0, 200)


def test_without_quantizers_formats_follow_the_data(tmp_path):
    x = floats(50, 10)
    path = perceptron(tmp_path / "net.onnx")
    network = export(from_onnx(path, x[:2], quantizers=False), x)
    assert network.input_format.width == 16
    assert np.abs(network.run(x).real - quant.file_outputs(path, x)).max() < 0.3
    compressed = compress(from_onnx(path, x[:2], quantizers=False), block_size={"fc1": 2, "fc2": 1})
    assert export(compressed, x).layers[1].product.block_size == 2
    with pytest.raises(Refusal, match=r"^A layer whose weights have a quantizer must be dense, as one of blocks stores "
                                      r"spectra instead of weights, but 'fc1' has blocks of 2; import it without"):
        export(compress(from_onnx(path, x[:2]), block_size={"fc1": 2, "fc2": 1}), x)


@pytest.mark.parametrize(("options", "message"), [
    ({"scale": 0.3}, r"of node 'xq' \(Quant\) its scale must be a power of two, not 0\.3; train it with such scales"),
    ({"scale": [[0.5, 0.25, 1, 1]]}, r"scale and zero point of values must be constants, one for all channels"),
    ({"rounding_mode": "FLOOR"}, r"its rounding_mode must be one of ROUND, HALF_EVEN, HALF_UP, HALF_DOWN, not FLOOR"),
    ({"bits": 1}, r"its values must have 2 bits or more, as one signed bit is a sign; train it with 2"),
    ({"bits": 5.5}, r"the bit width one integer; export it for inference"),
    ({"bits": 32}, r"A quantizer must have a range of at most 24 bits, not from -2147483648 to 2147483647"),
    ({"zero": "half"}, r"and the zero point an integer; train it with one for each tensor; or import the file with "
                       r"--ignore-quantizers \(in Python quantizers=False\), which fits all formats to the data$")])
def test_quantizers_of_values_that_are_refused(options, message, tmp_path):
    file = File(["n", 4], ["n", 3])
    file.constant("half", np.float32(0.5))
    file.quant("x", "xq", **{"scale": 0.25, "bits": 8, **options})
    file.node("MatMul", ["xq", file.constant("w", floats(4, 3))], "y")
    with pytest.raises(Refusal, match=message):
        from_onnx(file.write(tmp_path / "net.onnx"))


def test_quantizers_of_weights_that_are_refused(tmp_path):
    file = File(["n", 4], ["n", 3])
    file.node("Gemm", ["x", file.quant(floats(3, 4), "w", 0.25, 8)], "y", transB=1, alpha=0.3)
    with pytest.raises(Refusal, match=r"its quantized weights must be integers of at most 18 bits times one power of "
                                      r"two, but they take more; give all channels one scale"):
        from_onnx(file.write(tmp_path / "net.onnx"))
    wide = File(["n", 4], ["n", 3])
    wide.node("MatMul", ["x", wide.quant(floats(4, 3, scale=9), "w", 2 ** -16, 24)], "y")
    with pytest.raises(Refusal, match=r"integers of at most 18 bits"):
        from_onnx(wide.write(tmp_path / "net.onnx"))
    pair = File(["n", 4], ["n", 4])
    pair.constant("one", np.float32(1))
    pair.node("QuantizeLinear", ["x", "one"], "c")
    pair.node("DequantizeLinear", ["c", pair.constant("two", np.float32(2))], "y")
    with pytest.raises(Refusal, match=r"of node 'y' \(DequantizeLinear\) it must stand right behind a Quant"):
        from_onnx(pair.write(tmp_path / "net.onnx"))


@pytest.mark.parametrize(("mode", "due"), [
    ("ROUND", [-2, -2, 0, 0, 2, 2]), ("HALF_UP", [-3, -2, -1, 1, 2, 3]), ("HALF_DOWN", [-2, -1, 0, 0, 1, 2]),
    ("FLOOR", [-3, -2, -1, 0, 1, 2]), ("CEIL", [-2, -1, 0, 1, 2, 3]), ("UP", [-3, -2, -1, 1, 2, 3]),
    ("DOWN", [-2, -1, 0, 0, 1, 2])])
def test_rounding_modes_of_the_operator(mode, due):
    """Halves, as the operator's specification rounds them."""
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]) / 4
    found = quant.quantized(halves, 0.25, 0, 8, signed=True, narrow=False, rounding=mode)
    assert np.array_equal(found * 4, due)


@pytest.mark.parametrize(("bits", "signed", "narrow", "due"), [
    (8, True, False, (-128, 127)), (8, True, True, (-127, 127)), (8, False, False, (0, 255)),
    (8, False, True, (0, 254))])
def test_ranges_of_the_operator(bits, signed, narrow, due):
    assert quant.integer_range(bits, signed=signed, narrow=narrow) == due
