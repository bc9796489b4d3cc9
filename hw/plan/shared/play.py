"""Layers in a chain and the arrays that they share, cycle by cycle: what `circulant.hw.plan.shared.cost` counts on."""
from collections.abc import Container, Hashable, Iterator, Sequence
from itertools import pairwise
from math import inf

from circulant.hw.array.plans import Sharing
from circulant.hw.array.program import Program
from circulant.hw.plan.shared.directions import SharedPair
from circulant.hw.plan.shared.layer_counters import SETTLED, SharedLayer
from circulant.hw.plan.shared.links import Direct, link

__all__ = ["Array", "Play", "working"]

FOREVER = 1 << 62
"""Steps that never come."""

STILL = 64
"""Cycles, and those of a drain, in which nothing moves before a sample that waits comes."""


def _paired(sharing: Sharing, layers: Sequence[SharedLayer], steps: int) -> Iterator[SharedLayer | SharedPair]:
    """The layers, those of two directions side by side."""
    for n, layer in enumerate(layers):
        if n in sharing.pairs:
            yield SharedPair(layer, layers[n + 1], steps=steps, returns=getattr(sharing.layers[n], "returns", ""))
        elif n - 1 not in sharing.pairs:
            yield layer


def working(groups: Sequence[Sharing]) -> int:
    """How many of the layers work at every step: those up to the first one that gives its last state, or up to both
    directions that do."""
    layers = [(layer, n in each.pairs) for each in groups for n, layer in enumerate(each.layers)]
    return next((n + 1 + paired for n, (layer, paired) in enumerate(layers)
                 if getattr(layer, "returns", "") == "last"), len(layers))


class Play:
    """Layers in a chain, and their arrays, cycle by cycle.

    Parameters:
        closed: whether results all leave; else layers behind one that gives its last state have nothing to do, and its
            results do not leave.
        lasts: the steps that end sequences; then of a layer that gives its last state the results of these leave. None
            where no sequence ends.
        issues: takes (cycle, layer, command) of each cycle in which the array works.
        steps: of each sequence, where layers have both directions; then results all leave. 0 where none ends.

    Members:
        layers: in their order.
        cycle: the next one.
        takes, gives: blocks of a step and of its result.
        quiet, still: cycles in which nothing moves, or is under way, before a sample that waits comes.
    """

    def __init__(self, groups: Sequence[Sharing], elements: Sequence[int], *, closed: bool,
                 lasts: Container[int] | None = None, issues: list[tuple[int, int, int]] | None = None,
                 steps: int = 0) -> None:
        closed, lasts = closed or steps > 0, range(steps - 1, FOREVER, steps) if steps else lasts
        served = [(layer, program, each) for each in groups
                  for layer, program in zip(each.layers, each.programs, strict=True)]
        served = served if closed else served[:working(groups)]
        self.layers = single = [
            SharedLayer(layer, program, count, streams=each.streams,
                        lasts=() if lasts is None else lasts)
            for (layer, program, each), count in zip(served, elements, strict=False)]
        members = [[layer for layer, (_, _, own) in zip(single, served, strict=True) if own is each] for each in groups]
        self._arrays = [(Array(each, found), found) for each, found in zip(groups, members, strict=True) if found]
        self._chain = chain = [each for own, found in zip(groups, members, strict=True)
                               for each in _paired(own, found, steps)]
        self._pairs, self._steps = [each for each in chain if isinstance(each, SharedPair)], steps
        self._stepping = single[:working(groups)] if steps else []
        for layer, (golden, _, _) in zip(single[:working(groups)], served, strict=False):
            layer.only_last = (not closed or lasts is not None) and getattr(golden, "returns", "") == "last"
        links = [Direct(), *(link(before.outputs, before.gives, behind.k) for before, behind in pairwise(chain)),
                 Direct()]
        self._joints = list(zip([None, *chain], links, [*chain, None], strict=True))
        self._issues, self.cycle, self._came, self._granted = issues, 0, False, list[SharedLayer]()
        self._simple = not self._pairs and issues is None
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
                *(each.state() for each in self._pairs),
                *((each.marked % self._steps, each.done % self._steps) for each in self._stepping))

    def taken(self) -> int:
        """The cycle behind that in which the next step is taken, with its blocks always there."""
        left = self.takes
        while left:
            self.skip(True)
            left -= self.step(True)[0]
        return self.cycle

    def taken_steps(self) -> Iterator[tuple[int, Hashable]]:
        """The cycle behind each step that the first layer takes, without end, and the state then."""
        while True:
            yield self.taken(), self.state()

    def skip(self, came: bool, most: float = inf) -> int:
        """The cycles, at the most so many, that are as the last one was, gone through at once; all but one."""
        if came != self._came or not self._simple:
            return 0
        for each in self.layers:
            if each.still < SETTLED:
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
            offers = came if before is None else before.offers
            if isinstance(behind, SharedPair):
                behind.shown = between.shown(offers)
            leaves, accepts = between.step(offers, True if behind is None else behind.takes)
            if before is not None:
                before.leaves = leaves
            if behind is not None:
                behind.accepts = accepts
        for pair in self._pairs:
            pair.move()
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


class Array:
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
