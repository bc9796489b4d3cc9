import re
from dataclasses import fields
from types import SimpleNamespace

import pytest

from circulant.hw.c.source import Source
from circulant.hw.c.time_loops import TimeLoops
from circulant.hw.ctext.unit import Unit, stage
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT, Stages
from circulant.sim.kinds.activation import Activation
from circulant.sim.kinds.conv import Conv
from circulant.sim.kinds.depthwise import Depthwise
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.pool import Pool
from circulant.sim.kinds.scale import Scale
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow
from tests.hw.c.networks import NARROW, Maker, directions, sequences, vectors
from tests.hw.golden import network

KNOWN = {
    Product: ["weights", "bias", "weight", "input", "spectrum", "product", "output", "twiddle_bits",
              "row_shifts", "multiplier"],
    Pwl: ["function", "method", "reach", "input", "output", "slope_format", "base_format", "start", "slope", "base",
          "parameters"],
    Activation: ["name", "inputs", "table"],
    Scale: ["name", "inputs", "scale", "shift", "factor", "input_format", "output_format", "relu"],
    Linear: ["name", "inputs", "outputs", "product", "relu"],
    Conv: ["name", "inputs", "outputs", "grid", "window", "product", "relu"],
    Depthwise: ["name", "inputs", "grid", "window", "weights", "bias", "factor", "input_format", "output_format",
                "relu"],
    Pool: ["name", "inputs", "grid", "window", "mode", "input_format", "output_format"],
    JointProduct: ["parts"],
    Gru: ["name", "inputs", "hidden", "returns", "reset", "gates", "candidate", "candidate_recurrent", "sigmoid",
          "tanh"],
    Lstm: ["name", "inputs", "hidden", "outputs", "returns", "gates", "projection", "peephole", "peephole_format",
           "cell", "sigmoid", "tanh", "tanh_cell"],
}


@pytest.mark.parametrize("part", KNOWN, ids=lambda part: part.__name__)
def test_the_emitters_know_every_field_of_the_golden_model(part):
    assert [field.name for field in fields(part)] == KNOWN[part], "teach hw/c the new field, then add it here"


@pytest.mark.parametrize("net", [sequences(8, (2, "before"), (4, "lstm peephole"), outputs=5), vectors()],
                         ids=lambda net: net.name)
def test_the_text_is_the_same_each_time(net):
    assert (Source(net).code, Source(net).header) == (Source(net).code, Source(net).header)


def test_the_text_is_narrow_and_plain():
    source = Source(sequences(64, (16, "before"), (8, "lstm projection"), outputs=5))
    for text in (source.code, source.header):
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= 120
        assert text.endswith("\n")
        for forbidden in ("float", "double", "malloc", "#include <s"):
            assert forbidden not in text.replace("no floating point", "").replace("#include <stdint.h>", "")


def test_the_header_says_sizes_and_formats():
    net = network(4, 6, 3, outputs=5, activation_bits=9)
    header = Source(net).header
    form = net.input_format
    for line in ("#define SMALL_INPUTS 3", "#define SMALL_INPUT_BITS 9", f"#define SMALL_INPUT_FRACTION ({form.frac})",
                 "#define SMALL_OUTPUTS 5", "typedef int16_t small_input;", "#define SMALL_LANES 1",
                 "void small_reset(small_state *state);", "    int16_t gru_h[6 * SMALL_LANES];"):
        assert line in header.splitlines()


def test_weights_are_stored_in_the_narrowest_type():
    code = Source(network(8, 16, 8, weight_bits=8)).code
    assert "static const int8_t gru_gates_weights_2[64] = {" in code
    code = Source(network(8, 16, 8, weight_bits=9)).code
    assert "static const int16_t gru_gates_weights_2[64] = {" in code


def test_products_and_transforms_of_the_same_types_share_their_functions():
    code = Source(network(8, 64, 64, outputs=10)).code
    assert code.count("static void forward8") == code.count("static void inverse8") == 1
    assert code.count("static void accumulate8") == 1


def test_sums_take_32_bits_where_the_weights_allow():
    code = Source(network(8, 64, 16)).code
    assert "int32_t sums[" in code
    assert "int64_t sums[" not in code


def test_a_network_name_cannot_break_out_of_a_comment():
    net = network(2, 4, 4)
    source = Source(Network.chain("*/ int main;\n/*", net.flow.size, True, net.stages))
    assert source.name == "int_main"
    assert source.code.startswith("/* __ int main___")


def test_layers_whose_names_clash_are_numbered():
    maker = Maker(0, NARROW)
    first = maker.linear("a", 4, 4, 2, Format(8, 4))
    second = maker.linear("a_product", 4, 4, 2, first.output_format)
    code = Source(Network.chain("net", 4, False, (first, second))).code
    assert "layer1_product_weights" in code
    assert "layer2_product_weights" in code


def test_steps_are_kept_only_where_a_later_pass_takes_them():
    """Of both directions, one after the other, each takes the vectors that come, or those of the pass before."""
    header = Source(directions("sequence")).header
    kept = header.partition("typedef struct {")[2].partition("} random_kept;")[0]
    assert re.findall(r"(\w+)\[(\d+) \* RANDOM_LANES\];", kept) == [
        ("layer1_y", "6"), ("layer3_y", "6"), ("layer6_y", "7"), ("layer7_h", "6"), ("layer9_h", "6")]
    assert "uint32_t steps, random_kept *kept, random_output *y);" in header
    assert "random_step" not in header
    one = Source(sequences((4, "after"))).header
    assert "_kept" not in one and "sequences_step(" in one


def test_refuses_rows_of_images_of_two_heights():
    made = [SimpleNamespace(kind="flatten", rows=True, grid=(height, 3)) for height in (4, 8)]
    with pytest.raises(Refusal, match=r"^The C target takes the rows of images of one height as steps, not those of 4 "
                                      r"and 8; take a part of the network, or generate Verilog$"):
        TimeLoops(Stages(tuple(made), ((INPUT,), (INPUT,)), (Flow(1, (4, 3)), Flow(1, (8, 3)))), [])


def test_refuses_a_layer_that_it_does_not_know():
    with pytest.raises(Refusal, match=r"^The layers of the C target must be of the kinds activation, add, argmax, "
                                      r"blend, concat, conv, decay, depthwise, difference, flatten, gate, gru, linear, "
                                      r"lstm, maximum, minimum, norm, over_time, pool, product, repeat, residual, "
                                      r"reverse, rnn, scale, slice, spiral, taps, but 'norm' is of the kind 'spline'; "
                                      r"leave it out, or generate Verilog$"):
        stage(SimpleNamespace(name="norm", kind="spline"), Unit("n"), "norm", foreign=True)
