"""Sizes of the blocks that stages take and give, and plays of layers, each found once: plans are compared by these."""
from collections.abc import Hashable, Sequence

from circulant.hw.array.layer_programs import matrices_of
from circulant.hw.array.matrix import beats
from circulant.hw.array.plans import LayerPlan, Plan, Simple, ValuesPlan
from circulant.hw.plan.dataflow import Cycles
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.cost import period
from circulant.hw.stream.link import values
from circulant.hw.unit import Site, inputs, placed, unelaborated, unit
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import Stage

__all__ = ["Played", "Sizes"]


class Sizes:
    """The values of a block that comes to each stage and of one that leaves it.

    Members:
        played: what layers with an array of their own take, of which the same ones are tried again and again.
    """

    def __init__(self, network: Network) -> None:
        self.network, self._known, self.played = network, dict[tuple[object, ...], tuple[int, int]](), Played()

    def __call__(self, plans: Sequence[Plan]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def add(layer: Stage, plan: Plan, here: Site) -> int:
            found.append(self._of(layer, plan, here))
            return found[-1][1]

        placed(self.network.arrangement, plans, Site(steps=2), add)
        return found

    def _of(self, layer: Stage, plan: Plan, here: Site) -> tuple[int, int]:
        if isinstance(plan, LayerPlan):
            return beats(matrices_of(layer), plan.shape)
        if isinstance(plan, ValuesPlan):
            return plan.elements, plan.elements
        key = id(layer), plan, here
        if key not in self._known:
            with unelaborated():
                self._known[key] = _sizes(layer, plan, here)
        return self._known[key]


class Played:
    """Plays of layers with an array of their own, each done once."""

    def __init__(self) -> None:
        self._left, self._periods = dict[Hashable, Cycles](), dict[Hashable, float]()

    def leaving(self, layer: Simple, plan: LayerPlan, comes: Cycles) -> Cycles:
        """As `circulant.hw.plan.latency.leaving`: later by as much as the last block comes later."""
        key = *_same(layer, plan), *(cycle - comes[-1] for cycle in comes)
        if key not in self._left:
            found = leaving(layer, plan, comes, beats(matrices_of(layer), plan.shape)[0])
            assert found is not None
            self._left[key] = [cycle - comes[-1] for cycle in found]
        return [comes[-1] + cycle for cycle in self._left[key]]

    def period(self, layer: Simple, plan: LayerPlan) -> float:
        """As `circulant.hw.plan.shared.cost.period`."""
        key = _same(layer, plan)
        if key not in self._periods:
            self._periods[key] = period([plan.alone(layer)], [plan.elements])[0]
        return self._periods[key]


def _same(layer: Simple, plan: LayerPlan) -> tuple[object, ...]:
    """The fields that plans of the same cycles have in common."""
    return id(layer), plan.shape, plan.elements, plan.spacing, plan.streams, plan.schedule


def _sizes(layer: Stage, plan: Plan, here: Site) -> tuple[int, int]:
    """As a unit tells, which is made for that alone."""
    made = unit(layer, plan, here)
    return values(inputs(made)[0]), values(made.o)
