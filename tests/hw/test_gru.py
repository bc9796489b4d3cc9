# amaranth: UnusedElaboratable=no
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from circulant.hw.gru import GruLayer, interleaved
from tests.hw.golden import blocks, network, numbers, product
from tests.hw.simulate import cycles, stream

BITS = {"activation_bits": 9, "weight_bits": 7, "twiddle_bits": 8, "segments": 16}
STALLS = [(0.6, 0.0), (0.0, 0.8), (0.3, 0.5)]
LENGTHS = (2, 1, 3, 1)


@cache
def layer(k, hidden, inputs, returns="last"):
    return network(k, hidden, inputs, returns=returns, **BITS).layers[0]


def sequences(gru, lengths=LENGTHS):
    return [numbers(gru.input_format, t, gru.inputs, seed=n) for n, t in enumerate(lengths)]


def golden(gru, xs):
    """States as blocks: of the last step, or of every one."""
    states = [gru(x[None])[0] for x in xs]
    return blocks([np.atleast_2d(h) for h in states], gru.recurrent_product.block_size)


@cache
def hardware(gru, lanes, elements):
    """Compiled once for all tests."""
    return GruLayer(gru, lanes=lanes, elements=elements)


def given(gru, xs, *, lanes, elements, **stalls):
    return stream(hardware(gru, lanes, elements), blocks(xs, gru.input_product.block_size), quiet=250, **stalls)


def test_init_two_block_sizes():
    gru = layer(4, 8, 4)
    mixed = replace(gru, input_product=product(12, 2, 2, input=gru.input_format, output=gru.pre_format))
    with pytest.raises(ValueError, match=r"^Both matrices must have one block size, not 2 and 4$"):
        GruLayer(mixed, lanes=1, elements=1)


@pytest.mark.parametrize("elements", [0, -1, 3, 8])
def test_init_wrong_elements(elements):
    words = f"Elements per cycle must divide the block size 4, not {elements!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        GruLayer(layer(4, 8, 4), lanes=1, elements=elements)


def test_rows_are_interleaved_by_hidden_block():
    matrix = product(6, 3, 4)
    mixed = interleaved(matrix)
    order = [0, 2, 4, 1, 3, 5]  # r0 z0 n0 r1 z1 n1 of r0 r1 z0 z1 n0 n1
    assert mixed.weights.tolist() == matrix.weights[order].tolist()
    assert mixed.bias.reshape(6, 4).tolist() == matrix.bias.reshape(6, 4)[order].tolist()


@pytest.mark.parametrize(("k", "hidden", "inputs", "lanes", "elements", "returns"), [
    (1, 3, 2, 2, 1, "last"), (2, 4, 3, 1, 2, "sequence"), (4, 8, 4, 3, 1, "last"), (8, 16, 8, 2, 4, "sequence"),
    (16, 16, 16, 3, 2, "last")])
def test_layer_equals_golden(k, hidden, inputs, lanes, elements, returns):
    gru = layer(k, hidden, inputs, returns)
    xs = sequences(gru)
    assert given(gru, xs, lanes=lanes, elements=elements) == golden(gru, xs)


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize("returns", ["last", "sequence"])
def test_gaps_and_back_pressure_change_nothing(returns, stall_i, stall_o):
    gru = layer(4, 12, 4, returns)
    xs = sequences(gru, (*LENGTHS, 1, 1))
    assert given(gru, xs, lanes=3, elements=2, stall_i=stall_i, stall_o=stall_o) == golden(gru, xs)


@pytest.mark.parametrize(("k", "hidden", "inputs"), [(4, 5, 3), (4, 7, 9), (8, 9, 1), (2, 1, 1)])
def test_sizes_that_do_not_fill_their_blocks(k, hidden, inputs):
    """What lies behind the state is zero, at the output and in the next step."""
    gru = layer(k, hidden, inputs, "sequence")
    xs = sequences(gru)
    assert given(gru, xs, lanes=2, elements=1, stall_o=0.3) == golden(gru, xs)


@pytest.mark.parametrize(("lanes", "elements"), [(1, 1), (1, 4), (4, 2), (6, 4)])
def test_every_shape_of_the_circuit_computes_the_same(lanes, elements):
    gru = layer(4, 8, 8, "sequence")
    xs = sequences(gru, (3, 2))
    assert given(gru, xs, lanes=lanes, elements=elements) == golden(gru, xs)


@pytest.mark.parametrize("reset_at", [1, 12, 70, 128, 200])
def test_right_answers_after_a_reset_in_the_middle_of_a_sequence(reset_at):
    gru = layer(4, 8, 4, "sequence")
    xs = sequences(gru, (4, 2, 1))
    assert given(gru, xs, lanes=2, elements=1, stall_i=0.2, stall_o=0.2, reset_at=reset_at) == golden(gru, xs)


def test_the_input_of_the_next_step_is_multiplied_while_a_step_drains():
    """The input's product costs no time: a step takes as long with a matrix of two blocks as with one of one block."""
    def cycles_per_step(inputs):
        gru = layer(4, 8, inputs, "sequence")
        _, went = cycles(hardware(gru, 2, 4), blocks(sequences(gru, (5,)), 4), quiet=150)
        return {after - before for before, after in zip(went[2::2], went[4::2], strict=False)}

    assert cycles_per_step(4) == cycles_per_step(8)
    assert len(cycles_per_step(4)) == 1
