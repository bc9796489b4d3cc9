"""Quantizers that a model brings: they say in which formats its weights and values are, instead of calibration."""
from collections.abc import Mapping
from typing import Any

from torch import nn

from circulant.sim.arith.fixed import Format
from circulant.sim.refusal import Refusal

__all__ = ["Quantizer", "grids_of", "set_grids"]

WIDEST = 24
"""Bits of a value."""


class Quantizer(nn.Hardtanh):
    """Values on the grid of a format, from low to high, each a multiple of 2^-frac.

    In floating point it only clips. `circulant.training.export` makes of it an activation that rounds half-up to the
    format, and keeps all bits of what comes to it.

    Parameters:
        low, high: integers.
        frac: fraction bits.

    Raises:
        Refusal: when they are no range, or take more than 24 bits.
    """

    def __init__(self, low: int, high: int, frac: int) -> None:
        width = max(4, 1 + max((-low - 1).bit_length() if low < 0 else 0, high.bit_length() if high > 0 else 0))
        if low >= high or width > WIDEST:
            raise Refusal(f"A quantizer must have a range of at most {WIDEST} bits, not from {low} to {high}; choose "
                          "fewer bits")
        self.format = Format(width, frac)
        super().__init__(low * self.format.step, high * self.format.step)


def set_grids(module: Any, grids: Mapping[str, Format]) -> None:
    """Note on the grid of which format the weights of a layer lie, by their names."""
    module.weight_grids = dict(grids)


def grids_of(module: nn.Module | None) -> dict[str, Format]:
    """The formats that `set_grids` noted; none of most layers."""
    found: dict[str, Format] = getattr(module, "weight_grids", {})
    return found
