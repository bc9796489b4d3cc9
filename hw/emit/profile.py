"""Profiles of families of FPGAs: where the memories of a design lie, and how the family's tools are told.

The generator, the prediction of resources and synthesis read this one table; what a memory or a product then takes of
a device is in `circulant.hw.plan.families`, whose entries name their profile.
"""
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["GENERIC", "PROFILES", "Profile", "profile_of"]


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
    """

    name: str
    asynchronous: bool = True
    registers: int = 0
    fixed: int = 16
    ram: str = "ram_style"
    rom: str = "rom_style"
    words: Mapping[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()

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
    Profile("ice40", asynchronous=False, registers=288, fixed=32),
    Profile("gowin"),
    Profile("intel", ram="ramstyle", rom="romstyle", words={"block": "M10K", "distributed": "MLAB"}),
)}
"""By the values of ``hardware.family``. "generic" suits every tool that knows memories of look-up tables."""

GENERIC = PROFILES["generic"]


def profile_of(platform: object) -> Profile:
    """The profile of a target of elaboration; the generic one in a simulation."""
    found = getattr(platform, "profile", GENERIC)
    return found if isinstance(found, Profile) else GENERIC
