"""The exact cost of layers on arrays, in Python: all their counters, cycle by cycle.

A layer may have an array to itself; or several share one, and who issues depends on what the others do. Held to the
simulated hardware by its tests. A play for a period ends when the whole state repeats, see `period`. Arrays for both
directions of a bidirectional layer are found as if no sequence ended; what is chosen is played for sequences of one
length, on which the cycles depend by which its directions are apart.
"""
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf

from circulant.hw.array.plans import Sharing
from circulant.hw.array.program import MAIN
from circulant.hw.components.cell import cells_of
from circulant.hw.plan.shared.events import Events, merged
from circulant.hw.plan.shared.layer_counters import SharedLayer
from circulant.hw.plan.shared.play import Array, Play, working
from circulant.hw.plan.shared.replay import Replay

__all__ = ["RANKED", "Cost", "arriving_results", "end_latency", "least_period", "loop_latency", "period", "periods",
           "results_together", "sample_issues", "sample_results", "sequences_cost", "settled", "shared_cost",
           "steady_step", "taken_steps"]

LEAST_STEPS, RANKED, MOST = 12, 1 << 16, 1 << 20
"""Steps that are played for a period at the least; cycles at the most of a candidate, and of what is chosen."""

LENGTHS = 1, 2, 3, 5, 8, 13
"""Steps of the sequences behind which a long one is played: two of each, with interleaved streams any two of them."""

LATER = 16
"""Steps that a long sequence has behind what repeats, at the most."""

CLOSED, LOOPED = 3, 64
"""Samples that are played in a closed loop; those without a pause, at the most."""

STARTS = 1, 0, 2, 300
"""Cycles behind a reset in which the first block comes: in cosimulation, and others. Products that need no input come
before, and layers may settle in several orders."""

PLAYED = 1 << 17
"""Cycles that are played at the most of sequences one behind the other."""

IDLE = 8
"""Cycles behind a reset in which a layer that waits for its input has come to a rest."""

ENDED, FEW, ENDED_CYCLES = 32, 12, 1 << 17
"""Steps of the sequence that is played for the latency of a last step; of one that would take more cycles, about."""


@dataclass(frozen=True)
class Cost:
    """Cycles of a network.

    Parameters:
        period: from step to step when the next input is always there; a mean, as steps can be long and short by turns.
        steps: from each of the first steps to the next one, until all repeats.
        turn: the steps after which all repeats; 0 where the period is an estimate, see `period`.
        results: from the last block of a sample to each block of its result, in a closed loop.
        latency: to the last one.
    """

    period: float
    steps: tuple[int, ...]
    turn: int
    results: tuple[int, ...]

    @property
    def latency(self) -> int:
        return self.results[-1]

    @property
    def repeats(self) -> tuple[int, int] | None:
        """See `circulant.hw.array.plans.LayerPlan`."""
        return (len(self.steps) + 1 - self.turn, self.turn) if self.turn else None


def shared_cost(groups: Sequence[Sharing], elements: Sequence[int]) -> Cost:
    """The cost of recurrent and fully connected layers in a chain, whose sequences do not end.

    Parameters:
        groups: of layers that follow each other, each with an array.
        elements: of their pointwise units.
    """
    return Cost(*period(groups, elements), sample_results(groups, elements))


def period(groups: Sequence[Sharing], elements: Sequence[int], *,
           most: int = MOST) -> tuple[float, tuple[int, ...], int]:
    """The period, the steps and the turn, see `Cost`.

    What follows depends on the state alone: that of all counters, queues and converters, the last one that had each
    array, its drain, and what is under way, by the cycles that it still takes. When it is the same behind two steps,
    all that came between them comes again for ever, and the period is the cycles between them by the steps between
    them. Equal lengths of steps say nothing: they are equal as well while a queue between layers fills.

    The sequence begins behind a reset; for those that follow others see `periods`.

    Parameters:
        most: cycles after which the play ends, behind `LEAST_STEPS`. Where no state has repeated by then the period is
            an estimate, the mean of the later half of the steps.
    """
    seen, taken, turn = dict[Hashable, int](), list[int](), 0
    for cycle, state in taken_steps(groups, elements):
        turn = len(taken) - seen.setdefault(state, len(taken))
        taken.append(cycle)
        if turn or (cycle > most and len(taken) > LEAST_STEPS):
            break
    over = turn or len(taken) // 2
    cycles = taken[-1] - taken[-1 - over]
    return cycles / over if cycles % over else cycles // over, tuple(
        after - before for before, after in pairwise(taken)), turn


