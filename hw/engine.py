"""The spectral engine: block-circulant products y = W x + b on L lanes that share one transformed input block.

    blocks of x ─► SpectrumBuffer ─┬─► lane 0   ─► sums ─┐
                   (FFT, two       ├─► lane 1   ─► sums ─┼─► Drain (re, im; rounding; inverse FFT; bias) ─► rows of y
                   banks)          └─► lane L-1 ─► sums ─┘
"""
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from amaranth.hdl import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.drain import Drain
from circulant.hw.lane import Lane, LaneShape, data_operands
from circulant.hw.pipeline import block, delay
from circulant.hw.sequencer import Sequencer, command, groups
from circulant.hw.spectra import SpectrumBuffer
from circulant.hw.target import Rom, instances, packed
from circulant.sim.circulant import Product

__all__ = ["Engine"]


class Engine(wiring.Component):
    """Products with one or several matrices of one block size, one after the other, on shared lanes.

    A group of L rows takes q cycles, one block product per lane and cycle; the sums then leave through one inverse FFT,
    a row per cycle, while the next group runs. ``latency`` cycles pass from a group's last block product to its first
    row.

    Parameters:
        name: of the design's part; names the memory images.
        products: the matrices, of one block size and one width of y.
        lanes: L.

    Members:
        i0, i1, …: streams of blocks of x, for each matrix its own.
        full, last: for each matrix, whether a whole vector waits, and whether it is the last of its sequence.
        go: stream of commands: which matrix, whose vector must wait, or with ``zero`` that x = 0 instead.
        o: rows of y in their order, each with its matrix; they must be taken at once.
    """

    def __init__(self, *, name: str, products: Sequence[Product], lanes: int) -> None:
        if len({(p.block_size, p.output.width, p.twiddle_bits) for p in products}) != 1:
            raise ValueError("Matrices of one engine must share block size, width of y and twiddle bits")
        if lanes < 1:
            raise ValueError(f"Lanes must be a positive number, not {lanes!r}")
        self._name = name
        self._products = list(products)
        self._lanes = lanes
        self._k = k = products[0].block_size
        self._shape = LaneShape(
            k=k, data_width=max(p.spectrum.width for p in products), weight_width=max(p.weight.width for p in products),
            terms=max(p.weights.shape[1] for p in products))
        self._sequencer = Sequencer(shapes=[p.weights.shape[:2] for p in products], lanes=lanes)
        self._drain = Drain(name=name, products=products, lanes=lanes, sums=self._shape.sums)
        count = len(products)
        super().__init__({
            **{f"i{n}": In(stream.Signature(block(k, p.input.width))) for n, p in enumerate(products)},
            "full": Out(count),
            "last": Out(count),
            "go": In(stream.Signature(command(count))),
            "o": Out(self._drain.o.signature),
        })

    @property
    def latency(self) -> int:
        """Cycles from the issue of a row's last block product to the row: memory, operands, lane, drain."""
        return 3 + Lane.latency + self._drain.latency

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.sequencer = sequencer = self._sequencer
        m.submodules.drain = drain = self._drain
        wiring.connect(m, wiring.flipped(self.go), sequencer.go)
        wiring.connect(m, drain.o, wiring.flipped(self.o))
        operands = self._operands(m, sequencer)
        lanes = instances(m, platform, "lane", Lane, self._lanes, shape=self._shape)
        first = delay(m, sequencer.first, 1 + Lane.latency, name="first")
        load = delay(m, sequencer.ends_row, 2 + Lane.latency, name="load", reset_less=False)
        for n, lane in enumerate(lanes):
            m.submodules[f"weights_{n}"] = rom = Rom(
                words=self._weight_words(n), width=self._k * self._shape.weight_width, image=f"{self._name}_lane{n}")
            m.d.comb += [
                rom.en.eq(1), rom.addr.eq(sequencer.address), Value.cast(lane.w).eq(rom.data),
                lane.first.eq(first), lane.load.eq(load), lane.x.eq(operands),
            ]
        for lane, behind in pairwise(lanes):
            m.d.comb += lane.chain.eq(behind.sums)
        m.d.comb += [
            drain.sums.eq(lanes[0].sums), drain.start.eq(delay(m, load, 1, name="start", reset_less=False)),
            drain.first.eq(delay(m, sequencer.first_group, 3 + Lane.latency, name="first_group")),
            drain.matrix.eq(delay(m, sequencer.matrix, 3 + Lane.latency, name="matrix")),
        ]
        return m

    def _operands(self, m: Module, sequencer: Sequencer) -> Any:
        """Transform and keep the vectors; returns the data operands, two cycles after their column is issued."""
        buffers = []
        for n, product in enumerate(self._products):
            m.submodules[f"spectra_{n}"] = buffer = SpectrumBuffer(product)
            wiring.connect(m, wiring.flipped(getattr(self, f"i{n}")), buffer.i)
            m.d.comb += [
                self.full[n].eq(buffer.full), self.last[n].eq(buffer.last), buffer.addr.eq(sequencer.column),
                buffer.free.eq(sequencer.ends & ~sequencer.zero & (sequencer.matrix == n)),
            ]
            buffers.append(buffer)
        matrix, zero = delay(m, sequencer.matrix, 1, name="read_matrix"), delay(m, sequencer.zero, 1, name="read_zero")
        spectrum = []
        for j in range(self._k):
            number = Signal(signed(self._shape.data_width), name=f"spectrum_{j}")
            m.d.comb += number.eq(Mux(zero, 0, Array([Value.cast(buffer.data[j]) for buffer in buffers])[matrix]))
            spectrum.append(number)
        operands = Signal(data.ArrayLayout(signed(self._shape.data_width + 1), self._shape.products), reset_less=True)
        m.d.sync += [operands[j].eq(value) for j, value in enumerate(data_operands(spectrum))]
        return operands

    def _weight_words(self, lane: int) -> list[int]:
        """The image of a lane: the rows lane, lane + L, … of each matrix, zeros where there is none."""
        words: list[int] = []
        for product in self._products:
            rows, columns, k = product.weights.shape
            padded = np.zeros((groups(rows, self._lanes) * self._lanes, columns, k), np.int64)
            padded[:rows] = product.weights
            words += packed(padded[lane::self._lanes].reshape(-1, k), self._shape.weight_width)
        return words
