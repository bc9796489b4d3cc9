"""Sums of products of shares of a matrix's columns, added up; then what stands behind an array: rounding, inverse FFT,
rounding, bias. A block in each cycle; blocks come while the queue behind has room for all under way.
"""
from collections.abc import Sequence
from functools import reduce
from operator import add

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring

from circulant.hw.arith.fft import FftShape, InverseFft, fft_latency
from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.array.parts import Memory, Parts, Transform, queue_memory
from circulant.hw.array.plans import StreamPlan
from circulant.hw.components.joins import JoinLayer
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, instances, packed
from circulant.hw.plan.dataflow import Cycles, in_turn, joined
from circulant.hw.plan.stream_plan import stream_plan
from circulant.hw.stream.pipeline import PROMPT, QUEUE, Queue, connect, delay, kept
from circulant.hw.unit import SLACK, Site, unit
from circulant.sim.kinds.partial_sum import PartialSum

__all__ = ["PartialSumLayer"]

BEFORE, BEHIND = 3, 2
"""Cycles before the inverse transform (sum, rounding, clipping) and behind it (rounding, bias)."""


def _latency(layer: PartialSum) -> int:
    """Cycles from the blocks of all sums to that of y before the queue."""
    return BEFORE + fft_latency(layer.product.block_size) + BEHIND


class PartialSumLayer(JoinLayer):
    """Sums of several shares in, vectors out; equals `sim.kinds.partial_sum.PartialSum`."""

    more = SLACK

    def __init__(self, layer: PartialSum, *, beside: Sequence[int]) -> None:
        super().__init__(layer, k=layer.product.block_size, beside=beside)
        self._sum, product = layer, layer.product
        self._fft = FftShape(self.k, product.product.width, product.twiddle_bits)
        self._queue = Queue(self.signature.members["o"].signature.create().payload.shape(),
                            depth=_latency(layer) + QUEUE + 1)

    @property
    def parts(self) -> Parts:
        (image,) = self.images
        return super().parts + Parts(
            [Memory(1, image.width, len(image.words), writable=False), queue_memory(self._queue)],
            transforms=[Transform(1, self.k, self._fft.width)])

    @property
    def images(self) -> list[Image]:
        """Biases and scales of the block rows."""
        product, width = self._sum.product, self._sum.output_format.width
        scales = product.grid.row_scales or (0,) * (product.rows // self.k)
        words = [bias | scale << self.k * width for bias, scale in zip(
            packed(product.bias.reshape(-1, self.k), width), scales, strict=True)]
        return [Image(words, self.k * width + max(1, product.grid.spread.bit_length()), f"{self._sum.name}_biases")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, k, product, queue = self._sum, self.k, self._sum.product, self._queue
        m.submodules.queue, m.submodules.biases = queue, (rom := Rom(**self.images[0]._asdict()))
        (inverse,) = instances(m, platform, "inverse", InverseFft, 1, shape=self._fft)
        ends = []
        for source, waits in zip(self.inputs, self._queues(m), strict=True):
            connect(m, wiring.flipped(source), waits.i)
            ends.append(waits.o)
        connect(m, queue.o, wiring.flipped(self.o))

        # A block of each, and the row that it belongs to.
        blocks, there = product.rows // k, BEFORE + fft_latency(k)
        promised = Signal(range(queue.depth + 1))
        row = Signal(range(max(2, blocks)))
        moves = Signal()
        final = Signal()
        m.d.comb += [moves.eq(reduce(lambda one, other: one & other, [end.valid for end in ends])
                              & (promised < queue.depth)), *(end.ready.eq(moves) for end in ends),
                     final.eq(row == blocks - 1)]
        m.d.sync += promised.eq(promised + moves - (queue.o.valid & queue.o.ready))
        with m.If(moves):
            m.d.sync += row.eq(Mux(final, 0, row + 1))
        m.d.comb += [rom.en.eq(1), rom.addr.eq(delay(m, row, there - 1, name="row"))]
        biases = delay(m, rom.data, 1, name="biases")
        final = delay(m, final, _latency(layer) - 1, name="final")
        m.d.comb += [
            inverse.i.valid.eq(delay(m, moves, BEFORE, name="comes", reset_less=False)), inverse.o.ready.eq(1),
            queue.i.valid.eq(delay(m, moves, _latency(layer), name="leaves", reset_less=False)),
            queue.i.payload.last.eq(delay(m, ends[0].payload.last, _latency(layer), name="last"))]

        # Added up and rounded; scaled, rounded, with bias, ReLU, and zeros behind the last output.
        width, given = layer.output_format.width, layer.outputs - (blocks - 1) * k
        for j in range(k):
            total = kept(m, reduce(add, [end.payload.data[j] for end in ends]), f"total_{j}")
            rounded = kept(m, round_shift(total, product.frac - product.product.frac), f"rounded_{j}")
            m.d.comb += inverse.i.payload[j].eq(
                kept(m, saturate(rounded, product.product.width), f"product_{j}"))
            scaled: Value = inverse.o.payload[j]
            if product.grid.spread:
                scaled = (scaled << rom.data[k * width:])[:self._fft.inverse_width + product.grid.spread].as_signed()
            value = kept(m, round_shift(scaled, product.last_shift), f"value_{j}")
            limited = saturate(value + biases.word_select(j, width).as_signed(), width)
            y = Mux(limited[-1], 0, limited) if layer.relu else limited
            y = Mux(final, Const(0), y) if j >= given else y
            m.d.comb += queue.i.payload.data[j].eq(kept(m, y, f"y_{j}"))
        return m


@unit.register
def _(layer: PartialSum, plan: StreamPlan, site: Site) -> PartialSumLayer:
    return PartialSumLayer(layer, beside=site.beside)


@stream_plan.register
def _(layer: PartialSum, *, pixels: int = 1) -> StreamPlan:
    return StreamPlan(layer.inputs // layer.product.block_size)


@joined.register
def _(layer: PartialSum, comes: list[Cycles], k: int) -> tuple[Cycles, list[int], int]:
    there = [max(cycles) + PROMPT for cycles in zip(*comes, strict=True)]
    return in_turn(there), [0] * len(comes), _latency(layer) + QUEUE
