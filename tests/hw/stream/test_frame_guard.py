"""Whatever comes, what passes is whole: the unit by itself, and as the way into whole designs."""
from functools import cache
from itertools import chain

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.lib import data

from circulant.hw.stream.frame_guard import FrameGuard
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, network, numbers
from tests.hw.simulate import Transfers, cycles, run, sink, source, stream, trace
from tests.hw.test_top import BITS, Beats
from tests.sim import samples

K, SIZE = 2, 5
"""Of the vectors: three beats, of which the last one has a lane behind the vector."""
SHAPE = data.StructLayout({"data": data.ArrayLayout(signed(6), K), "last": 1})
STALLS = [(0.0, 0.0), (0.4, 0.6)]


def frame(*values):
    return [{"data": [value, -value], "last": int(n == len(values) - 1)} for n, value in enumerate(values)]


def passed(frames, vectors):
    """What becomes of frames, by the rule: the data of each sample or sequence that comes out, in beats.

    Parameters:
        frames: the data of the beats up to each tlast.
        vectors: of a sample; None of a sequence of any length.
    """
    beats = -(-SIZE // K)
    whole = []
    for rows in frames:
        most = -(-len(rows) // beats) * beats if vectors is None else vectors * beats
        kept = [list(row) for row in (rows + [[0] * K] * most)[:most]]
        for row in kept[beats - 1::beats]:
            row[SIZE - (beats - 1) * K:] = [0] * (beats * K - SIZE)
        whole.append(kept)
    return whole


def marked(frames):
    return [{"data": row, "last": int(n == len(rows) - 1)} for rows in frames for n, row in enumerate(rows)]


SEQUENCES = [6, 4, 3, 5, 1, 9, 2, 6]
VECTORS = [3, 2, 3, 1, 3, 4, 3, 8, 3, 3]
PAIRS = [6, 5, 6, 3, 1, 6, 7, 6, 13, 6]
"""Beats of frames; of sequences, of samples of a vector, of samples of two."""


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize(("lengths", "vectors"), [(SEQUENCES, None), (VECTORS, 1), (PAIRS, 2)])
def test_a_frame_is_completed_or_cut_and_the_next_is_right(lengths, vectors, stalls):
    given = [numbers_of(n, length) for n, length in enumerate(lengths)]
    assert stream(FrameGuard(SHAPE, size=SIZE, vectors=vectors), marked(given), stall_i=stalls[0],
                  stall_o=stalls[1]) == (
        marked(passed(given, vectors)))


def numbers_of(seed, beats):
    return np.random.default_rng(seed).integers(-32, 32, (beats, K)).tolist()


def test_beats_of_the_right_size_pass_in_the_cycle_in_which_they_come():
    payloads = list(chain(frame(1, 2, 3), frame(4, 5, 6, 7, 8, 9)))
    came, went = cycles(FrameGuard(SHAPE, size=6, vectors=None), payloads)
    assert came == went == list(range(9))


@pytest.mark.parametrize(("size", "vectors", "frames", "at"), [
    (6, 1, [frame(1, 2, 3), frame(1, 2, 3)], None), (6, 1, [frame(1, 2)], 2), (6, 1, [frame(1, 2, 3, 4)], 3),
    (2, 3, [frame(1, 2), frame(1, 2, 3)], 2), (2, 1, [frame(1), frame(1, 2)], 2),
    (6, None, [frame(1, 2, 3), frame(*range(6))], None), (6, None, [frame(1, 2, 3, 4)], 4)])
def test_the_flag_tells_of_a_wrong_mark_from_the_next_cycle_until_reset(size, vectors, frames, at):
    payloads = list(chain(*frames))
    count = len(payloads)
    shown = trace(FrameGuard(SHAPE, size=size, vectors=vectors), {
        "i.valid": [1] * count + [0] * 4, "i.payload": [*payloads, *[payloads[0]] * 4],
        "o.ready": [1] * (count + 4), "reset": [0] * (count + 2) + [1, 0]})
    at = count + 3 if at is None else at
    assert shown["malformed"] == [0] * at + [1] * (count + 3 - at) + [0]


BUDGET = 30


@cache
def design(kind):
    """A network of vectors of three beats, its hardware, and what a sample is: vectors of a frame, or None."""
    if kind == "perceptron":
        model, vectors = samples.perceptron(SIZE, 6, 3, k=(K, 1)), 1
        chosen = quantize(model, np.random.default_rng(0).normal(0, 1, (20, SIZE)), **BITS)
    elif kind == "image":
        rng = np.random.default_rng(0)
        conv = FloatConv("conv", inputs=SIZE, outputs=2, grid=(2, 1), window=Window((2, 1)),
                         weight=rng.normal(0, 0.5, (2, 1, 3, K)), bias=np.zeros(2))
        flat = FloatFlatten("flatten", 2, (1, 1), "pixels")
        out = FloatLinear("out", 2, 3, rng.normal(0, 1, (3, 2, 1)), np.zeros(3))
        model, vectors = Model.chain("image", SIZE, False, (conv, flat, out), (SIZE, 2, 1)), 2
        chosen = quantize(model, rng.uniform(-1, 1, (20, SIZE, 2, 1)), **BITS)
    elif kind == "bidirectional":
        model, vectors = samples.chain(samples.bidirectional("gru", SIZE, 3, k=K)), None
        chosen = quantize(model, samples.data(model), **BITS)
    else:
        chosen, vectors = network(K, 4, SIZE, outputs=3, returns="sequence", **BITS), None
    dut = Beats(chosen, BUDGET, max_steps=4)
    assert (dut.top.input_block, -(-SIZE // dut.top.input_block)) == (K, 3)
    return chosen, dut, vectors


def golden(chosen, dut, frames, vectors):
    """Beats that the network gives for whole frames."""
    given = []
    for rows in frames:
        steps = np.array(rows).reshape(len(rows) // 3, 3 * K)[:, :SIZE]
        given.append(steps[0] if vectors == 1 else steps.reshape(2, 1, SIZE) if vectors else steps)
    ys = [np.atleast_2d(chosen.run_integers(x[None])[0]) for x in given]
    return blocks(ys, dut.top.output_block)


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize(("kind", "lengths"), [
    ("perceptron", VECTORS), ("image", PAIRS), ("gru", SEQUENCES), ("bidirectional", SEQUENCES)])
def test_a_design_takes_frames_of_the_wrong_size_by_the_rule(kind, lengths, stalls):
    """With garbage behind each vector; until the first wrong mark nothing is flagged."""
    chosen, dut, vectors = design(kind)
    given = [numbers(chosen.input_format, length, K, seed=n).tolist() for n, length in enumerate(lengths)]
    came, went, told = Transfers(), Transfers(), []

    def watch():
        while not came.done:
            shown = yield {}
            told.append((len(came.payloads), shown["malformed"]))

    run(dut, source("i", marked(given), came, stall=stalls[0]),
        sink("o", went, [came], stall=stalls[1], quiet=400), watch())
    assert went.payloads == golden(chosen, dut, passed(given, vectors), vectors)
    wrong = lengths[0] + (lengths[1] if lengths[1] < 6 else 0)
    assert {flag for count, flag in told if count < wrong} == {0}
    assert {flag for count, flag in told if count > wrong} == {1}


@pytest.mark.parametrize("kind", ["perceptron", "image", "gru", "bidirectional"])
def test_lanes_behind_a_vector_are_not_looked_at(kind):
    chosen, dut, vectors = design(kind)
    each = 3 * (vectors or 2)
    given = [numbers(chosen.input_format, each, K, seed=n).tolist() for n in range(3)]
    assert stream(dut, marked(given), quiet=400) == golden(chosen, dut, passed(given, vectors), vectors)


def test_lanes_behind_a_vector_of_one_beat_are_not_looked_at():
    """Where nothing can be misframed there is no flag either."""
    chosen = network(4, 8, 3, outputs=6, returns="sequence", **BITS)
    dut = Beats(chosen, 40)
    assert "malformed" not in dut.top.signature.members
    x = numbers(chosen.input_format, 3, 3)
    given, wanted = blocks([x], 4), blocks([chosen.run_integers(x[None])[0]], dut.top.output_block)
    assert stream(dut, [{**beat, "data": [*beat["data"][:3], 77]} for beat in given], quiet=300) == wanted
