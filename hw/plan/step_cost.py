"""The exact cost of a step, in Python: when each issue, block and result comes, from the latencies of the units.

The hardware has no choice of its own, so that a recurrence over the program gives every cycle; `Timeline` keeps them
for the Gantt chart. Held to the simulated hardware by its tests.
"""
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from circulant.hw.array import row_buffers
from circulant.hw.array.bank_shape import write_latency
from circulant.hw.array.lanes import array_latency
from circulant.hw.array.layer_programs import matrices
from circulant.hw.array.plans import Simple
from circulant.hw.array.program import AHEAD, MAIN, SECOND, ArrayShape, Matrix, Program
from circulant.hw.layers.cells import cells_of
from circulant.hw.layers.pointwise import pointwise_latency
from circulant.sim.artifact import Json
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.rnn import Rnn

__all__ = ["TURNS", "Timeline", "chain_latency", "chart", "input_cycles", "limit", "sample_results", "sequence_cycles",
           "step_timeline", "vector_limit"]

TURNS = 4
"""Turns of interleaved streams, over which the cost of a chosen array is the mean."""


@dataclass
class Timeline:
    """Cycles of a step in steady state, counted from the first issue of its MAIN command.

    Parameters:
        issues: (command, matrix, cycle) of each issue; those of AHEAD, for the same step, have come before.
        blocks: cycle in which the pointwise unit fetches each block.
        seconds: cycle in which each block of the second vector can be read, if there is one.
        results: cycle in which each block of the output is there.
        period: cycles from step to step, the mean over the turns of several streams.
    """

    issues: list[tuple[int, int, int]] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    period: float = 0


@dataclass(frozen=True)
class Stage:
    """The taker of a stage's rows: a block every ``phases`` cycles at the most, ``latency`` cycles to its result."""

    phases: int
    latency: int


