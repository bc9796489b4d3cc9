"""A request between two clocks, proved for every order of their edges and for resets of either side at any time.

A step of the proof is an edge of the one clock, of the other, or of both; a level that changes while it is sampled is
seen now or one edge later, which are two such orders. What is more than a bit must stand still where it is sampled.
"""
import pytest
from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, EnableInserter, Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.bus.crossing import RESET_EDGES, Crossing
from tests.hw.prove import explore


class Faulty(Crossing):
    """A crossing with a bug in it."""

    def __init__(self, fault):
        super().__init__(1, 2)
        self._fault = fault

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Crossing(1, 2)
        for name in ("start", "ask", "finished", "reply"):
            m.d.comb += getattr(inner, name).eq(getattr(self, name))
        for name in ("ready", "done", "answer", "execute", "asked"):
            m.d.comb += getattr(self, name).eq(getattr(inner, name))
        if self._fault == "answers at once":
            late = Signal()
            m.d.bus += late.eq(inner.ready & self.start)
            m.d.comb += self.done.eq(late)
        if self._fault == "asks through":
            m.d.comb += self.asked.eq(self.ask)
        if self._fault == "executes again":
            m.d.comb += self.execute.eq(inner.execute | (self.finished & ~inner.done))
        return m


class Watched(wiring.Component):
    """A crossing whose stream side answers a request with what was asked, at any moment.

    Members:
        bus_edge, edge, bus_reset, reset: edges and resets of both clocks.
        assume_long: a reset of the bus lasts for an edge of its own, and then for `RESET_EDGES` of the stream side.
        ok_answer: what is answered was asked, unless a reset of the stream side refused it.
        ok_once: without a reset a request is carried out once before it is answered, and never without one.
        ok_still: what is asked does not change at an edge at which the other side may look at it.
    """

    def __init__(self, unit, *, resets):
        self._unit, self._resets = unit, resets
        super().__init__({
            **{name: In(1) for name in ("bus_edge", "edge", "start", "ask", "finish")},
            **({"bus_reset": In(1), "reset": In(1)} if resets else {}),
            "assume_long": Out(1), "ok_answer": Out(1), "ok_once": Out(1), "ok_still": Out(1)})

    def elaborate(self, platform):
        m = Module()
        unit = self._unit
        circuit = EnableInserter({"bus": self.bus_edge, "sync": self.edge})(unit)
        if self._resets:
            circuit = ResetInserter({"bus": self.bus_reset & self.bus_edge})(circuit)
        m.domains.stream = stream = ClockDomain()
        m.d.comb += [stream.clk.eq(ClockSignal()), stream.rst.eq(self.reset if self._resets else 0)]
        m.submodules.unit = DomainRenamer({"bus": "sync", "sync": "stream"})(circuit)
        bus_rst, rst = (self.bus_reset, self.reset) if self._resets else (0, 0)
        m.d.comb += [unit.start.eq(self.start), unit.ask.eq(self.ask)]

        # How long the bus has been reset.
        was, own, others = Signal(), Signal(), Signal(range(RESET_EDGES + 1))
        m.d.sync += was.eq(bus_rst)
        with m.If(bus_rst):
            m.d.sync += [own.eq(own | self.bus_edge), others.eq(others + (self.edge & own & (others != RESET_EDGES)))]
        with m.Else():
            m.d.sync += [own.eq(0), others.eq(0)]
        m.d.comb += self.assume_long.eq(~(was & ~bus_rst) | (own & (others == RESET_EDGES)))

        # The stream side: busy with a request until it finishes, with what it saw at the beginning.
        busy, saw, count = Signal(), Signal(), Signal(2)
        pending, meant = Signal(), Signal()
        m.d.comb += [unit.finished.eq(busy & self.finish), unit.reply.eq(Cat(saw, rst))]
        with m.If(self.edge):
            with m.If(rst | unit.finished):
                m.d.sync += busy.eq(0)
            with m.Elif(unit.execute):
                m.d.sync += [busy.eq(1), saw.eq(unit.asked)]
        # The bus: what it asked last and waits for.
        begins, ends = self.bus_edge & unit.ready & self.start, self.bus_edge & unit.done
        with m.If(self.bus_edge & bus_rst):
            m.d.sync += pending.eq(0)
        with m.Elif(begins):
            m.d.sync += [pending.eq(1), meant.eq(self.ask)]
        with m.Elif(ends):
            m.d.sync += pending.eq(0)
        runs = self.edge & unit.execute
        with m.If(begins):
            m.d.sync += count.eq(0)
        with m.Elif(runs & (count != 3)):
            m.d.sync += count.eq(count + 1)
        last, changed, looked = Signal(), Signal(), Signal()
        m.d.sync += [last.eq(unit.asked), looked.eq(runs)]
        m.d.comb += [
            changed.eq(looked & (last != unit.asked)),
            self.ok_answer.eq(~(ends & pending) | unit.answer[1] | (unit.answer[0] == meant)),
            self.ok_once.eq(1 if self._resets else (~ends | (pending & (count == 1))) & (~runs | (count == 0))),
            self.ok_still.eq(~changed)]
        return m


@pytest.mark.parametrize("resets", [False, True], ids=["", "resets"])
def test_every_request_is_answered_once_with_its_own_answer(resets):
    found = explore(Watched(Crossing(1, 2), resets=resets))
    assert found.broken is None, found.path
    assert found.states > 40


@pytest.mark.parametrize(("fault", "broken"), [
    ("answers at once", "ok_answer"), ("asks through", "ok_"), ("executes again", "ok_once")])
def test_a_fault_is_found(fault, broken):
    found = explore(Watched(Faulty(fault), resets=False))
    assert found.broken is not None and found.broken.startswith(broken)
