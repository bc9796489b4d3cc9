"""Memory macros: a model of area, delay and energy from published ones, or a table of the user's own.

The model, for 130 nm, is that of the macros that OpenRAM publishes for SkyWater's process
(``sky130_sram_1kbyte_1rw1r_32x256_8`` with 479.78 × 397.5 µm, ``…_2kbyte_1rw1r_32x512_8`` with 683.1 × 416.54 µm, from
their LEF files): area is that of the bits and of a periphery. Other processes scale it, as `SCALING` says.
"""
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from circulant.sim.refusal import Refusal

__all__ = ["Macro", "Model", "model", "read_table"]

BIT_AREA = (284_538 - 190_713) / (16_384 - 8_192)
"""µm² that a further bit takes: the difference of both published macros over that of their bits."""

PERIPHERY = 190_713 - 8_192 * BIT_AREA
"""µm² that a macro takes without its bits."""

FIXED, PER_BIT = 2_000.0, 150.0
"""Energy of an access, in fJ at 1.8 V and 130 nm: of the periphery, and for each bit of the word, whose bit lines swing
a few hundred mV over some hundred rows. No published figure of these macros is measured; the numbers are bit-line
capacitance (about 250 fF) times supply times swing, and stand for a factor of two either way."""

LEAKAGE = 0.01
"""nW of a bit at 130 nm."""

SCALING = {"sky130hd": (1.0, 1.0), "sg13g2": (1.0, (1.2 / 1.8) ** 2), "asap7": (0.0035, 0.01)}
"""For each library the factors of area and energy: sg13g2 has the same dimensions and another supply; for ASAP7 the area
follows the published bit cells (2.7 µm² with sky130's rules for dual ports, 0.027 µm² of 7 nm class, periphery likewise,
less dense by 3), energy the product of capacitance (1/15) and the square of the supply (0.7 V to 1.8 V)."""


@dataclass(frozen=True)
class Macro:
    """A memory macro.

    Parameters:
        words, width: its shape.
        area: in µm².
        access: energy of an access, in fJ.
        leakage: in nW.
        source: of these figures.
    """

    name: str
    words: int
    width: int
    area: float
    access: float
    leakage: float = 0.0
    source: str = ""

    def cycle(self, ports: int, mhz: float) -> float:
        """Energy of a cycle in which each port is used, in fJ: the most that it can be."""
        return ports * self.access + self.leakage * 1e-3 / mhz


@dataclass(frozen=True)
class Model:
    """Chooses what a memory becomes, and knows the macros that it chose.

    Parameters:
        least: bits from which a memory that is written becomes a macro.
        table: the user's macros; empty for those of the model.
        factors: of area and energy.
    """

    least: int
    table: tuple[Macro, ...]
    factors: tuple[float, float]
    chosen: dict[str, Macro]

    def __call__(self, words: int, width: int) -> str:
        """The name of the macro for a memory; an empty string for flip-flops."""
        for macro in sorted(self.table, key=lambda each: each.area):
            if macro.words >= words and macro.width == width:
                self.chosen[macro.name] = macro
                return macro.name
        if self.table or words * width < self.least:
            return ""
        area, energy = self.factors
        name = f"ram_{words}x{width}"
        self.chosen[name] = Macro(name, words, width, (PERIPHERY + words * width * BIT_AREA) * area,
                                  (FIXED + PER_BIT * width) * energy, LEAKAGE * words * width * energy,
                                  "model of OpenRAM's sky130 macros")
        return name


def model(library: str, least: int, table: Path | None) -> Model:
    """The macros for a library: those of a table, or of the model from ``least`` bits on."""
    return Model(least, () if table is None else read_table(table), SCALING.get(library, (1.0, 1.0)), {})


def read_table(file: Path) -> tuple[Macro, ...]:
    """Macros that a TOML file names: ``[NAME]`` with words, width, area (µm²), access (fJ) and leakage (nW).

    Raises:
        Refusal: when the file is missing, or an entry lacks a figure or has one that is not positive.
    """
    try:
        entries = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Refusal(f"A table of macros must be a TOML file, but {file} is none ({error}); name another one") from None
    required: dict[str, Callable[[object], bool]] = dict.fromkeys(
        ("words", "width", "area", "access"), lambda value: isinstance(value, int | float) and value > 0)
    found = []
    for name, entry in entries.items():
        wrong = [key for key, right in required.items() if not isinstance(entry, dict) or not right(entry.get(key))]
        if wrong:
            raise Refusal(f"A macro of {file} must have positive numbers for words, width, area and access, but "
                          f"{name!r} has none for {wrong[0]}; add it")
        found.append(Macro(name, int(entry["words"]), int(entry["width"]), float(entry["area"]), float(entry["access"]),
                           float(entry.get("leakage", 0.0)), str(file)))
    return tuple(found)
