"""Costs of places of layers on chips, by the ladders of the planner and the words between them."""
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from circulant.hw.array.layer_programs import matrices_of
from circulant.hw.chips.cluster import Chip, Cluster
from circulant.hw.chips.columns import block_columns, column_share
from circulant.hw.chips.cut import Place, Placement
from circulant.hw.chips.plans import EXCHANGE
from circulant.hw.chips.rows import block_rows, row_share
from circulant.hw.plan.ladders import Ladder, ladder, layer_multiplications
from circulant.hw.plan.shares import FULL, shares
from circulant.hw.planner import rung_cycles, rung_multipliers
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Node

__all__ = ["FILL", "Costs", "Goal"]

FILL, SUM, UNEVEN = 80, 20, 1.1
"""Cycles of a layer's pipeline about, by which latencies are ranked, and of what adds up sums of columns; by how much
an array that layers share takes longer than their products, about."""


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
    _sums: dict[tuple[str, tuple[int, ...]], list[int]] = field(default_factory=dict)

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

    def rungs(self, name: str, blocks: int, columns: bool = False) -> tuple[list[int], list[int]]:
        """Multipliers and cycles of the useful plans of a layer, or of so many of its block rows (0 for all) or
        ``columns``."""
        node = self.nodes[name]
        pixels, products = self.network.flows[node.sources[0]].pixels, getattr(node.layer, "products", {})
        key: Hashable = (name, blocks, columns)
        if products:  # Layers of one shape have one ladder.
            key = (node.layer.kind, blocks, columns, pixels, node.layer.inputs, node.layer.outputs, self.work[name],
                   tuple(each.weights.shape for each in products.values()))
        if key not in self._ladders:
            layer = node.layer if not blocks else (column_share if columns else row_share)(node.layer, name, 0, blocks)
            found: Ladder = ladder(layer, streams=1, count=pixels, levels=self.levels)
            self._ladders[key] = ([rung_multipliers(each) for each in found.rungs],
                                  [rung_cycles(each) for each in found.rungs])
        return self._ladders[key]

    def wait(self, name: str, blocks: int, columns: bool = False) -> int:
        """Cycles that a share with a state waits for the others, about."""
        return EXCHANGE + 2 * self.cluster.link.latency if blocks and hasattr(self.nodes[name].layer, "gates") else 0

    def shares(self, placement: Placement) -> Iterator[tuple[int, tuple[str, int, bool]]]:
        """The chip, layer, and block rows there or 0 for all, or block columns, of each share."""
        for name, place in placement.items():
            for chip, blocks in zip(place.chips, place.blocks or (0,), strict=True):
                yield chip, (name, blocks, place.columns)

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
        mine = placement[node.name]
        takers = mine.chips

        def add(chip: int, to: int, words: int) -> None:
            for pair in self.cluster.way(chip, to) if words else ():
                found[pair] = found.get(pair, 0) + words

        def send(name: str, place: Place, to: int, first: int = 0, size: int = 0) -> None:
            """The values of a vector from the first one on, or all of them."""
            (blocks, words), whole, at = self.vectors[name], self.network.flows[name].size, 0
            size, total = size or whole, sum(place.blocks) or 1
            for chip, own in zip(place.chips, place.blocks or (1,), strict=True):
                begin, at = at, at + whole * own // total
                add(chip, to, blocks * max(0, min(first + size, at) - max(first, begin)) // whole * words)

        for source in dict.fromkeys(node.sources):
            if source in placement:
                begin = 0
                for chip, own in zip(takers, mine.blocks or (0,), strict=True):
                    sent = any(chip in placement[other.name].chips and not placement[other.name].columns
                               for other in self.network.readers[source]
                               if other.name in placement and other is not node and self._before(other, node))
                    share = (begin, own * node.layer.product.block_size) if mine.columns else ()
                    if not sent:
                        send(source, placement[source].gives, chip, *share)
                    begin += share[1] if share else 0
        if mine.columns:
            for chip, words in zip(takers[1:], self._summed(node, mine.blocks)[1:], strict=True):
                add(chip, takers[0], words)
        elif len(takers) > 1 and hasattr(node.layer, "initial") and hasattr(node.layer, "gates"):
            for chip in takers:
                send(node.name, placement[node.name], chip)
        return found

    def _summed(self, node: Node, blocks: tuple[int, ...]) -> list[int]:
        """Words of the sums of each share of a layer's columns."""
        key = node.name, blocks
        if key not in self._sums:
            p, _, k = node.layer.product.weights.shape
            begins = [sum(blocks[:n]) for n in range(len(blocks))]
            self._sums[key] = [p * self.cluster.link.words(k * column_share(
                node.layer, node.name, begin, begin + own).output_format.width)
                for begin, own in zip(begins, blocks, strict=True)]
        return self._sums[key]

    def _before(self, one: Node, other: Node) -> bool:
        order = list(self.nodes)
        return order.index(one.name) < order.index(other.name)

    def cost(self, placement: Placement) -> float:
        """The goal of a placement of all layers; infinite where a chip cannot hold its share."""
        if turns := next((place.chips for place in placement.values() if place.streams), ()):
            alone = {n: {name: Place((n,)) for name in placement} for n in turns}
            return self.goal.of(max(self._slowest(each) * turns.count(n) for n, each in alone.items()) / len(turns),
                                max(map(self.late, alone.values())))
        return self.goal.of(self._slowest(placement), self.late(placement))

    def _slowest(self, placement: Placement) -> float:
        """The period: of the slowest chip, or of a link."""
        given = [block_columns(self.nodes[name].layer) for name, place in placement.items()
                 if place.columns and self.nodes[name].sources[0] not in placement]  # From the host, one in a cycle.
        period = float(max([*self.words(placement).values(), *given, 0]))
        for n, chip in enumerate(self.cluster.chips):
            mine = [share for at, share in self.shares(placement) if at == n]
            key = chip.multipliers, tuple(mine)
            if mine and key not in self._parts:
                self._parts[key] = self._part(chip, mine)
            period = max(period, self._parts[key] if mine else 0)
        return period

    def _part(self, chip: Chip, mine: Sequence[tuple[str, int, bool]]) -> float:
        """The period of a chip."""
        each = [self.rungs(*one) for one in mine]
        most = max(len(multipliers) for multipliers, _ in each)
        costs, cycles = np.full((1, len(each), most), FULL), np.zeros((1, len(each), most), np.int64)
        for n, ((multipliers, taken), one) in enumerate(zip(each, mine, strict=True)):
            costs[0, n, :len(multipliers)] = multipliers
            cycles[0, n, :len(taken)] = np.array(taken) + self.wait(*one)
        chosen, left = shares(costs, cycles, np.array([chip.multipliers]))
        if left[0] < 0:
            return inf
        found = float(max(cycles[0, n, at] for n, at in enumerate(chosen[0])))
        waits = [self.wait(*one) for one in mine]
        if len(mine) > 1 and any(waits):  # They may share an array, which then works while one of them waits.
            work = [self.work[name] * blocks / (block_columns if columns else block_rows)(self.nodes[name].layer)
                    if blocks else self.work[name] for name, blocks, columns in mine]
            found = min(found, max(UNEVEN * sum(work), *(each + wait * chip.multipliers for each, wait in zip(
                work, waits, strict=True))) / chip.multipliers)
        return found

    def late(self, placement: Placement) -> float:
        """The latency of a sample about, as if each layer had its whole chip."""
        done, hop = dict[str, float](), self.cluster.link.latency + 8
        for node in self.network.nodes:
            place = placement[node.name]
            start = max((done.get(source, 0.0) + (hop if self._sent(placement.get(source, place), place) else 0)
                         for source in node.sources), default=0.0)
            chips = [self.cluster.chips[n].multipliers for n in place.chips]
            done[node.name] = start + (FILL if self.work[node.name] else 1) + self.work[node.name] / sum(chips) + (
                hop + SUM) * place.columns
        return max(done[name] for name in self.network.outputs)

    @staticmethod
    def _sent(source: Place, place: Place) -> bool:
        """Whether what a layer takes goes over a link: not where its columns lie as the rows of its source do."""
        if place.columns and source.chips == place.chips:
            return False
        return len({*source.gives.chips, *place.chips}) > 1
