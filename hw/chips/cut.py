"""The cut of a network: a network for each chip, and the wires between them."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from circulant.hw.chips.rows import block_rows, row_share, undivided
from circulant.sim.golden.network import Network
from circulant.sim.kinds.concat import Concat
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow

__all__ = ["Cut", "Place", "Placement", "Wire", "cut", "even", "piece"]


@dataclass(frozen=True)
class Place:
    """The chips of a layer: one has it whole; of several each has so many of its block rows, in their order."""

    chips: tuple[int, ...]
    blocks: tuple[int, ...] = ()

    @property
    def whole(self) -> bool:
        return len(self.chips) == 1


Placement = Mapping[str, Place]
"""The place of each layer by its name."""


@dataclass(frozen=True)
class Wire:
    """A stream of vectors from one chip to another.

    Parameters:
        name: of the output of the part that it comes from, and of the input that it goes to.
        before: the input that takes it a step late, behind a vector of zeros; empty where none does.
        direct: whether an input takes it as it is.
        flow: of its vectors.
    """

    name: str
    start: int
    to: int
    flow: Flow
    before: str = ""
    direct: bool = False


@dataclass(frozen=True)
class Cut:
    """A network in parts.

    Parameters:
        parts: the network of each chip; None where nothing lies on it.
        wires: between them.
        ends: by the name of an input that comes a step late the input or node of its part that gives steps as they
            are, whose marks say where sequences end.
        outputs: by the name of an output of the whole the chip that gives it.
    """

    whole: Network
    parts: tuple[Network | None, ...]
    wires: tuple[Wire, ...]
    ends: Mapping[str, str]
    outputs: Mapping[str, int]

    def entering(self, chip: int) -> tuple[str, ...]:
        """The inputs of a chip that are those of the whole, in the order of its part."""
        part, given = self.parts[chip], {each.name for each in self.whole.inputs}
        return () if part is None else tuple(each.name for each in part.inputs if each.name in given)


@dataclass
class _Part:
    inputs: dict[str, Input] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)


def piece(name: str, n: int) -> str:
    """The name of a share of a layer."""
    return f"{name}__{n}"


def even(layer: Any, weights: Sequence[float]) -> tuple[int, ...]:
    """Block rows for each chip, in proportion to ``weights``, at least one each.

    Raises:
        Refusal: when the layer's rows cannot be divided, or into not as many.
    """
    total = block_rows(layer)
    if why := undivided(layer):
        raise Refusal(f"The rows of layer {layer.name!r} cannot be divided: {why}; place it whole")
    if total < len(weights):
        raise Refusal(f"A layer must have a block row for each of its chips, but {layer.name!r} has {total} for "
                      f"{len(weights)} chips; divide it over fewer")
    found, left, rest = [], total, sum(weights)
    for n, weight in enumerate(weights):
        behind = len(weights) - n - 1
        found.append(max(1, min(left - behind, round(left * weight / rest))) if behind else left)
        left, rest = left - found[-1], rest - weight
    return tuple(found)


def cut(network: Network, placement: Placement, chips: int) -> Cut:
    """The parts of a network by the place of each of its layers.

    Raises:
        Refusal: when a layer has no place, or one that it cannot have.
    """
    return _Cutting(network, placement, chips).cut()


class _Cutting:
    def __init__(self, network: Network, placement: Placement, chips: int) -> None:
        self.network, self.placement, self.parts = network, placement, [_Part() for _ in range(chips)]
        self.given = {each.name: each for each in network.inputs}
        self.wires: dict[tuple[str, int, int], Wire] = {}
        self.ends: dict[str, str] = {}
        for node in network.nodes:
            place = placement.get(node.name)
            if place is None or not all(0 <= n < chips for n in place.chips) or not place.chips:
                raise Refusal(f"Each layer must have a place on the chips 0 to {chips - 1}, but {node.name!r} has "
                              f"{None if place is None else place.chips}; place it")

    def cut(self) -> Cut:
        for node in self.network.nodes:
            place = self.placement[node.name]
            if place.whole:
                chip = place.chips[0]
                sources = tuple(self._need(chip, source) for source in node.sources)
                self.parts[chip].nodes[node.name] = Node(node.layer, sources)
            else:
                self._rows(node, place)
        outputs = {}
        for name in self.network.outputs:
            chip = outputs[name] = self.placement[name].chips[0]
            self.parts[chip].outputs[self._need(chip, name)] = None
        made = [Network(f"{self.network.name[:80]}_{n}", tuple(part.inputs.values()), tuple(part.nodes.values()),
                        tuple(part.outputs), ragged=self.network.ragged) if part.nodes else None
                for n, part in enumerate(self.parts)]
        return Cut(self.network, tuple(made), tuple(self.wires.values()), self.ends, outputs)

    def _rows(self, node: Node, place: Place) -> None:
        layer = node.layer
        if why := undivided(layer):
            raise Refusal(f"The rows of layer {node.name!r} cannot be divided: {why}; place it whole")
        total, k = block_rows(layer), layer.outputs // block_rows(layer)
        if (len(set(place.chips)) < len(place.chips) or len(place.blocks) != len(place.chips)
                or sum(place.blocks) != total or min(place.blocks) < 1):
            raise Refusal(f"The shares of layer {node.name!r} must be of {total} block rows in all, one or more on "
                          f"each chip, not {place.blocks} on {place.chips}; correct the placement")
        begins = [sum(place.blocks[:n]) for n in range(len(place.blocks))]
        for n, chip in enumerate(place.chips):
            source, name, part = self._need(chip, node.sources[0]), piece(node.name, n), self.parts[chip]
            share = row_share(layer, name, begins[n], begins[n] + place.blocks[n])
            if share.inputs != layer.inputs:  # It has a state, and those of the others come in.
                late = []
                for m, other in enumerate(place.chips):
                    if m != n:
                        late.append(f"{piece(node.name, m)}_before")
                        flow = Flow(place.blocks[m] * k, sequence=True)
                        part.inputs[late[-1]] = Input(late[-1], flow)
                        self._wire(piece(node.name, m), other, chip, flow, before=late[-1])
                        self.ends[late[-1]] = source
                if source in part.nodes:
                    part.outputs[source] = None  # Its marks are looked at.
                form = layer.output_format
                sizes = [layer.inputs] + [size * k for m, size in enumerate(place.blocks) if m != n]
                side = f"{name}_in"
                part.nodes[side] = Node(Concat(side, tuple(sizes), (form,) * len(sizes), form, k), (source, *late))
                source = side
            part.nodes[name] = Node(share, (source,))

    def _need(self, chip: int, name: str) -> str:
        """The input or node of a chip's part that gives the vectors of ``name``, which is made where it is missing."""
        part = self.parts[chip]
        if name in part.nodes or name in part.inputs:
            return name
        if name in self.given:
            part.inputs[name] = self.given[name]
            return name
        place, flow = self.placement[name], self.network.flows[name]
        if place.whole:
            part.inputs[name] = Input(name, flow)
            self._wire(name, place.chips[0], chip, flow, direct=True)
            return name
        layer = next(node.layer for node in self.network.nodes if node.name == name)
        k, pieces = layer.outputs // block_rows(layer), [piece(name, n) for n in range(len(place.chips))]
        sizes = tuple(size * k for size in place.blocks)
        for each, size, other in zip(pieces, sizes, place.chips, strict=True):
            if other != chip:
                taken = Flow(size, sequence=flow.sequence)
                part.inputs[each] = Input(each, taken)
                self._wire(each, other, chip, taken, direct=True)
        form = layer.output_format
        part.nodes[name] = Node(Concat(name, sizes, (form,) * len(sizes), form, k), tuple(pieces))
        return name

    def _wire(self, name: str, start: int, to: int, flow: Flow, *, before: str = "", direct: bool = False) -> None:
        self.parts[start].outputs[name] = None
        known = self.wires.get((name, start, to), Wire(name, start, to, flow))
        self.wires[name, start, to] = replace(known, before=before or known.before, direct=direct or known.direct)
