"""The period and the latency of a network in parts, in cycles: each part's as its plan says, links as they are built.

A block goes over a link in as many cycles as it has words, and comes after the delay of both ends and of the pins. What
is exact of a part's passing is exact here, with one stream on each way of a link; with several, which may wait for each
other, the latency is an estimate, and is named in ``estimates``. Where states go to and fro, all parts are played side
by side, see `circulant.hw.chips.play`.
"""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from circulant.hw.array.plans import LayerPlan, Plan
from circulant.hw.chips.chip import Streams, waits, wires_of
from circulant.hw.chips.cut import Cut, Wire
from circulant.hw.chips.play import Played, Works, merged
from circulant.hw.chips.words import LinkShape
from circulant.hw.plan.dataflow import Cycles, stage_cycles
from circulant.hw.plan.latency import reblocked, through
from circulant.hw.resources import period
from circulant.hw.stream.storage import DeepQueue

__all__ = ["Timing", "loads", "timing"]

EARLY = -1 << 30
"""Long before a sample: what is there when it comes."""


@dataclass(frozen=True)
class Timing:
    """Cycles of a network over several chips.

    Parameters:
        period: from sample to sample, of the slowest part, link, or exchange of states.
        latency: of a sample, from the last beat of its input to the last one of its result, in idle chips; None where
            it is not known.
        parts: the period of each part by chip.
        links: cycles of the words of a sample on each directed link; one each, where no pins are shared.
        exchanges: by chip the cycles from step to step of layers whose rows are divided, as states go to and fro.
        estimates: the names of figures that are no exact ones.
        comes: by chip the cycles in which the blocks of its inputs come, where samples follow each other; empty where
            that is not known.
        works: by chip and by directed link from which cycle to which one each works on a sample that comes into idle
            chips, counted from the sample's first block; empty where that is not known.
    """

    period: float
    latency: int | None
    parts: Mapping[int, float]
    links: Mapping[tuple[int, int], int]
    exchanges: Mapping[int, float] = field(default_factory=dict)
    estimates: tuple[str, ...] = ()
    works: Works = field(default_factory=dict)
    comes: Mapping[int, Mapping[str, Cycles]] = field(default_factory=dict)


def loads(cut: Cut, links: Mapping[tuple[int, int], LinkShape]) -> dict[tuple[int, int], int]:
    """Cycles of the words of a sample, or a step, on each directed link."""
    found = {}
    for pair, shape in links.items():
        found[pair] = sum(channel.blocks * wire.flow.pixels * shape.cycles(n) for n, (channel, wire) in enumerate(
            zip(shape.channels, wires_of(cut, *pair), strict=True)))
    return found


def timing(cut: Cut, plans: Sequence[Sequence[Plan]], streams: Sequence[Streams | None],
           links: Mapping[tuple[int, int], LinkShape]) -> Timing:
    """
    Parameters:
        plans: of the parts' layers; empty where a chip has none.
        streams: of the parts' circuits.
        links: of `circulant.hw.chips.chip.link_shapes`.
    """
    parts = {n: float(period(part, plans[n])) for n, part in enumerate(cut.parts) if part is not None}
    words, several = loads(cut, links), any(len(shape.channels) > 1 for shape in links.values())
    shared = any(isinstance(plan, LayerPlan) and plan.sharing for part, own in zip(cut.parts, plans, strict=True)
                 if part is not None and not part.arrangement.chain for plan in own)
    cycles, exchanges = list[float](), dict[int, float]()
    if shared or any(wire.before for wire in cut.wires):
        mine = {n: each for n, each in enumerate(streams) if each is not None}
        cycles = [Played(cut, plans, mine, links, spaced=False).period()]
        exchanges = {wire.start: cycles[0] for wire in cut.wires if wire.before}
        spaced: Played | _Flows = Played(cut, plans, mine, links, spaced=True)
    else:
        spaced = _Flows(cut, plans, streams, links)
    latency = spaced.latency()
    vague = not all(shape.exact for shape in links.values())
    mixed = several and any(_joined(cut, wire) and 2 * words[wire.start, wire.to] > max(parts.values())
                            for wire in cut.wires)
    estimates = [name for name, it_is in (("cycles", bool(cycles) or vague or mixed), (
        "latency_spaced", (several or cycles or vague or len({*cut.turns}) < len(cut.turns)) and latency is not None))
                 if it_is]
    if cut.turns:  # The turns are fixed: the slowest chip sets the pace; all vectors pass the ports of the host.
        hosts = [each for each, _ in waits(cut, cut.turns[0], streams).values()] or [
            each for own in streams if own is not None for each in (*own.entries.values(), *own.exits.values())]
        cycles = [max(parts[n] * cut.turns.count(n) for n in parts) / len(cut.turns),
                  *(float(each.beats) for each in hosts)]
        if latency is not None and not cut.whole.sequence:
            latency += 2 * DeepQueue.latency
    whole = max(cycles or [*parts.values(), *words.values()])
    comes = spaced.comes(whole) if isinstance(spaced, _Flows) and latency is not None else {}
    return Timing(whole, latency, parts=parts, links=words, exchanges=exchanges, estimates=tuple(estimates),
                  works=spaced.works(), comes=comes)


