"""Which command the sequencer gets next, and what the steps under way are like.

AHEAD of the next step comes first, so that its input's share is summed up while this step drains; then the second
vector's product of this step; then MAIN of the next one, which waits for it. With several streams the second vector is
given time: MAIN of the next stream goes before it. A step that cannot start yet keeps nothing waiting.
"""
from functools import reduce
from operator import or_

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.array.bank_shape import BankShape
from circulant.hw.array.program import AHEAD, MAIN, SECOND, Program
from circulant.hw.array.sequencer import command, work
from circulant.hw.emit.target import Platform

__all__ = ["Dispatch", "step_layout", "steps_layout", "under_way"]


def step_layout(streams: int) -> data.StructLayout:
    """Marks of a step: the first or the last of its sequence, and of which stream."""
    return data.StructLayout({"first": 1, "last": 1, "stream": range(streams)})


def steps_layout(streams: int, *, blocks: int, room: int) -> data.ArrayLayout:
    """The ring of the steps under way, from their start to the last block of their output: there is room for the
    blocks of each, and of the oldest one some may have left."""
    return data.ArrayLayout(step_layout(streams), 1 << ceil_log2(-(-room // blocks)))


def under_way(streams: int, *, blocks: int, room: int, reloadable: bool) -> wiring.Signature:
    """Interface from a `Dispatch` to the units behind the array; for its members, and the parameters, see there."""
    return wiring.Signature({
        "steps": Out(steps_layout(streams, blocks=blocks, room=room)),
        "fetched": In(1), "ends": In(1), "skipped": In(1), "leaves": In(1),
        **({"busy": Out(1), "turn": Out(range(streams)), "resuming": Out(streams),
            "restart": In(1), "resume": In(streams), "hold": In(1), "undo": In(1)} if reloadable else {})})


class Dispatch(wiring.Component):
    """Commands for the `Sequencer`.

    Parameters:
        program: the passes.
        banks: the vectors.
        blocks: of a step's output.
        room: blocks of output that there is room for.
        reloadable: whether the members behind ``leaves`` are there.

    Members:
        inputs, last: see `circulant.hw.array.banks.Banks`.
        go: stream of commands for the sequencer.
        done: the command at work ends in this cycle.
        command: the command at work: 0 AHEAD, 1 MAIN, 2 SECOND.
        steps: ring of the steps under way: of each whether it is the first and the last of its sequence, and its
            stream.
        second: for each command, whether the step that it works at is every second one.
        fetched: the last block of a step was fetched by the pointwise unit.
        ends: the last block of a step's output is there.
        skipped: the output of a step is not wanted.
        leaves: a block of output left.
        busy: an input waits, or a step is under way that does not wait for its input alone.
        turn: stream of the next step.
        resuming: streams whose next step is not the first of its sequence.
        restart: for one cycle, while nothing is under way: the streams of ``resume`` go on, others begin a sequence.
        resume: streams that go on where they were, at a restart.
        hold: a step may begin only with its whole input.
        undo: for one cycle, while nothing is under way: a step that has begun without its input begins anew.
    """

    def __init__(self, program: Program, *, banks: BankShape, blocks: int, room: int, reloadable: bool = False) -> None:
        self._program, self._banks, self._blocks, self._capacity = program, banks, blocks, room
        self._reloadable = reloadable
        self._early: Value = Const(0)  # A step waits for its input alone.
        self._undone: Value = Const(0)  # It begins anew.
        super().__init__({
            **banks.waiting.flip().members,
            "go": Out(stream.Signature(command(program, max(2, banks.depth)))),
            **work().flip().members,
            **under_way(banks.streams, blocks=blocks, room=room, reloadable=reloadable).members,
            **self._more(),
        })

    def _more(self) -> dict[str, wiring.Member]:
        """Members of a subclass."""
        return {}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, commands = self._banks, self._program.commands
        starting = AHEAD if commands[AHEAD] else MAIN
        ending = MAIN if commands[MAIN] else AHEAD

        # The events of this cycle: which command is accepted.
        begun = Signal()
        picks = Signal(range(3))
        starts = Signal()
        mains = Signal()
        seconds = Signal()
        waiting = Signal(range(3))
        accepts = Signal()
        m.d.comb += [
            accepts.eq(self.go.valid & self.go.ready),
            starts.eq(accepts & (picks == starting)),
            mains.eq(accepts & (picks == MAIN)),
            seconds.eq(accepts & (picks == SECOND)),
        ]
        if commands[SECOND]:
            m.d.sync += waiting.eq(waiting + mains - seconds)

        # The choice of the next command, the most urgent one last.
        choices = self._choices(m, starts, begun, waiting)
        m.d.comb += [self.go.valid.eq(reduce(or_, (condition for condition, _ in choices))), picks.eq(choices[0][1])]
        for condition, choice in choices[1:]:
            with m.If(condition):
                m.d.comb += picks.eq(choice)

        # What is said of it: where its vector begins, and whether its recurrent part counts as zero. What waits to be
        # accepted does not depend on whether it is: that comes late in a cycle.
        fresh, base = self._start(m, starts)
        m.d.comb += [self.go.payload.command.eq(picks), self.go.payload.zero.eq((picks == MAIN) & fresh),
                     self.go.payload.base.eq(base)]

        # The step that has begun with AHEAD and waits for its MAIN.
        if starting != ending:
            begun_zero = Signal()
            begun_base = Signal.like(base)
            with m.If(picks == MAIN):
                m.d.comb += [self.go.payload.zero.eq(begun_zero), self.go.payload.base.eq(begun_base)]
            with m.If(mains & begun):
                m.d.sync += begun.eq(0)
            with m.If(starts):
                m.d.sync += [begun_zero.eq(fresh), begun_base.eq(base), begun.eq(1)]
        if commands[SECOND]:
            half = Signal()
            m.d.sync += half.eq(half ^ seconds)
            with m.If(picks == SECOND):
                m.d.comb += self.go.payload.base.eq(Mux(half, *shape.second_bases[::-1]))

        self._count_turns(m)
        return m

    def _count_turns(self, m: Module) -> None:
        """Steps in turn, by command: sums of two of them grow side by side."""
        for number in self._program.given:
            m.d.sync += self.second[number].eq(self.second[number] ^ (self.done & (self.command == number)))

    def _choices(self, m: Module, starts: Value, begun: Value, waiting: Value) -> list[tuple[Value, int]]:
        """(condition, command), the most urgent last; ``waiting`` counts the steps that wait for their SECOND."""
        commands = self._program.commands
        behind = 1 if self._banks.streams == 1 else 2
        room = self._room(m, starts)
        if not commands[AHEAD]:
            choices = [(room & (waiting < behind), MAIN)]
            return [(waiting != 0, SECOND), *choices, (waiting >= behind, SECOND)] if commands[SECOND] else choices
        choices = [(begun, MAIN)] if commands[MAIN] else []
        if commands[SECOND]:
            choices = [(waiting != 0, SECOND), *choices, (waiting >= behind, SECOND)]
        ahead = (room & ~begun, AHEAD)
        if self._program.joined and behind > 1:  # Sums of two steps have slots.
            return [*choices[:-1], ahead, choices[-1]]
        return [*choices, ahead]

    def _room(self, m: Module, starts: Value) -> Value:
        """Whether a step may start: its input is there, and room for all that comes of it.

        Rows of two steps fit into their memories.
        """
        commands = self._program.commands
        reading = Signal()
        with m.If(self.done & (self.command == (MAIN if commands[MAIN] else AHEAD))):
            m.d.sync += reading.eq(0)
        with m.If(starts):
            m.d.sync += reading.eq(1)
        may_start = Signal()
        m.d.comb += may_start.eq((self.inputs > reading) & self._fits(m, starts))
        return may_start

    def _fits(self, m: Module, starts: Value) -> Value:
        """Whether there is room for all that comes of one more step."""
        blocks = self._blocks
        unfetched = Signal(range(4))
        fits = Signal(init=1)
        promised = Signal(range(self._capacity + 1))

        def at_most(number: Value, less: list[tuple[Value, int]], most: int) -> Value:
            """Whether a number is at most ``most``, less what happens in this cycle: compared for each that may be,
            because that comes late."""
            if not less:
                return number <= most if most >= 0 else Const(0)
            (happens, count), *others = less
            return Mux(happens, at_most(number, others, most + count), at_most(number, others, most))

        # Steps to be fetched, blocks promised: what comes and goes, and whether one more step fits.
        leaving = [(self.leaves, 1), (self.skipped, blocks)]
        two_fit = Signal()
        one_fits = Signal()
        m.d.comb += [each.eq(at_most(promised, leaving, self._capacity - n * blocks)
                             & at_most(unfetched, [(self.fetched, 1)], 2 - n))
                     for each, n in ((two_fit, 2), (one_fits, 1))]
        m.d.sync += [
            unfetched.eq(unfetched + starts - self.fetched),
            promised.eq(promised + Mux(starts, blocks, 0) - Mux(self.skipped, blocks, 0) - self.leaves),
            fits.eq(Mux(starts, two_fit, one_fits)),
        ]
        if self._reloadable:
            under_way = Signal(range(self.steps.shape().length + 1))
            m.d.sync += under_way.eq(under_way + starts - self.ends)
            m.d.comb += self.busy.eq((under_way != self._early) | (self.inputs != 0))
            with m.If(self._undone):
                m.d.sync += [under_way.eq(0), unfetched.eq(0), promised.eq(0), fits.eq(1)]
        return fits

    def _start(self, m: Module, starts: Value) -> tuple[Value, Value]:
        """Note what the next step is like; returns whether it is the first of its sequence, and where its input is."""
        shape, n = self._banks, self._banks.streams

        # The stream whose turn it is, and where its input lies.
        entry = Signal(range(self.steps.shape().length))
        input_index = Signal(range(shape.ring))
        turn = Signal(range(n))
        firsts = Signal(n, init=(1 << n) - 1)
        fresh = Signal()
        last = Signal()
        bases = Array([Const(base, range(max(2, shape.depth))) for base in shape.bases])
        if shape.single:
            with m.If(starts):
                m.d.sync += input_index.eq(Mux(input_index == shape.ring - 1, 0, input_index + 1))
            self._single(m)
            return Const(1), bases[input_index]
        m.d.comb += [fresh.eq(firsts.bit_select(turn, 1)), last.eq(self.last.bit_select(input_index, 1))]

        # The step is noted in the ring of those under way.
        steps = self._ring(m)
        with m.If(starts):
            m.d.sync += [
                input_index.eq(Mux(input_index == shape.ring - 1, 0, input_index + 1)),
                entry.eq(entry + 1),
                turn.eq(Mux(turn == n - 1, 0, turn + 1)),
                firsts.bit_select(turn, 1).eq(last),
            ]
            for number in range(steps.shape().length):
                with m.If(entry == number):
                    step = steps[number]
                    m.d.sync += [step.first.eq(fresh), step.last.eq(last), step.stream.eq(turn)]
        if self._reloadable:
            m.d.comb += [self.turn.eq(turn), self.resuming.eq(~firsts)]
            with m.If(self.restart):
                m.d.sync += firsts.eq(~self.resume)
        return fresh, bases[input_index]

    def _single(self, m: Module) -> None:
        """Each step is the first and the last one of its sequence."""
        for step in self.steps:
            m.d.comb += [step.first.eq(1), step.last.eq(1)]

    def _ring(self, m: Module) -> data.View:
        """The register behind ``steps``. It needs no reset: a step is noted before anybody asks for it."""
        steps = Signal(self.steps.shape(), name="under_way_steps", reset_less=True)
        m.d.comb += self.steps.eq(steps)
        return steps
