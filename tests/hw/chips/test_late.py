import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.late import Late, Marks
from circulant.hw.stream.pipeline import block, connect
from tests.hw.simulate import Transfers, run, sink, source

BLOCKS = 3
LENGTHS = (4, 1, 1, 3, 2, 1, 5)


class Both(wiring.Component):
    """The ends of sequences as the steps' own marks say them."""

    def __init__(self, marked):
        self._marked = marked
        word = stream.Signature(block(1, 8))
        super().__init__({"i": In(word), "steps": In(word), "o": Out(word)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.late = late = Late(k=1, width=8, blocks=BLOCKS, marked=self._marked)
        m.submodules.marks = marks = Marks(k=1, width=8, blocks=BLOCKS)
        connect(m, wiring.flipped(self.i), late.i)
        connect(m, wiring.flipped(self.steps), marks.i)
        connect(m, late.o, wiring.flipped(self.o))
        wiring.connect(m, marks.o, late.ends)
        return m


def vectors(lengths, values):
    return [{"data": [int(value)], "last": int(step == length - 1 and n == BLOCKS - 1)}
            for length, sequence in zip(lengths, values, strict=True)
            for step, vector in enumerate(sequence) for n, value in enumerate(vector)]


@pytest.mark.parametrize("stalls", [(0, 0, 0), (0.7, 0, 0), (0, 0.7, 0), (0, 0, 0.7), (0.4, 0.4, 0.4)])
@pytest.mark.parametrize("marked", [False, True])
def test_each_step_meets_the_vector_of_the_step_before(stalls, marked):
    rng = np.random.default_rng(1)
    states = [rng.integers(-100, 100, (length, BLOCKS)) for length in LENGTHS]
    expected = [np.concatenate([np.zeros((1, BLOCKS), int), each[:-1]]) for each in states]
    marks = vectors(LENGTHS, states)
    passed = [Transfers() for _ in range(3)]
    run(Both(marked), source("i", marks, passed[0], stall=stalls[0], seed=1),
        source("steps", marks, passed[1], stall=stalls[1], seed=2),
        sink("o", passed[2], passed[:2], stall=stalls[2], seed=3))
    zeros = [0] * (BLOCKS - marked)  # Of a step that has not come: whether it is the last, is open.
    assert [each["data"][0] for each in passed[2].payloads] == [*np.concatenate(expected).flat, *zeros]
    assert [each["last"] for each in passed[2].payloads] == [
        each["last"] * marked for each in marks] + [0] * len(zeros)
