"""Families of FPGAs: the forms of their multipliers, block RAMs and look-up tables, and what logic takes of them.

One table, which the prediction and the fit of a device read. What logic takes is an estimate: a sum over the bits that
`circulant.hw.foreseen` foresees from a plan, with factors that were fitted to what Yosys made of designs;
``python -m benchmarks estimate`` shows its error on others.
"""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES, Profile
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.quantize.bitwidth_cost import CYCLONE_V, DSPS, GOWIN, Dsp

if TYPE_CHECKING:
    from circulant.hw.array.parts import Memory  # It needs Amaranth, and a report does without.

__all__ = ["CLOCK_ERROR", "FAMILIES", "Demand", "Estimate", "Family", "product_levels"]

CLOCK_ERROR = 0.3
"""The share by which a family's clock of docs/measured/estimate.json is off at the most."""


@dataclass(frozen=True)
class Estimate:
    """A count of which the truth is within ``error``, a share of it."""

    count: int
    error: float

    @property
    def least(self) -> float:
        return self.count * (1 - self.error)

    @property
    def most(self) -> float:
        return self.count * (1 + self.error)


@dataclass(frozen=True)
class Demand:
    """Cells of a family that a design takes; block RAMs in the unit of the data sheets.

    ``unmapped`` counts the memories for which the family has no place.
    """

    dsps: int
    block_rams: float
    luts: Estimate | None = None
    flip_flops: Estimate | None = None
    unmapped: int = 0


def product_levels(multiplier: str) -> int:
    """Levels of logic of a product of 8 or 9 bits with its carries, which has no register inside: Yosys counted 5 of a
    truncated one for UltraScale and ECP5, and 11 and 10 of one by logarithms."""
    return {EXACT: 0, "truncated": 6, "mitchell": 11}[multiplier.partition(":")[0]]


@dataclass(frozen=True)
class Family:
    """The cells of a family, and factors of the estimates.

    Parameters:
        dsp: its multipliers.
        profile: where its memories lie.
        blocks: (words, width, size): the forms that a block RAM takes, and its size in the unit in which data sheets
            count block RAMs.
        tables: the same of a memory of look-up tables, the size in look-up tables; none where a family has no memory
            that is read without a clock edge.
        luts, flip_flops: factors of the estimates by `quantities`.
        errors: of both estimates, shares that hold all measured designs.
        decoders: look-up tables for each bit that a decoder of SECDED gives, and one of parity; and for each that is
            also written back.
        approximate: look-up tables for each partial product of a truncated multiplier, and for each of ``logarithms``.
        cycle: (ns, ns): the time that a path takes besides its levels of logic, and that of each level with its wires.
    """

    dsp: Dsp
    profile: Profile
    blocks: tuple[tuple[int, int, float], ...]
    tables: tuple[tuple[int, int, float], ...] = ()
    luts: Mapping[str, float] = field(default_factory=dict)
    flip_flops: Mapping[str, float] = field(default_factory=dict)
    errors: tuple[float, float] = (0.0, 0.0)
    decoders: tuple[float, float, float] = (2.69, 0.22, 1.33)
    approximate: tuple[float, float] = (2.0, 1.55)
    cycle: tuple[float, float] = (1.2, 0.6)

    def levels(self, mhz: float) -> int:
        """Levels of logic between two registers for which a clock leaves time."""
        beside, each = self.cycle
        return max(0, int((1000 / mhz - beside) / each + 1e-9))

    def mhz(self, levels: int, multiplier: str = EXACT) -> float:
        """The clock that so many levels of logic between two registers leave, or the products of a multiplier where
        they have more; an estimate."""
        beside, each = self.cycle
        return 1000 / (beside + each * max(levels, product_levels(multiplier)))

    def dsps(self, a: int, b: int) -> int:
        """DSP blocks of a product of a and b signed bits."""
        return self.dsp.blocks(a, b)

    def block_rams(self, memory: "Memory") -> float:
        """Block RAMs of memories, the form chosen that takes the least."""
        blocks = [(words, bits) for words, bits, place in memory.pieces(self.profile) if place == "block" and words > 1]
        return memory.copies * sum(_least(self.blocks, words, bits) for words, bits in blocks)

    def demand(self, found: Inventory) -> Demand:
        """The demand of a design; logic only where it was foreseen."""
        dsps = sum(count * self.dsps(a, b) for each in (found.products, found.pairs) for (a, b), count in each.items())
        rams = sum(count * _least(self.blocks, words, width)
                   for (words, width, style), count in found.memories.items() if style == "block" and words > 1)
        distributed = {key: count for key, count in found.memories.items() if key[2] == "distributed"}
        unmapped = 0 if self.tables else sum(distributed.values())
        if "layers" not in found.logic:
            return Demand(dsps, rams, unmapped=unmapped)
        bits = self.quantities(found)
        held = sum(count * _least(self.tables, words, width) for (words, width, _), count in distributed.items()
                   if self.tables)
        luts, flip_flops = (max(0, round(sum(factor * bits.get(kind, 0) for kind, factor in factors.items())))
                            for factors in (self.luts, self.flip_flops))
        stored = sum(count * words * width for (words, width, style), count in found.memories.items()
                     if style == "registers")
        luts += round(sum(each * bits.get(name, 0) for name, each in zip(
            ("corrected", "checked", "rewritten", *_APPROXIMATE), (*self.decoders, *self.approximate), strict=True)))
        error = max(self.errors[0], _APPROXIMATE_ERROR * any(name in bits for name in _APPROXIMATE))
        return Demand(dsps, rams, Estimate(luts + round(held) + stored, error),
                      Estimate(flip_flops + stored, self.errors[1]), unmapped)

    def quantities(self, found: Inventory) -> dict[str, float]:
        """Quantities that the estimates multiply: those of the logic, see `circulant.hw.foreseen.quantities`, and
        ``tables``, bits of the words of fixed memories without a place in block RAM."""
        return {**found.logic,
                "tables": sum(count * width for (_, width, style), count in found.memories.items() if style == "logic")}


