"""Plans of the parts of a network: what each chip's budget becomes."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from circulant.hw.array.layer_programs import ROWS, matrices_of
from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.plans import LayerPlan, Plan, Sharing, Simple
from circulant.hw.beats import AUTO
from circulant.hw.chips.chip import Streams, link_shapes, streams_of, waits
from circulant.hw.chips.cluster import Cluster
from circulant.hw.chips.cut import Cut, Placement, cut
from circulant.hw.chips.timing import Timing, timing
from circulant.hw.chips.words import LinkShape
from circulant.hw.components.cell import cells_of
from circulant.hw.plan.dataflow import depths
from circulant.hw.plan.layer_plan import element_multiplications
from circulant.hw.plan.shared.candidates import Goal, candidates, finalists
from circulant.hw.plan.shared.groups import Group
from circulant.hw.planner import alternatives, plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import Stage
from circulant.sim.refusal import Refusal

__all__ = ["Planned", "planned", "shared"]

AGAIN = 2
"""Plans with other waits that are tried."""

LOOKED, GATES = 2, 4
"""Arrays that the layers of a chip might share which are played, of all and of those out of which a block comes in each
cycle; rows of a block that leave at once then."""

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

    def top(self, chip: int) -> Top:
        """The circuit of a chip's part, in which the queues of joins also hold what waits for other chips."""
        part, plans, timing = self.cut.parts[chip], self.plans[chip], self.timing
        assert part is not None, "a chip without a part has no circuit"
        top = Top(part, plans)
        if chip in timing.comes and not part.arrangement.chain:
            for at, each in depths(part, plans, top.blocks, timing.comes[chip], timing.period).items():
                top.units[at].depths = each
        return top

    def waits(self, chip: int) -> Parts:
        """The memories of samples that wait for their chip, or the host."""
        return Parts([Memory(1, each.k * each.width + 1, depth)
                      for each, depth in waits(self.cut, chip, self.streams).values()])

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
    made = _cut(network, cluster, placement)
    waits = {wire.name: EXCHANGE + 2 * cluster.link.latency for wire in made.wires if wire.before}
    parts = list(zip(made.parts, cluster.chips, strict=True))

    def plans() -> Planned:
        """With the waits of now."""
        return _with(cluster, placement, made, [
            [] if part is None else _plans(part, chip.multipliers, waits, objective, levels=levels,
                                           beat_blocks=AUTO if made.turns else 1) for part, chip in parts])

    found = plans()
    best = found
    for _ in range(AGAIN if waits else 0):  # With the wait that was found, and more where it is what bounds all.
        timing = found.timing
        cycles = {layer.name: plan.cycles for part, plans_of in zip(made.parts, found.plans, strict=True)
                  if part is not None for layer, plan in zip(part.stages, plans_of, strict=True)}
        beyond = max(0.0, max(timing.exchanges.values()) - max(timing.parts.values()))
        waits = {name: max(0, round(timing.exchanges[start] - cycles[name] + beyond)) for name, start in (
            (wire.name, wire.start) for wire in made.wires if wire.before)}
        found = plans()
        best = min(best, found, key=lambda each: each.timing.period)
    return best


def shared(network: Network, cluster: Cluster, placement: Placement, *, levels: int = LEVELS) -> Iterator[Planned]:
    """Plans in which the layers of a chip share an array, where rows of layers with a state are divided; none where
    they are not, or cannot share one. The array works with a neighbour's state while the input is under way.

    Raises:
        Refusal: as `planned`.
    """
    made = _cut(network, cluster, placement, state_first=True)
    if not any(wire.before for wire in made.wires):
        return
    ways: list[list[list[Plan]]] = [[[]] if part is None else list(_sharing(part, chip.multipliers, levels))
            for part, chip in zip(made.parts, cluster.chips, strict=True)]
    for n in range(max(map(len, ways)) if all(ways) else 0):
        yield _with(cluster, placement, made, [each[min(n, len(each) - 1)] for each in ways])


def _cut(network: Network, cluster: Cluster, placement: Placement, *, state_first: bool = False) -> Cut:
    made = cut(network, placement, len(cluster.chips), state_first=state_first)
    for wire in made.wires:
        if len(way := cluster.way(wire.start, wire.to)) > 1:
            raise Refusal(f"Chips whose parts exchange vectors must be beside each other, but {wire.name!r} goes from "
                          f"{cluster.chips[wire.start].name!r} to {cluster.chips[wire.to].name!r} over {len(way)} "
                          "links, and no chip passes words on; place it otherwise, or choose the topology 'all'")
    return made


