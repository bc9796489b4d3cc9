"""The registers of a design behind a bus, as the host sees them: one table, which the circuit, its documentation, the C
header, the Python map and the SystemRDL file follow.

Words have 32 bits; offsets count bytes. The configuration port of a reloadable design is a stretch of the same
addresses, see `circulant.sim.configuration`.
"""
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from circulant.sim.configuration import WORD, Configuration, Window
from circulant.sim.document import Document

__all__ = ["AXI4_LITE", "BUSES", "GUARDED", "IDENTIFICATION", "PATIENCE", "REGISTERS", "TABLE_VERSION", "BusField",
           "BusRegister", "RegisterMap", "register"]

AXI4_LITE = "axi4-lite"
BUSES = ("none", AXI4_LITE)
"""Values of ``hardware.bus``."""

IDENTIFICATION = int.from_bytes(b"CIRC", "big")
TABLE_VERSION = 1
"""Goes up when a register moves or means something else."""

PATIENCE = 1 << 24
"""Cycles in which a core of protected memories must offer an output once all of a sequence is in it."""

LEAST = 1 << 12
"""Bytes of the registers' own stretch: a page."""


@dataclass(frozen=True)
class BusField:
    """Bits of a register.

    Parameters:
        access: "r", read only; "w1c", a written 1 clears it; "w1s", a written 1 starts something, and it reads as 0.
    """

    name: str
    low: int
    bits: int
    access: str
    meaning: str

    @property
    def mask(self) -> int:
        return ((1 << self.bits) - 1) << self.low


@dataclass(frozen=True)
class BusRegister:
    """A register of 32 bits at a byte offset."""

    name: str
    offset: int
    meaning: str
    fields: tuple[BusField, ...]

    @property
    def writable(self) -> bool:
        return any(field.access != "r" for field in self.fields)


def _whole(name: str, offset: int, meaning: str) -> BusRegister:
    return BusRegister(name, offset, meaning, (BusField("value", 0, WORD, "r", meaning),))


def _flag(name: str, low: int, access: str, meaning: str) -> BusField:
    return BusField(name, low, 1, access, meaning)


REGISTERS = (
    _whole("id", 0x00, f"identification, {IDENTIFICATION:#010x}: the letters CIRC"),
    _whole("version", 0x04, f"version of this table, {TABLE_VERSION}"),
    *(_whole(f"network_{n}", 0x08 + 4 * n, f"hash of the network, hexadecimal digits {8 * n} to {8 * n + 7}")
      for n in range(8)),
    BusRegister("status", 0x28, "what the core does", (
        _flag("busy", 0, "r", "a sequence has begun to enter, or its last output has not left"),
        _flag("waiting", 1, "r", "an output is offered, and nobody takes it"),
        _flag("in_reset", 2, "r", "a soft reset is under way"),
        _flag("configurable", 3, "r", "there is a configuration port, see the windows"))),
    BusRegister("errors", 0x2C, "what went wrong", (
        _flag("overflow", 0, "r", "a sequence was too long and has been cut; a reset clears it"),
        _flag("malformed", 1, "r", "s_axis_tlast came at a wrong beat; a reset clears it"),
        _flag("access", 2, "w1c", "an access of the bus was answered with an error"))),
    _whole("cycles_low", 0x30, "cycles of clk since its reset, the low word; reading it keeps the high one"),
    _whole("cycles_high", 0x34, "the high word of the cycles, as it was when the low one was read"),
    _whole("sequences", 0x38, "ends of outputs (m_axis_tlast) that were taken since the reset of clk"),
    BusRegister("control", 0x3C, "commands", (
        _flag("soft_reset", 0, "w1s", "resets the core for four cycles of clk; weights that were loaded stay"),)),
)
"""The registers of every design, by offset."""

GUARDED = (
    _whole("corrected", 0x40, "cycles since the reset of clk in which a wrong word of a memory was put right"),
    BusRegister("uncorrected", 0x44, "what could not be put right", (
        _flag("uncorrected", 0, "r", "a word of a memory was read with wrong bits; a reset clears it"),
        _flag("hang", 1, "r", f"whole sequences were in the core, and {PATIENCE:,} cycles long it neither offered an "
              "output nor took an input; a reset clears it"))),
)
"""Registers behind them, of a design with protected memories."""


def register(name: str) -> BusRegister:
    """The register of a name."""
    return next(each for each in REGISTERS if each.name == name)


@dataclass(frozen=True)
class RegisterMap:
    """Addresses of a design behind a bus.

    Parameters:
        base: byte offset of the configuration port; 0 where there is none.
        address_bits: of the bus.
        windows: of the port; word n of it is at ``base`` + 4 · n.
    """

    base: int = 0
    address_bits: int = LEAST.bit_length() - 1
    windows: tuple[Window, ...] = ()
    registers: tuple[BusRegister, ...] = REGISTERS

    @classmethod
    def of(cls, configuration: Configuration | None, *, guarded: bool = False) -> "RegisterMap":
        """The map of a design with a configuration port, or without one: the port lies behind the registers, at a
        multiple of its size, a power of two.

        Parameters:
            guarded: whether memories are protected.
        """
        registers = REGISTERS + (GUARDED if guarded else ())
        if configuration is None:
            return cls(registers=registers)
        end = 4 * max((window.first + window.size for window in configuration.windows), default=16)
        base = max(LEAST, 1 << (end - 1).bit_length())
        return cls(base, base.bit_length(), configuration.windows, registers)

    @property
    def guarded(self) -> bool:
        """Whether memories are protected."""
        return len(self.registers) > len(REGISTERS)

    def address(self, word: int) -> int:
        """The byte address of a word of the configuration port."""
        return self.base + 4 * word

    def as_json(self) -> Document:
        return {"word_bits": WORD, "address_bits": self.address_bits, "configuration": self.base,
                "registers": [asdict(each) for each in self.registers]}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> "RegisterMap":
        """The map of a design by what its manifest says."""
        found = manifest.get("configuration")
        return cls.of(None if found is None else Configuration.from_json(found), guarded="protection" in manifest)
