"""docs/numerics.md is enough to write an integer model from: tests/independent.py is one, and equals golden exactly."""
import ast
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.blend import FloatBlend
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Window
from circulant.sim.vectors import Vectors
from tests import independent
from tests.random_networks import Random

SIZES = (1, 2, 4, 8, 16)
ROOT = Path(__file__).parents[1]


def different(network, inputs, folder):
    """How many output integers differ between the files' independent model and golden, and how many there are."""
    network.save(folder)
    Vectors(inputs, network.run_integers(inputs), network.hash).save(folder / "vectors.npz")
    run = independent.load(folder)
    with np.load(folder / "vectors.npz") as vectors:
        expected, given = vectors["outputs"], vectors["inputs"].tolist()
    got = np.array([run(sample) for sample in given])
    assert got.shape == expected.shape
    return int((got != expected).sum()), expected


def assert_equal(layers, tmp_path, *, inputs, seed=0, argmax=False, **options):
    random = Random(seed)
    network = random.network(layers(random), inputs, **options)
    network = network.with_argmax() if argmax else network
    wrong, expected = different(network, random.inputs(network), tmp_path)
    assert wrong == 0, f"{wrong} of {expected.size} integers differ"
    assert argmax or len(np.unique(expected)) >= 8, "outputs that are all alike show nothing"
    return network


def test_digits_gru(tmp_path):
    """The network of `circulant run digits-gru`, its weights random."""
    assert_equal(lambda r: [r.gru("gru", 8, 64, 8), r.linear("linear", 64, 10, 8)], tmp_path, inputs=8, sequence=True)


@pytest.mark.parametrize("k", SIZES)
def test_an_lstm_with_peepholes_and_a_projection(k, tmp_path):
    assert_equal(lambda r: [r.lstm("lstm", 5, 11, k, "sequence", projection=7, peephole=True)], tmp_path, inputs=5,
                 seed=k, sequence=True)


@pytest.mark.parametrize("reset", ["after", "before"])
@pytest.mark.parametrize("k", SIZES)
def test_a_gru(k, reset, tmp_path):
    assert_equal(lambda r: [r.gru("gru", 5, 11, k, returns="sequence", reset=reset)], tmp_path, inputs=5, seed=k,
                 sequence=True)


@pytest.mark.parametrize("multiplier", ["truncated:5", "mitchell"])
def test_approximate_products(multiplier, tmp_path):
    network = assert_equal(lambda r: [r.gru("gru", 5, 11, 4, "sequence"), r.linear("linear", 11, 7, 8)], tmp_path,
                           inputs=5, sequence=True, multiplier=multiplier)
    assert network.multiplier == multiplier