def _with(cluster: Cluster, placement: Placement, made: Cut, plans: Sequence[list[Plan]]) -> Planned:
    with unelaborated():
        streams = tuple(None if part is None else streams_of(Top(part, its))
                        for part, its in zip(made.parts, plans, strict=True))
    _require_pieces(made, streams)
    links = link_shapes(made, streams, cluster.link)
    return Planned(cluster, placement, made, plans=tuple(plans), streams=streams, links=links)


def _plans(part: Network, multipliers: int, waits: dict[str, int], objective: str, *, levels: int,
           beat_blocks: int) -> list[Plan]:
    """The plans in which shares of layers with a state wait so many cycles for the others; what links carry are single
    blocks."""
    if objective == "throughput" or waits or part.many or not part.arrangement.chain or any(
            map(_spectral, part.stages)):
        return plan(part, multipliers, levels=levels, waits=waits, beat_blocks=beat_blocks)
    return alternatives(part, multipliers, levels=levels, objective=objective, beat_blocks=beat_blocks)[0].plans


def _spectral(layer: Stage) -> bool:
    """Whether sums leave the array of a layer, which then has it to itself."""
    return any(each.spectral for each in getattr(layer, "products", {}).values())


def _sharing(part: Network, multipliers: int, levels: int) -> Iterator[list[Plan]]:
    """Plans with one array for the products of a part, but those whose sums leave it, the best ones first by the
    estimates of its latency."""
    usual = plan(part, multipliers, levels=levels)
    mine = [n for n, each in enumerate(usual) if isinstance(each, LayerPlan) and not _spectral(part.stages[n])]
    left = multipliers - sum(each.multipliers for n, each in enumerate(usual) if _spectral(part.stages[n]))
    layers = tuple(cast("Simple", part.stages[n]) for n in mine)
    products = [matrix.product for layer in layers for matrix in matrices_of(layer)]
    if len({(each.block_size, each.twiddle_bits) for each in products}) != 1 or products[0].block_size == 1:
        return
    fitting = [each for each in candidates(Group(layers), levels) if each.multipliers <= left]
    k = products[0].block_size
    quick = [each for each in fitting if each.elements == k and each.shape.chains >= GATES]
    best = (finalists(some, Goal("auto"))[:LOOKED] for some in (fitting, quick) if some)
    for each in dict.fromkeys(one for some in best for one in some):
        for in_turn in (False, True):
            sharing = Sharing(layers, each.shape, ((each.shape.slots, ROWS, each.shape.slots),) * len(layers),
                              in_turn=in_turn, schedule=each.schedule)
            issues = float(sum(program.cycles * program.shape.fold for program in sharing.programs))
            found = list(usual)
            for at, layer in zip(mine, layers, strict=True):
                found[at] = LayerPlan(
                    each.shape, each.elements if cells_of(layer) else 0, cycles=issues, spacing=sharing.spacings[0],
                    multipliers=element_multiplications(layer) * each.elements + (
                        each.shape.multipliers(k) if at == mine[0] else 0), sharing=sharing)
            yield found


def _require_pieces(made: Cut, streams: Sequence[Streams | None]) -> None:
    """
    Raises:
        Refusal: when a part keeps whole sequences, or chips have a stream of the host in blocks of different sizes.
    """
    sizes: dict[str, int] = {}
    for n, own in enumerate(streams):
        if own is None:
            continue
        if own.whole_sequences:
            raise Refusal(f"A network over several chips must have layers that go forward alone, but those of "
                          f"{made.whole.name!r} on chip {n} need whole sequences; take one chip")
        hosts = {name: own.entries[name] for name in made.entering(n)} | dict(own.exits if made.turns else {})
        for name, each in hosts.items():
            known = sizes.setdefault(name, each.k)
            if max(known, each.k) % min(known, each.k) if made.turns and not made.whole.sequence else known != each.k:
                raise Refusal(f"All chips must take or give {name!r} in blocks of one size, not of {sizes[name]} and "
                              f"{each.k}; place the layers that do on one chip")
