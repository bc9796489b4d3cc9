"""The period and the latency of a network in parts, in cycles: each part's as its plan says, links as they are built.

A block goes over a link in as many cycles as it has words, and comes after the delay of both ends and of the pins. What
is exact of a part's passing is exact here, with one stream on each way of a link; with several, which may wait for each
other, the latency is an estimate, and is named in ``estimates``.
"""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from circulant.hw.array.plans import LayerPlan, Plan
from circulant.hw.chips.chip import Streams, wires_of
from circulant.hw.chips.cut import Cut
from circulant.hw.chips.words import LinkShape
from circulant.hw.plan.latency import reblocked, through
from circulant.hw.plan.passing import Cycles, passing
from circulant.hw.plan.shared.play import Play
from circulant.hw.resources import period
from circulant.hw.stream.storage import DeepQueue

__all__ = ["Timing", "loads", "timing"]

EARLY = -1 << 30
"""Long before a sample: what is there when it comes."""

STEPS = 24
"""Steps that shares which wait for each other are played."""


@dataclass(frozen=True)
class Timing:
    """Cycles of a network over several chips.

    Parameters:
        period: from sample to sample, of the slowest part, link, or exchange of states.
        latency: of a sample, from the last beat of its input to the last one of its result, in idle chips; None where
            it is not known.
        parts: the period of each part by chip.
        links: words of a sample on each directed link, a cycle each.
        exchanges: by chip the cycles from step to step of layers whose rows are divided, as states go to and fro.
        estimates: the names of figures that are no exact ones.
    """

    period: float
    latency: int | None
    parts: Mapping[int, float]
    links: Mapping[tuple[int, int], int]
    exchanges: Mapping[int, float] = field(default_factory=dict)
    estimates: tuple[str, ...] = ()


