"""The counters of a layer that shares an array, cycle by cycle, in Python: banks, dispatch, sequencer, row memories,
pointwise units and queue. The names are those of the units."""
from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field
from math import inf

from circulant.hw.arith.fft import forward_latency
from circulant.hw.array.bank_shape import forwards, write_latency
from circulant.hw.array.matrix import beats, blocks_aside
from circulant.hw.array.plans import Simple
from circulant.hw.array.program import AHEAD, MAIN, SECOND, Program
from circulant.hw.components.cell import cells_of
from circulant.hw.plan.shared.commands import commands_of
from circulant.hw.plan.shared.events import Events
from circulant.hw.plan.shared.schedule import completed, plain
from circulant.hw.plan.step_cost import stages
from circulant.hw.stream.pipeline import steps

__all__ = ["SETTLED", "SharedLayer"]

SETTLED = 3
"""Cycles without an event behind which a layer does the same again: as many as a change takes to come to commands."""

VECTORS = (2, 0, 1)
"""The vector of each command, as `Banks` counts them: of AHEAD the input, of MAIN the recurrent and of SECOND the
second one."""


@dataclass
class _Delay:
    """Blocks that come some cycles later; of each whether it is of the second vector."""

    cycles: int
    events: deque[tuple[int, bool]] = field(default_factory=deque)

    def put(self, cycle: int, second: bool) -> None:
        self.events.append((cycle + self.cycles, second))

    def comes(self, cycle: int) -> bool:
        """Whether a block comes in a cycle."""
        return bool(self.events) and self.events[0][0] == cycle


