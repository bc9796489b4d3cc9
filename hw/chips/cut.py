"""The cut of a network: a network for each chip, and the wires between them."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from circulant.hw.chips.columns import block_columns, column_share, column_sum, unsummed
from circulant.hw.chips.rows import block_rows, in_proportion, row_share, undivided
from circulant.sim.golden.network import Network
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.slice import Slice
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow

__all__ = ["Cut", "Place", "Placement", "Wire", "cut", "even", "not_in_turn", "piece"]


@dataclass(frozen=True)
class Place:
    """The chips of a layer: one has it whole; of several each has so many of its block rows, in their order, or with
    ``columns`` of its block columns, whose sums the first one adds up; or with ``streams`` all of it: steps of
    independent sequences go to these chips in turn, or samples, of which a faster chip may have several of a turn."""

    chips: tuple[int, ...]
    blocks: tuple[int, ...] = ()
    streams: bool = False
    columns: bool = False

    @property
    def whole(self) -> bool:
        return len(self.chips) == 1

    @property
    def gives(self) -> "Place":
        """The place of what the layer gives: of columns that of their sum."""
        return Place(self.chips[:1]) if self.columns else self


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
        state_first: see `cut`.
        turns: chips that have the whole network each, in the order in which steps of independent sequences, or samples,
            go to them; else none.
    """

    whole: Network
    parts: tuple[Network | None, ...]
    wires: tuple[Wire, ...]
    ends: Mapping[str, str]
    outputs: Mapping[str, int]
    state_first: bool = False
    turns: tuple[int, ...] = ()

    @property
    def leaving(self) -> list[tuple[str, int]]:
        """The outputs of the whole, each with a chip that gives it."""
        return [(name, chip) for name, first in self.outputs.items() for chip in dict.fromkeys(self.turns or (first,))]

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
    return in_proportion(total, weights)


def cut(network: Network, placement: Placement, chips: int, *, state_first: bool = False) -> Cut:
    """The parts of a network by the place of each of its layers.

    Parameters:
        state_first: whether a share takes the states of the others in front of its input, and of that what its own chip
            makes in front of what comes; see `circulant.hw.chips.rows.row_share`.

    Raises:
        Refusal: when a layer has no place, or one that it cannot have.
    """
    if any(place.streams for place in placement.values()):
        return _in_turn(network, placement, chips)
    return _Cutting(network, placement, chips, state_first=state_first).cut()


def _in_turn(network: Network, placement: Placement, chips: int) -> Cut:
    if why := not_in_turn(network):
        raise Refusal(f"Independent sequences can take turns on chips only where {why}, which is not so of network "
                      f"{network.name!r}; place its layers, or divide their rows")
    turns = next(iter(placement.values())).chips
    if {placement.get(node.name) for node in network.nodes} != {Place(turns, streams=True)} or not set(turns) <= set(
            range(chips)) or (network.sequence and len(set(turns)) < len(turns)):
        raise Refusal(f"Chips to which sequences go in turn must have all layers each, and be of the chips 0 to "
                      f"{chips - 1}, not {dict(placement)}; correct the placement")
    parts = tuple(Network(f"{network.name[:80]}_{n}", network.inputs, network.nodes, network.outputs,
                          ragged=network.ragged) if n in turns else None for n in range(chips))
    return Cut(network, parts, (), {}, dict.fromkeys(network.outputs, turns[0]), turns=turns)


def not_in_turn(network: Network) -> str:
    """The rule that a network breaks whose steps cannot go to chips in turn; empty where they can."""
    if network.sequence and not network.per_step:
        return "each step of a sequence has its result"
    return "" if not network.many else "a network has one input and one output"


def _begins(name: str, place: Place, total: int) -> list[int]:
    """The first block of each share of a layer that has so many.

    Raises:
        Refusal: when they are not shared as they must be.
    """
    if (len(set(place.chips)) < len(place.chips) or len(place.blocks) != len(place.chips)
            or sum(place.blocks) != total or min(place.blocks) < 1):
        raise Refusal(f"The shares of layer {name!r} must be of {total} block {'columns' if place.columns else 'rows'} "
                      f"in all, one or more on each chip, not {place.blocks} on {place.chips}; correct the placement")
    return [sum(place.blocks[:n]) for n in range(len(place.blocks))]