def steady_step(own: Sharing, elements: int) -> tuple[float, bool, Events]:
    """The period of a layer with an array of its own; whether its banks have always room for a block of the input when
    all repeats; and the events of a step then, in cycles from the first issue of its MAIN on."""
    play, seen = Play([own], [elements], closed=False), set[Hashable]()
    found, (cycles, _, _) = play.layers[0].events, period([own], [elements])
    while play.state() not in seen and play.cycle < MOST:
        seen.add(play.state())
        play.taken()
    sizes = play.layers[0].sizes
    step = len(found.issues[MAIN]) // sizes[MAIN] + 1
    starved = True
    while any(len(each) < (step + 1) * size for each, size in zip(found.all, sizes, strict=True)):
        starved &= not play.layers[0].full
        play.step(True)
    start = found.issues[MAIN][step * sizes[MAIN]]
    *issues, blocks, seconds, results = [[cycle - start for cycle in each[step * size:(step + 1) * size]]
                                         for each, size in zip(found.all, sizes, strict=True)]
    return cycles, starved, Events(tuple(issues), blocks, seconds, results)


def periods(groups: Sequence[Sharing], elements: Sequence[int], *, most: int = MOST) -> set[float]:
    """The periods to which long sequences come that follow others: a long one, or two of `LENGTHS`.

    Layers may settle in several orders. Which one it is depends on the state that the end of a sequence leaves: of two
    LSTMs every second sequence took 50 cycles a step, the others 45. A long sequence ends as soon as its state repeats,
    or comes to one that a long sequence before it had; a few steps later than that each time, so that it ends at
    several places of what repeats. Other lengths may leave still others: of 18 stacks two, of three interleaved
    streams, had another period behind one in twenty sequences of random lengths when only equal pairs were played here,
    and one of them still has: 17 cycles, not 16.8.

    Parameters:
        most: cycles after which the play ends; what is found by then does not count, and none is.
    """
    streams, lasts = groups[0].streams, set[int]()
    play, taken, found = Replay(groups, elements, lasts=lasts), list[int](), dict[Hashable, float]()

    def end_behind(steps: int) -> None:
        """Play so many more steps of each stream, the last ones of their sequences."""
        end = (-(-len(taken) // streams) + steps) * streams
        lasts.update(range(end - streams, end))
        taken.extend(play.taken() for _ in range(end - len(taken)))

    pairs = product(LENGTHS, repeat=2) if streams > 1 else zip(LENGTHS, LENGTHS, strict=True)
    for number, lengths in enumerate(((), (), *pairs)):
        for length in lengths:
            end_behind(length)
        seen = dict[Hashable, int]()
        while play.cycle <= most:
            taken.append(play.taken())
            if lasts and play.done <= max(lasts) + streams:
                continue  # What follows depends on the end as well.
            state = play.state()
            if state in found:
                cycles = found[state]
            elif (first := seen.setdefault(state, len(taken))) < len(taken):
                cycles = (taken[-1] - taken[first - 1]) / (len(taken) - first)
            else:
                continue
            found |= dict.fromkeys(seen, cycles)
            break
        else:
            return set()
        end_behind(1 + number % LATER)
    return set(found.values())


def taken_steps(groups: Sequence[Sharing], elements: Sequence[int],
                lasts: Container[int] | None = None) -> Iterator[tuple[int, Hashable]]:
    """The cycle behind each step that the first layer takes, without end, and the state then.

    Parameters:
        lasts: the steps that end sequences; None where none ends.
    """
    return Play(groups, elements, closed=lasts is not None, lasts=lasts).taken_steps()


def sequences_cost(groups: Sequence[Sharing], elements: Sequence[int], *, steps: int,
                   results: tuple[int, ...]) -> Cost:
    """The cost where sequences of so many steps follow each other; of samples it has the ``results`` that are given."""
    def start(cycles: int) -> Iterator[tuple[int, Hashable]]:
        play = Play(groups, elements, closed=True, steps=steps)
        for _ in range(cycles):
            play.step(False)
        return play.taken_steps()

    cycles, taken, repeats = settled(map(start, STARTS), most=PLAYED)
    return Cost(cycles, taken, repeats[1] if repeats else 0, results)


def settled(plays: Iterable[Iterable[tuple[int, Hashable]]], *, most: int) -> tuple[
        float, tuple[int, ...], tuple[int, int] | None]:
    """The period to which all plays come; the steps of the first one, see `Cost`, and those before all repeats and
    those that do. None where plays come to several periods, of which it is the greatest, or a play to none.

    Parameters:
        plays: of each the cycle behind each step, and the state then.
        most: cycles that are played at the most.
    """
    periods, repeats = dict[Hashable, float](), (0, 0)
    steps: tuple[int, ...] = ()
    for n, play in enumerate(plays):
        seen, taken = dict[Hashable, int](), list[int]()
        for cycle, state in play:
            turn = len(taken) - seen.setdefault(state, len(taken))
            taken.append(cycle)
            if turn or state in periods:
                break
            if cycle > most:
                half = len(taken) // 2
                return (taken[-1] - taken[-1 - half]) / max(1, half), steps, None
        if state not in periods:
            cycles = taken[-1] - taken[-1 - turn]
            periods |= dict.fromkeys(seen, cycles / turn if cycles % turn else cycles // turn)
        if not n:
            steps, repeats = tuple(after - before for before, after in pairwise(taken)), (len(taken) - turn, turn)
    return max(periods.values()), steps, repeats if len(set(periods.values())) == 1 else None


def sample_results(groups: Sequence[Sharing], elements: Sequence[int]) -> tuple[int, ...]:
    """The results in a closed loop, see `Cost`."""
    taken, given = _closed(groups, elements)
    return tuple(cycle - taken[-1] for cycle in given)


def arriving_results(own: Sharing, elements: int, comes: Sequence[int]) -> list[int]:
    """Cycles in which the blocks of a result leave a layer that has an array to itself, as those of its input come in
    these; nothing else is under way, and of a layer with a state that has come, as have the products with it."""
    play, offset = Play([own], [elements], closed=True), comes[0] - IDLE
    for quiet in (0, play.quiet, play.quiet) if cells_of(own.layers[0]) else (0,):
        for _ in range(quiet):
            play.step(False)
        found, at, start = list[int](), 0, offset - play.cycle
        while len(found) < play.gives:
            accepts, leaves = play.step(at < len(comes) and start + play.cycle >= comes[at])
            at += accepts
            if leaves:
                found.append(start + play.cycle - 1)
    return found


def results_together(sharing: Sharing, comes: Sequence[Sequence[int]]) -> list[list[int]]:
    """Cycles in which the blocks of a result leave each of the layers that are ``apart``, as those of its input come in
    these, behind which those of the next vector may follow; nothing else is under way."""
    layers = [SharedLayer(layer, program, 0) for layer, program in zip(sharing.layers, sharing.programs, strict=True)]
    array, cycle = Array(sharing, layers), min(each[0] for each in comes) - IDLE
    taken, found = [0] * len(layers), [list[int]() for _ in layers]
    while any(len(each) < layer.blocks for each, layer in zip(found, layers, strict=True)):
        for n, layer in enumerate(layers):
            layer.accepts = layer.takes and taken[n] < len(comes[n]) and comes[n][taken[n]] <= cycle
            layer.leaves = layer.offers
            taken[n] += layer.accepts
            if layer.leaves:
                found[n].append(cycle)
        granted, free = array.grant()
        for layer in layers:
            layer.edge(cycle, granted is layer, free)
        cycle += 1
    return found


def loop_latency(groups: Sequence[Sharing], elements: Sequence[int], behind: Callable[[list[int]], int]) -> int:
    """The greatest latency of steps in a closed loop without a pause, from when the state repeats: the first block of
    each is offered in the cycle behind the result of the one before.

    Parameters:
        behind: from the cycles in which the blocks of a result leave to that in which it has left the network.
    """
    play, seen, found = Play(groups, elements, closed=True), dict[Hashable, int](), list[int]()
    offered, came, given = 0, 0, list[int]()
    free: float = 0
    while len(found) < LOOPED:
        accepts, leaves = play.step(play.cycle >= free)
        offered += accepts
        if accepts and offered % play.takes == 0:
            came, free = play.cycle - 1, inf
            if (first := seen.setdefault(play.state(), len(found))) < len(found):
                return max(found[first:])
        if leaves:
            given.append(play.cycle - 1)
        if len(given) == play.gives:
            end = behind(given)
            found.append(end - came)
            free, given = end + 1, []
    return max(found[LOOPED // 2:])


def end_latency(groups: Sequence[Sharing], elements: Sequence[int], behind: Callable[[list[int]], int]) -> int:
    """The latency of the last of `ENDED` steps behind a reset, of long ones of `FEW`, which come as soon as they are
    taken and of which it alone has a result; ``behind``: see `loop_latency`."""
    count = max(FEW, min(ENDED, ENDED_CYCLES // max(1, least_period(groups))))
    play, offered, came, given = Play(groups, elements, closed=True, lasts=(count - 1,)), 0, 0, list[int]()
    wanted = (1 if any(layer.only_last for layer in play.layers) else count) * play.gives
    while len(given) < wanted:
        accepts, leaves = play.step(offered < count * play.takes)
        offered += accepts
        came = play.cycle - 1 if accepts else came
        if leaves:
            given.append(play.cycle - 1)
    return behind(given[-play.gives:]) - came


def least_period(groups: Sequence[Sharing]) -> int:
    """Cycles in which the busiest array issues all that a step needs: no period is shorter."""
    left, found = working(groups), [0]
    for each in groups:
        found.append(sum(program.cycles * program.shape.fold for program in each.programs[:max(0, left)]))
        left -= len(each.layers)
    return max(found)


def sample_issues(groups: Sequence[Sharing], elements: Sequence[int]) -> list[tuple[int, int, int]]:
    """(cycle, layer, command) of the issues for a sample in a closed loop, from its last block, which is cycle 0; the
    share of its recurrent vectors has come before. Behind its result follow those shares for the next sample."""
    issues: list[tuple[int, int, int]] = []
    taken, _ = _closed(groups, elements, issues)
    return [(cycle - taken[-1], layer, command) for cycle, layer, command in issues if cycle >= taken[-1]]


def sample_rows(own: Sharing, elements: Sequence[int]) -> dict[str, list[list[int]]]:
    """The rows of a Gantt chart of `sample_issues`: by layer and command the [first, last + 1] cycles of the array."""
    found: dict[str, list[int]] = {f"array: {layer.name}, {what}": [] for layer in own.layers
                                   for what in ("input", "state", "second vector")}
    names = list(found)
    for cycle, layer, command in sample_issues([own], elements):
        found[names[3 * layer + command]].append(cycle)
    return {name: merged(cycles, 1) for name, cycles in found.items() if cycles}


def _closed(groups: Sequence[Sharing], elements: Sequence[int],
            issues: list[tuple[int, int, int]] | None = None) -> tuple[list[int], list[int]]:
    """Cycles in which the first layer has taken three steps, each of which comes when the one before has left for long,
    and those in which the blocks of the last result leave.

    Parameters:
        issues: takes (cycle, layer, command) of each cycle in which the array works.
    """
    play, taken, given = Play(groups, elements, closed=True, issues=issues), list[int](), list[int]()
    offered, quiet, still, seen = 0, 0, 0, set[Hashable]()
    while len(given) < CLOSED * play.gives:
        waits = offered % play.takes == 0 and (len(given) < offered // play.takes * play.gives or (
            offered and quiet < play.quiet))
        came = not waits and offered < CLOSED * play.takes
        if came and issues is None and len(seen) < offered // play.takes:
            if (state := play.state()) in seen:
                break  # The next sample would take the cycles of the last one.
            seen.add(state)
        passed = play.skip(came, min(play.quiet - quiet, play.still - still) if waits else inf)
        quiet, still = quiet + passed, still + passed if passed and waits and play.idle else still
        accepts, leaves = play.step(came)
        offered += accepts
        if accepts and offered % play.takes == 0:
            taken.append(play.cycle - 1)
        if leaves:
            given.append(play.cycle - 1)
        quiet = 0 if accepts or leaves else quiet + 1
        if waits:  # Where nothing has moved for long, nothing will.
            still = still + 1 if play.idle else 0
            quiet = play.quiet if still > play.still else quiet
    return taken, given[-play.gives:]
