"""Costs of places of layers on chips, by the ladders of the planner and the words between them."""
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from circulant.hw.array.layer_programs import matrices_of
from circulant.hw.chips.cluster import Chip, Cluster
from circulant.hw.chips.cut import Place, Placement
from circulant.hw.chips.plans import EXCHANGE
from circulant.hw.chips.rows import block_rows, row_share
from circulant.hw.plan.passes import Ladder, ladder, layer_multiplications
from circulant.hw.plan.shares import FULL, shares
from circulant.hw.planner import rung_cycles, rung_multipliers
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Node

__all__ = ["FILL", "Costs", "Goal"]

FILL, UNEVEN = 80, 1.1
"""Cycles of a layer's pipeline about, by which latencies are ranked; by how much an array that layers share takes
longer than their products, about."""


@dataclass(frozen=True)
class Goal:
    """A weighted sum of cycles, which is to be small."""

    period: float = 1.0
    latency: float = 0.0

    def of(self, period: float, latency: float | None) -> float:
        return self.period * period + (self.latency * (inf if latency is None else latency) if self.latency else 0.0)


@dataclass
class Costs:
    """Costs of places, by the ladders of the planner; each ladder is computed once.

    Parameters:
        levels: of logic, see `circulant.hw.planner.plan`.
    """

    network: Network
    cluster: Cluster
    goal: Goal = field(default_factory=Goal)
    levels: int = LEVELS
    _ladders: dict[Hashable, tuple[list[int], list[int]]] = field(default_factory=dict)
    _parts: dict[Hashable, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = {node.name: node for node in self.network.nodes}
        self.weights = [float(each.multipliers) for each in self.cluster.chips]
        flows = self.network.flows
        self.work = {name: layer_multiplications(node.layer, flows[node.sources[0]].pixels)
                     if not node.layer.joins else 0 for name, node in self.nodes.items()}

        def block(layer: Any, given: Sequence[int]) -> int:
            try:
                return int(matrices_of(layer)[0].product.block_size)
            except Refusal:
                own = getattr(layer, "product", None)
                return own.block_size if own is not None else min(given)

        blocks = self.network.walk({each.name: each.flow.size for each in self.network.inputs}, block, every=True)
        self.vectors = {name: self._words(name, blocks[name]) for name in self.nodes}

    def _words(self, name: str, k: int) -> tuple[int, int]:
        """Blocks of a sample, and words of each."""
        flow = self.network.flows[name]
        return -(-flow.size // k) * flow.pixels, self.cluster.link.words(k * self.network.formats[name].width)

    def rungs(self, name: str, blocks: int) -> tuple[list[int], list[int]]:
        """Multipliers and cycles of the useful plans of a layer, or of so many of its block rows (0 for all)."""
        node = self.nodes[name]
        pixels, products = self.network.flows[node.sources[0]].pixels, getattr(node.layer, "products", {})
        key: Hashable = (name, blocks)
        if products:  # Layers of one shape have one ladder.
            key = (node.layer.kind, blocks, pixels, node.layer.inputs, node.layer.outputs, self.work[name],
                   tuple(each.weights.shape for each in products.values()))
        if key not in self._ladders:
            layer = row_share(node.layer, name, 0, blocks) if blocks else node.layer
            found: Ladder = ladder(layer, streams=1, count=pixels, levels=self.levels)
            self._ladders[key] = ([rung_multipliers(each) for each in found.rungs],
                                  [rung_cycles(each) for each in found.rungs])
        return self._ladders[key]

    def wait(self, name: str, blocks: int) -> int:
        """Cycles that a share with a state waits for the others, about."""
        return EXCHANGE + 2 * self.cluster.link.latency if blocks and hasattr(self.nodes[name].layer, "gates") else 0

    def shares(self, placement: Placement) -> Iterator[tuple[int, str, int]]:
        """(chip, layer, its block rows there or 0 for all)."""
        for name, place in placement.items():
            for chip, blocks in zip(place.chips, place.blocks or (0,), strict=True):
                yield chip, name, blocks

    def words(self, placement: Placement) -> dict[tuple[int, int], int]:
        """Words of a sample on each directed link."""
        found: dict[tuple[int, int], int] = {}
        for node in self.network.nodes:
            if node.name in placement:
                for pair, words in self.moved(node, placement).items():
                    found[pair] = found.get(pair, 0) + words
        return found

    def moved(self, node: Node, placement: Placement) -> dict[tuple[int, int], int]:
        """Words that a layer's place adds on each directed link: what its sources send it, and states."""
        found: dict[tuple[int, int], int] = {}
        takers = placement[node.name].chips

        def send(name: str, place: Place, to: int) -> None:
            blocks, words = self.vectors[name]
            total = sum(place.blocks) or 1
            for chip, own in zip(place.chips, place.blocks or (1,), strict=True):
                for pair in self.cluster.way(chip, to):
                    found[pair] = found.get(pair, 0) + blocks * own // total * words

        for source in dict.fromkeys(node.sources):
            if source in placement:
                for chip in takers:
                    sent = any(chip in placement[other.name].chips for other in self.network.readers[source]
                               if other.name in placement and other is not node and self._before(other, node))
                    if not sent:
                        send(source, placement[source], chip)
        if len(takers) > 1 and hasattr(node.layer, "initial") and hasattr(node.layer, "gates"):
            for chip in takers:
                send(node.name, placement[node.name], chip)
        return found

    def _before(self, one: Node, other: Node) -> bool:
        order = list(self.nodes)
        return order.index(one.name) < order.index(other.name)

    def cost(self, placement: Placement) -> float:
        """The goal of a placement of all layers; infinite where a chip cannot hold its share."""
        if turns := next((place.chips for place in placement.values() if place.streams), ()):
            alone = [{name: Place((n,)) for name in placement} for n in turns]
            return self.goal.of(max(self._slowest(each) for each in alone) / len(turns), max(map(self.late, alone)))
        return self.goal.of(self._slowest(placement), self.late(placement))

    def _slowest(self, placement: Placement) -> float:
        """The period: of the slowest chip, or of a link."""
        period = float(max([*self.words(placement).values(), 0]))
        for n, chip in enumerate(self.cluster.chips):
            mine = [(name, blocks) for at, name, blocks in self.shares(placement) if at == n]
            key = chip.multipliers, tuple(mine)
            if mine and key not in self._parts:
                self._parts[key] = self._part(chip, mine)
            period = max(period, self._parts[key] if mine else 0)
        return period

    def _part(self, chip: Chip, mine: Sequence[tuple[str, int]]) -> float:
        """The period of a chip."""
        each = [self.rungs(*one) for one in mine]
        most = max(len(multipliers) for multipliers, _ in each)
        costs, cycles = np.full((1, len(each), most), FULL), np.zeros((1, len(each), most), np.int64)
        for n, ((multipliers, taken), (name, blocks)) in enumerate(zip(each, mine, strict=True)):
            costs[0, n, :len(multipliers)] = multipliers
            cycles[0, n, :len(taken)] = np.array(taken) + self.wait(name, blocks)
        chosen, left = shares(costs, cycles, np.array([chip.multipliers]))
        if left[0] < 0:
            return inf
        found = float(max(cycles[0, n, at] for n, at in enumerate(chosen[0])))
        waits = [self.wait(*one) for one in mine]
        if len(mine) > 1 and any(waits):  # They may share an array, which then works while one of them waits.
            work = [self.work[name] * blocks / (block_rows(self.nodes[name].layer) or 1) if blocks else self.work[name]
                    for name, blocks in mine]
            found = min(found, max(UNEVEN * sum(work), *(each + wait * chip.multipliers for each, wait in zip(
                work, waits, strict=True))) / chip.multipliers)
        return found

    def late(self, placement: Placement) -> float:
        """The latency of a sample about, as if each layer had its whole chip."""
        done: dict[str, float] = {}
        for node in self.network.nodes:
            place = placement[node.name]
            start = max((done.get(source, 0.0) + (
                self.cluster.link.latency + 8 if len({*placement.get(source, place).chips, *place.chips}) > 1 else 0)
                for source in node.sources), default=0.0)
            chips = [self.cluster.chips[n].multipliers for n in place.chips]
            done[node.name] = start + (FILL if self.work[node.name] else 1) + self.work[node.name] / sum(chips)
        return max(done[name] for name in self.network.outputs)
