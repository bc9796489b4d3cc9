"""Steps that follow each other on shared arrays, of which equal ones are played once."""
from collections.abc import Hashable, Sequence
from copy import deepcopy
from typing import NamedTuple

from circulant.hw.array.plans import Sharing
from circulant.hw.plan.shared.events import Events
from circulant.hw.plan.shared.play import Play, working

__all__ = ["Replay"]

KEPT = 128
"""Steps that are kept at the most, and one more for each that has come again."""


class _Moment(NamedTuple):
    """Moment behind a step.

    Parameters:
        state: of the play.
        counts: of each layer the steps that are done, and those marked, less those that are taken.
        cycles: of the step.
        kept: a copy of the play; none where it is not kept.
        taken: steps before it.
    """

    state: Hashable
    counts: tuple[tuple[int, int], ...]
    cycles: int
    kept: Play | None
    taken: int


class Replay:
    """A play, step by step, as `Play.taken`. A step follows from the state before it and from the ends of sequences
    among it and the steps under way, so what has once come behind these comes again.

    Parameters:
        lasts: the steps that end sequences; those of a step may be added until it is taken.

    Members:
        cycle: the next one.
        steps: that are taken.
    """

    def __init__(self, groups: Sequence[Sharing], elements: Sequence[int], *, lasts: set[int]) -> None:
        self._play, self._lasts = Play(groups, elements, closed=True, lasts=lasts), lasts
        self._streams, self._working = groups[0].streams, working(groups)
        same = lasts, *(each for layer in self._play.layers for each in layer.constants)
        self._same: dict[int, object] = {id(each): each for each in same}
        self._known: dict[Hashable, _Moment] = {}
        self.cycle, self.steps, self._room = 0, 0, KEPT
        self._at = self._played = self._moment(0, 0)

    @property
    def done(self) -> int:
        """Steps whose results are there, in all layers that work at every step."""
        return self.steps + min(done for done, _ in self._at.counts[:self._working])

    def state(self) -> Hashable:
        """See `Play.state`."""
        return self._at.state

    def taken(self) -> int:
        """The cycle behind that in which the next step is taken."""
        counts = self._at.counts
        first = self.steps + min(min(done, marked - self._streams) for done, marked in counts)
        key = self._at.state, counts, tuple(step in self._lasts for step in range(first, self.steps + 1))
        if key not in self._known:
            if self._played is not self._at:
                assert self._at.kept is not None
                self._play = deepcopy(self._at.kept, dict(self._same))
            for layer in self._play.layers:
                layer.later(self.steps - self._at.taken)
            before = self._play.cycle
            self._play.taken()
            self._played = found = self._moment(self.steps + 1, self._play.cycle - before)
            if found.kept is not None:
                self._known[key] = found
        else:
            found, self._room = self._known[key], self._room + 1
        self._at = found
        self.steps += 1
        self.cycle += found.cycles
        return self.cycle

    def _moment(self, taken: int, cycles: int) -> _Moment:
        layers = self._play.layers
        for layer in layers:
            layer.events = Events()  # Nobody asks for them.
        kept = deepcopy(self._play, dict(self._same)) if len(self._known) < self._room else None
        return _Moment(self._play.state(), tuple((layer.done - taken, layer.marked - taken) for layer in layers),
                       cycles, kept, taken)
