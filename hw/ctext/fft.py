"""The transforms of `sim.arith.fft` in C, one function for each size, and proven bounds of what passes through them.

A transform of n calls itself for n/2; up to 8 it is one straight line. Its values are int32_t where the bounds allow,
and so are the products with twiddle factors.
"""
import math
from dataclasses import dataclass

from circulant.hw.ctext.unit import Unit, beside, table
from circulant.hw.ctext.value import register
from circulant.sim.arith import fft
from circulant.sim.refusal import Refusal

__all__ = ["Transform", "forward", "inverse"]

render = beside(__file__)

TWIDDLE_BITS = range(1, 31)


@dataclass(frozen=True)
class Transform:
    """A transform of k values.

    Parameters:
        direction: "forward" or "inverse".
        peak: bound of the magnitude of every result.
        values, products: 32 or 64: bits of the values and of their products with twiddle factors.
    """

    direction: str
    k: int
    twiddle_bits: int
    peak: int
    values: int
    products: int

    @property
    def type(self) -> str:
        return f"int{self.values}_t"

    def function(self, unit: Unit) -> str:
        """The name of its C function."""
        return _function(unit, self.direction, self.k, bits=self.twiddle_bits, values=self.values,
                         products=self.products)


def _gain(n: int, bits: int) -> int:
    """The greatest modulus of a twiddle factor, at least that of 1."""
    return max([1 << bits, *(math.isqrt(c * c + s * s) + 1
                             for c, s in (fft.twiddle(m, n, bits) for m in range(1, n // 4)))])


def _turned(modulus: int, n: int, bits: int) -> tuple[int, int]:
    """Bounds of a complex value times a twiddle factor: once it is rounded, and on the way there."""
    product = modulus * _gain(n, bits)
    return -(-product >> bits) + 1, product + (1 << bits - 1)


def forward(k: int, twiddle_bits: int, peak: int) -> Transform:
    """`sim.arith.fft.forward` of values up to ``peak``. The bound is that of the modulus of a complex bin."""
    _check(twiddle_bits)
    modulus, products, n = peak, 0, 1
    while n < k:
        n *= 2
        turned, product = _turned(modulus, n, twiddle_bits) if n >= 8 else (modulus, 0)
        modulus, products = modulus + turned, max(products, product)
    values = register(-modulus, modulus)
    return Transform("forward", k, twiddle_bits=twiddle_bits, peak=modulus, values=values,
                     products=max(values, register(-products, products)))


def inverse(k: int, twiddle_bits: int, peak: int) -> Transform:
    """`sim.arith.fft.inverse` of real and imaginary parts up to ``peak``."""
    _check(twiddle_bits)
    real, part, modulus = peak, peak, math.isqrt(2 * peak * peak) + 1
    products, most, n = 0, peak, k
    while n > 2:
        product = 0
        real, turned = 2 * max(real, part), 2 * modulus
        if n >= 8:
            turned, product = _turned(turned, n, twiddle_bits)
        part = modulus = max(2 * modulus, turned)
        products, most, n = max(products, product), max(most, real, modulus if n > 4 else 0), n // 2
    most = max(most, 2 * real if n == 2 else real)
    values = register(-most, most)
    return Transform("inverse", k, twiddle_bits=twiddle_bits, peak=most, values=values,
                     products=max(values, register(-products, products)))


def _check(twiddle_bits: int) -> None:
    if twiddle_bits not in TWIDDLE_BITS:
        raise Refusal(f"The twiddle bits of the C target must be from {TWIDDLE_BITS[0]} to {TWIDDLE_BITS[-1]}, not "
                      f"{twiddle_bits!r}; quantize again")


def _function(unit: Unit, direction: str, n: int, bits: int, values: int, products: int) -> str:
    name = f"{direction}{n}_i{values}"
    if n >= 8:
        name = f"{direction}{n}_t{bits}_i{values}" + (f"x{products}" if products != values else "")

    def text() -> str:
        half = _function(unit, direction, n // 2, bits=bits, values=values, products=products) if n > 8 else ""
        turns = [fft.twiddle(m, n, bits) for m in range(1, n // 4)]
        return render("fft.c.j2", direction=direction, name=name, n=n, half=half, type=f"int{values}_t",
                      product=f"int{products}_t", half_up=f"half_up{products}", bits=bits, turns=turns,
                      turns_table=table((f"{{{c}, {s}}}" for c, s in turns), 8))

    return unit.function(name, text)
