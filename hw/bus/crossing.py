"""A request and its answer between two clocks, one at a time, whichever of the two is faster or is reset.

A level asks (``request``) and a level answers (``acknowledge``); each is synchronised by two registers, and what goes
with it stands still from before it rises until after it was seen. The next request waits until both have fallen. While
the bus is reset (``greets``) the stream side forgets what it was asked, so that no answer to a request of before is
taken for one of after; for that a reset of the bus must last long enough (`RESET_EDGES`). A reset of the stream side
resets nothing here, since the bus would take the fall of ``acknowledge`` for an end: it ends the request that is under
way, with whatever ``reply`` says then.

`tests/hw/bus/test_crossing.py` proves it for every interleaving of the edges of both clocks, and of their resets.
"""
from amaranth.hdl import Module, ResetSignal, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform

__all__ = ["BUS", "RESET_EDGES", "Crossing", "synchronised"]

BUS = "bus"
"""Domain of the bus; that of the design is ``sync``."""

RESET_EDGES = 3
"""Edges of the stream side for which a reset of the bus must last once an edge of its own has seen it; AXI recommends
16 cycles of the bus."""

_FLAGS = {"ASYNC_REG": "TRUE"}


def synchronised(m: Module, level: Value, *, name: str, domain: str) -> Signal:
    """A level of the other clock, two registers later; neither of them has a reset."""
    first, second = (Signal(name=f"{name}_{which}", attrs=_FLAGS, reset_less=True) for which in ("meta", "seen"))
    m.d[domain] += [first.eq(level), second.eq(first)]
    return second


class Crossing(wiring.Component):
    """
    Parameters:
        asks, answers: shapes of what goes with a request and with its answer.

    Members:
        ready: side of the bus: a request may come.
        start: side of the bus: a request comes in this cycle, one with ``ready``.
        ask: side of the bus: the request that comes.
        done: side of the bus: for one cycle, the answer is there.
        answer: side of the bus: the answer to the request.
        execute: side of the streams: for one cycle, a request came.
        asked: side of the streams: the request, until it is finished.
        finished: side of the streams: for a cycle behind ``execute``, the answer is there; also in a cycle of its
            reset.
        reply: side of the streams: the answer to the request.
    """

    def __init__(self, asks: ShapeLike, answers: ShapeLike) -> None:
        super().__init__({
            "ready": Out(1), "start": In(1), "ask": In(asks), "done": Out(1), "answer": Out(answers),
            "execute": Out(1), "asked": Out(asks), "finished": In(1), "reply": In(answers)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        request = Signal()
        greets = Signal(init=1)
        acknowledge = Signal(reset_less=True)
        active = Signal(reset_less=True)
        resets = ResetSignal("sync")
        held = Signal.like(self.ask, name="held", reset_less=True)
        given = Signal.like(self.reply, name="given", reset_less=True)

        # The bus: request by request.
        acknowledged = synchronised(m, acknowledge, name="acknowledge", domain=BUS)
        m.d.comb += [
            self.ready.eq(~greets & ~request & ~acknowledged),
            self.done.eq(request & acknowledged), self.answer.eq(given)]
        m.d.bus += greets.eq(0)
        with m.If(self.ready & self.start):
            m.d.bus += [request.eq(1), held.eq(self.ask)]
        with m.If(self.done):
            m.d.bus += request.eq(0)

        # The stream side: a request is carried out once, and its answer stays until the request falls.
        requested = synchronised(m, request, name="request", domain="sync")
        greeted = synchronised(m, greets, name="greets", domain="sync")
        m.d.comb += [self.execute.eq(requested & ~acknowledge & ~active & ~greeted & ~resets), self.asked.eq(held)]
        with m.If(greeted):
            m.d.sync += [active.eq(0), acknowledge.eq(0)]
        with m.Elif(self.execute):
            m.d.sync += active.eq(1)
        with m.Elif(active & (self.finished | resets)):
            m.d.sync += [active.eq(0), acknowledge.eq(1), given.eq(self.reply)]
        with m.Elif(acknowledge & ~requested):
            m.d.sync += acknowledge.eq(0)
        return m
