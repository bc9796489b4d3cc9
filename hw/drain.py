"""Behind the lanes: from accumulated spectra to rows of y, one row per cycle."""
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from circulant.hw.fft import FftShape, InverseFft
from circulant.hw.fixed import requantize, round_shift, saturate
from circulant.hw.pipeline import delay, per_matrix
from circulant.hw.target import Rom, instances, packed
from circulant.sim.circulant import Product

__all__ = ["Drain"]


class Drain(wiring.Component):
    """Takes the lanes' sums one after the other, combines them, and transforms them back.

    ``re = s1 - s3`` and ``im = s1 + s2``; rounding to the product's format; inverse FFT; rounding to the format of y;
    the bias.

    Parameters:
        name: names the image of the biases.
        products: the matrices of the engine.
        lanes: sums that follow each other after ``start``.
        sums: layout of the sums of a row.

    Members:
        start: the sums of the first lane of a group are there; those of the others follow, one per cycle.
        matrix, first: with ``start``: the matrix of this group, and whether it is its first group.
        sums: of the row that is at the head of the drain.
        o: rows of y, ``latency`` cycles later.
    """

    def __init__(self, *, name: str, products: Sequence[Product], lanes: int, sums: data.ArrayLayout) -> None:
        self._name = name
        self._products = list(products)
        self._lanes = lanes
        self._width = products[0].output.width
        self._fft = FftShape(products[0].block_size, max(p.product.width for p in products), products[0].twiddle_bits)
        matrix, row = range(max(2, len(products))), data.ArrayLayout(signed(self._width), self._fft.k)
        super().__init__({
            "start": In(1), "first": In(1), "matrix": In(matrix), "sums": In(sums),
            "o": Out(wiring.Signature({"valid": Out(1), "matrix": Out(matrix), "data": Out(row)})),
        })

    @property
    def latency(self) -> int:
        """Cycles from ``start`` to the first row: combine, round, inverse FFT, round, bias."""
        return 2 + self._fft.latency + 2

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        valid, matrix, row = self._slots(m)
        m.d.comb += self.o.valid.eq(delay(m, valid, self.latency, name="valid", reset_less=False))
        (inverse,) = instances(m, platform, "inverse", InverseFft, 1, shape=self._fft)
        m.d.comb += [inverse.i.valid.eq(1), inverse.o.ready.eq(1)]
        at = delay(m, matrix, 1, name="combined_matrix")
        for j, number in enumerate(self._combined()):
            combined = Signal(number.shape(), name=f"combined_{j}", reset_less=True)
            product = Signal(signed(self._fft.width), name=f"product_{j}", reset_less=True)
            m.d.comb += inverse.i.payload[j].eq(product)
            m.d.sync += [combined.eq(number), product.eq(per_matrix([
                requantize(combined, p.spectrum.frac + p.weight.frac - p.product.frac, p.product.width)
                for p in self._products], at))]

        steps = 2 + self._fft.latency
        matrix, row = delay(m, matrix, steps, name="inverse_matrix"), delay(m, row, steps, name="inverse_row")
        bias = self._bias(m, row, matrix)
        output = Signal(self.o.data.shape(), reset_less=True)
        m.d.comb += [self.o.data.eq(output), self.o.matrix.eq(delay(m, matrix, 2, name="matrix"))]
        shifts = [p.product.frac + exact_log2(p.block_size) - p.output.frac for p in self._products]
        width = self._fft.inverse_width + max(1, *(-shift for shift in shifts))
        for j in range(self._fft.k):
            rounded = Signal(signed(width), name=f"rounded_{j}", reset_less=True)
            m.d.sync += [
                rounded.eq(per_matrix([round_shift(inverse.o.payload[j], shift) for shift in shifts], matrix)),
                output[j].eq(saturate(rounded + bias.word_select(j, self._width).as_signed(), self._width)),
            ]
        return m

    def _slots(self, m: Module) -> tuple[Value, Value, Value]:
        """Count the rows that pass: valid (the last group may have idle lanes), matrix, row."""
        rows = [product.weights.shape[0] for product in self._products]
        waiting = Signal(range(self._lanes + 1))
        kept, after = Signal.like(self.matrix), Signal(range(max(rows) + self._lanes + 1))
        valid, matrix, row, passes = Signal(), Signal.like(self.matrix), Signal.like(after), Signal()
        m.d.comb += [
            passes.eq(self.start | (waiting != 0)),
            matrix.eq(Mux(self.start, self.matrix, kept)),
            row.eq(Mux(self.start & self.first, 0, after)),
            valid.eq(passes & (row < per_matrix(rows, matrix))),
        ]
        m.d.sync += kept.eq(matrix)
        with m.If(passes):
            m.d.sync += [after.eq(row + 1), waiting.eq(Mux(self.start, self._lanes - 1, waiting - 1))]
        return valid, matrix, row

    def _combined(self) -> list[Value]:
        sums = [Value.cast(self.sums[j]) for j in range(self.sums.shape().length)]
        numbers = sums[:2]
        for s1, s2, s3 in zip(sums[2::3], sums[3::3], sums[4::3], strict=True):
            numbers += [s1 - s3, s1 + s2]
        return numbers

    def _bias(self, m: Module, row: Value, matrix: Value) -> Value:
        """The biases of a row, one cycle later."""
        words: list[int] = []
        starts = []
        for product in self._products:
            starts.append(len(words))
            words += packed(product.bias.reshape(-1, self._fft.k), self._width)
        m.submodules.bias = rom = Rom(words=words, width=self._width * self._fft.k, image=f"{self._name}_bias")
        m.d.comb += [rom.en.eq(1), rom.addr.eq(row + per_matrix(starts, matrix))]
        return rom.data
