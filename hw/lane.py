"""A lane of the spectral engine: one block product per cycle, accumulated in the spectral domain.

A complex product with a constant (c + jd) takes three real multiplications: ``s1 = c(a+b)``, ``s2 = a(d-c)``,
``s3 = b(c+d)``, ``re = s1 - s3``, ``im = s1 + s2``. The sums of s1, s2 and s3 over a row are kept apart and combined
once per row, behind the lane.
"""
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from circulant.sim.circulant import multiplications

__all__ = ["Lane", "LaneShape", "data_operands", "weight_operands"]


def data_operands(spectrum: list[Value]) -> list[Value]:
    """The data side of each product: X[0], X[k/2], then a+b, a, b for each complex bin a + jb, shared by all lanes."""
    operands = spectrum[:2]
    for re, im in zip(spectrum[2::2], spectrum[3::2], strict=True):
        operands += [re + im, re, im]
    return operands


def weight_operands(spectrum: list[Value]) -> list[Value]:
    """The weight side of each product: W[0], W[k/2], then c, d-c, c+d for each complex bin c + jd."""
    operands = spectrum[:2]
    for c, d in zip(spectrum[2::2], spectrum[3::2], strict=True):
        operands += [c, d - c, c + d]
    return operands


@dataclass(frozen=True)
class LaneShape:
    """What all lanes of an engine have in common.

    Parameters:
        k: block size.
        data_width: of a number of the data's spectrum.
        weight_width: of a number of the weights' spectrum.
        terms: block products that an accumulator sums up at the most.
    """

    k: int
    data_width: int
    weight_width: int
    terms: int

    @property
    def products(self) -> int:
        """Real multiplications per cycle, each with a multiplier of its own."""
        return multiplications(self.k)

    @property
    def sum_width(self) -> int:
        return self.data_width + 1 + self.weight_width + 1 + (self.terms - 1).bit_length()

    @property
    def sums(self) -> data.ArrayLayout:
        """The accumulators of a row."""
        return data.ArrayLayout(signed(self.sum_width), self.products)


class Lane(wiring.Component):
    """``latency`` cycles from operands to accumulators; then ``load`` copies them into the drain, a shift register.

    Members:
        x: data operands (see `data_operands`) of ``data_width`` + 1 bits.
        w: the weights' spectrum, one cycle before the operands that meet it.
        first: this product starts a row; in the cycle of the product register, ``latency`` - 1 cycles after ``x``.
        load: copy the accumulators into the drain, else shift the drain.
        chain: sums of the lane behind.
        sums: the head of the drain.
    """

    latency = 2
    """Cycles from ``x`` to the accumulators: product register, accumulator."""

    def __init__(self, shape: LaneShape) -> None:
        self._shape = shape
        super().__init__({
            "x": In(data.ArrayLayout(signed(shape.data_width + 1), shape.products)),
            "w": In(data.ArrayLayout(signed(shape.weight_width), shape.k)),
            "first": In(1),
            "load": In(1),
            "chain": In(shape.sums),
            "sums": Out(shape.sums),
        })

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        shape = self._shape
        drain = Signal(shape.sums, reset_less=True)
        m.d.comb += self.sums.eq(drain)
        for j, weight in enumerate(weight_operands([self.w[j] for j in range(shape.k)])):
            factor = Signal(signed(shape.weight_width + 1), name=f"factor_{j}", reset_less=True)
            product = Signal(signed(shape.data_width + shape.weight_width + 2), name=f"product_{j}", reset_less=True)
            total = Signal(signed(shape.sum_width), name=f"total_{j}", reset_less=True)
            m.d.sync += [
                factor.eq(weight),
                product.eq(self.x[j] * factor),
                total.eq(Mux(self.first, 0, total) + product),
                drain[j].eq(Mux(self.load, total, self.chain[j])),
            ]
        return m