def stages(layer: Simple, elements: int, levels: int) -> list[Stage]:
    """The pointwise units of a layer, or behind the first one the rows of its projection; the rows of a layer without a
    state."""
    cells = cells_of(layer)
    if not cells:
        return [Stage(1, row_buffers.FETCH)]
    recurrent = cast("Gru | Lstm | Rnn", layer)
    found = [Stage(recurrent.gates.block_size // elements, pointwise_latency(cell, recurrent, elements, levels))
             for cell in cells]
    return [*found, Stage(1, row_buffers.FETCH)] if getattr(layer, "projection", None) is not None else found


def chain_latency(layer: Simple, shape: ArrayShape, elements: int) -> int:
    """Cycles from the last issue of a step to what the next one can read, at the least."""
    k = matrices(layer)[0].product.block_size
    return sum(array_latency(k, shape) + row_buffers.LATENCY + stage.latency + write_latency(k, shape.levels)
               for stage in stages(layer, elements, shape.levels))


def commands(program: Program, streams: int, steps: int) -> Iterator[tuple[int, int]]:
    """(command, step) in the order in which they start when every input is there.

    With one stream a step's second vector is all that the next one waits for; with several it is given time.
    """
    behind = 1 if streams == 1 else 2
    for step in range(steps):
        order = [(AHEAD, step)]
        if program.commands[SECOND] and step >= behind:
            order.insert(0 if program.joined and behind > 1 else 1, (SECOND, step - behind))
        yield from [*order, (MAIN, step)]


def step_timeline(layer: Gru | Lstm | Rnn, program: Program, elements: int, *, streams: int = 1,
                  turns: int = 1) -> Timeline:
    """The timeline of streams whose inputs are always there and whose outputs are always taken.

    Parameters:
        turns: over which the period is the mean; those of several streams may differ by a cycle.
    """
    steps = 4 + (1 + turns) * streams
    lines, starts = _steps(layer, program, elements, streams=streams, steps=steps, lengths=[steps])
    behind = 1 if not program.commands[SECOND] else 2 if streams == 1 else 3
    over = turns * streams
    return _normalised(lines[-behind], starts[-behind], starts[-1] - starts[-1 - over], over)


def sequence_cycles(layer: Gru | Lstm | Rnn, program: Program, elements: int, *, steps: int | Sequence[int],
                    streams: int = 1) -> float:
    """Cycles from sequence to sequence of ``steps`` each, or from turn to turn of them, one behind the other; the mean
    of those of sequences that have several numbers of steps and follow each other again and again.

    The first step of a sequence waits for no state, so that it costs less than a period. Turns of interleaved streams
    may be long and short by turns; theirs is the mean.
    """
    lengths = [steps] if isinstance(steps, int) else steps
    each = sum(lengths) * streams
    _, starts = _steps(layer, program, elements, streams=streams, steps=(2 + TURNS) * each + 1, lengths=lengths)
    return _whole(starts[(2 + TURNS) * each] - starts[2 * each], TURNS * len(lengths))


def sample_results(layer: Gru | Lstm | Rnn, program: Program, elements: int, start: int) -> list[int]:
    """The cycle in which each block of a single step's output is there, its first issue being in cycle ``start``: the
    state of the step before has been there for long, and nothing else is under way."""
    past, line = Timeline(), Timeline()
    past.results = [start - (1 << 30)] * -(-layer.outputs // layer.gates.block_size)
    _run(layer, program, elements, order=[(command, 1) for command in range(3)], lines=[past, line], going_on=[True],
         now=start)
    return line.results


def _steps(layer: Gru | Lstm | Rnn, program: Program, elements: int, *, streams: int, steps: int,
           lengths: Sequence[int]) -> tuple[list[Timeline], list[int]]:
    """Timelines of ``steps`` steps from an empty array on, those of sequences of these lengths again and again, and the
    cycles in which their MAIN commands start."""
    lines = [Timeline() for _ in range(steps)]
    going_on = [step >= streams for length in lengths for step in range(length * streams)]
    return lines, _run(layer, program, elements, order=commands(program, streams, steps), lines=lines,
                       going_on=going_on, streams=streams)


def _run(layer: Gru | Lstm | Rnn, program: Program, elements: int, *, order: Iterable[tuple[int, int]],
         lines: list[Timeline], going_on: Sequence[bool], streams: int = 1, now: int = 0) -> list[int]:
    """Fills the timelines of steps; returns the cycles in which their MAIN commands start.

    Parameters:
        order: (command, step) as they are issued, from cycle ``now`` on.
        going_on: whether a step has a state, by turns.
    """
    shape, k = program.shape, layer.gates.block_size
    rows_at, back = array_latency(k, shape) + row_buffers.LATENCY, write_latency(k, shape.levels)
    units = stages(layer, elements, program.shape.levels)
    drained = now - shape.slots
    second = bool(program.commands[SECOND])
    passing = _Passing(units, back, second)
    starts = [0] * len(lines)
    before = SECOND + 1
    for command, step in order:
        line = lines[step]
        goes_on = going_on[step % len(going_on)]
        have = line.seconds if command == SECOND else lines[step - streams].results
        wait = 0 if command == SECOND else back
        ended: list[int] = []
        for position, issue in enumerate(program.commands[command]):
            if issue.need and (goes_on or command == SECOND):
                passing.settle(have, issue.need)
                # What follows a command for the same vector sees a cycle later how much of it is left.
                now = max(now + (not position and command == before), have[issue.need - 1] + wait)
            if issue.ends:
                now = max(now, drained + shape.slots - shape.fold + 1)
                drained = now + shape.fold - 1
                ended.append(drained)
            if command == MAIN and not position:
                starts[step] = now
            line.issues.append((command, program.passes[issue.number].matrix, now))
            now += shape.fold
        before = command
        ends = [issue.number for issue in program.commands[command] if issue.ends]
        for number, end in zip(ends, ended, strict=True):
            p = program.passes[number]
            matrix = program.matrices[p.matrix]
            if not matrix.completes:
                continue
            kinds = len(matrix.kinds)
            stop = min(p.first_row + shape.rows, matrix.rows)
            for row in range(p.first_row + (-p.first_row - 1) % kinds, stop, kinds):
                passing.comes(line, matrix.stage, end + rows_at + (row - p.first_row) // shape.chains)
    passing.settle(None, 0)
    return starts


class _Passing:
    """Whole blocks on their way through the units of the stages, and into a timeline.

    Where there are two stages, one transform serves both, and the one with the shorter way gives way: when its blocks
    go is settled as late as it can be, once everything is known that may come between.
    """

    def __init__(self, units: Sequence[Stage], back: int, second: bool) -> None:
        self._units, self._back, self._second = units, back, second
        self._shorter = min(range(len(units)), key=lambda stage: units[stage].latency) if second else -1
        self._fetched = [-(10**9)] * len(units)
        self._served: set[int] = set()
        self._waiting: deque[tuple[Timeline, int]] = deque()

    def comes(self, line: Timeline, stage: int, cycle: int) -> None:
        """A block of a stage can be fetched from a cycle on."""
        if stage == self._shorter:
            self._waiting.append((line, cycle))
            return
        at = max(cycle, self._fetched[stage] + self._units[stage].phases)
        self._served.add(at + self._units[stage].latency)
        self._note(line, stage, at)

    def settle(self, cycles: list[int] | None, count: int) -> None:
        """Let those that give way go until there are ``count`` of these ``cycles``; all of them without."""
        while self._waiting and (cycles is None or len(cycles) < count):
            line, cycle = self._waiting.popleft()
            unit = self._units[self._shorter]
            at = max(cycle, self._fetched[self._shorter] + unit.phases)
            while at + unit.latency in self._served:
                at += 1
            self._note(line, self._shorter, at)

    def _note(self, line: Timeline, stage: int, at: int) -> None:
        self._fetched[stage] = at
        there = at + self._units[stage].latency
        if not stage:
            line.blocks.append(at)
        if self._second and not stage:
            line.seconds.append(there + self._back)
        else:
            line.results.append(there)


def _normalised(line: Timeline, start: int, cycles: int, steps: int) -> Timeline:
    blocks, seconds, results = ([cycle - start for cycle in cycles]
                                for cycles in (line.blocks, line.seconds, line.results))
    issues = [(command, matrix, cycle - start) for command, matrix, cycle in line.issues]
    return Timeline(issues, blocks, seconds, results, _whole(cycles, steps))


def _whole(cycles: int, count: int) -> float:
    """The mean, an integer where it is one."""
    return cycles / count if cycles % count else cycles // count


def input_cycles(layer: Gru | Lstm | Rnn, program: Program) -> int:
    """Cycles at the most of a step that waits for nothing but the blocks of its input: each of the layer's own may hold
    one up, as both are written to one memory."""
    own = layer.outputs, layer.hidden if program.commands[SECOND] else 0
    return sum(-(-size // layer.gates.block_size) for size in (layer.inputs, *own))


def array_limit(matrices: Sequence[Matrix], shape: ArrayShape, issues: int, above: bool) -> str:
    """The limit of an array that has an issue in every cycle, in words.

    Parameters:
        issues: of a step; each has room for a block product of every lane.
        above: whether the layer takes more cycles than its multipliers would need for its multiplications.
    """
    if not above:
        return "multipliers: the array works in every cycle"
    used = sum(matrix.rows * matrix.columns for matrix in matrices) / (issues * shape.rows * shape.columns)
    if used < 1:
        return f"multipliers: the array has work in every cycle, in {used:.0%} of its lanes: passes are not full"
    return "multipliers: the array works in every cycle, the multipliers of transforms and activations do not"


def limit(layer: Gru | Lstm | Rnn, program: Program, elements: int, period: float, floor: int) -> str:
    """The limit of a step's time: the array, the input, the pointwise unit, the drain, or the path of the state.

    Parameters:
        floor: of the step with the layer's multipliers, in cycles.
    """
    busy = -(-layer.hidden // layer.gates.block_size) * (layer.gates.block_size // elements)
    if period == input_cycles(layer, program) > program.cycles * program.shape.fold:
        return "input: a block comes in every cycle, but for those in which the layer writes its own"
    if period <= program.cycles * program.shape.fold:
        return array_limit(program.matrices, program.shape, program.cycles, period > floor)
    if period <= busy + 1:
        return "pointwise unit: it works in every cycle"
    if period <= len(program.passes) * program.shape.slots + 1:
        return "inverse FFTs: rows leave in every cycle"
    return "latency: each step waits for the state of the step before"


def vector_limit(matrices: Sequence[Matrix], shape: ArrayShape, cycles: float, floor: int) -> str:
    """The limit of a vector's ``cycles`` in a layer without a state; ``floor``: see `limit`."""
    if cycles > sum(-(-matrix.rows // shape.rows) * max(-(-matrix.columns // shape.columns) * shape.fold, shape.slots)
                    for matrix in matrices):
        return "input or output: a block comes or leaves in every cycle"
    if all(-(-matrix.columns // shape.columns) * shape.fold >= shape.slots for matrix in matrices):
        issues = sum(-(-matrix.rows // shape.rows) * -(-matrix.columns // shape.columns) for matrix in matrices)
        return array_limit(matrices, shape, issues, cycles > floor)
    return "inverse FFTs: rows leave in every cycle"


def chart(layer: Gru | Lstm | Rnn, program: Program, elements: int, streams: int) -> Json:
    """A step in steady state, for a Gantt chart: its ``period``, and by unit the [first, last + 1] cycles at work."""
    line = step_timeline(layer, program, elements, streams=streams, turns=1 if streams == 1 else TURNS)
    units = stages(layer, elements, program.shape.levels)
    fold, names = program.shape.fold, ("input", "recurrent", "second")
    rows: dict[str, list[list[int]]] = {}
    for command, name in enumerate(names):
        rows[f"array: {name}"] = _merged([(at, at + fold) for c, _, at in line.issues if c == command])
    rows["pointwise"] = _merged([(at, at + units[0].phases) for at in line.blocks])
    rows["second vector"] = _merged([(at, at + 1) for at in line.seconds])
    rows["output"] = _merged([(at, at + 1) for at in line.results])
    return {"period": line.period, "rows": {name: spans for name, spans in rows.items() if spans}}


def _merged(spans: list[tuple[int, int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(stop, merged[-1][1])
        else:
            merged.append([start, stop])
    return merged
