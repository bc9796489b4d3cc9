"""Memory macros: a model of area and energy from published ones, or a table of the user's own.

The model is that of the macros that OpenRAM publishes for SkyWater's process (VLSIDA/sky130_sram_macros on GitHub):
``sky130_sram_1kbyte_1rw1r_32x256_8`` and ``sky130_sram_2kbyte_1rw1r_32x512_8``, their sizes from the LEF files,
energy and leakage of the first from its liberty file (typical, 1.8 V, 25 °C).
"""
import math
from dataclasses import dataclass
from pathlib import Path

from circulant.sim.files import files, toml
from circulant.sim.refusal import Refusal

__all__ = ["LEAST", "Macro", "Model", "model", "read_table"]

LEAST = 16_384
"""Bits from which a memory becomes a macro where nobody says otherwise: below, flip-flops behind clock gates are no
larger than the published macros, and take less energy."""

LEAST_ROM = 131_072
"""The same of a memory with fixed contents. As gates it is smaller at any size (1.3 µm² per bit in sky130hd, where the
model of a macro takes 11), but ABC takes too long for larger ones."""

SMALL, LARGE = 479.78 * 397.5, 683.1 * 416.54
"""Area of both, in µm²: 8,192 and 16,384 bits."""

BIT_AREA = (LARGE - SMALL) / 8_192
"""µm² that a further bit takes."""

PERIPHERY = SMALL - 8_192 * BIT_AREA
"""µm² that a macro takes without its bits."""

IDLE, ACCESS = 2_083.0, 5_013.0
"""Energy of a port in a cycle, in fJ, with words of 32 bits: not selected, and the mean of a write and a read. What
lies between is taken to grow with the width of a word."""

LEAKAGE = 911.8 / 8_192
"""nW of a bit."""

NAND, VOLTAGE = 3.7536, 1.8
"""Area in µm² of the smallest NAND of sky130hd, and its supply: other libraries scale area as their NAND, energy as the
root of that, for capacitance is a length, times the square of their supply, leakage as energy."""


@dataclass(frozen=True)
class Macro:
    """A memory macro.

    Parameters:
        words, width: its shape.
        area: in µm².
        access, idle: energy of a port in a cycle in which it works, and in one in which it does not, in fJ.
        leakage: in nW.
        rom: its contents are fixed.
    """

    name: str
    words: int
    width: int
    area: float
    access: float
    leakage: float = 0.0
    rom: bool = False
    idle: float = 0.0

    def cycle(self, ports: int, *, rest: int = 0) -> float:
        """Energy of a cycle in fJ in which some ports work, and others rest; without leakage."""
        return ports * self.access + rest * self.idle


@dataclass(frozen=True)
class Model:
    """Chooses what a memory becomes, and knows the macros that it chose.

    Parameters:
        least, least_rom: bits from which a memory that is written becomes a macro, and one with fixed contents.
        table: the user's macros; empty for those of the model.
        factors: of area and energy.
    """

    least: int
    table: tuple[Macro, ...]
    factors: tuple[float, float]
    chosen: dict[str, Macro]
    least_rom: int = LEAST_ROM

    def __call__(self, words: int, width: int, *, rom: bool = False) -> str:
        """The name of the macro for a memory; an empty string for flip-flops, or for gates where its contents are
        fixed."""
        for macro in sorted(self.table, key=lambda each: each.area):
            if macro.words >= words and macro.width == width and macro.rom == rom:
                self.chosen[macro.name] = macro
                return macro.name
        if self.table or words * width < (self.least_rom if rom else self.least):
            return ""
        area, energy = self.factors
        name = f"{'rom' if rom else 'ram'}_{words}x{width}"
        self.chosen[name] = Macro(
            name, words, width, area=(PERIPHERY + words * width * BIT_AREA) * area,
            access=(IDLE + (ACCESS - IDLE) * width / 32) * energy, idle=IDLE * energy,
            leakage=LEAKAGE * words * width * energy, rom=rom)
        return name


def model(gate_area: float, voltage: float, least: int = LEAST, table: Path | None = None,
          least_rom: int = LEAST_ROM) -> Model:
    """The macros for a library: those of a table, or of the model from ``least`` bits on. A memory with fixed contents
    is taken to be as large as one that is written, which is the most that it can be.

    Parameters:
        gate_area: of the library's smallest NAND of two inputs, in µm²; 0 for that of sky130hd.
        voltage: of its supply, in V.
    """
    area = (gate_area or NAND) / NAND
    factors = area, math.sqrt(area) * (voltage / VOLTAGE) ** 2
    return Model(least, () if table is None else read_table(table), factors, {}, least_rom)


def read_table(file: Path) -> tuple[Macro, ...]:
    """Macros that a TOML file names: ``[NAME]`` with words, width, area (µm²), access (fJ) and leakage (nW);
    ``idle`` (fJ) is the energy of a port that rests, else as if it worked; ``rom = true`` is for fixed contents.

    Raises:
        Refusal: when the file is missing, or an entry lacks a figure or has one that is not positive.
    """
    try:
        entries = toml.parse(files.read_text(file))
    except (OSError, ValueError) as error:
        raise Refusal(f"A table of macros must be a TOML file, but {file} is none ({files.reason(error)}); name "
                      "another one") from None
    found = []
    for name, entry in entries.items():
        wrong = [key for key in ("words", "width", "area", "access") if not isinstance(entry, dict)
                 or not isinstance(entry.get(key), int | float) or entry[key] <= 0]
        if wrong:
            raise Refusal(f"A macro of {file} must have positive numbers for words, width, area and access, but "
                          f"{name!r} has none for {wrong[0]}; add it")
        found.append(Macro(name, int(entry["words"]), int(entry["width"]), area=float(entry["area"]),
                           access=float(entry["access"]), leakage=float(entry.get("leakage", 0.0)),
                           rom=entry.get("rom") is True, idle=float(entry.get("idle", entry["access"]))))
    return tuple(found)