class SharedLayer:
    """A layer.

    Parameters:
        lasts: the steps that end sequences.

    Members:
        k, gives: values of what comes, and of what leaves in a cycle.
        outputs: values of a result.
        takes, offers: a block can come; one waits to leave.
        accepts, leaves: what of that happens in this cycle.
        command: at work.
        asks, ending, phase: an issue is asked for; it ends a pass; its phase.
        only_last: the results of last steps alone leave.
        done: steps whose results are there.
        events: what has happened.
        still: cycles since when nothing has happened but issues in the midst of a pass.
    """

    def __init__(self, layer: Simple, program: Program, elements: int, *, streams: int = 1,
                 lasts: Container[int] = ()) -> None:
        k, shape = program.matrices[0].product.block_size, program.shape
        self._columns, self._fold, self._aside = shape.columns, shape.fold, blocks_aside(program.matrices, shape)
        (self.k, self.gives), self.outputs = beats(program.matrices, shape), layer.outputs
        commands, self._input_ends = program.commands, program.last_reader
        late = program.sequences[3:] or commands[:2]
        self._issues = [[late[AHEAD], *commands[MAIN:]], [commands[AHEAD], late[MAIN], commands[SECOND]]]
        self._units, self._beside = stages(layer, elements, shape), shape.gives
        self._longest_first = sorted(range(len(self._units)), key=lambda n: (-self._units[n].latency, -n))
        self.x_blocks, self.blocks = -(-layer.inputs // self.k), -(-layer.outputs // self.gives)
        self._head = program.inputs
        self._hidden_blocks = -(-getattr(layer, "hidden", layer.outputs) // self.gives)
        h_blocks = self.blocks if cells_of(layer) else 0
        self._sizes = h_blocks, self._hidden_blocks if program.commands[SECOND] else 0, self.x_blocks
        self._room = (streams + 2 if h_blocks else 3) * self.blocks
        self._ring = 2 * streams if h_blocks else 3
        self._whole_rows = completed(program)
        # The sequencer: command, place in it, phase; whether the next issue may go, whether it leads its step.
        self.command, self._at, self.phase = AHEAD if program.commands[AHEAD] else MAIN, 0, 0
        self._active = self._clear = self._zero = self._leads = False
        # The dispatch: the order of commands; steps and blocks under way.
        self._commands = commands_of(program, streams=streams, lasts=lasts)
        self._lasts = lasts
        self._unfetched, self._promised, self._fits = 0, 0, True
        # The banks: transforms of the input, which can be held up, and of the layer's own blocks; counts.
        transform, self._back = forward_latency(k, shape.levels), write_latency(k, shape.levels)
        self._pipe, self._way = 0, transform  # A bit for each of its cycles, the last one the highest.
        self._foreknown = not h_blocks and forwards(k, shape.levels)
        self._prompt = not h_blocks and steps(shape.levels) > 1
        self._own, self._soon, self._gone = _Delay(transform), _Delay(self._back - 2), _Delay(self._back - 1)
        self._held, self._came, self._inputs, self._have = 0, 0, 0, [0, 0, 0]
        self._own_at = [0, 0]
        # Rows that can be fetched, by stage; results on their way; the queue.
        self._ready: list[deque[int]] = [deque() for _ in self._units]
        self._fetched = [-(1 << 30)] * len(self._units)
        self._served: set[int] = set()
        self._done_fetches = 0
        self._results: deque[int] = deque()
        self._seconds: deque[int] = deque()
        self._given, self._queued, self.offers = 0, 0, False
        self.accepts = self.leaves = False
        self.only_last, self.done, self.events = False, 0, Events()
        self._now, self.still = 0, 0
        self._free, self._wakes = False, -inf  # Until then it does the same, if nothing comes and all is as free.
        self._plain = [[plain(issues, leads) for issues in each] for leads, each in enumerate(self._issues)]

    @property
    def sizes(self) -> list[int]:
        """Events of a step, of each kind of them.

        Raises:
            ValueError: when a command issues more where it follows than where it leads, so that no step has its share.
        """
        issues, first = ([len(each) * self._fold for each in sequences] for sequences in self._issues)
        if issues != first:
            raise ValueError("Events of a step must be of commands that issue as much first as behind, not "
                             f"{first} and {issues}")
        return [*issues, self._hidden_blocks, self._sizes[1], self.blocks]

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on; cycles count from the next one."""
        now = self._now
        return (
            self.command, self._at, self.phase, self._active, self._clear, self._zero, self._leads,
            self._commands.state(), self._unfetched, self._promised, self._fits, self._pipe,
            *(tuple((at - now, second) for at, second in each.events) for each in (self._own, self._soon, self._gone)),
            self._held, self._came, self._inputs, *self._have, *self._own_at,
            *(tuple(max(0, at - now) for at in ready) for ready in self._ready),
            *(max(0, at + unit.phases - now) for at, unit in zip(self._fetched, self._units, strict=True)),
            tuple(sorted(at - now for at in self._served if at >= now)), self._done_fetches,
            tuple(at - now for at in self._results), tuple(at - now for at in self._seconds),
            self._given, self._queued, self.offers)

    @property
    def constants(self) -> tuple[object, ...]:
        """Members that no cycle changes."""
        return self._issues, self._plain, self._units, self._whole_rows, self._longest_first

    @property
    def marked(self) -> int:
        """Steps of which it is known whether they begin a sequence."""
        return self._commands.marked

    def later(self, steps: int) -> None:
        """The same, behind so many more steps."""
        self.done += steps
        self._commands.marked += steps

    @property
    def takes(self) -> bool:
        """Whether a block of the input is taken when it comes; this cycle's collision is known beforehand."""
        return not self.full and not (self._pipe >> self._way - 1 and self._collides)

    @property
    def full(self) -> bool:
        """Whether the banks have no room for a block of the input."""
        return self._held == self._ring * self.x_blocks

    @property
    def _collides(self) -> bool:
        """Whether the layer's own block is written in this cycle, to the bank of the input's next one."""
        if not self._own.events or self._own.events[0][0] != self._now:
            return False
        second = self._own.events[0][1]
        at = self._own_at[second] * self._beside
        bank = (at if second else self._head + at) % self._columns
        return bank // self._beside == self._came % self._columns // self._beside

    @property
    def asks(self) -> bool:
        return self._active and (self.phase != 0 or self._clear)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way in the layer but what waits for a block of the input."""
        return not (self._active and self._clear) and not self._results and not self._seconds and not (
            self._own.events or self._soon.events or self._queued or self.offers or self._pipe
            or any(self._ready))

    @property
    def ending(self) -> bool:
        """Whether the issue ends a pass in this cycle."""
        return self.phase == self._fold - 1 and self._ends(self.command, self._at, self._leads)

    def _ends(self, command: int, at: int, leads: bool) -> bool:
        issue = self._issues[leads][command][at]
        return issue.ends and (issue.alone or not leads)

    def edge(self, cycle: int, granted: bool, free: bool) -> None:
        """One cycle: what happens, then the registers.

        Parameters:
            granted: its issue gets the array.
            free: an issue of the next cycle that ends a pass will find the drain free.
        """
        if cycle < self._wakes and free is self._free and not (granted or self.accepts or self.leaves):
            self._now = cycle + 1
            return
        self._wakes, self._free, moves = -inf, free, granted and self.phase == self._fold - 1
        done = moves and self._at == len(self._issues[self._leads][self.command]) - 1
        ended = self.command if done else -1
        if moves and self._ends(self.command, self._at, self._leads):
            issue = self._issues[self._leads][self.command][self._at]
            stage, blocks = self._whole_rows[issue.number]
            self.still = 0
            self._ready[stage].extend([cycle + each for each in blocks if not (issue.joins and self._leads)])
        accepted = -1 if self._active and not done else self._commands.pick(self._fits, self._inputs)
        leads, zero = accepted >= 0 and self._commands.leads(accepted), accepted >= 0 and self._commands.zero(accepted)
        clear = self._may_go(accepted, moves, zero, leads, free)
        self.still += 1 if clear == self._clear else -self.still
        fetched, (queued, ends) = self._fetch(cycle), self._give(cycle)
        gone = self._gone.comes(cycle)
        if gone:
            self._gone.events.popleft()
            self.still = 0
        self._dispatch(accepted, ended, fetched, ends and not queued, gone)
        self._banks(cycle, ended)

        # The registers of the sequencer and of the queue.
        self._clear = clear
        if granted:
            self.events.issues[self.command].append(cycle)
            self.phase = (self.phase + 1) % self._fold
        if done:
            self._active = False
        elif moves:
            self._at += 1
        if accepted >= 0:
            self._active, self.command, self._at, self._zero, self._leads = True, accepted, 0, zero, leads
        free = not self.offers or self.leaves
        reads, passes = self._queued > 0 and free, self._prompt and queued and not self._queued and free
        self.offers = self._queued > 0 or passes or not free
        self._queued += queued - passes - reads
        self.done += ends
        self._now = cycle + 1
        if accepted >= 0 or done or queued or reads or self.accepts or self.leaves:
            self.still = 0
        if self.still >= SETTLED and not granted:
            self._wakes = self._now + self.rests(False)

    def rests(self, granted: bool) -> float:
        """The cycles for which a layer that was still is so again, if all around it is.

        Parameters:
            granted: its issues get the array.
        """
        found = min((each[0] - self._now for each in (self._results, self._seconds) if each), default=inf)
        for delay in (self._own, self._soon, self._gone):
            if delay.events:
                found = min(found, delay.events[0][0] - self._now)
        for ready, last, unit in zip(self._ready, self._fetched, self._units, strict=True):
            if ready:
                found = min(found, max(ready[0], last + unit.phases) - self._now)
        if granted:
            issues, need = self._plain[self._leads][self.command][self._at]
            if need > self._have[VECTORS[self.command]] and not (self.command == MAIN and self._zero):
                return 0
            found = min(found, (issues - 1) * self._fold - self.phase)
        return found

    def rest(self, cycles: int, granted: bool) -> None:
        """So many cycles of `rests`."""
        if granted:
            self.events.issues[self.command].extend(range(self._now, self._now + cycles))
            moved, self.phase = divmod(self.phase + cycles, self._fold)
            self._at += moved
        self._now += cycles

    def _may_go(self, accepted: int, moves: bool, zero: bool, leads: bool, free: bool) -> bool:
        """Whether an issue may go in the next cycle; that of a command which is accepted, if one is."""
        if accepted >= 0:
            need = self._issues[leads][accepted][0].need
            come = self._have[VECTORS[accepted]] >= need and not (self._active and self.command == accepted)
            return (zero or come or not need) and (free or not self._ends(accepted, 0, leads))
        issues = self._issues[self._leads][self.command]
        at = min(self._at + moves, len(issues) - 1)
        enough = (self.command == MAIN and self._zero) or self._have[VECTORS[self.command]] >= issues[at].need
        return enough and (free or not self._ends(self.command, at, self._leads))

    def _dispatch(self, accepted: int, ended: int, fetched: bool, skips: bool, gone: bool) -> None:
        """The registers of the dispatch."""
        starts = self._commands.edge(accepted, ended, state=self._have[0] >= self._sizes[0] * self._beside,
                                     inputs=self._inputs, gone=gone)
        n, skipped = 2 if starts else 1, self.blocks * skips
        self._fits = (self._promised - self.leaves - skipped <= self._room - n * self.blocks
                      and self._unfetched - fetched <= 2 - n)
        self._promised += self.blocks * starts - self.leaves - skipped
        self._unfetched += starts - fetched

    def _banks(self, cycle: int, ended: int) -> None:
        """The registers of the banks: blocks that come, and vectors that are read to the end."""
        written = False
        if self._pipe or self.accepts:
            last = bool(self._pipe >> self._way - 1)
            held_up, self.still = last and self._collides, 0
            written = last and not held_up
            if self._foreknown:  # It counts before it is written.
                written = bool(self._pipe >> self._way - 3 & 1) if self._way > 2 else self.accepts
            if not held_up:
                self._pipe = (self._pipe << 1 | self.accepts) & (1 << self._way) - 1
        if self._own.comes(cycle):
            _, second = self._own.events.popleft()
            self.still = 0
            self._own_at[second] = (self._own_at[second] + 1) % self._sizes[second]
        if self._soon.comes(cycle):
            _, soon = self._soon.events.popleft()
            self.still = 0
            self._have[soon] += self._beside
        self._held += self.accepts
        if written:
            self._have[2] += self._aside
            self._came = (self._came + 1) % self.x_blocks
            self._inputs += self._came == 0
        if ended == self._input_ends or (
                self._input_ends is None and ended in (AHEAD, MAIN) and not self._leads):
            self._held -= self.x_blocks
            self._inputs -= 1
            self._have[2] -= self.x_blocks * self._aside
        if ended == SECOND or (ended == MAIN and not self._zero):
            self._have[VECTORS[ended]] -= self._sizes[VECTORS[ended]] * self._beside

    def _give(self, cycle: int) -> tuple[bool, bool]:
        """Blocks from the units back to the banks; whether one goes to the queue, and whether a step ends with it."""
        while self._seconds and self._seconds[0] == cycle:
            self.still = 0
            self._seconds.popleft()
            self._own.put(cycle, True)
            self._soon.put(cycle, True)
        if not self._results or self._results[0] != cycle:
            return False, False
        self._results.popleft()
        self.still = 0
        self._given = (self._given + 1) % self.blocks
        ends, last = self._given == 0, self.done in self._lasts
        if self._sizes[0]:
            self._own.put(cycle, False)
            if not last:  # Its result is not kept, but has its place.
                self._soon.put(cycle, False)
            if ends:
                self._gone.put(cycle, False)
        return last or not self.only_last, ends

    def _fetch(self, cycle: int) -> bool:
        """Let the units fetch; whether the first one takes the last block of a step."""
        last = False
        for stage in self._longest_first:
            unit, ready = self._units[stage], self._ready[stage]
            there = cycle + unit.latency
            if not ready or ready[0] > cycle or cycle < self._fetched[stage] + unit.phases or there in self._served:
                continue
            ready.popleft()
            self.still = 0
            self._fetched[stage] = cycle
            if len(self._units) > 1:
                self._served = {there, *(at for at in self._served if at >= cycle)}
            if not stage:
                self.events.blocks.append(cycle)
                last = self._done_fetches == self._hidden_blocks - 1
                self._done_fetches = (self._done_fetches + 1) % self._hidden_blocks
            if stage == len(self._units) - 1:
                self._results.append(there)
                self.events.results.append(there)
            else:
                self._seconds.append(there)
                self.events.seconds.append(there + self._back)
        return last
