"""The spectral engine: block-circulant products y = W x + b on L lanes that share one transformed input block.

    x blocks ─► SpectrumBuffer ─┬─► lane 0 ─► drain ┐
                (FFT, two       ├─► lane 1 ─► drain ├─► re, im ─► round ─► InverseFft ─► round, bias ─► rows of y
                 banks)         └─► lane L-1 ─► …   ┘
"""
from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.hdl import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.drain import Drain
from circulant.hw.lane import Lane, LaneShape, data_operands
from circulant.hw.pipeline import block, delay, per_matrix
from circulant.hw.spectra import SpectrumBuffer
from circulant.hw.target import Rom, instances
from circulant.sim.circulant import Product

__all__ = ["Engine", "groups"]


def groups(rows: int, lanes: int) -> int:
    """Groups of lanes that compute ``rows`` blocks of rows, the last one perhaps in part."""
    return -(-rows // lanes)


class Engine(wiring.Component):
    """Products with one or several matrices of one block size, one after the other, on shared lanes.

    A group of L rows takes q cycles, one block product per lane and cycle; the sums then leave through one inverse FFT,
    a row per cycle, while the next group runs. ``latency`` cycles pass from a group's last block product to its first row.

    Parameters:
        name: of the design's part; names the memory images.
        products: the matrices; their rows come out in this order, and share the width of y.
        lanes: L.

    Members:
        i0, i1, …: streams of blocks of x, for each matrix its own.
        full, last: for each matrix, whether a whole vector waits, and whether it is the last of its sequence.
        go: stream of commands: which matrix (that must be full, unless ``zero``), and whether x = 0 instead.
        o: matrix, valid and data of each row of y, which must be taken at once.
    """

    def __init__(self, *, name: str, products: Sequence[Product], lanes: int) -> None:
        if len({(p.block_size, p.output.width) for p in products}) != 1:
            raise ValueError("Matrices of one engine must share block size and width of y")
        if lanes < 1:
            raise ValueError(f"Lanes must be a positive number, not {lanes!r}")
        self._name = name
        self._products = list(products)
        self._lanes = lanes
        self._k = products[0].block_size
        self._lane = LaneShape(
            k=self._k, data_width=max(p.spectrum.width for p in products), weight_width=max(p.weight.width for p in products),
            terms=max(p.weights.shape[1] for p in products))
        self._drain = Drain(name=name, products=products, lanes=lanes, sums=self._lane.sums)
        count = len(products)
        command = data.StructLayout({"matrix": range(max(2, count)), "zero": 1})
        super().__init__({
            **{f"i{n}": In(stream.Signature(block(self._k, p.input.width))) for n, p in enumerate(products)},
            "full": Out(count),
            "last": Out(count),
            "go": In(stream.Signature(command)),
            "o": Out(wiring.Signature({
                "valid": Out(1), "matrix": Out(range(max(2, count))),
                "data": Out(data.ArrayLayout(signed(products[0].output.width), self._k))})),
        })

    @property
    def latency(self) -> int:
        """Cycles from the issue of a row's last block product to the row."""
        return 3 + Lane.latency + self._drain.latency

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        issue = self._sequencer(m)
        heads = self._lane_array(m, platform, issue)
        m.submodules.drain = drain = self._drain
        m.d.comb += [
            drain.sums.eq(heads), drain.start.eq(delay(m, issue["ends_row"], 3 + Lane.latency, name="start")),
            drain.first.eq(delay(m, issue["first_group"], 3 + Lane.latency, name="first_group")),
            drain.matrix.eq(delay(m, issue["matrix"], 3 + Lane.latency, name="matrix")),
        ]
        wiring.connect(m, wiring.flipped(self.o), drain.o)
        return m

    def _sequencer(self, m: Module) -> dict[str, Any]:
        """Counters over groups and columns: what is issued in each cycle."""
        shapes = [p.weights.shape for p in self._products]
        sizes = [groups(rows, self._lanes) * columns for rows, columns, _ in shapes]
        buffers = []
        for n, product in enumerate(self._products):
            m.submodules[f"spectra_{n}"] = buffer = SpectrumBuffer(product)
            wiring.connect(m, wiring.flipped(getattr(self, f"i{n}")), buffer.i)
            m.d.comb += [self.full[n].eq(buffer.full), self.last[n].eq(buffer.last)]
            buffers.append(buffer)
        active, zero, matrix = Signal(), Signal(), Signal.like(self.go.payload.matrix)
        column = Signal(range(max(2, *(columns for _, columns, _ in shapes))))
        group = Signal(range(max(2, *(groups(rows, self._lanes) for rows, _, _ in shapes))))
        address = Signal(range(max(2, sum(sizes))))
        draining = Signal(range(max(2, self._lanes)))
        valid, ends_row, ends, last_column = Signal(), Signal(), Signal(), Signal.like(column)
        m.d.comb += [
            last_column.eq(per_matrix([columns - 1 for _, columns, _ in shapes], matrix)),
            ends_row.eq(column == last_column),
            # A group waits before its first product, which may be repeated, until its sums will find the drain free.
            valid.eq(active & ~((column == 0) & (draining > last_column))),
            ends.eq(valid & ends_row & (group == per_matrix(
                [groups(rows, self._lanes) - 1 for rows, _, _ in shapes], matrix))),
            self.go.ready.eq(~active | ends),
        ]
        with m.If(draining != 0):
            m.d.sync += draining.eq(draining - 1)
        with m.If(valid):
            m.d.sync += [address.eq(address + 1), column.eq(column + 1)]
            with m.If(ends_row):
                m.d.sync += [column.eq(0), group.eq(group + 1), draining.eq(self._lanes - 1)]
        with m.If(ends):
            m.d.sync += active.eq(0)
        with m.If(self.go.valid & self.go.ready):
            starts = [sum(sizes[:n]) for n in range(len(sizes))]
            m.d.sync += [active.eq(1), matrix.eq(self.go.payload.matrix), zero.eq(self.go.payload.zero), column.eq(0),
                         group.eq(0), address.eq(per_matrix(starts, self.go.payload.matrix))]
        for n, buffer in enumerate(buffers):
            m.d.comb += [buffer.addr.eq(column), buffer.free.eq(ends & ~zero & (matrix == n))]
        return {"valid": valid, "matrix": matrix, "zero": zero, "first": column == 0, "ends_row": valid & ends_row,
                "first_group": group == 0,
                "address": address, "spectra": [buffer.data for buffer in buffers]}

    def _lane_array(self, m: Module, platform: Any, issue: dict[str, Any]) -> Any:
        """Weight memories, broadcast data operands, lanes and their drain; returns the head of the drain."""
        read_matrix, read_zero = delay(m, issue["matrix"], 1), delay(m, issue["zero"], 1)
        width = self._lane.data_width
        spectrum = []
        for j in range(self._k):
            chosen = Array([Value.cast(spectra[j]) for spectra in issue["spectra"]])[read_matrix]
            number = Signal(signed(width), name=f"spectrum_{j}")
            m.d.comb += number.eq(Mux(read_zero, 0, chosen))
            spectrum.append(number)
        first = delay(m, issue["first"], 1 + Lane.latency)
        load = delay(m, issue["ends_row"], 2 + Lane.latency)
        operands = []
        for j, value in enumerate(data_operands(spectrum)):
            operand = Signal(signed(width + 1), name=f"operand_{j}")
            m.d.sync += operand.eq(value)
            operands.append(operand)
        lanes = instances(m, platform, "lane", self._lane.module, lambda: Lane(self._lane), self._lanes)
        for n, lane in enumerate(lanes):
            m.submodules[f"weights_{n}"] = rom = Rom(
                words=self._weight_words(n), width=self._k * self._lane.weight_width, image=f"{self._name}_lane{n}")
            m.d.comb += [
                rom.en.eq(1), rom.addr.eq(issue["address"]), Value.cast(lane.w).eq(rom.data),
                lane.first.eq(first), lane.load.eq(load), *(lane.x[j].eq(x) for j, x in enumerate(operands)),
            ]
        for lane, behind in zip(lanes, lanes[1:], strict=False):
            m.d.comb += lane.chain.eq(behind.sums)
        return lanes[0].sums

    def _weight_words(self, lane: int) -> list[int]:
        """The image of a lane: the rows lane, lane + L, … of each matrix, zeros where there is none."""
        words = []
        width = self._lane.weight_width
        for product in self._products:
            rows, columns, k = product.weights.shape
            padded = np.zeros((groups(rows, self._lanes) * self._lanes, columns, k), np.int64)
            padded[:rows] = product.weights
            for spectrum in padded[lane::self._lanes].reshape(-1, k).tolist():
                words.append(sum((number & ((1 << width) - 1)) << (width * j) for j, number in enumerate(spectrum)))
        return words

