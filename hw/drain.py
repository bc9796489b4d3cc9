"""Behind the lanes: from accumulated spectra to rows of y, one row per cycle."""
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from circulant.hw.fft import InverseFft
from circulant.hw.fixed import requantize, round_shift, saturate
from circulant.hw.pipeline import delay, per_matrix
from circulant.hw.target import Rom
from circulant.sim.circulant import Product

__all__ = ["Drain"]


class Drain(wiring.Component):
    """Takes the lanes' sums one after the other, combines them, and transforms them back.

    ``re = s1 - s3`` and ``im = s1 + s2``; rounding to the product's format; inverse FFT; rounding to the format of y; the bias.

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
        self._k = products[0].block_size
        self._inverse = InverseFft(k=self._k, width=max(product.product.width for product in products),
                                   twiddle_bits=products[0].twiddle_bits)
        matrix = range(max(2, len(products)))
        super().__init__({
            "start": In(1), "first": In(1), "matrix": In(matrix), "sums": In(sums),
            "o": Out(wiring.Signature({
                "valid": Out(1), "matrix": Out(matrix),
                "data": Out(data.ArrayLayout(signed(products[0].output.width), self._k))})),
        })

    @property
    def latency(self) -> int:
        """Cycles from ``start`` to the first row: combine, round, inverse FFT, round, bias."""
        return 2 + self._inverse.latency + 2

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        valid, matrix, row = self._slots(m)
        m.submodules.inverse = inverse = self._inverse
        for j, number in enumerate(self._combined()):
            combined = Signal(Value.cast(number).shape(), name=f"combined_{j}")
            m.d.sync += [combined.eq(number), inverse.i.payload[j].eq(per_matrix([
                requantize(combined, p.spectrum.frac + p.weight.frac - p.product.frac, p.product.width)
                for p in self._products], delay(m, matrix, 1)))]
        m.d.comb += [inverse.i.valid.eq(1), inverse.o.ready.eq(1)]

        here, there = delay(m, matrix, 2 + inverse.latency, name="matrix"), delay(m, row, 2 + inverse.latency, name="row")
        m.submodules.bias = rom = self._bias(there, here, m)
        out_matrix = delay(m, here, 1)
        width = self.o.data.shape().elem_shape.width
        for j in range(self._k):
            rounded = Signal(signed(inverse.output_width + 1), name=f"rounded_{j}")
            bias = rom.data.word_select(j, width).as_signed()
            m.d.sync += [
                rounded.eq(per_matrix([
                    round_shift(inverse.o.payload[j], p.product.frac + exact_log2(self._k) - p.output.frac)
                    for p in self._products], here)),
                self.o.data[j].eq(saturate(rounded + bias, width)),
            ]
        m.d.sync += [self.o.matrix.eq(out_matrix)]
        m.d.comb += self.o.valid.eq(delay(m, valid, self.latency, name="valid"))
        return m

    def _slots(self, m: Module) -> tuple[Value, Value, Value]:
        """Count the rows that pass: valid (the last group may have idle lanes), matrix, row."""
        rows = [product.weights.shape[0] for product in self._products]
        slot, kept, after = Signal(range(self._lanes + 1)), Signal.like(self.matrix), Signal(range(max(rows) + self._lanes + 1))
        valid, matrix, row = Signal(), Signal.like(self.matrix), Signal.like(after)
        m.d.comb += [
            matrix.eq(Mux(self.start, self.matrix, kept)),
            row.eq(Mux(self.start & self.first, 0, after)),
            valid.eq((self.start | (slot != 0)) & (row < per_matrix(rows, matrix))),
        ]
        m.d.sync += kept.eq(matrix)
        with m.If(self.start | (slot != 0)):
            m.d.sync += [after.eq(row + 1), slot.eq(Mux(self.start, self._lanes - 1, slot - 1))]
        return valid, matrix, row

    def _combined(self) -> list[Value]:
        sums = [self.sums[j] for j in range(len(Value.cast(self.sums)) // self.sums.shape().elem_shape.width)]
        numbers = sums[:2]
        for s1, s2, s3 in zip(sums[2::3], sums[3::3], sums[4::3], strict=True):
            numbers += [s1 - s3, s1 + s2]
        return numbers

    def _bias(self, row: Value, matrix: Value, m: Module) -> Rom:
        width = self.o.data.shape().elem_shape.width
        words, starts = [], []
        for product in self._products:
            starts.append(len(words))
            for values in product.bias.reshape(-1, self._k).tolist():
                words.append(sum((value & ((1 << width) - 1)) << (width * j) for j, value in enumerate(values)))
        rom = Rom(words=words, width=width * self._k, image=f"{self._name}_bias")
        m.d.comb += [rom.en.eq(1), rom.addr.eq(row + per_matrix(starts, matrix))]
        return rom
