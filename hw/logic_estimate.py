"""Look-up tables and flip-flops of recurrent and fully connected layers, from their plans alone: an estimate.

`circulant.hw.plan.families` estimates from the logic of a generated design; a candidate has none yet. Here the bits of
its units stand for it, each kind with a factor that was fitted to what Yosys made of drawn candidates
(``python -m benchmarks.drawn_logic``).
"""
from collections.abc import Sequence
from math import log2

from circulant.hw.array.lanes import row_shape
from circulant.hw.array.layer_programs import matrices
from circulant.hw.array.plans import LayerPlan, Plan
from circulant.hw.plan.families import FAMILIES
from circulant.hw.resources import counted, layer_parts
from circulant.sim.golden.layers import Layer
from circulant.sim.refusal import Refusal

__all__ = ["FACTORS", "FEATURES", "features", "logic"]

FEATURES = ("layer", "operands", "transforms", "drains", "tables", "held", "pointwise")
"""Kinds of bits: one for each layer; operands of products; adders of forward and inverse transforms; the width of what
leaves the chains; words of memories in logic; look-up tables that hold memories; elements times their widths."""

FACTORS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
"""Of look-up tables and of flip-flops, by family."""


def features(family: str, layer: Layer, plan: Plan) -> tuple[float, ...]:
    """The bits of a layer by `FEATURES`."""
    found = FAMILIES[family]
    inventory = counted(layer_parts(layer, plan), found.profile)
    bits = found.quantities(inventory)
    held = sum(count * min((-(-words // deep) * -(-width // wide) * size for deep, wide, size in found.tables),
                           default=0.0)
               for (words, width, style), count in inventory.memories.items() if style == "distributed")
    if not isinstance(plan, LayerPlan):
        return 1.0, bits["operands"], 0.0, 0.0, bits["tables"], held, 0.0
    program = plan.program(layer)  # type: ignore[arg-type]
    shape, row = program.shape, row_shape(program)
    k = matrices(layer)[0].product.block_size  # type: ignore[arg-type]
    leaving = max(matrix.product.output.width for matrix in program.matrices)
    stages = log2(k) * k if k > 1 else 0.0
    return (1.0, bits["operands"], stages * (row.data_width + shape.chains * row.sum_width),
            float(k * shape.chains * leaving), bits["tables"], held, float(plan.elements * row.data_width))


def logic(family: str, layers: Sequence[Layer], plans: Sequence[Plan]) -> tuple[float, float]:
    """Look-up tables and flip-flops of a network.

    Raises:
        Refusal: for a family to which nothing was fitted.
    """
    if family not in FACTORS:
        raise Refusal(f"Logic must be estimated for a family that was measured, {', '.join(FACTORS)}, not {family!r}; "
                      "generate the design, whose own estimate knows all families")
    sums = [sum(each) for each in zip(*(features(family, layer, plan) for layer, plan in zip(
        layers, plans, strict=True)), strict=True)]
    luts, flip_flops = (sum(factor * bits for factor, bits in zip(factors, sums, strict=True))
                        for factors in FACTORS[family])
    return luts, flip_flops
