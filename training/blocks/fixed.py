"""Fake quantization: the values of `sim.arith.fixed` and `sim.arith.activation` in torch, bit for bit, with gradients.

A rounded value passes its gradient straight through where it was not saturated (Bengio et al. 2013), and a table has
the slope of the line that its argument lies on.
"""
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.fixed import Format
from circulant.sim.refusal import Refusal

__all__ = ["activated", "integers", "quantized"]


def integers(x: Tensor, form: Format) -> Tensor:
    """The nearest integers of a format, int64, halves upwards, saturated: `Format.quantize`.

    Raises:
        Refusal: when a value is not finite.
    """
    if not torch.isfinite(x).all():
        raise Refusal("Only finite values can be quantized, but the tensor holds NaN or infinity; train again with a "
                      "lower learning rate")
    scaled = (x.detach().double() * 2.0 ** form.frac).clamp(form.lo, -form.lo)
    below = scaled.floor()
    return (below.long() + (scaled - below >= 0.5)).clamp(max=form.hi)


def quantized(x: Tensor, form: Format) -> Tensor:
    """x in a format, as real values of its own type.

    Raises:
        Refusal: as `integers`, and when the type of x does not hold every value of the format.
    """
    _check(x, form)
    values: Tensor = _Quantized.apply(x, form)
    return values


def activated(x: Tensor, table: Pwl) -> Tensor:
    """The values of a table for real arguments, which are first brought to its input format.

    Raises:
        Refusal: as `quantized`.
    """
    _check(x, table.output)
    values: Tensor = _Activated.apply(x, table)
    return values


def _check(x: Tensor, form: Format) -> None:
    digits = {torch.float64: 53, torch.float32: 24, torch.bfloat16: 8, torch.float16: 11}.get(x.dtype, 0)
    if form.width - 1 > digits or (x.dtype == torch.float16 and not -1 <= form.frac <= 14):
        raise Refusal(f"Values of {form} must be exact in the tensor's type, but {x.dtype} holds {digits} bits of "
                      "them; compute in float32 or float64, or choose fewer bits")


class _Quantized(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, form: Format) -> Tensor:
        found = integers(x, form)
        scaled = x.detach().double() * 2.0 ** form.frac
        ctx.save_for_backward((scaled >= form.lo - 0.5) & (scaled < form.hi + 0.5))
        return (found.double() * form.step).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        inside, = ctx.saved_tensors
        return gradient * inside, None


class _Activated(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, table: Pwl) -> Tensor:
        argument, half = integers(x, table.input), 1 << table.input_bits - 1
        clipped = argument.clamp(-half, half - 1)
        start, slope, base = (torch.from_numpy(each).to(x.device) for each in (table.start, table.slope, table.base))
        segment = torch.bucketize(clipped, start, right=True) - 1
        u = clipped - start[segment] if table.method == "lut" else clipped
        sums = slope[segment] * u + (base[segment] << table.lift)
        rounded = (sums + (1 << table.shift - 1)) >> table.shift if table.shift > 0 else sums << -table.shift
        values = rounded.clamp(table.output.lo, table.output.hi)
        inside = (clipped == argument) & (values == rounded)
        ctx.save_for_backward((slope[segment] * inside).to(x.dtype) * table.slope_format.step)
        return (values.double() * table.output.step).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        slope, = ctx.saved_tensors
        return gradient * slope, None
