"""Pooling as a stream: each pixel is taken once, and what its window has seen so far waits in a row of accumulators."""
from functools import reduce
from math import prod

from amaranth.hdl import Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.pool.window_pool import WindowPoolLayer, joined, rounded
from circulant.hw.plan.stream_plan import pooled_aside, stream_plan, without_multipliers
from circulant.hw.stream.pipeline import Queue, block
from circulant.hw.stream.storage import Accumulators
from circulant.hw.stream.width_converter import serialize
from circulant.hw.unit import Site, WithoutImages, heeds_marks, unit
from circulant.sim.kinds.pool import Pool

__all__ = ["PoolLayer", "side_by_side"]

DEPTH = 4
"""Blocks that the queue behind it holds."""


def side_by_side(layer: Pool) -> bool:
    """Whether the windows of a pooling neither overlap nor reach beyond the image."""
    window = layer.window
    overlaps = any(stride < size for stride, size in zip(window.stride, window.kernel, strict=True))
    return not any(window.padding) and (not overlaps or layer.output_grid == (1, 1))


class PoolLayer(WithoutImages, wiring.Component):
    """Images in, smaller images out; equals `sim.kinds.pool.Pool`. Takes a block in each cycle.

    Parameters:
        layer: the golden layer, whose windows neither overlap nor reach beyond the image; `plan` sees to it.
        k: values of a block.
        pixels: side by side in a block that comes; what becomes of them leaves pixel by pixel.
        marked: whether the last block of an image is marked.

    Members:
        i: stream of blocks of the image's pixels.
        o: stream of blocks of the smaller image's pixels.
    """

    def __init__(self, layer: Pool, *, k: int, pixels: int = 1, marked: bool = True) -> None:
        window = layer.window
        stride = window.kernel if layer.output_grid == (1, 1) else window.stride
        self._layer, self._pixels, self._k_in, self._marked = layer, pixels, k, marked
        self._kernel, self._stride, self._columns = window.kernel, stride, layer.grid[1]
        self._beats, self._across = -(-layer.inputs // k), layer.output_grid[1]
        if pixels > 1:  # What lies side by side becomes one pixel at once, and windows are of one column of blocks.
            if pixels % stride[1] or layer.grid[1] % pixels or k != pixels * layer.inputs:
                raise ValueError(f"Pixels side by side must be whole windows, not {pixels} for {layer.name!r}")
            self._kernel, self._stride = (window.kernel[0], 1), (stride[0], 1)
            self._columns = self._across = layer.grid[1] // pixels
            self._beats, k = 1, k // stride[1]
        self._aside, self._k = stride[1], k
        growth = ceil_log2(window.positions) if layer.mode == "average" else 0
        self._sum = data.ArrayLayout(signed(layer.input_format.width + growth), k)
        self._payload = block(k, layer.output_format.width)
        summed = 0 if layer.mode == "max" else ceil_log2(layer.window.kernel[1])
        self._came = data.ArrayLayout(signed(layer.input_format.width + summed), k)
        super().__init__({"i": In(stream.Signature(block(self._k_in, layer.input_format.width))), "o": Out(
            stream.Signature(block(layer.outputs if pixels > 1 else k, layer.output_format.width)))})

    @property
    def parts(self) -> Parts:
        width = Shape.cast(self._payload).width
        return Parts([Memory(1, width, DEPTH - 1), Memory(1, self._sum.size, max(2, self._across * self._beats),
                                                          asynchronous=True),
                      *([Memory(1, self._came.size, DEPTH - 1)] if self._pixels > 1 else [])])

    @property
    def latency(self) -> int:
        """Cycles from a block of the last pixel of a window to what leaves: it waits one, then the queue. Pixels side
        by side have a queue before, too."""
        return 1 + Queue.latency * (1 + (self._pixels > 1))

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, k, kernel = self._layer, self._k, self._kernel
        height, width, down, across = layer.grid[0], self._columns, layer.output_grid[0], self._across

        # Blocks come, windows grow in their memory, and whole ones leave through a queue.
        m.submodules.queue = queue = Queue(self._payload, depth=DEPTH)
        m.submodules.sums = sums = Accumulators(self._sum, depth=max(2, across * self._beats))
        serialize(m, queue.o, wiring.flipped(self.o))
        valid, ready, came = self._beside(m)

        # The place of the pixel that comes: in the image, in its window, and that of the window. Windows that cover the
        # image are not counted: each pixel is inside one, and the last one ends with the image. Then the end of the
        # image is needed for its mark alone.
        covers = self._stride == kernel and (down * kernel[0], across * kernel[1]) == (height, width)
        moves = Signal()
        beat = Signal(range(max(2, self._beats)))
        in_x, in_y, out_x, out_y, x, y = (Signal(range(max(2, size + 1)), name=name) for name, size in (
            ("in_x", self._stride[1]), ("in_y", self._stride[0]), ("out_x", across), ("out_y", down),
            ("x", width), ("y", height)))
        address, address_now = (Signal(range(max(2, across * self._beats)), name=name)  # Of the window and the beat.
                                for name in ("next_address", "address"))
        pixel_ends = Signal()
        row_ends = Signal()
        image_ends = Signal()
        m.d.comb += [
            moves.eq(valid & ready), pixel_ends.eq(beat == self._beats - 1),
            row_ends.eq(pixel_ends & (x == width - 1)),
        ]
        if self._marked or not covers:
            m.d.comb += image_ends.eq(row_ends & (y == height - 1))
            with m.If(moves & row_ends):
                m.d.sync += y.eq(Mux(image_ends, 0, y + 1))
        with m.If(moves):
            m.d.sync += beat.eq(Mux(pixel_ends, 0, beat + 1))
            with m.If(pixel_ends):
                m.d.sync += [x.eq(x + 1), in_x.eq(in_x + 1)]
                with m.If(in_x == self._stride[1] - 1):
                    m.d.sync += [in_x.eq(0), *([] if covers else [out_x.eq(out_x + 1)])]
            with m.If(row_ends):
                m.d.sync += [x.eq(0), in_x.eq(0), in_y.eq(in_y + 1), *([] if covers else [out_x.eq(0)])]
                with m.If(in_y == self._stride[0] - 1):
                    m.d.sync += [in_y.eq(0), *([] if covers else [out_y.eq(out_y + 1)])]
            if not covers:
                with m.If(image_ends):
                    m.d.sync += [in_y.eq(0), out_y.eq(0)]

        # What its window has seen so far is read and written in one cycle.
        first = Signal()
        last = Signal()
        inside = Signal()
        m.d.comb += [
            inside.eq(1 if covers else
                      (in_x < kernel[1]) & (in_y < kernel[0]) & (out_x < across) & (out_y < down)),
            first.eq((in_x == 0) & (in_y == 0)),
            last.eq(inside & (in_x == kernel[1] - 1) & (in_y == kernel[0] - 1)),
            sums.following.eq(address), sums.write.eq(moves & inside),
        ]
        # A cycle ahead: on in the window, or back to its first beat, and at the end of a row to the first window.
        m.d.sync += address_now.eq(address)
        m.d.comb += address.eq(address_now)
        with m.If(moves):
            m.d.comb += address.eq(address_now + 1)
            with m.If(pixel_ends & (in_x != self._stride[1] - 1)):
                m.d.comb += address.eq(address_now - (self._beats - 1))
            with m.If(row_ends):
                m.d.comb += address.eq(0)

        # A whole window waits a cycle, and is rounded on its way into the queue.
        held = Signal(self._sum, reset_less=True)
        waits = Signal()  # a whole window, before it is rounded
        m.d.comb += [ready.eq(~waits | queue.i.ready), queue.i.valid.eq(waits)]
        with m.If(ready):
            m.d.sync += [waits.eq(valid & last), held.eq(sums.data)]
        if self._marked:
            ends = Signal(reset_less=True)
            m.d.comb += queue.i.payload.last.eq(ends)
            with m.If(ready):
                m.d.sync += ends.eq(image_ends if covers else
                                    pixel_ends & (out_x == across - 1) & (out_y == down - 1))
        for j in range(k):
            better = joined(layer)(sums.word[j], came[j])
            m.d.comb += [sums.data[j].eq(Mux(first, came[j], better)),
                         queue.i.payload.data[j].eq(rounded(layer, held[j]))]
        return m

    def _beside(self, m: Module) -> tuple[Value, Signal, list[Value]]:
        """Whether a block is there, the signal that takes it, and its values. Of pixels side by side, those of a window
        are joined as one, and a queue follows: two joins in a row, and one signal that moves them all, would limit the
        clock."""
        taken = Signal(name="ready")
        values = self.i.payload.data
        joins = joined(self._layer)
        if self._pixels == 1:
            m.d.comb += self.i.ready.eq(taken)
            return self.i.valid, taken, [values[j] for j in range(self._k)]
        m.submodules.beside = queue = Queue(self._came, depth=DEPTH)
        m.d.comb += [queue.i.valid.eq(self.i.valid), self.i.ready.eq(queue.i.ready), queue.o.ready.eq(taken)]
        for j in range(self._k):
            pixel, channel = divmod(j, self._layer.inputs)
            m.d.comb += queue.i.payload[j].eq(reduce(joins, (
                values[(pixel * self._aside + n) * self._layer.inputs + channel]
                for n in range(self._layer.window.kernel[1]))))
        return queue.o.valid, taken, [queue.o.payload[j] for j in range(self._k)]


@unit.register
def _(layer: Pool, plan: StreamPlan, site: Site) -> PoolLayer | WindowPoolLayer:
    if side_by_side(layer):
        return PoolLayer(layer, k=site.k, pixels=site.pixels, marked=site.marked)
    return WindowPoolLayer(layer, k=site.k, marked=site.marked)


@heeds_marks.register
def _(layer: Pool, *, single: bool) -> bool:
    return False


without_multipliers(Pool)


@stream_plan.register
def _(layer: Pool, *, pixels: int = 1) -> StreamPlan:
    """A block in each cycle."""
    return StreamPlan(max(prod(layer.grid) // pixels, prod(layer.output_grid)))


@pooled_aside.register
def _(layer: Pool, pixels: int) -> int:
    aside = (layer.window.kernel if layer.output_grid == (1, 1) else layer.window.stride)[1]
    whole = pixels % aside == 0 and layer.grid[1] % pixels == 0 and layer.output_grid[1] * aside == layer.grid[1]
    return pixels // aside if side_by_side(layer) and whole else 0
