"""A design foreseen from its plan alone: products, memories and the bits of its logic, in milliseconds.

What `circulant.hw.design.generate` counts in the RTLIL takes seconds to elaborate. Products and memories are exact here
(`circulant.hw.resources`). Bits of logic are sums over quantities of the plan, with factors that were fitted to the
counts of 37 generated designs (``python -m benchmarks estimate --fit``); `circulant.hw.plan.families` makes look-up
tables and flip-flops of them. On seventeen other designs of UltraScale and ECP5 the errors of both together are in
docs/measured/estimate.json.
"""
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from circulant.hw.array.parts import Parts
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES
from circulant.hw.resources import counted
from circulant.hw.stream.pipeline import LEVELS

__all__ = ["FACTORS", "foreseen", "quantities"]

FACTORS: Mapping[str, Mapping[str, float]] = {
    "registers": {"operands": 1.417, "staged operands": 3.159, "block": 1.124, "distributed": 0.248, "logic": 3.18,
                  "segments": 0.243, "addresses": 1.422, "values": 3.249, "staged butterflies": 2.487,
                  "staged rotations": 0.306, "layers": 120.977},
    "sums": {"distributed": 0.075, "logic": 4.705, "addresses": 4.667, "values": 1.035, "butterflies": 3.3,
             "staged butterflies": 0.724, "layers": 21.929},
    "increments": {"logic": 0.422, "addresses": 1.187, "butterflies": 1.372, "rotations": 0.238, "layers": 76.076},
    "choices": {"block": 1.911, "distributed": 0.928, "logic": 1.63, "addresses": 1.181, "values": 3.819,
                "layers": 50.217},
    "thresholds": {"block": 1.434, "addresses": 1.947, "values": 0.876, "rotations": 0.051,
                   "staged rotations": 0.083},
}
"""Bits of each kind of logic that a unit of a quantity stands for; see `quantities`."""


def foreseen(made: Parts, layers: int, *, levels: int = LEVELS, profile: str = "generic") -> Inventory:
    """The inventory of a design, as ``generate`` would count it.

    Parameters:
        made: of all layers, see `circulant.hw.resources.parts`.
        layers: their number.
        levels: of logic between two registers.
        profile: what ``generate`` calls ``family``.
    """
    found = counted(made, PROFILES[profile])
    known = quantities(made, layers, levels=levels)
    found.logic = Counter({kind: round(sum(factor * known[name] for name, factor in factors.items()))
                           for kind, factors in FACTORS.items()})
    return found


def quantities(made: Parts, layers: int, *, levels: int = LEVELS) -> dict[str, float]:
    """Quantities that the bits of logic follow from.

    ``operands``, bits of the operands of products; ``block``, ``distributed``, ``logic``, bits that memories of each
    place give in a cycle; ``segments``, words of small fixed tables; ``addresses``, bits of the memories' addresses;
    ``values``, bits of spectra that transforms take in a cycle; ``butterflies``, these times the stages of the
    transform; ``rotations``, twiddle products, bits by bits; ``layers``. What is *staged* has a register behind each
    step of arithmetic, or behind fewer where more levels are allowed.
    """
    steps = max(1, levels // 3)
    found: defaultdict[str, float] = defaultdict(float, layers=layers)
    for count, a, b in (*made.products, *made.pairs):
        found["operands"] += count * (a + b)
    for memory in made.memories:
        place = memory.place(PROFILES["generic"])
        found[place] += memory.copies * memory.width
        found["addresses"] += memory.copies * max(1, (memory.depth - 1).bit_length())
        found["segments"] += memory.copies * memory.depth * (place == "logic" and not memory.writable)
    for copies, k, width in made.transforms:
        stages = float(np.log2(k))
        found["values"] += copies * k * width
        found["butterflies"] += copies * k * stages * width
        found["rotations"] += copies * max(0.0, k * stages / 2 - 1.5 * k + 2) * width ** 2
    for name in ("operands", "butterflies", "rotations"):
        found[f"staged {name}"] = found[name] / steps
    return found