class _Cutting:
    def __init__(self, network: Network, placement: Placement, chips: int, *, state_first: bool) -> None:
        self._state_first = state_first
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
            elif place.columns:
                self._columns(node, place)
            else:
                self._rows(node, place)
        outputs = {}
        for name in self.network.outputs:
            chip = outputs[name] = self.placement[name].chips[0]
            self.parts[chip].outputs[self._need(chip, name)] = None
        made = [Network(f"{self.network.name[:80]}_{n}", tuple(part.inputs.values()), tuple(part.nodes.values()),
                        tuple(part.outputs), ragged=self.network.ragged) if part.nodes else None
                for n, part in enumerate(self.parts)]
        return Cut(self.network, tuple(made), tuple(self.wires.values()), self.ends, outputs,
                   state_first=self._state_first)

    def _rows(self, node: Node, place: Place) -> None:
        layer = node.layer
        if why := undivided(layer):
            raise Refusal(f"The rows of layer {node.name!r} cannot be divided: {why}; place it whole")
        total, k = block_rows(layer), layer.outputs // block_rows(layer)
        begins = _begins(node.name, place, total)
        for n, chip in enumerate(place.chips):
            name, part = piece(node.name, n), self.parts[chip]
            source, *_ = given = self._given(chip, node.sources[0], k)
            columns = [at // k + m for _, at, size in given for m in range(-(-size // k))]
            share = row_share(layer, name, begins[n], begins[n] + place.blocks[n],
                              columns=columns if self._state_first else None)
            beside = [(each, size) for each, _, size in given]
            if share.inputs != layer.inputs:  # It has a state, and those of the others come in.
                late = []
                for m, other in enumerate(place.chips):
                    if m != n:
                        flow = Flow(place.blocks[m] * k, sequence=True)
                        late.append((f"{piece(node.name, m)}_before", flow.size))
                        part.inputs[late[-1][0]] = Input(late[-1][0], flow)
                        self._wire(piece(node.name, m), other, chip, flow, before=late[-1][0])
                        self.ends[late[-1][0]] = source[0]
                if source[0] in part.nodes:
                    part.outputs[source[0]] = None  # Its marks are looked at.
                beside = late + beside if self._state_first else beside + late
            if len(beside) > 1:
                form, side, sizes = layer.input_format, f"{name}_in", tuple(size for _, size in beside)
                part.nodes[side] = Node(Concat(side, sizes, (form,) * len(sizes), form, k),
                                        tuple(each for each, _ in beside))
                beside = [(side, sum(sizes))]
            part.nodes[name] = Node(share, (beside[0][0],))

    def _columns(self, node: Node, place: Place) -> None:
        layer = node.layer
        if why := unsummed(layer):
            raise Refusal(f"The columns of layer {node.name!r} cannot be divided: {why}; place it whole")
        k, owner, formats = layer.product.block_size, place.chips[0], []
        flow = Flow(layer.product.rows, sequence=self.network.flows[node.name].sequence)
        for n, (chip, begin) in enumerate(zip(place.chips, _begins(node.name, place, block_columns(layer)),
                                              strict=True)):
            share = column_share(layer, name := piece(node.name, n), begin, begin + place.blocks[n])
            source = self._range(chip, node.sources[0], begin * k, share.inputs, name=f"{name}_in", k=k)
            self.parts[chip].nodes[name] = Node(share, (source,))
            formats.append(share.output_format)
            if chip != owner:
                self.parts[owner].inputs[name] = Input(name, flow)
                self._wire(name, chip, owner, flow, direct=True)
        names = tuple(piece(node.name, n) for n in range(len(place.chips)))
        self.parts[owner].nodes[node.name] = Node(column_sum(layer, formats), names)

    def _range(self, chip: int, source: str, first: int, size: int, *, name: str, k: int) -> str:
        """The input or node of a chip's part that gives some values of the vectors of ``source``, best in blocks of
        ``k``; ``name`` is for what is made for them. Chips that have others send these alone."""
        flow, form = self.network.flows[source], self.network.formats[source]
        found = list[tuple[str, int]]()
        for each, at, own, home in self._homes(chip, source):
            begin, end = max(first, at), min(first + size, at + own)
            if begin >= end:
                continue
            if (begin, end) != (at, at + own):
                cutting = Slice(f"{name}{len(found)}", own, first=begin - at, size=end - begin, input_format=form,
                                block=k)
                self.parts[home].nodes[cutting.name] = Node(cutting, (self._need(home, each),))
                each = cutting.name
            self._piece(each, end - begin, home, chip, sequence=flow.sequence)
            found.append((each, end - begin))
        if len(found) > 1:
            names, sizes = zip(*found, strict=True)
            self.parts[chip].nodes[name] = Node(Concat(name, sizes, (form,) * len(sizes), form, k), names)
        return name if len(found) > 1 else found[0][0]

    def _homes(self, chip: int, source: str) -> list[tuple[str, int, int, int]]:
        """The inputs and nodes that give the vectors of ``source`` between them, for a chip: each with its first value,
        its values and its chip."""
        whole, part = self.network.flows[source].size, self.parts[chip]
        if source in self.given or source in part.nodes or source in part.inputs:
            return [(self._need(chip, source), 0, whole, chip)]
        place = self.placement[source].gives
        if place.whole:
            return [(source, 0, whole, place.chips[0])]
        k = whole // sum(place.blocks)
        return [(piece(source, n), k * sum(place.blocks[:n]), k * place.blocks[n], home)
                for n, home in enumerate(place.chips)]

    def _given(self, chip: int, name: str, k: int) -> list[tuple[str, int, int]]:
        """The inputs or nodes of a chip's part that give the vectors of ``name`` between them: each with its place in
        them and its values, in the order in which they are best taken."""
        place = self.placement[name].gives if name in self.placement else None
        layer = None if place is None or place.whole else next(
            node.layer for node in self.network.nodes if node.name == name)
        if not self._state_first or layer is None or layer.outputs // block_rows(layer) != k:
            return [(self._need(chip, name), 0, self.network.flows[name].size)]
        assert place is not None
        found = [(piece(name, n), k * sum(place.blocks[:n]), k * blocks) for n, blocks in enumerate(place.blocks)]
        for (each, _, size), other in zip(found, place.chips, strict=True):
            self._piece(each, size, other, chip, sequence=self.network.flows[name].sequence)
        return sorted(found, key=lambda each: each[0] not in self.parts[chip].nodes)

    def _piece(self, name: str, size: int, start: int, chip: int, *, sequence: bool) -> None:
        """The share that another chip has made comes in."""
        if start != chip and name not in self.parts[chip].inputs:
            flow = Flow(size, sequence=sequence)
            self.parts[chip].inputs[name] = Input(name, flow)
            self._wire(name, start, chip, flow, direct=True)

    def _need(self, chip: int, name: str) -> str:
        """The input or node of a chip's part that gives the vectors of ``name``, which is made where it is missing."""
        part = self.parts[chip]
        if name in part.nodes or name in part.inputs:
            return name
        if name in self.given:
            part.inputs[name] = self.given[name]
            return name
        place, flow = self.placement[name].gives, self.network.flows[name]
        if place.whole:
            part.inputs[name] = Input(name, flow)
            self._wire(name, place.chips[0], chip, flow, direct=True)
            return name
        layer = next(node.layer for node in self.network.nodes if node.name == name)
        k, pieces = layer.outputs // block_rows(layer), [piece(name, n) for n in range(len(place.chips))]
        sizes = tuple(size * k for size in place.blocks)
        for each, size, other in zip(pieces, sizes, place.chips, strict=True):
            self._piece(each, size, other, chip, sequence=flow.sequence)
        form = layer.output_format
        part.nodes[name] = Node(Concat(name, sizes, (form,) * len(sizes), form, k), tuple(pieces))
        return name

    def _wire(self, name: str, start: int, to: int, flow: Flow, *, before: str = "", direct: bool = False) -> None:
        self.parts[start].outputs[name] = None
        known = self.wires.get((name, start, to), Wire(name, start, to, flow))
        self.wires[name, start, to] = replace(known, before=before or known.before, direct=direct or known.direct)
