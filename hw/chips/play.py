"""Parts of a network on several chips, played cycle by cycle: their layers, the arrays that these have or share, what
joins vectors, and links.

Layers and arrays are those of `circulant.hw.plan.shared.play`, cycle by cycle as they are built. Queues between them
count as deep enough, so that what gives a block is held up by none that takes it, but for the credits of links whose
words take several cycles; a link gives its streams their turns in the order in which their blocks come. So figures are
estimates.
"""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from circulant.hw.array.plans import LayerPlan, Plan, Sharing
from circulant.hw.chips.chip import Streams, wires_of
from circulant.hw.chips.cut import Cut
from circulant.hw.chips.words import LinkShape
from circulant.hw.plan.dataflow import joined
from circulant.hw.plan.shared.layer_counters import SharedLayer
from circulant.hw.plan.shared.play import Array
from circulant.hw.stream.pipeline import PROMPT

__all__ = ["Played", "Works", "merged"]

STEPS, CYCLES, SAMPLES, QUIET = (16, 64), 8000, 2, 300
"""Steps that are played for a period, from so many to as many as these cycles hold; samples for a latency, of which the
last one counts; cycles between them, besides those of all products of a chip."""

Works = Mapping[int | tuple[int, int], Sequence[tuple[int, int]]]
"""By chip and by directed link the spans of cycles, the last one left out, in which it works."""

PAUSE = 4
"""Cycles without work that end no span."""


def merged(spans: Works) -> Works:
    """Spans in their order, counted from the first one of all; those that are nearly one are one."""
    first = min((start for each in spans.values() for start, _ in each), default=0)
    found = dict[int | tuple[int, int], list[tuple[int, int]]]()
    for name in sorted(spans, key=lambda each: each if isinstance(each, tuple) else (each, -1)):
        mine = found[name] = []
        for start, end in sorted(spans[name]):
            if mine and start - first <= mine[-1][1] + PAUSE:
                mine[-1] = mine[-1][0], max(mine[-1][1], end - first)
            else:
                mine.append((start - first, end - first))
    return found


