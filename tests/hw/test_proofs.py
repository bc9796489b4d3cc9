import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.pipeline import Registers

pytest.importorskip("z3", reason="z3-solver searches the invariants of the proofs")

from tests.hw.prove import proved


class Pipeline(wiring.Component):
    def __init__(self, depth):
        self._depth = depth
        super().__init__({"i": In(stream.Signature(1)), "o": Out(stream.Signature(1))})

    def elaborate(self, platform):
        m = Module()
        registers = Registers(m, valid=self.i.valid, ready=self.o.ready)
        values = [self.i.payload]
        for _ in range(self._depth):
            values = registers.stage(values)
        m.d.comb += [self.o.payload.eq(values[0]), self.o.valid.eq(registers.close(self._depth)), self.i.ready.eq(registers.move)]
        return m


class Stream(wiring.Component):
    """A unit between two streams of as many words, and what has to hold of it."""

    def __init__(self, unit, holds):
        self._unit, self._holds = unit, holds
        payload = unit.i.payload.shape()
        super().__init__({
            "valid": In(1), "payload": In(payload), "ready": In(1), "pick": In(1),
            "assume_kept": Out(1), "ok_kept": Out(1), "ok_word": Out(1), "ok_count": Out(1), "ok_alive": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        m.d.comb += [unit.i.valid.eq(self.valid), unit.i.payload.eq(self.payload), unit.o.ready.eq(self.ready)]
        comes, goes = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready
        for port, kept in ((unit.i, self.assume_kept), (unit.o, self.ok_kept)):
            waits, before = Signal(), Signal.like(port.payload)
            m.d.sync += [waits.eq(port.valid & ~port.ready), before.eq(port.payload)]
            m.d.comb += kept.eq(~waits | (port.valid & (port.payload == before)))

        inside = Signal(range(self._holds + 2))
        tracked, ahead, word = Signal(), Signal.like(inside), Signal.like(unit.i.payload)
        m.d.sync += inside.eq(inside + comes - goes)
        with m.If(comes & self.pick & ~tracked):
            m.d.sync += [tracked.eq(1), ahead.eq(inside - goes), word.eq(unit.i.payload)]
        with m.If(tracked & goes):
            m.d.sync += [ahead.eq(ahead - 1)]
            with m.If(ahead == 0):
                m.d.sync += tracked.eq(0)
        slow = Signal(range(self._holds + 3))
        m.d.sync += slow.eq((slow + 1) & ((inside != 0) & unit.o.ready & ~goes).replicate(len(slow)))
        m.d.comb += [
            self.ok_count.eq((~goes | (inside != 0)) & (inside <= self._holds)),
            self.ok_word.eq(~(tracked & goes & (ahead == 0)) | (unit.o.payload == word)),
            self.ok_alive.eq(slow <= self._holds)]
        return m


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_pipeline(depth):
    assert proved(Stream(Pipeline(depth), depth))