def _least(forms: Sequence[tuple[int, int, float]], words: int, width: int) -> float:
    return min(-(-words // deep) * -(-width // wide) * size for deep, wide, size in forms)


def _forms(bits: int, widths: Sequence[int], size: float) -> tuple[tuple[int, int, float], ...]:
    """A block of ``bits`` data bits; every ninth bit, if any, is one of parity."""
    return tuple((bits // (width - width // 9), width, size) for width in widths)


_XILINX = _forms(1 << 14, (1, 2, 4, 9, 18, 36), 0.5) + _forms(1 << 15, (1, 2, 4, 9, 18, 36, 72), 1)

_EIGHTEEN = _forms(1 << 14, (1, 2, 4, 9, 18, 36), 1)

_LUT6 = {"registers": 0.362, "tables": -2.627, "rotations": 0.336, "distributed": 0.836}
_FF6 = {"registers": 0.776, "tables": -2.992}
_LUT4 = {"butterflies": 2.137, "rotations": 0.691, "distributed": 1.41, "block": 3.126, "operands": 2.283}
_FF4 = {"registers": 0.955, "tables": -1.962, "block": 2.527, "operands": -1.213}
_LUT_ICE = {"butterflies": 3.761, "block": 2.291, "operands": 2.787}
_FF_ICE = {"registers": 0.763, "distributed": 0.516, "operands": -0.931}
"""Registers stand for what lies between them, too. What is wide and read from a fixed memory of a few words is partly
constant, and so is what follows it. Terms were chosen by the error of fitted designs that are left out one by one."""

_DECODERS_4 = (4.2, 0.36, 4.67)
"""As Yosys maps decoders of 32 to 128 bits alone, on average; with six inputs, and what writes back, in digits-gru."""

_APPROXIMATE = ("partial products", "logarithms")

_APPROXIMATE_ERROR = 0.25
"""As Yosys maps approximate products of 9 × 8 to 17 × 13 bits alone, some of them."""

_APPROXIMATE_4, _APPROXIMATE_ICE = (4.8, 3.85), (2.5, 2.3)

FAMILIES = {
    "xcu": Family(DSPS[27, 18], PROFILES["xilinx"], _XILINX, tables=((32, 14, 8), (64, 7, 8)), luts=_LUT6,
                  flip_flops=_FF6, errors=(0.16, 0.26)),
    "xc7": Family(DSPS[25, 18], PROFILES["xilinx"], _XILINX, tables=((32, 6, 4), (64, 3, 4)), luts=_LUT6,
                  flip_flops=_FF6, errors=(0.22, 0.32), cycle=(1.4, 0.8)),
    "ecp5": Family(DSPS[18, 18], PROFILES["ecp5"], _EIGHTEEN, tables=((16, 4, 6),), luts=_LUT4, flip_flops=_FF4,
                   errors=(0.23, 0.2), decoders=_DECODERS_4, approximate=_APPROXIMATE_4, cycle=(1.5, 1.9)),
    "gowin": Family(GOWIN, PROFILES["gowin"], _EIGHTEEN, tables=((16, 4, 8),), luts=_LUT4, flip_flops=_FF4,
                    errors=(0.5, 0.5), decoders=_DECODERS_4, approximate=_APPROXIMATE_4, cycle=(1.5, 1.4)),
    "ice40": Family(DSPS[16, 16], PROFILES["ice40"],
                    tuple((*form, 1) for form in PROFILES["ice40"].forms), luts=_LUT_ICE,
                    flip_flops=_FF_ICE, errors=(0.1, 0.13), decoders=_DECODERS_4, approximate=_APPROXIMATE_ICE,
                    cycle=(2.0, 3.0)),
    "cyclonev": Family(CYCLONE_V, PROFILES["intel"],
                       ((256, 40, 1), (512, 20, 1), (1024, 10, 1), (2048, 5, 1), (4096, 2, 1), (8192, 1, 1)),
                       tables=((32, 20, 20),), luts=_LUT6, flip_flops=_FF6, errors=(0.5, 0.5), cycle=(1.6, 1.2)),
}
"""By the names that Yosys gives them. UltraScale, ECP5 and iCE40 were measured; the others have the factors of the one
that is most like them, and a larger error. The cycle of the ECP5 is measured, at its slowest speed grade (107.6 MHz
with four levels, routed), and that of the GW2A follows from one design with six (128 MHz), with a margin of a fifth;
the others are assumed. An ECP5 slice holds two look-up tables: a memory of 16 × 4 bits takes three slices, a cell of a
carry chain one. A look-up table of Cyclone V is half an ALM."""