@dataclass
class _Stream:
    """Vectors in blocks.

    Parameters:
        size, k: values of a vector and of a block.
        cycles: in which blocks are there.
        late: whether a vector of zeros comes before them.
    """

    size: int
    k: int
    cycles: list[int] = field(default_factory=list)
    late: bool = False

    @property
    def blocks(self) -> int:
        return -(-self.size // self.k)

    def there(self, vector: int, values: int, cycle: int) -> bool:
        """Whether so many values of a vector are."""
        if self.late:
            if not vector:
                return True
            vector -= 1
        at = vector * self.blocks - (-min(values, self.size) // self.k) - 1
        return at < len(self.cycles) and self.cycles[at] <= cycle


@dataclass
class _Stage:
    """A layer.

    Parameters:
        sources: each with its place among the values that the layer takes.
        k, size: values of a block that it takes, or gives, and of a vector of them.
        layer: the counters of one that has an array.
        latency: of another one, from the block that it waits for to that which it gives.
        whole: the values of a vector that it waits for, if not for those of a block.
        since: the cycle in which it took the first block of a vector.
    """

    chip: int
    name: str
    sources: list[tuple[_Stream, int]]
    out: _Stream
    k: int
    size: int
    layer: SharedLayer | None = None
    latency: int = 0
    whole: int = 0
    vector: int = 0
    block: int = 0
    since: int = 0

    def comes(self, cycle: int) -> bool:
        """Whether the next block is there."""
        values = self.whole or min((self.block + 1) * self.k, self.size)
        return all(source.there(self.vector, values - begin, cycle) for source, begin in self.sources if begin < values)

    def take(self) -> None:
        self.block += 1
        if self.block * self.k >= self.size:
            self.block, self.vector = 0, self.vector + 1


class Played:
    """All parts, behind a reset.

    Parameters:
        spaced: whether a sample comes when all is at rest; else inputs are always there.
    """

    def __init__(self, cut: Cut, plans: Sequence[Sequence[Plan]], streams: Mapping[int, Streams],
                 links: Mapping[tuple[int, int], LinkShape], *, spaced: bool) -> None:
        self._links, self._spaced, self.cycle, self.quiet = links, spaced, 0, QUIET
        self._stages, self._arrays = list[_Stage](), list[tuple[Array, list[SharedLayer]]]()
        self._hosts, self._streams = list[_Stream](), dict[tuple[int, str], _Stream]()
        self._ways: dict[tuple[int, str], list[tuple[tuple[int, int], int, _Stream]]] = {}
        for pair in links:
            for n, wire in enumerate(wires_of(cut, *pair)):
                came = _Stream(wire.flow.size, streams[pair[0]].exits[wire.name].k)
                self._ways.setdefault((pair[0], wire.name), []).append((pair, n, came))
                if wire.direct:
                    self._streams[pair[1], wire.name] = came
                if wire.before:
                    self._streams[pair[1], wire.before] = _Stream(came.size, came.k, came.cycles, late=True)
        self._free = dict.fromkeys(links, 0)
        self._spans = dict[int | tuple[int, int], list[tuple[int, int]]]()
        self._chips = dict[int, int]()  # By the identity of the counters of a layer.
        for chip in streams:
            self._add(cut, chip, plans[chip], streams[chip])
        name, chip = next(iter(cut.outputs.items()))
        self._result = self._streams[chip, name]

    def _add(self, cut: Cut, chip: int, plans: Sequence[Plan], streams: Streams) -> None:
        part = cut.parts[chip]
        assert part is not None
        for name in cut.entering(chip):
            given = self._streams[chip, name] = _Stream(streams.entries[name].blocks * streams.entries[name].k,
                                                        streams.entries[name].k)
            self._hosts.append(given)
        arrays: dict[Sharing, list[SharedLayer]] = {}
        for node, plan, (_, gives) in zip(part.nodes, plans, streams.blocks, strict=True):
            layer, size, sources = node.layer, 0, list[tuple[_Stream, int]]()
            for source in node.sources:
                sources.append((self._streams[chip, source], size))
                size += sources[-1][0].size if layer.kind == "concat" else 0
            out = self._streams[chip, node.name] = _Stream(layer.outputs, gives)
            if isinstance(plan, LayerPlan):
                own = plan.sharing or plan.alone(layer)
                counters = SharedLayer(layer, plan.program(layer), plan.elements)
                arrays.setdefault(own, []).append(counters)
                self._chips[id(counters)] = chip
                self._stages.append(_Stage(chip, node.name, sources, out, k=counters.k, size=layer.inputs,
                                           layer=counters))
            elif size:
                self._stages.append(_Stage(chip, node.name, sources, out, k=gives, size=size,
                                           latency=PROMPT))
            elif layer.kind == "add":
                (turn,), _, more = joined(layer, [[0]] * len(sources), gives)
                self._stages.append(_Stage(chip, node.name, sources, out, k=gives, size=layer.inputs,
                                           latency=turn + more))
            else:
                self._stages.append(_Stage(chip, node.name, sources, out, k=gives, size=layer.outputs,
                                           latency=round(plan.cycles), whole=layer.inputs))
        self._arrays += [(Array(own, found), found) for own, found in arrays.items()]
        self.quiet = max(self.quiet, QUIET + sum(
            program.cycles * program.shape.fold for own in arrays for program in own.programs))

    def period(self) -> float:
        """The mean of the last steps, a third of them."""
        ends, each, (least, most) = self._result.cycles, self._result.blocks, STEPS
        while len(ends) < least * each or (self.cycle < CYCLES and len(ends) < most * each):
            self._step()
        count = len(ends) // each
        last = count // 6 * 2
        cycles = ends[count * each - 1] - ends[(count - last) * each - 1]
        whole = round(cycles / last)  # A step that comes and goes with a cycle more or less makes none longer.
        return float(whole) if abs(cycles - whole * last) <= 1 else cycles / last

    def latency(self) -> int:
        """From the last block of an input to the last one of its result."""
        for sample in range(1, SAMPLES + 1):
            self._spans.clear()
            for given in self._hosts:
                given.cycles += range(self.cycle, self.cycle + given.blocks)
            start = max((given.cycles[-1] for given in self._hosts), default=self.cycle)
            while len(self._result.cycles) < sample * self._result.blocks:
                self._step()
            end = self._result.cycles[-1]
            for _ in range(self.quiet):
                self._step()
        return end - start

    def works(self) -> Works:
        """When chips and links work on the last sample of `latency`, and then ahead of the next one."""
        return merged(self._spans)

    def _step(self) -> None:
        cycle = self.cycle
        if not self._spaced:
            for given in self._hosts:
                given.cycles.append(cycle)
        for each in self._stages:
            comes, layer = each.comes(cycle), each.layer
            held = self._held(each)
            if layer is not None:
                layer.accepts, layer.leaves = comes and layer.takes, layer.offers and not held
            comes = comes and (layer is not None or not held)
            if comes and (layer is None or layer.accepts):
                each.since = each.since if each.block else cycle
                each.take()
            if comes if layer is None else layer.leaves:
                self._leave(each, cycle + each.latency)
        for array, found in self._arrays:
            granted, free = array.grant()
            for layer in found:
                layer.edge(cycle, granted is layer, free)
                if granted is layer:
                    self._spans.setdefault(self._chips[id(layer)], []).append((cycle, cycle + 1))
        self.cycle += 1

    def _held(self, stage: _Stage) -> bool:
        """Whether a stage has no credit for a link on which a word takes several cycles, until blocks are taken."""
        for pair, n, came in self._ways.get((stage.chip, stage.name), ()):
            shape = self._links[pair]
            if not shape.exact and len(came.cycles) >= came.blocks * min(
                    (each.vector for each in self._stages if each.chip == pair[1]
                     and any(source.cycles is came.cycles for source, _ in each.sources)), default=0) + shape.depth(n):
                return True
        return False

    def _leave(self, stage: _Stage, cycle: int) -> None:
        """A block of a stage leaves, and goes over the links to those who take it."""
        stage.out.cycles.append(cycle)
        self._spans.setdefault(stage.chip, []).append((min(stage.since, cycle), cycle + 1))
        for pair, n, came in self._ways.get((stage.chip, stage.name), ()):
            shown = max(cycle, self._free[pair])
            self._free[pair] = shown + self._links[pair].cycles(n)
            came.cycles.append(shown + self._links[pair].delay(n))
            self._spans.setdefault(pair, []).append((shown, self._free[pair]))
