"""The exact cost of layers that share an array, in Python: all their counters, cycle by cycle.

Who issues depends on what the others do, so that no recurrence over one program gives the cycles, as
`circulant.hw.plan.step_cost` does for a layer with an array of its own; of such a layer both say the same. Held to the
simulated hardware by its tests.
"""
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from circulant.hw.arith.fft import forward_latency
from circulant.hw.array import row_buffers
from circulant.hw.array.dispatch import PLACES
from circulant.hw.array.lanes import array_latency
from circulant.hw.array.plans import Simple
from circulant.hw.array.program import AHEAD, MAIN, SECOND, Program
from circulant.hw.layers.cells import cells_of
from circulant.hw.plan.step_cost import stages

__all__ = ["Cost", "shared_cost"]

STEPS = 18
"""Steps that are played for a period."""

TURNS = 12
"""Steps at their end whose mean it is: steps may be long and short by turns."""


@dataclass(frozen=True)
class Cost:
    """Cycles of a network.

    Parameters:
        period: from step to step when the next input is always there.
        results: from the last block of a sample to each block of its result, in a closed loop.
        latency: to the last one.
    """

    period: float
    results: tuple[int, ...]

    @property
    def latency(self) -> int:
        return self.results[-1]


def shared_cost(layers: Sequence[Simple], programs: Sequence[Program], elements: Sequence[int]) -> Cost:
    """The cost of recurrent and fully connected layers in a chain, whose sequences do not end.

    Parameters:
        programs: of the layers, for one array.
        elements: of their pointwise units.
    """
    taken, _ = _play(layers, programs, elements, closed=False)
    ends = taken[len(taken) // STEPS - 1::len(taken) // STEPS]
    period = (ends[-1] - ends[-1 - TURNS]) / TURNS
    taken, given = _play(layers, programs, elements, closed=True)
    return Cost(int(period) if period == int(period) else period,
                tuple(cycle - taken[-1] for cycle in given[-(len(given) // 3):]))


def _play(layers: Sequence[Simple], programs: Sequence[Program], elements: Sequence[int], *,
          closed: bool) -> tuple[list[int], list[int]]:
    """Cycles in which the first layer takes its blocks, and in which those of results leave.

    Parameters:
        closed: three steps, each of which comes when the one before has left for long, and whose results all leave;
            else `STEPS`, as they are taken, without an end: layers behind one that gives its last state have nothing
            to do.
    """
    ends_at = next((n for n, layer in enumerate(layers) if getattr(layer, "returns", "") == "last"), len(layers))
    if not closed:
        layers = layers[:ends_at + 1]
    chain = [_Layer(layer, program, each) for layer, program, each in zip(layers, programs, elements, strict=False)]
    chain[-1].skips = not closed and ends_at < len(layers)
    drain, steps = _Drain(programs[0]), 3 if closed else STEPS
    taken: list[int] = []
    given: list[int] = []
    offered, cycle, quiet = 0, 0, 0
    sizes = chain[0].x_blocks, chain[-1].blocks
    quiet_cycles = sum(program.cycles * program.shape.fold for program in programs) + 300
    while len(given) < steps * sizes[1] if closed else len(taken) < steps * sizes[0]:
        waits = closed and offered % sizes[0] == 0 and (len(given) < offered // sizes[0] * sizes[1] or
                                                        (offered and quiet < quiet_cycles))
        came = not waits and offered < steps * sizes[0]
        for before, behind in zip([None, *chain], [*chain, None], strict=True):
            valid = came if before is None else before.offers
            ready = True if behind is None else behind.takes
            if before is not None:
                before.leaves = valid and ready
            if behind is not None:
                behind.accepts = valid and ready
        if chain[0].accepts:
            offered += 1
            taken.append(cycle)
        if chain[-1].leaves:
            given.append(cycle)
        quiet = 0 if chain[0].accepts or chain[-1].leaves else quiet + 1
        # Who is furthest behind goes first, but nobody is interrupted.
        inside = [each for each in chain if each.phase]
        asking = inside or [each for each in chain if each.asks]
        granted = asking[-1] if asking else None
        ends = granted is not None and granted.ending
        free = drain.next(ends)
        for each in chain:
            each.edge(cycle, granted is each, free)
        cycle += 1
    return taken, given


class _Drain:
    """The counter of the cycles for which the drain is taken."""

    def __init__(self, program: Program) -> None:
        self._slots, self._fold, self._left = program.shape.slots, program.shape.fold, 0

    def next(self, ends: bool) -> bool:
        """Whether an issue of the next cycle that ends a pass finds it free."""
        free = self._slots <= self._fold if ends else self._left <= self._fold
        self._left = self._slots - 1 if ends else max(0, self._left - 1)
        return free


@dataclass
class _Delay:
    """Results that come some cycles later."""

    cycles: int
    events: deque[tuple[int, bool]] = field(default_factory=deque)

    def put(self, cycle: int, second: bool) -> None:
        self.events.append((cycle + self.cycles, second))

    def get(self, cycle: int) -> bool | None:
        """Whether what comes is of the second vector; None when nothing does."""
        return self.events.popleft()[1] if self.events and self.events[0][0] == cycle else None


class _Layer:
    """The counters of a layer: banks, dispatch, sequencer, row memories, pointwise units, queue; one stream.

    Members:
        takes, offers: a block can come; one waits to leave.
        accepts, leaves: what of that happens in this cycle.
        asks, ending, phase: an issue is asked for; it ends a pass; its phase.
        skips: results do not leave, as they are not those of a last step.
    """

    def __init__(self, layer: Simple, program: Program, elements: int) -> None:
        k, shape = program.matrices[0].product.block_size, program.shape
        self._program, self._columns = program, shape.columns
        self._fold = shape.fold
        recurrent, hidden = bool(cells_of(layer)), getattr(layer, "hidden", layer.outputs)
        self._units = stages(layer, elements, shape.levels)
        self._h_blocks = -(-layer.outputs // k) if recurrent else 0
        self.x_blocks, self.blocks = -(-layer.inputs // k), -(-layer.outputs // k)
        self._hidden_blocks = -(-hidden // k)
        self._second_blocks = self._hidden_blocks if program.commands[SECOND] else 0
        self._start = AHEAD if program.commands[AHEAD] else MAIN
        self._end = MAIN if program.commands[MAIN] else AHEAD
        self._rows = array_latency(k, shape) + row_buffers.LATENCY
        self._room = 3 * self.blocks
        self._ring = 2 if recurrent else 3
        self._transform = forward_latency(k, shape.levels)
        # The sequencer: command, place in it, phase, and whether the next issue may go.
        self._command, self._at, self.phase = 0, 0, 0
        self._active, self._clear, self._zero = False, False, False
        # The dispatch.
        self._begun, self._fresh_zero, self._waiting, self._reading = False, False, 0, False
        self._under_way, self._unfetched, self._promised, self._fits, self._fresh = 0, 0, 0, True, True
        # The banks: transforms of the input, which can be held up, and of the layer's own blocks; counts.
        self._pipe = [False] * self._transform
        self._own = _Delay(self._transform)
        self._soon = _Delay(self._transform - 1)
        self._held, self._came, self._inputs, self._have = 0, 0, 0, [0, 0]
        self._own_at = [0, 0]
        # Rows that can be fetched, by stage; results on their way; the queue.
        self._ready: list[deque[int]] = [deque() for _ in self._units]
        self._fetched = [-(1 << 30)] * len(self._units)
        self._served: set[int] = set()
        self._done_fetches = 0
        self._results: deque[int] = deque()
        self._seconds: deque[int] = deque()
        self._given, self._queued, self.offers = 0, 0, False
        self.accepts = self.leaves = self.skips = False

    @property
    def takes(self) -> bool:
        """Whether a block of the input is taken when it comes; this cycle's collision is known beforehand."""
        return self._moves and self._held != self._ring * self.x_blocks

    @property
    def _moves(self) -> bool:
        return not (self._pipe[-1] and self._collides)

    @property
    def _collides(self) -> bool:
        """Whether the layer's own block is written in this cycle, to the bank of the input's next one."""
        if not self._own.events or self._own.events[0][0] != self._now:
            return False
        second = self._own.events[0][1]
        bank = (self._own_at[1] if second else self.x_blocks + self._own_at[0]) % self._columns
        return bank == self._came % self._columns

    _now = 0

    @property
    def asks(self) -> bool:
        return self._active and (self.phase != 0 or self._clear)

    @property
    def ending(self) -> bool:
        """Whether the issue ends a pass in this cycle."""
        return self.phase == self._fold - 1 and self._program.commands[self._command][self._at].ends

    def edge(self, cycle: int, granted: bool, free: bool) -> None:
        """One cycle: what happens, then the registers."""
        commands = self._program.commands
        issues = commands[self._command]
        moves = granted and self.phase == self._fold - 1
        done = moves and self._at == len(issues) - 1
        if moves and issues[self._at].ends:
            self._leave(issues[self._at].number, cycle)

        # The next command, if the sequencer takes one.
        pick = self._pick()
        accepts = pick is not None and (not self._active or done)
        starts = accepts and pick == self._start
        zero = pick == MAIN and (self._fresh if pick == self._start else self._fresh_zero)
        if accepts:
            assert pick is not None
            first = commands[pick][0]
            come = self._have[int(pick == SECOND)] >= first.need and not (self._active and self._command == pick)
            clear = (not first.need or zero or come) and (free or not first.ends)
        elif not issues:
            clear = False
        else:
            at = min(self._at + moves, len(issues) - 1)
            clear = self._enough(issues[at].need) and (free or not issues[at].ends)

        # Rows that are fetched, results.
        fetched, ends = self._fetch(cycle), False
        while self._seconds and self._seconds[0] == cycle:
            self._seconds.popleft()
            self._own.put(cycle, True)
            self._soon.put(cycle, True)
        written_queue = False
        if self._results and self._results[0] == cycle:
            self._results.popleft()
            written_queue = not self.skips
            ends = self._given == self.blocks - 1
            self._given = (self._given + 1) % self.blocks
            if self._h_blocks:
                self._own.put(cycle, False)
                self._soon.put(cycle, False)

        # Blocks that come and are read to the end.
        ended = self._command if done else -1
        done_input = ended == self._end
        soon = self._soon.get(cycle)
        have = list(self._have)
        if soon is not None:
            have[int(soon)] += 1
        if ended == MAIN and not self._zero:
            have[0] -= self._h_blocks
        if ended == SECOND:
            have[1] -= self._second_blocks
        transform_moves, written = self._moves, self._pipe[-1] and not self._collides
        second = self._own.get(cycle)
        if second is not None:
            size = self._second_blocks if second else self._h_blocks
            self._own_at[int(second)] = (self._own_at[int(second)] + 1) % size
        whole = written and self._came == self.x_blocks - 1
        if written:
            self._came = (self._came + 1) % self.x_blocks
        if transform_moves:
            self._pipe = [self.accepts, *self._pipe[:-1]]

        # The registers.
        n = 2 if starts else 1
        skipped = self.blocks * (ends and self.skips)
        self._fits = (self._promised - self.leaves - skipped <= self._room - n * self.blocks
                      and self._under_way - ends <= PLACES - 1 - n and self._unfetched - fetched <= 2 - n)
        self._promised += self.blocks * starts - self.leaves - skipped
        self._under_way += starts - ends
        self._unfetched += starts - fetched
        self._held += self.accepts - self.x_blocks * done_input
        reading = self._reading and not (done and self._command == self._end)
        self._reading = starts or reading
        if commands[SECOND]:
            self._waiting += (accepts and pick == MAIN) - (accepts and pick == SECOND)
        if accepts and pick == MAIN and self._begun:
            self._begun = False
        if starts:
            self._fresh_zero, self._begun, self._fresh = self._fresh, self._start != self._end, False
        self._inputs += whole - done_input
        self._have, self._clear = have, clear
        if granted:
            self.phase = (self.phase + 1) % self._fold
        if done:
            self._active = False
        elif moves:
            self._at += 1
        if accepts:
            self._active, self._command, self._at, self._zero = True, pick or 0, 0, zero
        reads = self._queued > 0 and (not self.offers or self.leaves)
        self.offers = self._queued > 0 or (self.offers and not self.leaves)
        self._queued += written_queue - reads
        self._now = cycle + 1

    def _pick(self) -> int | None:
        """The command that the dispatch offers, the most urgent one."""
        commands = self._program.commands
        room = self._inputs > self._reading and self._fits
        if not commands[AHEAD]:
            choices = [(room and self._waiting < 1, MAIN)]
            choices = [(self._waiting != 0, SECOND), *choices, (self._waiting >= 1, SECOND)] if commands[SECOND] \
                else choices
        else:
            choices = [(self._begun, MAIN)] if commands[MAIN] else []
            if commands[SECOND]:
                choices = [(self._waiting != 0, SECOND), *choices, (self._waiting >= 1, SECOND)]
            choices = [*choices, (room and not self._begun, AHEAD)]
        return next((command for condition, command in choices[::-1] if condition), None)

    def _enough(self, need: int) -> bool:
        if self._command == SECOND:
            return self._have[1] >= need
        return self._zero or self._have[0] >= need

    def _leave(self, number: int, cycle: int) -> None:
        """Blocks of a pass that are whole."""
        p = self._program.passes[number]
        matrix = self._program.matrices[p.matrix]
        if not matrix.completes:
            return
        kinds, shape = len(matrix.kinds), self._program.shape
        for row in range(p.first_row + (-p.first_row - 1) % kinds, min(p.first_row + shape.rows, matrix.rows), kinds):
            self._ready[matrix.stage].append(cycle + self._rows + (row - p.first_row) // shape.chains)

    def _fetch(self, cycle: int) -> bool:
        """Let the units fetch; whether the first one takes the last block of a step."""
        last = False
        longest_first = sorted(range(len(self._units)), key=lambda stage: (-self._units[stage].latency, -stage))
        for stage in longest_first:
            unit, ready = self._units[stage], self._ready[stage]
            there = cycle + unit.latency
            if not ready or ready[0] > cycle or cycle < self._fetched[stage] + unit.phases or there in self._served:
                continue
            ready.popleft()
            self._fetched[stage] = cycle
            if len(self._units) > 1:
                self._served.add(there)
            if not stage:
                last = self._done_fetches == self._hidden_blocks - 1
                self._done_fetches = (self._done_fetches + 1) % self._hidden_blocks
            (self._results if stage == len(self._units) - 1 else self._seconds).append(there)
        return last


