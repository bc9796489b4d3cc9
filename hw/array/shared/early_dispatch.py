"""Which command the sequencer of an early program gets next: what has come whole leads.

A step begins with the share of its input where that is there, and with the recurrent share where the state is, which in
a closed loop is long before the next sample. The other share follows, block by block as its vector comes, and ends the
sums. A layer without a state begins with its input's first block.
"""
from amaranth.hdl import Array, Const, Module, Mux, Signal, Value

from circulant.hw.arith.fft import forward_latency
from circulant.hw.array.dispatch import PLACES, Dispatch
from circulant.hw.array.program import AHEAD, MAIN, SECOND
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import delay

__all__ = ["EarlyDispatch"]


class EarlyDispatch(Dispatch):
    """Commands for the `Sequencer` of an early program; see `Dispatch`. A single stream, without a configuration port.
    """

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        commands = self._program.commands

        # The events of this cycle: a step starts with the command that leads, or goes on with the one that is due.
        begun, due, picks, accepts = Signal(), Signal(range(2)), Signal(range(3)), Signal()
        starts, follows, seconds = Signal(), Signal(), Signal()
        m.d.comb += [
            accepts.eq(self.go.valid & self.go.ready),
            seconds.eq(accepts & (picks == SECOND)),
            starts.eq(accepts & (picks != SECOND) & ~begun),
            follows.eq(accepts & (picks != SECOND) & begun),
        ]
        fresh, base = self._note(m, starts)

        # The choice of the next command, the most urgent one last.
        fits = self._fits(m, starts) & ~begun
        choices: list[tuple[Value, int]] = [(fits, AHEAD)]
        if commands[MAIN]:
            whole, there = self._vectors(m, accepts, picks, starts, fresh)
            choices = [(begun & due, MAIN), (begun & ~due, AHEAD), (fits & there, MAIN),
                       (fits & whole, AHEAD)]
        if commands[SECOND]:
            waiting, other = Signal(range(3)), Signal()
            m.d.sync += [waiting.eq(waiting + follows - seconds), other.eq(other ^ seconds)]
            choices.insert(2, (waiting != 0, SECOND))
        for condition, choice in choices:
            with m.If(condition):
                m.d.comb += [self.go.valid.eq(1), picks.eq(choice)]

        # What is said of it, and kept for the command that follows.
        kept, zero = Signal.like(base), Signal()
        m.d.comb += [
            self.go.payload.command.eq(picks),
            self.go.payload.leads.eq(~begun),
            self.go.payload.zero.eq((picks == MAIN) & Mux(begun, zero, fresh)),
            self.go.payload.base.eq(Mux(begun, kept, base)),
        ]
        with m.If(follows):
            m.d.sync += begun.eq(0)
        with m.If(starts):
            m.d.sync += [zero.eq(fresh), kept.eq(base), begun.eq(int(bool(commands[MAIN]))), due.eq(picks == AHEAD)]
        if commands[SECOND]:
            with m.If(picks == SECOND):
                m.d.comb += self.go.payload.base.eq(Mux(other, *self._banks.second_bases[::-1]))
        self._count_turns(m)
        return m

    def _vectors(self, m: Module, accepts: Value, picks: Value, starts: Value, fresh: Value) -> tuple[Value, Value]:
        """Whether the next step's input and state have come as a whole: those that are being read do not count. The
        state of a first step, which is zero, comes when that of another step would, so that a sample takes as long
        whether it ends its sequence or not.
        """
        reads = []
        for command in (AHEAD, MAIN):
            read = Signal(name=f"reads_{command}")
            with m.If(self.done & (self.command == command)):
                m.d.sync += read.eq(0)
            with m.If(accepts & (picks == command)):
                m.d.sync += read.eq(1)
            reads.append(read)
        there, zero = Signal(), Signal(init=1)
        m.d.sync += there.eq(self.state & ~reads[MAIN])
        with m.If(delay(m, self.ends, forward_latency(self._banks.k, self._banks.levels), name="ended",
                        reset_less=False)):
            m.d.sync += zero.eq(1)
        with m.If(starts):
            m.d.sync += zero.eq(0)
        return self.inputs > reads[AHEAD], Mux(fresh, zero, there & ~reads[MAIN])

    def _note(self, m: Module, starts: Value) -> tuple[Value, Value]:
        """Note what the next step is like; returns whether it is the first of its sequence, and where its vectors are.

        Whether it is the last is known when its input is whole, which is before anything of it can be read.
        """
        shape = self._banks
        place, at, fresh = Signal(range(PLACES)), Signal(range(shape.ring)), Signal(init=1)
        bases = Array([Const(base, range(max(2, shape.depth))) for base in shape.bases])
        with m.If(starts):
            m.d.sync += [place.eq(place + 1), at.eq(Mux(at == shape.ring - 1, 0, at + 1))]

        # The end of a sequence, marked when the input is there.
        unmarked, marks = Signal(), Signal()
        marked, marked_at, last = Signal.like(place), Signal.like(at), Signal()
        m.d.comb += [marks.eq(unmarked & (self.inputs != 0)), last.eq(self.last.bit_select(marked_at, 1))]
        with m.If(marks):
            m.d.sync += [unmarked.eq(0), fresh.eq(last),
                         marked_at.eq(Mux(marked_at == shape.ring - 1, 0, marked_at + 1))]
        with m.If(starts):
            m.d.sync += [unmarked.eq(1), marked.eq(place)]
        for number in range(PLACES):
            step = self.steps[number]
            with m.If(starts & (place == number)):
                m.d.sync += [step.first.eq(fresh), step.stream.eq(0)]
            with m.If(marks & (marked == number)):
                m.d.sync += step.last.eq(last)
        return fresh, bases[at]