@pytest.mark.parametrize("k", [*SIZES, 32, 64])
def test_a_perceptron_of_ragged_sizes(k, tmp_path):
    assert_equal(lambda r: [r.linear("first", 37, 29, k, relu=True), r.linear("second", 29, 7, max(1, k // 2))],
                 tmp_path, inputs=37, seed=k)


@pytest.mark.parametrize("reset", ["after", "before"])
def test_a_binary_point_for_each_block_row(reset, tmp_path):
    def layers(r):
        return [r.gru("gru", 5, 11, 2, "sequence", reset=reset), r.lstm("lstm", 11, 7, 4, "sequence", projection=6),
                r.linear("linear", 6, 9, 1)]

    network = assert_equal(layers, tmp_path, inputs=5, sequence=True, weight_bits=4, weight_scale="row")
    products = [each for layer in network.stages for each in layer.products.values()]
    assert len({product.row_shifts for product in products}) >= 4


@pytest.mark.parametrize("options", [{}, {"activation_table": "lut"}], ids=str)
def test_activations(options, tmp_path):
    functions = ["sigmoid"], ["leaky_relu", 0.07], ["tanh"], ["clip", -0.4, 0.6], ["relu"]

    def layers(r):
        return [each for n, function in enumerate(functions) for each in (
            r.linear(f"l{n}", 7, 7, 4), r.activation(f"a{n}", 7, *function))] + [r.linear("out", 7, 6, 2)]

    assert_equal(layers, tmp_path, inputs=7, **options)


@pytest.mark.parametrize("returns", ["last", "sequence"])
def test_both_directions(returns, tmp_path):
    """A GRU and behind it an LSTM, of different block sizes, each both ways."""
    def layers(r):
        gru = [r.gru(f"gru.{way}", 5, 6, 4, "sequence") for way in ("forward", "backward")]
        lstm = [r.lstm(f"lstm.{way}", 12, 5, 2, returns) for way in ("forward", "backward")]
        return [float_model.Bidirectional("gru", *gru), float_model.Bidirectional("lstm", *lstm),
                r.linear("out", 10, 3, 2)]

    assert_equal(layers, tmp_path, inputs=5, sequence=True)


@pytest.mark.parametrize("relu", [False, True])
def test_sums_of_vectors_and_of_steps(relu, tmp_path):
    def layers(r):
        around = (r.linear("body", 6, 9, 4, relu=True), r.linear("back", 9, 6, 2))
        aside = (r.linear("fewer", 6, 5, 1), r.activation("bent", 5, "tanh"))
        return [float_model.Residual("itself", 6, None, around, shortcut=(), relu=relu),
                float_model.Residual("both", 6, None, aside, shortcut=(r.linear("shortcut", 6, 5, 8),), relu=relu)]

    assert_equal(layers, tmp_path, inputs=6)
    assert_equal(lambda r: [*layers(r), r.gru("gru", 5, 4, 4)], tmp_path, inputs=6, sequence=True)


@pytest.mark.parametrize("bits", [9, 20])
@pytest.mark.parametrize("mode", ["max", "mean"])
def test_over_time(mode, bits, tmp_path):
    """Behind steps, and of what comes."""
    assert_equal(lambda r: [r.gru("gru", 5, 6, 4, "sequence"), r.linear("steps", 6, 7, 2),
                            FloatOverTime("pool", 7, mode), r.linear("out", 7, 4, 4)], tmp_path, inputs=5,
                 sequence=True, activation_bits=bits)
    assert_equal(lambda r: [FloatOverTime("pool", 5, mode)], tmp_path, inputs=5, sequence=True)


@pytest.mark.parametrize("options", [
    {"activation_table": "pwl", "activation_error": 0.01}, {"activation_table": "pwl", "segments": 9},
    {"activation_table": "lut"}, {"activation_table": "lut", "segments": 8}])
@pytest.mark.parametrize("bits", [9, 16])
def test_tables(options, bits, tmp_path):
    """Methods, and arguments so coarse or so wide that shifts go either way."""
    network = assert_equal(lambda r: [r.lstm("lstm", 3, 4, 2, "sequence")], tmp_path, inputs=3, sequence=True,
                           activation_bits=bits, **options)
    assert network.stages[0].sigmoid.method == options["activation_table"]


def test_hard_functions(tmp_path):
    assert_equal(lambda r: [r.gru("gru", 3, 5, 4, "sequence", hard=True)], tmp_path, inputs=3, sequence=True)


@pytest.mark.parametrize("mode", ["layer", "rms"])
@pytest.mark.parametrize("bits", [7, 16, 22])
def test_normalisations(mode, bits, tmp_path):
    assert_equal(lambda r: [r.linear("first", 6, 9, 4), r.norm("norm", 9, mode), r.linear("out", 9, 4, 2)], tmp_path,
                 inputs=6, activation_bits=bits)
    assert_equal(lambda r: [r.norm("norm", 5, mode)], tmp_path, inputs=5, sequence=True, activation_bits=bits)


@pytest.mark.parametrize(("taps", "dilation", "k"), [(2, 1, 1), (3, 2, 4), (4, 3, 2)])
def test_taps_of_a_causal_convolution(taps, dilation, k, tmp_path):
    assert_equal(lambda r: [r.taps("taps", 5, taps, dilation, k), r.linear("conv", taps * (-(-5 // k) * k), 7, k, True),
                            r.taps("again", 7, 2, 1, 1), r.linear("out", 14, 3, 2)], tmp_path, inputs=5, sequence=True)


@pytest.mark.parametrize("bits", [6, 16, 22])
def test_scans(bits, tmp_path):
    """A minGRU, its state behind a diagonal recurrence."""
    r = Random(bits)
    nodes = [Node(r.linear("gate", 5, 6, 2), ("x",)), Node(r.activation("z", 6, "sigmoid"), ("gate",)),
             Node(r.linear("new", 5, 6, 2), ("x",)), Node(FloatBlend("h", 6), ("z", "new")),
             Node(r.decay("d", 6), ("h",)), Node(r.spiral("s", 6), ("d",)), Node(r.linear("out", 6, 3, 1), ("s",))]
    model = float_model.Model("scans", (Input("x", Flow(5, sequence=True)),), tuple(nodes), ("out",))
    network = quantize(model, r.normal(20, 6, 5, scale=1), activation_bits=bits)
    wrong, expected = different(network, r.inputs(network, steps=9), tmp_path)
    assert wrong == 0 and len(np.unique(expected)) >= 8


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("k", [1, 4, 8])
def test_a_plain_recurrent_layer(k, nonlinearity, tmp_path):
    assert_equal(lambda r: [r.rnn("rnn", 5, 11, k, "sequence", nonlinearity=nonlinearity),
                            r.rnn("behind", 11, 6, 2, "sequence")], tmp_path, inputs=5, seed=k, sequence=True)


@pytest.mark.parametrize("reset", ["after", "before"])
def test_a_rectified_candidate(reset, tmp_path):
    network = assert_equal(lambda r: [r.gru("gru", 3, 5, 4, "sequence", reset=reset, nonlinearity="relu")], tmp_path,
                           inputs=3, sequence=True)
    assert network.stages[0].tanh.function == "relu"


@pytest.mark.parametrize("widths", [
    {"activation_bits": 4, "weight_bits": 3, "spectrum_bits": 5, "product_bits": 6, "twiddle_bits": 4},
    {"activation_bits": 24, "weight_bits": 18, "spectrum_bits": 26, "product_bits": 32, "twiddle_bits": 20}])
def test_narrow_and_wide_formats(widths, tmp_path):
    """Where nearly everything saturates, and where some shifts go to the left."""
    assert_equal(lambda r: [r.lstm("lstm", 9, 8, 8, "sequence", projection=8), r.linear("out", 8, 8, 16)], tmp_path,
                 inputs=9, sequence=True, **widths)


def images(r):
    """Every layer over images: a dense first convolution, then blocks of channels."""
    window = Window((3, 2), (2, 1), (1, 1))
    return [
        r.conv("first", 1, 5, k=1, grid=(7, 6), window=window, relu=True),
        FloatPool("max", 5, (4, 7), Window((2, 3), (1, 2), (1, 1)), "max"),
        r.scale("scale", 5),
        float_model.Residual(
            "residual", 5, (5, 4),
            (r.conv("body", 5, 6, k=4, grid=(5, 4), window=Window((3, 3), (1, 1), (1, 1)), relu=True),
                                    r.scale("normalised", 6)),
            (r.conv("shortcut", 5, 6, k=2, grid=(5, 4), window=Window((1, 1))),), relu=True),
        float_model.Residual("itself", 6, (5, 4),
                             (r.conv("same", 6, 6, k=8, grid=(5, 4), window=Window((1, 3), (1, 1), (0, 1))),),
                             ()),
        FloatPool("average", 6, (5, 4), Window((3, 2), (1, 1), (1, 0)), "average"),
        FloatPool("halved", 6, (5, 3), Window((1, 2)), "average"),
    ]


@pytest.mark.parametrize("order", ["pixels", "channels"])
def test_images_to_classes(order, tmp_path):
    def layers(r):
        return [*images(r), FloatFlatten("flat", 6, (5, 2), order), r.linear("out", 60, 4, 4)]

    assert_equal(layers, tmp_path, inputs=1, shape=(1, 7, 6))
    assert_equal(layers, tmp_path, inputs=1, shape=(1, 7, 6), argmax=True)


@pytest.mark.parametrize("order", ["pixels", "channels"])
def test_images_to_sequences(order, tmp_path):
    assert_equal(lambda r: [*images(r), FloatFlatten("flat", 6, (5, 2), order, True), r.gru("gru", 12, 6, 4)],
                 tmp_path, inputs=1, shape=(1, 7, 6))


def test_images_remain_images(tmp_path):
    """One axis, as the data of a Conv1d."""
    assert_equal(lambda r: [r.conv("conv", 3, 4, k=4, grid=(9, 1), window=Window((3, 1), (2, 1), (2, 0)))], tmp_path,
                 inputs=3,
                 shape=(3, 9))


def test_images_may_begin_with_an_activation(tmp_path):
    """As a quantizer of the inputs is one."""
    assert_equal(lambda r: [FloatActivation("clip", 2, "clip", (-0.5, 0.75)),
                            r.conv("conv", 2, 4, k=2, grid=(5, 4), window=Window((3, 2)))], tmp_path, inputs=2,
                 shape=(2, 5, 4))


def test_the_lowest_of_equal_outputs_is_chosen(tmp_path):
    """Of 20 outputs between -8 and 7 several are the greatest."""
    assert_equal(lambda r: [r.linear("out", 5, 20, 4)], tmp_path, inputs=5, activation_bits=4, argmax=True)


def test_it_sees_one_integer_that_differs(tmp_path):
    random = Random(0)
    network = random.network([random.linear("out", 5, 3, 4)], 5)
    network.stages[0].product.bias[1] += 1
    inputs = random.inputs(network)
    before = network.run_integers(inputs)
    network.save(tmp_path)
    assert np.array_equal([independent.load(tmp_path)(x) for x in inputs.tolist()], before)
    network.stages[0].product.bias[1] += 1
    assert not np.array_equal([independent.load(tmp_path)(x) for x in inputs.tolist()], network.run_integers(inputs))


def test_the_files_are_as_the_page_says(tmp_path):
    """Members, and both hashes, from the page alone."""
    random = Random(0)
    random.network([random.gru("gru", 3, 5, 4), random.linear("out", 5, 3, 2)], 3, sequence=True).save(tmp_path)
    body = json.loads((tmp_path / "network.json").read_text())
    assert list(body)[:8] == ["format", "version", "hash", "name", "weights", "inputs", "nodes", "outputs"]
    header = {name: body.pop(name) for name in ("format", "version", "hash")}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == header["hash"]
    sha = hashlib.sha256()
    with np.load(tmp_path / "weights.npz") as file:
        for name in sorted(set(file.files) - {"header"}):
            assert file[name].dtype == "<i8"
            sha.update(f"{name} <i8 {file[name].shape}\n".encode() + file[name].tobytes())
    assert sha.hexdigest() == body["weights"]
    page = (ROOT / "docs/numerics.md").read_text("utf-8")
    members = {*body, *header, *(member for entry in body["inputs"] + body["nodes"] for member in entry)}
    assert [member for member in members if f"`{member}`" not in page] == []


def test_the_independent_model_is_independent_and_short():
    text = (ROOT / "tests/independent.py").read_text("utf-8")
    imported = [name.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)
                for name in node.names]
    assert sorted(imported) == ["json", "math", "numpy"]
    assert text.count("np.") == text.count("np.load(") == 1
    assert len(text.splitlines()) <= 361
