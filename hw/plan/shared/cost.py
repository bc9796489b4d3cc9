"""The exact cost of layers on arrays, in Python: all their counters, cycle by cycle.

A layer may have an array to itself; or several share one, and who issues depends on what the others do. Held to the
simulated hardware by its tests. A play for a period ends when the whole state repeats, see `period`. The two directions
of a bidirectional layer on a shared array are played as if both went forward: an estimate, as the cycles by which they
are apart depend on the length of sequences.
"""
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf

from circulant.hw.array.plans import Sharing
from circulant.hw.array.program import MAIN, Program
from circulant.hw.plan.shared.directions import SharedPair
from circulant.hw.plan.shared.layer_counters import Events, SharedLayer
from circulant.hw.plan.shared.links import Direct, link

__all__ = ["RANKED", "Cost", "end_latency", "least_period", "loop_latency", "period", "periods", "sample_issues",
           "sample_results", "shared_cost", "steady_step", "taken_steps"]

LEAST_STEPS, RANKED, MOST = 12, 1 << 16, 1 << 20
"""Steps that are played for a period at the least; cycles at the most of a candidate, and of what is chosen."""

LENGTHS = 1, 2, 3, 5, 8, 13
"""Steps of the sequences behind which a long one is played: two of each, with interleaved streams any two of them."""

LATER = 16
"""Steps that a long sequence has behind what repeats, at the most."""

SETTLED = 3
"""Cycles without an event behind which a layer does the same again: as many as a change takes to come to commands."""

STILL = 64
"""Cycles, and those of a drain, in which nothing moves before a sample that waits comes."""

CLOSED, LOOPED = 3, 64
"""Samples that are played in a closed loop; those without a pause, at the most."""

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
        late - early for early, late in pairwise(taken)), turn


def steady_step(own: Sharing, elements: int) -> tuple[float, bool, Events]:
    """The period of a layer with an array of its own; whether its banks have always room for a block of the input when
    all repeats; and the events of a step then, in cycles from the first issue of its MAIN on."""
    play, seen = _Play([own], [elements], closed=False), set[Hashable]()
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
    play, taken, found = _Play(groups, elements, closed=True, lasts=lasts), list[int](), dict[Hashable, float]()
    working = play.layers[:_working(groups)]

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
            if lasts and min(layer.done for layer in working) <= max(lasts) + streams:
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
    play = _Play(groups, elements, closed=lasts is not None, lasts=lasts)
    while True:
        yield play.taken(), play.state()


def sample_results(groups: Sequence[Sharing], elements: Sequence[int]) -> tuple[int, ...]:
    """The results in a closed loop, see `Cost`."""
    taken, given = _closed(groups, elements)
    return tuple(cycle - taken[-1] for cycle in given)


def loop_latency(groups: Sequence[Sharing], elements: Sequence[int], behind: Callable[[list[int]], int]) -> int:
    """The greatest latency of steps in a closed loop without a pause, from when the state repeats: the first block of
    each is offered in the cycle behind the result of the one before.

    Parameters:
        behind: from the cycles in which the blocks of a result leave to that in which it has left the network.
    """
    play, seen, found = _Play(groups, elements, closed=True), dict[Hashable, int](), list[int]()
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
    play, offered, came, given = _Play(groups, elements, closed=True, lasts=(count - 1,)), 0, 0, list[int]()
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
    left, found = _working(groups), [0]
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


def _closed(groups: Sequence[Sharing], elements: Sequence[int],
            issues: list[tuple[int, int, int]] | None = None) -> tuple[list[int], list[int]]:
    """Cycles in which the first layer has taken three steps, each of which comes when the one before has left for long,
    and those in which the blocks of the last result leave.

    Parameters:
        issues: takes (cycle, layer, command) of each cycle in which the array works.
    """
    play, taken, given = _Play(groups, elements, closed=True, issues=issues), list[int](), list[int]()
    offered, quiet, still = 0, 0, 0
    while len(given) < CLOSED * play.gives:
        waits = offered % play.takes == 0 and (len(given) < offered // play.takes * play.gives or (
            offered and quiet < play.quiet))
        came = not waits and offered < CLOSED * play.takes
        passed = play.skip(came, min(play.quiet - quiet, play.still - still) if waits else inf)
        quiet, still = quiet + passed, still + passed if waits and play.idle else still
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