def _joined(cut: Cut, wire: Wire) -> bool:
    """Whether the vectors of a wire are joined with others: each waits for the other, and for other streams of the
    link."""
    part = cut.parts[wire.to]
    return part is not None and any(node.layer.joins and wire.name in node.sources for node in part.nodes)


class _Flows:
    """When blocks come to each part and leave it."""

    def __init__(self, cut: Cut, plans: Sequence[Sequence[Plan]], streams: Sequence[Streams | None],
                 links: Mapping[tuple[int, int], LinkShape]) -> None:
        self.cut, self.plans, self.links = cut, plans, links
        self.streams = {n: each for n, each in enumerate(streams) if each is not None}
        self._busy = dict[int, tuple[int, int]]()
        self._came = dict[int, dict[str, Cycles]]()
        self._sent = dict[tuple[tuple[int, int], str], list[tuple[int, int]]]()

    def leaves(self, chip: int, given: Mapping[str, Cycles]) -> dict[str, Cycles] | None:
        """Cycles in which the blocks of each output of a part leave; None where they are not known."""
        part, plans, blocks = self.cut.parts[chip], self.plans[chip], self.streams[chip].blocks
        assert part is not None
        if any(isinstance(plan, LayerPlan) and plan.sharing is not None for plan in plans):
            found = through(part, plans, blocks, given[part.entry.name])
            return None if found is None else {part.exit: found}
        passed = stage_cycles(part, plans, blocks, given)
        if passed is None:
            return None
        return {name: passed[at].leaves for name, at in zip(part.outputs, part.arrangement.outputs, strict=True)}

    def carried(self, chip: int, left: Mapping[str, Cycles]) -> dict[tuple[int, str], Cycles]:
        """Cycles in which blocks come to other chips, by chip and wire, as outputs of one leave in these."""
        found = {}
        for name, cycles in left.items():
            takers = [(pair, n) for pair, shape in self.links.items() if pair[0] == chip
                      for n, wire in enumerate(wires_of(self.cut, *pair)) if wire.name == name]
            if not takers:
                continue
            shown, free, held = [], cycles[0], max(self.links[pair].cycles(n) for pair, n in takers)
            for cycle in cycles:
                shown.append(max(cycle, free))
                free = shown[-1] + held
            for pair, n in takers:
                found[pair[1], name] = [cycle + self.links[pair].delay(n) for cycle in shown]
                self._sent[pair, name] = [(cycle, cycle + self.links[pair].cycles(n)) for cycle in shown]
        return found

    def _given(self, chip: int, came: Mapping[tuple[int, str], Cycles]) -> dict[str, Cycles]:
        """Cycles in which the inputs of a part come; states of the step before, and what is not known, came long
        ago."""
        entries, found = self.streams[chip].entries, {}
        wires = {wire.name: wire for wire in self.cut.wires if wire.to == chip}
        before = {wire.before for wire in wires.values()}
        own = set(self.cut.entering(chip))
        for name, each in entries.items():
            early = list(range(EARLY, EARLY + each.blocks))
            if name in own:
                found[name] = list(range(1 - each.blocks, 1))
            elif name in before or (chip, name) not in came:
                found[name] = early
            else:
                wire, cycles = wires[name], came[chip, name]
                sent = self.streams[wire.start].exits[wire.name].k
                found[name] = reblocked(cycles, wire.flow.size, sent, each.k)
        return found

    def latency(self) -> int | None:
        """The latency of a sample in idle chips."""
        came: dict[tuple[int, str], Cycles] = {}
        last: dict[int, dict[str, Cycles]] = {}
        for _ in range(len(self.cut.wires) + 1):  # Each time at least one more wire is as it will be.
            for chip in self.streams:
                given = self._came[chip] = self._given(chip, came)
                left = self.leaves(chip, given)
                if left is None:
                    return None
                known = [cycle for each in given.values() for cycle in each if cycle > EARLY // 2]
                self._busy[chip] = min(known, default=0), max(cycles[-1] for cycles in left.values()) + 1
                last[chip] = left
                came |= self.carried(chip, left)
        return max(last[chip][name][-1] for name, chip in self.cut.leaving)

    def comes(self, period: float) -> dict[int, dict[str, Cycles]]:
        """When blocks come to each part, a sample in each period: over a link none before the last one of the sample
        before has gone."""
        found = {chip: dict(given) for chip, given in self._came.items()}
        for (start, to), shape in self.links.items():
            for n, wire in enumerate(wires_of(self.cut, start, to)):
                cycles = found[to][wire.name]
                each = ceil(shape.cycles(n) * shape.channels[n].blocks / len(cycles))
                free = cycles[-1] - ceil(period) + each
                found[to][wire.name] = [max(cycle, free + each * at) for at, cycle in enumerate(cycles)]
        return found

    def works(self) -> Works:
        """When chips and links work on the sample of `latency`."""
        spans = dict[int | tuple[int, int], list[tuple[int, int]]]({n: [span] for n, span in self._busy.items()})
        for (pair, _), sent in self._sent.items():
            spans.setdefault(pair, []).extend(sent)
        return merged(spans)
