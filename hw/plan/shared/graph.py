"""A network whose layers share an array and have other stages between them, cycle by cycle, in Python.

Stages are joined as `circulant.hw.top` does it: forks, converters, and in front of joins the queues that are planned.
"""
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from circulant.hw.array.plans import LayerPlan, Plan, Simple, sharings, wanted
from circulant.hw.plan.dataflow import depths
from circulant.hw.plan.shared.controls import Control, control
from circulant.hw.plan.shared.cost import STARTS, settled
from circulant.hw.plan.shared.layer_counters import SharedLayer
from circulant.hw.plan.shared.links import Direct, Link, link
from circulant.hw.plan.shared.play import Array
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT

__all__ = ["GraphPlay", "exact_plans"]

MOST, ROUNDS = 1 << 15, 4
"""Cycles that are played for a period at the most; and how often, as queues are as deep as the period asks for."""


def exact_plans(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]]) -> list[Plan]:
    """The plans of layers ``apart``, with the period that is played and the steps that repeat. Without these it is an
    estimate: the greatest one where it varies with the start, the later half of the steps where none repeat, and what
    it was where a stage has no `control`.

    Parameters:
        blocks: as of `GraphPlay`.
    """
    def queues() -> dict[int, list[int]]:
        return {} if network.arrangement.chain else depths(network, made, blocks)

    def others(cycles: float, repeats: tuple[int, int] | None) -> list[Plan]:
        return [replace(plan, cycles=cycles, repeats=repeats)
                if isinstance(plan, LayerPlan) and plan.sharing is own else plan for plan in made]

    made, own, cycles = list(plans), next(each for each in sharings(plans) if each.apart), 0.0
    for _ in range(ROUNDS):
        before = queues()
        try:
            plays = [GraphPlay(network, made, blocks, before, start=start) for start in STARTS]
        except ValueError:
            return made
        cycles, _, repeats = settled((play.taken_steps() for play in plays), most=MOST)
        made = others(cycles, repeats)
        if queues() == before:
            return made
    return others(cycles, None)


class _Engine:
    """A layer with an array, see `Control`; it goes on when the array has been given away."""

    def __init__(self, layer: SharedLayer) -> None:
        self.layer, self.state = layer, layer.state

    @property
    def offers(self) -> bool:
        return self.layer.offers

    @property
    def takes(self) -> Sequence[bool]:
        return (self.layer.takes,)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        self.layer.accepts, self.layer.leaves = shown[0] and self.layer.takes, leaves


class _Branch:
    """The way from a source to one that takes from it."""

    def __init__(self, between: Link, sink: int, place: int) -> None:
        self.between, self.sink, self.place, self.took = between, sink, place, False


class GraphPlay:
    """A network with one input whose sequences do not end, cycle by cycle.

    Parameters:
        blocks: for each stage the values of a block that comes and of one that leaves.
        depths: by the number of a join the words of its queues.
        start: the cycle in which the first block comes.

    Raises:
        ValueError: when a stage has no `control`.
    """

    def __init__(self, network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]],
                 depths: Mapping[int, Sequence[int]], *, start: int = 0) -> None:
        arranged, shared = network.arrangement, sharings(plans)
        self._controls, members = list[Control](), [list[SharedLayer]() for _ in shared]
        self._arrays = list[tuple[Array, list[SharedLayer]]]()
        for at, (layer, plan, (k, _)) in enumerate(zip(network.stages, plans, blocks, strict=True)):
            if isinstance(plan, LayerPlan):
                assert isinstance(layer, Simple)
                engine = SharedLayer(layer, plan.program(layer), plan.elements)
                engine.only_last = getattr(layer, "returns", "") == "last"
                self._controls.append(_Engine(engine))
                if plan.sharing is None:
                    self._arrays.append((Array(plan.alone(layer), [engine]), [engine]))
                else:
                    members[shared.index(plan.sharing)].append(engine)
                continue
            found = control(layer, plan, k, wanted=wanted(arranged, at, plans), depths=depths.get(at, ()))
            if found is None:
                raise ValueError(f"Stage {layer.name!r} must have a control to be played, but {layer.kind} has none")
            self._controls.append(found)
        self._arrays += [(Array(sharing, found), found) for sharing, found in zip(shared, members, strict=True)]
        self._shown = [[False] * len(sources) for sources in arranged.sources]
        entry = min(blocks[at][0] for at in arranged.readers(INPUT))
        self._beats, self.cycle, self._start = -(-network.flow.size // entry), 0, start
        self._sources = list[tuple[int, list[_Branch]]]()
        for source in range(INPUT, len(network.stages)):
            size, own = (network.flow.size, entry) if source == INPUT else (
                network.stages[source].outputs, blocks[source][1])
            branches = [_Branch(link(size, own, blocks[n][0]), n, place)
                        for n, sources in enumerate(arranged.sources)
                        for place, each in enumerate(sources) if each == source]
            if source in arranged.outputs:
                branches.append(_Branch(Direct(), -1, 0))
            self._sources.append((source, branches))

    def taken_steps(self) -> Iterator[tuple[int, Hashable]]:
        """The cycle behind each step that comes in, with its blocks always there, without end, and the state then."""
        beat = 0
        while True:
            if self._step():
                beat += 1
                if beat % self._beats == 0:
                    yield self.cycle, self.state()

    def state(self) -> Hashable:
        """All that what follows depends on."""
        return (*(each.state() for each in self._controls), *(array.state() for array, _ in self._arrays),
                *((each.took, each.between.state()) for _, branches in self._sources for each in branches))

    def _step(self) -> bool:
        """A cycle: whether a block of the input is taken."""
        takes, leaves = [each.takes for each in self._controls], [False] * (len(self._controls) + 1)
        for source, branches in self._sources:
            offers, whole = self.cycle >= self._start if source == INPUT else self._controls[source].offers, True
            for each in branches:
                given = offers and not each.took
                if each.sink >= 0:
                    self._shown[each.sink][each.place] = each.between.shown(given)
                gone, _ = each.between.step(given, each.sink < 0 or takes[each.sink][each.place])
                each.took = each.took or gone
                whole = whole and each.took
            leaves[source] = offers and whole
            if whole or not offers:
                for each in branches:
                    each.took = False
        for unit, shown, left in zip(self._controls, self._shown, leaves, strict=False):
            unit.edge(shown, left)
        for array, found in self._arrays:
            granted, free = array.grant()
            for layer in found:
                layer.edge(self.cycle, granted is layer, free)
        self.cycle += 1
        return leaves[INPUT]
