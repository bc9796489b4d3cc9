"""Profiles of families of FPGAs: where the memories of a design lie, and how the family's tools are told.

The generator, the prediction of resources and synthesis read this one table; what a memory or a product then takes of
a device is in `circulant.hw.plan.families`, whose entries name their profile.
"""
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["GENERIC", "PROFILES", "UNCHECKED", "Piece", "Profile", "profile_of"]

UNCHECKED = "no_rw_check"
"""Attribute of a memory of which no word is looked at that was read while it was written; Yosys knows it."""


class Piece(NamedTuple):
    """A part of a memory, and its place. Pieces lie side by side, or behind each other in addresses."""

    words: int
    bits: int
    place: str


@dataclass(frozen=True)
class Profile:
    """Rules of a family for its memories. A place is "block" (block RAM), "distributed" (look-up tables that can be
    written), "registers" (flip-flops) or "logic" (look-up tables with fixed contents).

    Parameters:
        asynchronous: whether a memory of look-up tables can be written, and read without a clock edge.
        registers: bits of a memory that is written, up to which it lies in flip-flops; only where none lies in look-up
            tables.
        fixed: words up to which fixed contents lie in logic.
        ram, rom: attributes of memories that can be written, and of those that cannot.
        words: what the attributes call a place, where it is not the place's name.
        silent: places of fixed memories for which the tools have no word, so that nothing is said.
        forms: (words, bits) that a block RAM may have, where there are so few of them that what sticks out of whole
            ones lies beside them, up to ``beside`` bits; none where a memory is never cut.
        unchecked: whether tools are told that nothing depends on a word that is read while it is written. Without, they
            build the old word in registers and comparisons where block RAM gives none; nothing in a design depends
            on it in any family.
    """

    name: str
    asynchronous: bool = True
    registers: int = 0
    fixed: int = 16
    ram: str = "ram_style"
    rom: str = "rom_style"
    words: Mapping[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    forms: tuple[tuple[int, int], ...] = ()
    beside: int = 0
    unchecked: bool = False

    def place(self, depth: int, width: int, *, writable: bool = True, asynchronous: bool = False) -> str:
        """The place of a memory of ``depth`` words of ``width`` bits, said to every tool, so that none has an opinion
        of its own.

        A table of six inputs holds 64 bits; weights and activations belong into block RAM.
        """
        if not writable:
            return "logic" if depth <= self.fixed else "block"
        if self.asynchronous:
            return "distributed" if asynchronous or depth <= 64 else "block"
        return "registers" if depth * width <= self.registers else "block"

    def pieces(self, depth: int, width: int, *, writable: bool = True, asynchronous: bool = False) -> tuple[Piece, ...]:
        """The pieces of such a memory, the largest first: one, or two where that takes fewer block RAMs. What can be
        written is cut between bits only, since one write reaches one piece then."""
        whole = Piece(depth, width, self.place(depth, width, writable=writable, asynchronous=asynchronous))
        if whole.place != "block" or not self.forms:
            return (whole,)
        beside, found = "registers" if writable else "logic", [(whole,)]
        for words, bits in self.forms:
            if 0 < (rest := width % bits) < width and depth * rest <= self.beside:
                found.append((Piece(depth, width - rest, "block"), Piece(depth, rest, beside)))
            if 0 < (rest := depth % words) < depth and rest * width <= self.beside and not writable:
                found.append((Piece(depth - rest, width, "block"), Piece(rest, width, beside)))
        return min(found, key=lambda cut: (self._blocks(cut[0]), sum(each.words * each.bits for each in cut[1:])))

    def _blocks(self, piece: Piece) -> int:
        return min(-(-piece.words // words) * -(-piece.bits // bits) for words, bits in self.forms)

    def declared(self, attribute: str) -> str:
        """Attributes of a memory that is written by hand, whose parameter STYLE says where it lies."""
        return f"(* {attribute} = STYLE{f', {UNCHECKED}' * self.unchecked} *)"

    def word(self, place: str) -> str:
        """The value of an attribute."""
        return self.words.get(place, place)

    def place_of(self, word: str) -> str:
        """The place that a value of an attribute means."""
        return next((place for place, said in self.words.items() if said == word), word)


PROFILES = {profile.name: profile for profile in (
    Profile("generic"),
    Profile("xilinx", silent=frozenset({"logic"})),  # Vivado knows no rom_style "logic", Yosys no ROM in LUT RAM.
    Profile("ecp5"),
    Profile("ice40", asynchronous=False, registers=200, fixed=32, forms=((256, 16), (512, 8), (1024, 4), (2048, 2)),
            beside=288, unchecked=True),
    Profile("gowin"),
    Profile("intel", ram="ramstyle", rom="romstyle", words={"block": "M10K", "distributed": "MLAB"}),
)}
"""By the values of ``hardware.family``. "generic" suits every tool that knows memories of look-up tables."""

GENERIC = PROFILES["generic"]


def profile_of(platform: object) -> Profile:
    """The profile of a target of elaboration; the generic one in a simulation."""
    found = getattr(platform, "profile", GENERIC)
    return found if isinstance(found, Profile) else GENERIC