def _paired(sharing: Sharing, layers: Sequence[SharedLayer]) -> Iterator[SharedLayer | SharedPair]:
    """The layers, those of two directions side by side."""
    for n, layer in enumerate(layers):
        if n in sharing.pairs:
            yield SharedPair(layer, layers[n + 1])
        elif n - 1 not in sharing.pairs:
            yield layer


def _working(groups: Sequence[Sharing]) -> int:
    """How many of the layers work at every step: those up to the first one that gives its last state, or up to both
    directions that do."""
    layers = [(layer, n in each.pairs) for each in groups for n, layer in enumerate(each.layers)]
    return next((n + 1 + paired for n, (layer, paired) in enumerate(layers)
                 if getattr(layer, "returns", "") == "last"), len(layers))


class _Play:
    """Layers in a chain, and their arrays, cycle by cycle.

    Parameters:
        closed: whether results all leave; else layers behind one that gives its last state have nothing to do, and its
            results do not leave.
        lasts: the steps that end sequences; then of a layer that gives its last state the results of these leave. None
            where no sequence ends.
        issues: takes (cycle, layer, command) of each cycle in which the array works.

    Members:
        layers: in their order.
        cycle: the next one.
        takes, gives: blocks of a step and of its result.
        quiet, still: cycles in which nothing moves, or is under way, before a sample that waits comes.
    """

    def __init__(self, groups: Sequence[Sharing], elements: Sequence[int], *, closed: bool,
                 lasts: Container[int] | None = None, issues: list[tuple[int, int, int]] | None = None) -> None:
        served = [(layer, program, each) for each in groups
                  for layer, program in zip(each.layers, each.programs, strict=True)]
        served = served if closed else served[:_working(groups)]
        self.layers = single = [
            SharedLayer(layer, program, count, eager=each.eager, streams=each.streams,
                        lasts=() if lasts is None else lasts)
            for (layer, program, each), count in zip(served, elements, strict=False)]
        members = [[layer for layer, (_, _, own) in zip(single, served, strict=True) if own is each] for each in groups]
        self._arrays = [(_Array(each, found), found) for each, found in zip(groups, members, strict=True) if found]
        self._chain = chain = [each for own, found in zip(groups, members, strict=True) for each in _paired(own, found)]
        working = _working(groups)
        for layer, (golden, _, _) in zip(single[:working], served, strict=False):
            layer.only_last = (not closed or lasts is not None) and getattr(golden, "returns", "") == "last"
        links = [Direct(), *(link(before.outputs, before.k, behind.k) for before, behind in pairwise(chain)), Direct()]
        self._joints = list(zip([None, *chain], links, [*chain, None], strict=True))
        self._issues, self.cycle, self._came, self._granted = issues, 0, False, list[SharedLayer]()
        self._simple = all(isinstance(each, SharedLayer) for each in chain) and issues is None
        self.takes, self.gives = chain[0].x_blocks, chain[-1].blocks
        self.quiet = sum(program.cycles * program.shape.fold for _, program, _ in served) + 300
        self.still = STILL + max(array.slots for array, _ in self._arrays)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way but what waits for a block of the input."""
        return all(each.idle for each in self.layers)

    def state(self) -> Hashable:
        """All that what follows depends on: two moments with equal ones are followed by the same."""
        return (*(each.state() for each in self.layers), *(array.state() for array, _ in self._arrays),
                *(between.state() for _, between, _ in self._joints),
                *(each.state() for each in self._chain if isinstance(each, SharedPair)))

    def taken(self) -> int:
        """The cycle behind that in which the next step is taken, with its blocks always there."""
        left = self.takes
        while left:
            self.skip(True)
            left -= self.step(True)[0]
        return self.cycle

    def skip(self, came: bool, most: float = inf) -> int:
        """The cycles, at the most so many, that are as the last one was, gone through at once; all but one."""
        if came != self._came or not self._simple or any(each.still < SETTLED for each in self.layers):
            return 0
        for array, found in self._arrays:
            most = min(most, array.rests(found))
        for each in self.layers:
            most = min(most, each.rests(each in self._granted))
        cycles = int(most) - 1
        if cycles < 1:
            return 0
        for each in self.layers:
            each.rest(cycles, each in self._granted)
        for array, _ in self._arrays:
            array.rest(cycles)
        self.cycle += cycles
        return cycles

    def step(self, came: bool) -> tuple[bool, bool]:
        """A cycle: whether the first layer takes a block, if one ``came``, and whether one of the result leaves."""
        for before, between, behind in self._joints:
            leaves, accepts = between.step(came if before is None else before.offers,
                                           True if behind is None else behind.takes)
            if before is not None:
                before.leaves = leaves
            if behind is not None:
                behind.accepts = accepts
        self._came = came
        self._granted.clear()
        for array, found in self._arrays:
            granted, free = array.grant()
            if granted is not None:
                self._granted.append(granted)
            if self._issues is not None and granted is not None:
                self._issues.append((self.cycle, self.layers.index(granted), granted.command))
            for each in found:
                each.edge(self.cycle, granted is each, free)
        self.cycle += 1
        return self._chain[0].accepts, self._chain[-1].leaves


class _Array:
    """The arbiter of an array.

    Parameters:
        members: layers that it serves.
    """

    def __init__(self, sharing: Sharing, members: Sequence[SharedLayer]) -> None:
        self._in_turn, self._members, self._last = sharing.in_turn, members, -1
        self._drain, self.slots, self._folded = _Drain(sharing.programs[0]), sharing.shape.slots, sharing.shape.fold > 1

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on."""
        return self._last, self._drain.left

    def grant(self) -> tuple[SharedLayer | None, bool]:
        """Who gets the array in this cycle, and whether an issue of the next one that ends a pass finds the drain free.

        Who is furthest behind goes first, or the next one behind the last; but nobody is interrupted.
        """
        inside = [n for n, each in enumerate(self._members) if each.phase] if self._folded else []
        asking = inside or [n for n, each in enumerate(self._members) if each.asks]
        if not asking:
            return None, self._drain.next(False)
        self._last = asking[-1] if not self._in_turn else next((n for n in asking if n > self._last), asking[0])
        granted = self._members[self._last]
        return granted, self._drain.next(granted.ending)


    def rests(self, members: Sequence[SharedLayer]) -> float:
        """The cycles for which it does as in the last one, as long as its layers do."""
        if self._in_turn and sum(each.asks for each in members) > 1:
            return 0
        return self._drain.rests

    def rest(self, cycles: int) -> None:
        """So many cycles of `rests`."""
        self._drain.left = max(0, self._drain.left - cycles)


class _Drain:
    """The counter of the cycles for which the drain is taken."""

    def __init__(self, program: Program) -> None:
        self._slots, self._fold, self.left = program.shape.slots, program.shape.fold, 0

    @property
    def rests(self) -> float:
        """The cycles before it is free, if it is not."""
        return self.left - self._fold if self.left >= self._fold else inf

    def next(self, ends: bool) -> bool:
        """Whether an issue of the next cycle that ends a pass finds it free."""
        free = self._slots <= self._fold if ends else self.left <= self._fold
        self.left = self._slots - 1 if ends else max(0, self.left - 1)
        return free