def loads(cut: Cut, links: Mapping[tuple[int, int], LinkShape]) -> dict[tuple[int, int], int]:
    """Words of a sample, or a step, on each directed link."""
    found = {}
    for pair, shape in links.items():
        found[pair] = sum(channel.blocks * wire.flow.pixels * shape.words(n) for n, (channel, wire) in enumerate(
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
    words = loads(cut, links)
    flows = _Flows(cut, plans, streams, links)
    exchanges = flows.exchanges()
    latency = flows.latency()
    several = any(len(shape.channels) > 1 for shape in links.values())
    estimates = [name for name, it_is in (("cycles", bool(exchanges)), (
        "latency_spaced", several and latency is not None)) if it_is]
    return Timing(max([*parts.values(), *words.values(), *exchanges.values()]), latency, parts=parts, links=words,
                  exchanges=exchanges, estimates=tuple(estimates))


class _Flows:
    """When blocks come to each part and leave it."""

    def __init__(self, cut: Cut, plans: Sequence[Sequence[Plan]], streams: Sequence[Streams | None],
                 links: Mapping[tuple[int, int], LinkShape]) -> None:
        self.cut, self.plans, self.links = cut, plans, links
        self.streams = {n: each for n, each in enumerate(streams) if each is not None}

    def leaves(self, chip: int, given: Mapping[str, Cycles]) -> dict[str, Cycles] | None:
        """Cycles in which the blocks of each output of a part leave; None where they are not known."""
        part, plans, blocks = self.cut.parts[chip], self.plans[chip], self.streams[chip].blocks
        assert part is not None
        if any(isinstance(plan, LayerPlan) and plan.sharing is not None for plan in plans):
            found = through(part, plans, blocks, given[part.entry.name])
            return None if found is None else {part.exit: found}
        passed = passing(part, plans, blocks, given)
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
            shown, free, held = [], cycles[0], max(self.links[pair].words(n) for pair, n in takers)
            for cycle in cycles:
                shown.append(max(cycle, free))
                free = shown[-1] + held
            for pair, n in takers:
                found[pair[1], name] = [cycle + self.links[pair].delay(n) for cycle in shown]
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
                left = self.leaves(chip, self._given(chip, came))
                if left is None:
                    return None
                last[chip] = left
                came |= self.carried(chip, left)
        return max(last[chip][name][-1] for name, chip in self.cut.outputs.items())

    def exchanges(self) -> dict[int, float]:
        """Cycles from step to step of chips that exchange states, where all else is there long before: the shares of
        each divided layer are played side by side, with the links between them."""
        found: dict[int, float] = {}
        for layer in dict.fromkeys(wire.name.rpartition("__")[0] for wire in self.cut.wires if wire.before):
            shares = _Shares(self, layer)
            cycles = shares.period()
            for chip in shares.plays:
                found[chip] = max(found.get(chip, 0.0), cycles)
        return found


class _Shares:
    """The shares of a layer with a state on several chips, cycle by cycle.

    Members:
        plays: of each share, by its chip.
    """

    def __init__(self, flows: _Flows, layer: str) -> None:
        self.plays: dict[int, Play] = {}
        self._late: dict[int, list[tuple[int, int]]] = {}  # By chip (chip of the other share, its blocks), in order.
        self._before: dict[int, int] = {}
        self._delay: dict[tuple[int, int], int] = {}
        self._words: dict[int, int] = {}
        wires = [wire for wire in flows.cut.wires if wire.before and wire.name.rpartition("__")[0] == layer]
        numbers = {wire.start: int(wire.name.rpartition("__")[2]) for wire in wires}
        for chip in numbers:
            part, plans = flows.cut.parts[chip], flows.plans[chip]
            assert part is not None
            at = next(n for n, each in enumerate(part.stages) if each.name == f"{layer}__{numbers[chip]}")
            plan, own = plans[at], part.stages[at]
            assert isinstance(plan, LayerPlan)
            self.plays[chip] = Play([plan.alone(own)], [plan.elements], closed=True)
            mine = sorted((wire for wire in wires if wire.to == chip), key=lambda wire: numbers[wire.start])
            k = own.gates.block_size
            self._late[chip] = [(wire.start, wire.flow.size // k) for wire in mine]
            self._before[chip] = own.inputs // k - sum(blocks for _, blocks in self._late[chip])
            for wire in mine:
                shape, place = flows.links[wire.start, chip], [
                    each.name for each in wires_of(flows.cut, wire.start, chip)].index(wire.name)
                self._delay[wire.start, chip] = shape.delay(place) + DeepQueue.latency
                self._words[wire.start] = max(self._words.get(wire.start, 0), shape.words(place))

    def period(self) -> float:
        """The mean of the later half of some steps."""
        came = {(start, chip): [0] * blocks for chip, late in self._late.items() for start, blocks in late}
        offered, free, ends = dict.fromkeys(self.plays, 0), dict.fromkeys(self.plays, 0), list[int]()
        first, cycle = next(iter(self.plays)), 0
        while len(ends) < STEPS:
            for chip, play in self.plays.items():
                accepts, leaves = play.step(self._there(chip, offered[chip], came, cycle))
                offered[chip] += accepts
                if leaves:
                    shown = max(cycle, free[chip])
                    free[chip] = shown + self._words[chip]
                    for to in self.plays:
                        if to != chip:
                            came[chip, to].append(shown + self._delay[chip, to])
                if accepts and chip == first and offered[chip] % play.takes == 0:
                    ends.append(cycle)
            cycle += 1
        return (ends[-1] - ends[STEPS // 2 - 1]) / (STEPS - STEPS // 2)

    def _there(self, chip: int, offered: int, came: Mapping[tuple[int, int], list[int]], cycle: int) -> bool:
        """Whether the next block of a share's input is there; those of the first step are zeros."""
        step, block = divmod(offered, self.plays[chip].takes)
        block -= self._before[chip]
        if block < 0:
            return True
        for start, blocks in self._late[chip]:
            if block < blocks:
                at = step * blocks + block
                return len(came[start, chip]) > at and came[start, chip][at] <= cycle
            block -= blocks
        raise AssertionError("a step has no more blocks")
