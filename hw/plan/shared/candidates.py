"""Arrays that layers can share, with estimates of their cost."""
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import cast

from circulant.hw.array.layer_programs import OWN_SHAPES, matrices_of, schedule_of
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.either import Either
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.components.cell import cells_of
from circulant.hw.plan.layer_plan import (
    CHAINS,
    WIDE,
    array_shapes,
    element_multiplications,
    narrow,
    units,
    wide_shapes,
    widest,
)
from circulant.hw.plan.shared.groups import Group
from circulant.hw.plan.step_cost import chain_latency
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.linear import Linear

__all__ = ["NEARLY", "Candidate", "Goal", "candidates", "finalists", "least_shared"]

FINALISTS = 5
"""Arrays whose exact cost is computed, those with the best estimates; and as many of those with nearly the best one."""

NEARLY = 1 / 12
"""Share by which an estimate may be above the best one for a second look."""

TAKES = 1, 4, 8
"""Blocks that come side by side, of which columns may be a multiple."""

BEYOND = 1_000.0
"""By how much the figure of a goal is worse beyond its limit, and more the farther."""


@dataclass(frozen=True)
class Candidate:
    """An array, the elements of each pointwise unit, its multipliers, and estimates of the cycles of a step and of its
    latency; for ``schedule`` see `circulant.hw.array.plans.Sharing`."""

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: int
    latency: int
    schedule: type[Either] = EitherFirst


@dataclass(frozen=True)
class Goal:
    """The figure that a plan is chosen by.

    Parameters:
        objective: "latency", "area" or "auto".
        limit: of the latency, in cycles; one beyond it is worse than any within.
    """

    objective: str
    limit: float = inf

    def figures(self, period: float, latency: float) -> tuple[float, float]:
        """The figures of the objective, the smaller the better, the second of equals: "latency" begins with that,
        "area" with the period, "auto" with the product of both."""
        first, second = {"latency": (latency, period), "area": (period, latency),
                         "auto": (period * latency, latency)}[self.objective]
        within = self.objective == "latency" or latency <= self.limit
        return first if within else first * BEYOND * latency / self.limit, second


def finalists(found: Sequence[Candidate], goal: Goal) -> list[Candidate]:
    """The candidates with the best estimates of what the goal asks for; and of those that are nearly as good, the best
    by the other figure; with a limit those with the least latency, too; and all of these without adjacent vectors
    once more, as estimates are not exact."""
    asked = (goal,) if goal.limit == inf else (goal, Goal("latency"))
    plain = [each for each in found if each.schedule is EitherFirst]
    return list(dict.fromkeys(each for some in (found, plain) if some for one in asked
                              for each in _finalists(some, one)))


def _finalists(found: Sequence[Candidate], goal: Goal) -> list[Candidate]:
    def estimated(each: Candidate) -> tuple[float, float, int]:
        return *goal.figures(each.cycles, each.latency), each.multipliers

    first = sorted(found, key=estimated)
    most = estimated(first[0])[0] * (1 + NEARLY)
    second = sorted((each for each in first if estimated(each)[0] <= most), key=lambda each: estimated(each)[1::-1])
    return [*first[:FINALISTS], *(each for each in second[:FINALISTS] if each not in first[:FINALISTS])]


def least_shared(groups: Sequence[Group], levels: int) -> int:
    """The fewest multipliers with which the layers of each group can share an array."""
    return sum(min(each.multipliers for each in candidates(group, levels)) for group in groups)


def candidates(group: Group, levels: int, beats: int = 1) -> Iterator[Candidate]:
    """Arrays and pointwise units, with estimates. Interleaved streams do not wait for their state.

    Parameters:
        beats: blocks at the most that a layer alone may give at once, or layers without a state take and give.
    """
    layers, k = group.layers, group.k
    stateless = [cast("Linear", layer) for layer in layers if not cells_of(layer)]
    beats = beats if group.streams == 1 and len(layers) in (1, len(stateless)) else 1
    each = [matrices_of(layer) for layer in layers]
    element = sum(map(element_multiplications, layers))
    found = [matrix for some in each for matrix in some]
    shapes = array_shapes(found, levels, uneven=True, chains=CHAINS if beats == 1 else WIDE,
                          takes=TAKES if stateless and beats > 1 else (1,))
    own = [shape for form in OWN_SHAPES for shape in form.shapes(each, levels)] if group.streams == 1 else ()
    slim = narrow(found, (*shapes, *own))
    wide = (widest(stateless, shape, beats) for shape in slim) if stateless and beats > 1 else wide_shapes(
        layers[0], slim, beats)
    for shape, wanted in _forms(wide, group):
        forms = [cast("type[Either]", schedule_of(some, shape, wanted)) for some in each]
        issues = [(form.estimate(some, shape, late=False), form.estimate(some, shape, late=True))
                  for form, some in zip(forms, each, strict=True)]
        for elements in units(k, shape):
            ways = [(chain_latency(layer, shape, elements), _busy(layer, k, elements, shape)) for layer in layers]
            alone = max(busy if group.streams > 1 else way + max(late, busy)
                        for (way, busy), (_, late) in zip(ways, issues, strict=True))
            latency = sum(way + max(late, busy) for (way, busy), (_, late) in zip(ways, issues, strict=True))
            yield Candidate(shape, elements, shape.multipliers(k) + element * elements,
                            max(sum(whole for whole, _ in issues), alone), latency, schedule=wanted)


def _forms(shapes: Iterable[ArrayShape], group: Group) -> Iterator[tuple[ArrayShape, type[Either]]]:
    """Each shape, and once more where vectors that are adjacent save a layer a group of columns."""
    each = [matrices_of(layer) for layer in group.layers]
    for shape in shapes:
        if not shape.shared:
            yield shape, EitherFirst
        saved = [found for found in each if Adjacent.serves(found, shape)]
        if group.streams == 1 and saved and (not shape.shared or len(saved) == len(each)) and not any(
                found[0].inputs % shape.gives for found in saved):
            yield shape, Adjacent


def _busy(layer: Stage, k: int, elements: int, shape: ArrayShape) -> int:
    """Cycles of the pointwise unit, or of rows that leave and blocks that come, of dense layers one a column."""
    size = getattr(layer, "hidden", layer.outputs)
    return -(-size // k) * k // elements if cells_of(layer) else max(
        -(-size // k // shape.gives), -(-layer.inputs // k // (shape.takes if k > 1 else shape.columns)))
