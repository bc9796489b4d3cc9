"""Chips and the links between them, as data."""
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from circulant.hw.chips.words import Carrier
from circulant.sim.refusal import Refusal, nearest

__all__ = ["TOPOLOGIES", "Chip", "Cluster", "Link"]

TOPOLOGIES = ("all", "line", "ring")
"""Each chip beside each other; one behind the other; and the last one beside the first."""

MOST_BITS, MOST_LATENCY = 1024, 4096

ADDED = 45
"""Bits of a frame besides those of its word, about."""


@dataclass(frozen=True)
class Chip:
    """A chip's budget.

    Parameters:
        multipliers: real multiplications in a cycle.
        family: in `circulant.hw.plan.families.FAMILIES`, in whose units the next two count; empty for any.
        dsps, block_rams: that it has; 0 for no limit.
        device: its name among those of `circulant.boards.device`; empty for any.
    """

    name: str
    multipliers: int
    family: str = ""
    dsps: int = 0
    block_rams: int = 0
    device: str = ""

    def __post_init__(self) -> None:
        if self.multipliers < 1:
            raise Refusal(f"A chip must have at least one multiplier, but {self.name!r} has {self.multipliers}; give "
                          "the budget of its device")


@dataclass(frozen=True)
class Link:
    """One direction of a link.

    Parameters:
        bits: of a word, one of which goes in a cycle.
        latency: cycles of a word from pins to pins.
        overhead: words that a frame, a block of a vector, takes besides its own.
        pins: data pins, over which a word goes in beats with what the link adds; 0 for a pin for each bit.
        carrier: of words in frames, in place of pins.
    """

    bits: int
    latency: int = 0
    overhead: int = 0
    pins: int = 0
    carrier: Carrier | None = None

    def __post_init__(self) -> None:
        for name, value, least, most in (("bits", self.bits, 1, MOST_BITS), ("latency", self.latency, 0, MOST_LATENCY),
                                         ("overhead", self.overhead, 0, MOST_LATENCY),
                                         ("pins", self.pins, 0, MOST_BITS)):
            if not least <= value <= most:
                raise Refusal(f"A link's {name} must be from {least} to {most:,}, not {value:,}; give what a cycle "
                              "carries (--link BITS,LATENCY)")
        if self.pins and self.carrier:
            raise Refusal(f"A link's pins must be none where {self.carrier.name} carries its words, not {self.pins}; "
                          "leave link_pins out, or take carrier pins")

    def words(self, bits: int) -> int:
        """Words that a block of so many bits takes, and of few pins or a carrier the cycles of these about."""
        beats = -(-(self.bits + ADDED) // self.pins) if self.pins else 1
        if self.carrier:
            frame = self.carrier.beats((self.bits + ADDED) * self.carrier.words)
            beats = -(-self.carrier.cycles(frame) // self.carrier.words)
        return (-(-bits // self.bits) + self.overhead) * beats


@dataclass(frozen=True)
class Cluster:
    """Chips, and between which of them a link goes, in both directions.

    Parameters:
        topology: one of `TOPOLOGIES`, or "pairs".
        pairs: of numbers of chips, with "pairs".

    Raises:
        Refusal: when there is no chip, the topology is unknown, or there is no way between two chips.
    """

    chips: tuple[Chip, ...]
    link: Link
    topology: str = "all"
    pairs: tuple[tuple[int, int], ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.chips:
            raise Refusal("A network must have at least one chip to lie on, not none; give --chips 2")
        if self.topology not in (*TOPOLOGIES, "pairs"):
            raise Refusal(f"A topology must be one of {', '.join(TOPOLOGIES)}, not {self.topology!r}"
                          f"{nearest(self.topology, TOPOLOGIES)}")
        for each in self.pairs:
            if not all(0 <= n < len(self.chips) for n in each) or each[0] == each[1]:
                raise Refusal(f"A link must join two of the chips 0 to {len(self.chips) - 1}, not {each[0]} and "
                              f"{each[1]}; correct the topology")
        for n, row in enumerate(self.ways):
            for to, way in enumerate(row):
                if way is None:
                    raise Refusal(f"There must be a way of links between all chips, but there is none from "
                                  f"{self.chips[n].name!r} to {self.chips[to].name!r}; add a link")

    @property
    def neighbours(self) -> Mapping[int, tuple[int, ...]]:
        """The chips beside each, by number."""
        count = len(self.chips)
        pairs = {"all": [(a, b) for a in range(count) for b in range(a)],
                 "line": [(n, n + 1) for n in range(count - 1)],
                 "ring": [(n, (n + 1) % count) for n in range(count if count > 2 else count - 1)],
                 "pairs": self.pairs}[self.topology]
        return {n: tuple(sorted({b for a, b in pairs if a == n} | {a for a, b in pairs if b == n}))
                for n in range(count)}

    @cached_property
    def ways(self) -> tuple[tuple[tuple[tuple[int, int], ...] | None, ...], ...]:
        """From each chip to each other the shortest way, as directed links; None where there is none."""
        beside, found = self.neighbours, []
        for start in range(len(self.chips)):
            known: dict[int, tuple[tuple[int, int], ...]] = {start: ()}
            at = [start]
            for chip in at:
                for to in beside[chip]:
                    if to not in known:
                        known[to] = (*known[chip], (chip, to))
                        at.append(to)
            found.append(tuple(known.get(n) for n in range(len(self.chips))))
        return tuple(found)

    def way(self, start: int, to: int) -> tuple[tuple[int, int], ...]:
        """The directed links from one chip to another."""
        found = self.ways[start][to]
        assert found is not None, "a cluster has a way between all of its chips"
        return found

    def of(self, chips: tuple[int, ...]) -> "Cluster":
        """Some of the chips, with all links between them at their shortest."""
        return Cluster(tuple(self.chips[n] for n in chips), self.link)
