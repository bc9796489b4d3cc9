"""The exact cost of layers that share arrays, in Python: all their counters, cycle by cycle.

Who issues depends on what the others do, so that no recurrence over one program gives the cycles, as
`circulant.hw.plan.step_cost` does for a layer with an array of its own; of such a layer both say the same. Held to the
simulated hardware by its tests. The two directions of a bidirectional layer are played as if both went forward: an
estimate, as the cycles by which they are apart depend on the length of sequences.
"""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from circulant.hw.array.plans import Sharing
from circulant.hw.array.program import Program
from circulant.hw.plan.shared.directions import SharedPair
from circulant.hw.plan.shared.layer_counters import SharedLayer
from circulant.hw.plan.shared.links import Direct, link

__all__ = ["Cost", "least_period", "period", "sample_issues", "sample_results", "shared_cost"]

MOST_STEPS = 96
"""Steps that are played for a period at the most."""

STILL = 64
"""Cycles, and those of a drain, in which nothing moves before a sample that waits comes."""

SETTLED = 6
"""Steps that must have repeated those before, at the least."""


@dataclass(frozen=True)
class Cost:
    """Cycles of a network.

    Parameters:
        period: from step to step when the next input is always there; a mean, as steps can be long and short by turns.
        steps: from each of the first steps to the next one, until they repeat.
        results: from the last block of a sample to each block of its result, in a closed loop.
        latency: to the last one.
    """

    period: float
    steps: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def latency(self) -> int:
        return self.results[-1]


def shared_cost(groups: Sequence[Sharing], elements: Sequence[int]) -> Cost:
    """The cost of recurrent and fully connected layers in a chain, whose sequences do not end.

    Parameters:
        groups: of layers that follow each other, each with an array.
        elements: of their pointwise units.
    """
    return Cost(*period(groups, elements), sample_results(groups, elements))


def period(groups: Sequence[Sharing], elements: Sequence[int]) -> tuple[float, tuple[int, ...]]:
    """The period and the steps, see `Cost`."""
    taken, _, inside = _play(groups, elements, closed=False)
    steps = [late - early for early, late in pairwise(taken)]
    turns = _turns(steps, inside) or len(steps) // 2
    mean = sum(steps[-turns:]) / turns
    return int(mean) if mean == int(mean) else mean, tuple(steps)


def sample_results(groups: Sequence[Sharing], elements: Sequence[int]) -> tuple[int, ...]:
    """The results in a closed loop, see `Cost`."""
    taken, given, _ = _play(groups, elements, closed=True)
    return tuple(cycle - taken[-1] for cycle in given)


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
    taken, _, _ = _play(groups, elements, closed=True, issues=issues)
    return [(cycle - taken[-1], layer, command) for cycle, layer, command in issues if cycle >= taken[-1]]


def _turns(steps: Sequence[int], inside: Sequence[int]) -> int:
    """After how many steps their cycles repeat: the last `SETTLED` of them or more, and all of such a turn, are those
    of the turn before, and so are the steps ``inside`` the layers, as else these still fill; 0 where they do not."""
    for turn in range(1, len(steps) // 2 + 1):
        count = max(turn, SETTLED)
        if (len(steps) >= count + turn and steps[-count:] == steps[-count - turn:-turn]
                and inside[-1 - turn:] == inside[-1 - 2 * turn:-turn]):
            return turn
    return 0


def _play(groups: Sequence[Sharing], elements: Sequence[int], *, closed: bool,
          issues: list[tuple[int, int, int]] | None = None) -> tuple[list[int], list[int], list[int]]:
    """Cycles in which the first layer has taken steps, those in which the blocks of the last result leave, and how many
    steps were inside the layers whenever one was taken.

    Parameters:
        closed: three steps, each of which comes when the one before has left for long, and whose results all leave;
            else steps as they are taken, until they repeat or are `MOST_STEPS`: layers behind one that gives its last
            state have nothing to do.
        issues: takes (cycle, layer, command) of each cycle in which the array works.
    """
    served = [(layer, program, each) for each in groups
              for layer, program in zip(each.layers, each.programs, strict=True)]
    if not closed:
        served = served[:_working(groups)]
    single = [SharedLayer(layer, program, count, eager=each.eager, streams=each.streams)
              for (layer, program, each), count in zip(served, elements, strict=False)]
    skips = not closed and getattr(served[-1][0], "returns", "") == "last"
    members = [[layer for layer, (_, _, own) in zip(single, served, strict=True) if own is each] for each in groups]
    arrays = [(_Array(each, found), found) for each, found in zip(groups, members, strict=True) if found]
    chain = [each for own, found in zip(groups, members, strict=True) for each in _paired(own, found)]
    for each in single[-2:] if chain[-1] is not single[-1] else single[-1:]:
        each.skips = skips
    links = [Direct(), *(link(before.outputs, before.k, behind.k) for before, behind in pairwise(chain)), Direct()]
    steps = 3 if closed else MOST_STEPS
    taken: list[int] = []
    given: list[int] = []
    inside: list[int] = []
    offered, cycle, quiet, still = 0, 0, 0, 0
    joints = list(zip([None, *chain], links, [*chain, None], strict=True))
    sizes = chain[0].x_blocks, chain[-1].blocks
    quiet_cycles = sum(program.cycles * program.shape.fold for _, program, _ in served) + 300
    while len(given) < steps * sizes[1] if closed else len(taken) < steps:
        waits = closed and offered % sizes[0] == 0 and (len(given) < offered // sizes[0] * sizes[1] or
                                                        (offered and quiet < quiet_cycles))
        came = not waits and offered < steps * sizes[0]
        for before, between, behind in joints:
            leaves, accepts = between.step(came if before is None else before.offers,
                                           True if behind is None else behind.takes)
            if before is not None:
                before.leaves = leaves
            if behind is not None:
                behind.accepts = accepts
        if chain[0].accepts:
            offered += 1
            if offered % sizes[0] == 0:
                taken.append(cycle)
                inside.append(len(taken) - chain[-1].done)
                if not closed and _turns([late - early for early, late in pairwise(taken)], inside):
                    break
        if chain[-1].leaves:
            given.append(cycle)
        quiet = 0 if chain[0].accepts or chain[-1].leaves else quiet + 1
        if waits:  # Where nothing has moved for long, nothing will.
            still = still + 1 if all(each.idle for each in single) else 0
            quiet = quiet_cycles if still > STILL + max(array.slots for array, _ in arrays) else quiet
        for array, found in arrays:
            granted, free = array.grant()
            if issues is not None and granted is not None:
                issues.append((cycle, single.index(granted), granted.command))
            for each in found:
                each.edge(cycle, granted is each, free)
        cycle += 1
    return taken, given[-sizes[1]:], inside


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


class _Array:
    """The arbiter of an array.

    Parameters:
        members: layers that it serves.
    """

    def __init__(self, sharing: Sharing, members: Sequence[SharedLayer]) -> None:
        self._in_turn, self._members, self._last = sharing.in_turn, members, -1
        self._drain, self.slots, self._folded = _Drain(sharing.programs[0]), sharing.shape.slots, sharing.shape.fold > 1

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


class _Drain:
    """The counter of the cycles for which the drain is taken."""

    def __init__(self, program: Program) -> None:
        self._slots, self._fold, self._left = program.shape.slots, program.shape.fold, 0

    def next(self, ends: bool) -> bool:
        """Whether an issue of the next cycle that ends a pass finds it free."""
        free = self._slots <= self._fold if ends else self._left <= self._fold
        self._left = self._slots - 1 if ends else max(0, self._left - 1)
        return free
