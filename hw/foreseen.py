"""A design foreseen from its plan alone: products, memories and what its logic follows from, in milliseconds.

To elaborate a design takes seconds. Products and memories are exact here (`circulant.hw.resources`). Bits of registers
are a sum over quantities of the plan, with factors that were fitted to the counts of generated designs (``fit`` of
``benchmarks/estimate.py``, commit ``0d9408f7``); `circulant.hw.plan.families` makes look-up tables and flip-flops of
them and of the quantities. The errors of both together against Yosys are in docs/measured/estimate.json.
"""
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from circulant.hw.array.parts import Parts
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES
from circulant.hw.resources import counted
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.codes import Code
from circulant.sim.arith.multiplier import columns_left_out

__all__ = ["REGISTERS", "foreseen", "logic", "quantities"]

REGISTERS: Mapping[str, float] = {
    "layers": 110.469, "operands": 1.658, "block": 0.578, "addresses": 1.759, "segments": 0.758, "logic": 1.222,
    "distributed": 0.147, "values": 3.904, "staged operands": 3.401, "staged butterflies": 2.871,
    "staged rotations": 0.426, "ports": 11.44}
"""Bits of registers that a unit of a quantity stands for; see `quantities`."""


def foreseen(made: Parts, layers: int, *, levels: int = LEVELS, profile: str = "generic") -> Inventory:
    """The inventory of a design, as ``generate`` would count it.

    Parameters:
        made: of all layers, see `circulant.hw.resources.parts`.
        layers: their number.
        levels: of logic between two registers.
        profile: what ``generate`` calls ``family``.
    """
    found = counted(made, PROFILES[profile])
    found.logic = logic(quantities(made, layers, levels=levels))
    return found


def logic(known: Mapping[str, float]) -> Counter[str]:
    """The quantities, and the bits of ``registers`` that follow from them: of both
    `circulant.hw.plan.families.Family.demand` makes look-up tables and flip-flops."""
    registers = sum(factor * known.get(name, 0) for name, factor in REGISTERS.items())
    return Counter({name: round(value) for name, value in (dict(known) | {"registers": registers}).items()})


def quantities(made: Parts, layers: int, *, levels: int = LEVELS) -> dict[str, float]:
    """Quantities that the bits of logic follow from.

    ``operands``, bits of the operands of products; ``block``, ``distributed``, ``logic``, bits that memories of each
    place give in a cycle; ``segments``, words of small fixed tables; ``addresses``, bits of the memories' addresses;
    ``values``, bits of spectra that transforms take in a cycle; ``butterflies``, these times the stages of the
    transform; ``rotations``, twiddle products, bits by bits; ``memories``; ``layers``; ``ports``, those of layers at a
    shared array, and ``chosen``, bits of the spectra that it chooses from; ``corrected`` and ``checked``, bits that
    decoders of protected memories give in a cycle, ``rewritten``, those that are also written back; ``partial
    products`` of truncated multipliers, and bits of ``logarithms`` times the levels of their shifts. What is *staged*
    has a register behind each step of arithmetic, or behind fewer where more levels are allowed.
    """
    steps = max(1, levels // 3)
    found: defaultdict[str, float] = defaultdict(float, layers=layers)
    found["memories"] = sum(memory.copies for memory in made.memories)
    for count, a, b in (*made.products, *made.pairs):
        found["operands"] += count * (a + b)
    for count, a, b, multiplier in made.approximate:
        found["operands"] += count * (a + b)
        if columns := columns_left_out(multiplier):
            found["partial products"] += count * (a * b - columns * (columns + 1) / 2)
        else:
            found["logarithms"] += count * (a + b) * float(np.log2(a + b))
    for memory in made.memories:
        place = memory._replace(loadable=False).place(PROFILES["generic"])
        found[place] += memory.copies * memory.width
        found["addresses"] += memory.copies * max(1, (memory.depth - 1).bit_length())
        found["segments"] += memory.copies * memory.depth * (place == "logic" and not memory.writable)
    for copies, width, protection in made.decoders:
        found["corrected" if Code(width, protection).corrects else "checked"] += copies * width
        found["rewritten"] += copies * width * (protection == "scrub")
    for layers_of, width in made.shared:
        found["ports"] += layers_of
        found["chosen"] += (layers_of - 1) * width
    for copies, k, width in made.transforms:
        stages = float(np.log2(k))
        found["values"] += copies * k * width
        found["butterflies"] += copies * k * stages * width
        found["rotations"] += copies * max(0.0, k * stages / 2 - 1.5 * k + 2) * width ** 2
    for name in ("operands", "butterflies", "rotations"):
        found[f"staged {name}"] = found[name] / steps
    return found
