"""The exact cost of layers that share an array, in Python: all their counters, cycle by cycle.

Who issues depends on what the others do, so that no recurrence over one program gives the cycles, as
`circulant.hw.plan.step_cost` does for a layer with an array of its own; of such a layer both say the same. Held to the
simulated hardware by its tests.
"""
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from circulant.hw.array.plans import Sharing
from circulant.hw.array.program import Program
from circulant.hw.plan.shared_layer import SharedLayer

__all__ = ["Cost", "least_period", "period", "sample_issues", "sample_results", "shared_cost"]

MOST_STEPS = 96
"""Steps that are played for a period at the most."""

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


def shared_cost(sharing: Sharing, elements: Sequence[int]) -> Cost:
    """The cost of recurrent and fully connected layers in a chain, whose sequences do not end.

    Parameters:
        elements: of their pointwise units.
    """
    return Cost(*period(sharing, elements), sample_results(sharing, elements))


def period(sharing: Sharing, elements: Sequence[int]) -> tuple[float, tuple[int, ...]]:
    """The period and the steps, see `Cost`."""
    taken, _, inside = _play(sharing, elements, closed=False)
    steps = [late - early for early, late in pairwise(taken)]
    turns = _turns(steps, inside) or len(steps) // 2
    mean = sum(steps[-turns:]) / turns
    return int(mean) if mean == int(mean) else mean, tuple(steps)


def sample_results(sharing: Sharing, elements: Sequence[int]) -> tuple[int, ...]:
    """The results in a closed loop, see `Cost`."""
    taken, given, _ = _play(sharing, elements, closed=True)
    return tuple(cycle - taken[-1] for cycle in given)


def least_period(sharing: Sharing) -> int:
    """Cycles in which the array issues all that a step needs: no period is shorter."""
    return sum(program.cycles * program.shape.fold for program in sharing.programs[:_working(sharing)])


def sample_issues(sharing: Sharing, elements: Sequence[int]) -> list[tuple[int, int, int]]:
    """(cycle, layer, command) of the issues for a sample in a closed loop, from its last block, which is cycle 0; the
    share of its recurrent vectors has come before. Behind its result follow those shares for the next sample."""
    issues: list[tuple[int, int, int]] = []
    taken, _, _ = _play(sharing, elements, closed=True, issues=issues)
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


def _play(sharing: Sharing, elements: Sequence[int], *, closed: bool,
          issues: list[tuple[int, int, int]] | None = None) -> tuple[list[int], list[int], list[int]]:
    """Cycles in which the first layer has taken steps, those in which the blocks of the last result leave, and how many
    steps were inside the layers whenever one was taken.

    Parameters:
        closed: three steps, each of which comes when the one before has left for long, and whose results all leave;
            else steps as they are taken, until they repeat or are `MOST_STEPS`: layers behind one that gives its last
            state have nothing to do.
        issues: takes (cycle, layer, command) of each cycle in which the array works.
    """
    layers, programs = sharing.layers, sharing.programs
    working = _working(sharing)
    if not closed:
        layers = layers[:working]
    chain = [SharedLayer(*each, eager=sharing.eager) for each in zip(layers, programs, elements, strict=False)]
    chain[-1].skips = not closed and getattr(layers[-1], "returns", "") == "last"
    drain, steps = _Drain(programs[0]), 3 if closed else MOST_STEPS
    taken: list[int] = []
    given: list[int] = []
    inside: list[int] = []
    last = -1
    offered, cycle, quiet = 0, 0, 0
    sizes = chain[0].x_blocks, chain[-1].blocks
    quiet_cycles = sum(program.cycles * program.shape.fold for program in programs) + 300
    while len(given) < steps * sizes[1] if closed else len(taken) < steps:
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
            if offered % sizes[0] == 0:
                taken.append(cycle)
                inside.append(len(taken) - chain[-1].done)
                if not closed and _turns([late - early for early, late in pairwise(taken)], inside):
                    break
        if chain[-1].leaves:
            given.append(cycle)
        quiet = 0 if chain[0].accepts or chain[-1].leaves else quiet + 1
        # Who is furthest behind goes first, or the next one behind the last; but nobody is interrupted.
        asking = [n for n, each in enumerate(chain) if each.phase] or [n for n, each in enumerate(chain) if each.asks]
        if sharing.in_turn:
            asking.sort(key=lambda n: (n <= last, n), reverse=True)
        granted = chain[last := asking[-1]] if asking else None
        if issues is not None and granted is not None:
            issues.append((cycle, chain.index(granted), granted.command))
        ends = granted is not None and granted.ending
        free = drain.next(ends)
        for each in chain:
            each.edge(cycle, granted is each, free)
        cycle += 1
    return taken, given[-sizes[1]:], inside


def _working(sharing: Sharing) -> int:
    """How many of the layers work at every step: those up to the first one that gives its last state."""
    return next((n + 1 for n, layer in enumerate(sharing.layers) if getattr(layer, "returns", "") == "last"),
                len(sharing.layers))


class _Drain:
    """The counter of the cycles for which the drain is taken."""

    def __init__(self, program: Program) -> None:
        self._slots, self._fold, self._left = program.shape.slots, program.shape.fold, 0

    def next(self, ends: bool) -> bool:
        """Whether an issue of the next cycle that ends a pass finds it free."""
        free = self._slots <= self._fold if ends else self._left <= self._fold
        self._left = self._slots - 1 if ends else max(0, self._left - 1)
        return free
