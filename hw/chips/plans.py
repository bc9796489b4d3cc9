"""Plans of the parts of a network: what each chip's budget becomes."""
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from circulant.hw.array.plans import Plan
from circulant.hw.chips.chip import Streams, link_shapes, streams_of
from circulant.hw.chips.cluster import Cluster
from circulant.hw.chips.cut import Cut, Placement, cut
from circulant.hw.chips.timing import Timing, timing
from circulant.hw.chips.words import LinkShape
from circulant.hw.planner import alternatives, plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["Planned", "planned"]

AGAIN = 2
"""Plans with other waits that are tried."""

EXCHANGE = 110
"""Cycles, besides twice those of the pins, that a divided state takes about, from its last product to the first one of
the next step: by that its layer gets more multipliers than its neighbours on the chip."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A network over chips, planned.

    Parameters:
        plans: of the layers of each part.
        streams: of the parts' circuits.
        links: directed, by the numbers of their chips.
    """

    cluster: Cluster
    placement: Placement
    cut: Cut
    plans: tuple[list[Plan], ...]
    streams: tuple[Streams | None, ...]
    links: dict[tuple[int, int], LinkShape]

    @cached_property
    def timing(self) -> Timing:
        with unelaborated():
            return timing(self.cut, self.plans, self.streams, self.links)

    @property
    def multipliers(self) -> int:
        return sum(each.multipliers for plans in self.plans for each in plans)


def planned(network: Network, cluster: Cluster, placement: Placement, *, objective: str = "throughput",
            levels: int = LEVELS) -> Planned:
    """The plan of a network whose layers have these places.

    Parameters:
        objective: "throughput"; "auto" or "latency" for parts that are chains, whose layers may share an array.
        levels: see `circulant.hw.planner.plan`.

    Raises:
        Refusal: as `cut` and `circulant.hw.planner.plan`, and when chips would need a link that they have not.
    """
    made = cut(network, placement, len(cluster.chips))
    for wire in made.wires:
        if len(way := cluster.way(wire.start, wire.to)) > 1:
            raise Refusal(f"Chips whose parts exchange vectors must be beside each other, but {wire.name!r} goes from "
                          f"{cluster.chips[wire.start].name!r} to {cluster.chips[wire.to].name!r} over {len(way)} "
                          "links, and no chip passes words on; place it otherwise, or choose the topology 'all'")
    waits = {wire.name: EXCHANGE + 2 * cluster.link.latency for wire in made.wires if wire.before}
    found = _with(cluster, placement, made, waits, objective=objective, levels=levels)
    best = found
    for _ in range(AGAIN if waits else 0):  # With the wait that was found, and more where it is what bounds all.
        timing = found.timing
        if not timing.exchanges:
            break
        cycles = {layer.name: plan.cycles for part, plans in zip(made.parts, found.plans, strict=True)
                  if part is not None for layer, plan in zip(part.stages, plans, strict=True)}
        beyond = max(0.0, max(timing.exchanges.values()) - max(timing.parts.values()))
        waits = {name: max(0, round(timing.exchanges[start] - cycles[name] + beyond)) for name, start in (
            (wire.name, wire.start) for wire in made.wires if wire.before)}
        found = _with(cluster, placement, made, waits, objective=objective, levels=levels)
        best = min(best, found, key=lambda each: each.timing.period)
    return best


def _with(cluster: Cluster, placement: Placement, made: Cut, waits: dict[str, int], *, objective: str,
          levels: int) -> Planned:
    """The plan in which shares of layers with a state wait so many cycles for the others."""
    plans = tuple([] if part is None else _plans(part, chip.multipliers, waits, objective, levels)
                  for part, chip in zip(made.parts, cluster.chips, strict=True))
    with unelaborated():
        streams = tuple(None if part is None else streams_of(Top(part, its))
                        for part, its in zip(made.parts, plans, strict=True))
    _require_pieces(made, streams)
    links = link_shapes(made, streams, cluster.link.bits, cluster.link.latency)
    return Planned(cluster, placement, made, plans=plans, streams=streams, links=links)


def _plans(part: Network, multipliers: int, waits: dict[str, int], objective: str, levels: int) -> list[Plan]:
    if objective == "throughput" or waits or part.many or not part.arrangement.chain:
        return plan(part, multipliers, levels=levels, waits=waits)
    return alternatives(part, multipliers, levels=levels, objective=objective)[0].plans


def _require_pieces(made: Cut, streams: Sequence[Streams | None]) -> None:
    """
    Raises:
        Refusal: when a part keeps whole sequences, or chips take an input in blocks of different sizes.
    """
    sizes: dict[str, int] = {}
    for n, own in enumerate(streams):
        if own is None:
            continue
        if own.whole_sequences:
            raise Refusal(f"A network over several chips must have layers that go forward alone, but those of "
                          f"{made.whole.name!r} on chip {n} need whole sequences; take one chip")
        for name in made.entering(n):
            k = own.entries[name].k
            if sizes.setdefault(name, k) != k:
                raise Refusal(f"All chips must take input {name!r} in blocks of one size, not of {sizes[name]} and "
                              f"{k}; place the layers that take it on one chip")
