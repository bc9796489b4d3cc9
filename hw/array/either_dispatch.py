"""Which command the sequencer gets next where either vector can come first: what has come whole leads.

A step begins with the share of its input where that is there, and with the recurrent share where the state is, which in
a closed loop is long before the next sample. The other share follows, block by block as its vector comes, and ends the
sums. Where no group of columns has blocks of the input alone, a step whose input is there is one command, MAIN. A layer
without a state begins with its input's first block. In a reloadable design the share of an input begins with its first
block, so that only the recurrent share may have been issued while no input waits: with the weights of old, so that the
step is undone before they are exchanged.
"""
from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.bank_shape import write_latency
from circulant.hw.array.dispatch import Dispatch
from circulant.hw.array.program import AHEAD, MAIN, SECOND
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import delay

__all__ = ["EitherDispatch"]


class EitherDispatch(Dispatch):
    """Commands for the `Sequencer` of a program of `circulant.hw.array.schedules.either`; see `Dispatch`. A single
    stream.

    Members:
        state: the recurrent vector has come as a whole.
        came: of a reloadable design: a block of the input has come.
        again: likewise, in this cycle: the recurrent vector that was read is to be read again.
    """

    def _more(self) -> dict[str, wiring.Member]:
        return {"state": In(1), **({"came": In(1), "again": Out(1)} if self._reloadable else {})}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        commands = self._program.commands

        # The events of this cycle: a step starts with the command that leads, or goes on with the one that is due.
        begun = Signal()
        due = Signal(range(2))
        picks = Signal(range(3))
        accepts = Signal()
        starts = Signal()
        follows = Signal()
        seconds = Signal()
        entire = Signal(name="entire") if commands[MAIN] and not commands[AHEAD] else None
        closes = begun if entire is None else begun | entire
        m.d.comb += [
            accepts.eq(self.go.valid & self.go.ready),
            seconds.eq(accepts & (picks == SECOND)),
            starts.eq(accepts & (picks != SECOND) & ~begun),
            follows.eq(accepts & (picks != SECOND) & closes),
        ]
        early = Signal()
        undone = Signal()
        if self._reloadable:
            self._early, self._undone = early, undone
        fresh, base = self._note(m, starts)

        # The choice of the next command, the most urgent one last.
        chosen = [picks == AHEAD if entire is None else (picks == AHEAD) | entire, picks == MAIN]
        reads = [self._reads(m, accepts, chosen[command], command, follows) for command in (AHEAD, MAIN)]
        comes: Value = Const(1)
        free: Value = Const(1)
        if self._reloadable:
            comes, free = self.came & ~reads[AHEAD], ~self.hold
            m.d.comb += [early.eq(begun & ~due & ~reads[MAIN] if commands[MAIN] else reads[AHEAD] & ~self.came),
                         undone.eq(self.undo & early if commands[MAIN] else 0)]
        fits = self._fits(m, starts) & ~begun
        whole = self.inputs > reads[AHEAD]
        choices: list[tuple[Value, int]] = [(fits & (free | whole), AHEAD)]
        if commands[MAIN]:
            there = free & self._state_there(m, reads[MAIN], starts, fresh)
            choices = [(begun & due, MAIN), (begun & ~due & comes, AHEAD), (fits & there, MAIN),
                       (fits & whole, AHEAD if entire is None else MAIN)]
        if commands[SECOND]:
            waiting = Signal(range(3))
            half = Signal()
            m.d.sync += [waiting.eq(waiting + follows - seconds), half.eq(half ^ seconds)]
            # A step that is one command needs what SECOND of the step before gives.
            choices.insert(2 if entire is None else len(choices), (waiting != 0, SECOND))
        for condition, choice in choices:
            with m.If(condition):
                m.d.comb += [self.go.valid.eq(1), picks.eq(choice)]

        # What is said of it, and whether another one follows.
        zero, its_base = self._kept(m, begun, starts, fresh, base)
        m.d.comb += [
            self.go.payload.command.eq(picks),
            self.go.payload.leads.eq(~closes),
            self.go.payload.zero.eq((picks != SECOND if self._program.last_reader is None else picks == MAIN)
                                    & zero),
            self.go.payload.base.eq(its_base),
        ]
        with m.If(follows):
            m.d.sync += begun.eq(0)
        follower = Const(int(bool(commands[MAIN])), 1) if entire is None else ~entire
        with m.If(starts):
            m.d.sync += [begun.eq(follower), due.eq(picks == AHEAD)]
        if commands[SECOND]:
            with m.If(picks == SECOND):
                m.d.comb += self.go.payload.base.eq(Mux(half, *self._banks.second_bases[::-1]))
        self._count_turns(m)
        if self._reloadable:
            m.d.comb += self.again.eq(self._undone & ~zero)
            with m.If(self._undone):
                m.d.sync += begun.eq(0)
                if MAIN in self._program.given:
                    m.d.sync += self.second[MAIN].eq(~self.second[MAIN])
        if entire is not None:
            self._count_entire(m, accepts, entire, fits & whole & (waiting == 0 if commands[SECOND] else 1))
        return m

    def _kept(self, m: Module, begun: Value, starts: Value, fresh: Value, base: Value) -> tuple[Value, Value]:
        """Whether the recurrent part of a step counts as zero, and where its vectors are, kept for what follows."""
        begun_base = Signal.like(base)
        begun_zero = Signal()
        with m.If(starts):
            m.d.sync += [begun_zero.eq(fresh), begun_base.eq(base)]
        return Mux(begun, begun_zero, fresh), Mux(begun, begun_base, base)

    def _count_entire(self, m: Module, accepts: Value, entire: Value, comes: Value) -> None:
        """Say whether the next command is a step as a whole, and count its turn for AHEAD, too."""
        works = Signal()
        m.d.comb += entire.eq(comes)
        with m.If(accepts):
            m.d.sync += works.eq(entire)
        with m.If(self.done & works):
            m.d.sync += self.second[AHEAD].eq(~self.second[AHEAD])

    def _reads(self, m: Module, accepts: Value, chosen: Value, command: int, follows: Value) -> Value:
        """Whether a command is being read: its vector does not count for the next step. Where the command that follows
        reads both vectors, the input is read to its end."""
        reads = Signal(name=f"reads_{command}")
        ends = self.done & (self.command == command)
        if command == AHEAD and self._program.last_reader is None:
            closes = Signal()
            with m.If(accepts):
                m.d.sync += closes.eq(follows)
            ends = self.done & closes
        with m.If(ends):
            m.d.sync += reads.eq(0)
        with m.If(accepts & chosen):
            m.d.sync += reads.eq(1)
        return reads

    def _state_there(self, m: Module, reads: Value, starts: Value, fresh: Value) -> Value:
        """Whether the next step's state has come as a whole. That of a first step, which is zero, comes when that of
        another step would, so that a sample takes as long whether it ends its sequence or not."""
        state_ready = Signal()
        zero_ready = Signal(init=1)
        m.d.sync += state_ready.eq(self.state & ~reads)
        with m.If(delay(m, self.ends, write_latency(self._banks.k, self._banks.levels) - 1, name="ended",
                        reset_less=False)):
            m.d.sync += zero_ready.eq(1)
        with m.If(starts):
            m.d.sync += zero_ready.eq(0)
        if self._reloadable:
            with m.If(self.undo):
                m.d.sync += zero_ready.eq(1)
        return Mux(fresh, zero_ready, state_ready & ~reads)

    def _note(self, m: Module, starts: Value) -> tuple[Value, Value]:
        """Note what the next step is like; returns whether it is the first of its sequence, and where its vectors are.

        Whether it is the last is known when its input is whole, which is before anything of it can be read.
        """
        shape = self._banks
        entry = Signal(range(self.steps.shape().length))
        input_index = Signal(range(shape.ring))
        fresh = Signal(init=1)
        bases = Array([Const(base, range(max(2, shape.depth))) for base in shape.bases])
        with m.If(starts):
            m.d.sync += [entry.eq(entry + 1), input_index.eq(Mux(input_index == shape.ring - 1, 0, input_index + 1))]
        if shape.single:
            self._single(m)
            return Const(1), bases[input_index]

        # The end of a sequence, marked when the input is there.
        unmarked = Signal()
        marks = Signal()
        marked_entry = Signal.like(entry)
        marked_input = Signal.like(input_index)
        last = Signal()
        m.d.comb += [marks.eq(unmarked & (self.inputs != 0)), last.eq(self.last.bit_select(marked_input, 1))]
        with m.If(marks):
            m.d.sync += [unmarked.eq(0), fresh.eq(last),
                         marked_input.eq(Mux(marked_input == shape.ring - 1, 0, marked_input + 1))]
        with m.If(starts):
            m.d.sync += [unmarked.eq(1), marked_entry.eq(entry)]
        steps = self._ring(m)
        for number in range(steps.shape().length):
            step = steps[number]
            with m.If(starts & (entry == number)):
                m.d.sync += [step.first.eq(fresh)]
            with m.If(marks & (marked_entry == number)):
                m.d.sync += step.last.eq(last)
        if self._reloadable:
            m.d.comb += self.resuming.eq(~fresh)
            with m.If(self._undone):
                m.d.sync += [entry.eq(entry - 1), unmarked.eq(0),
                             input_index.eq(Mux(input_index == 0, shape.ring - 1, input_index - 1))]
            with m.If(self.restart):
                m.d.sync += fresh.eq(~self.resume)
        return fresh, bases[input_index]
