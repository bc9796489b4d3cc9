"""A convolution: lines of spectra, the array of the spectral engine, and a queue that its pixels always fit into."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from circulant.hw.arith.decoder import tell, watched
from circulant.hw.arith.fft import forward_latency
from circulant.hw.array.lanes import LaneArray, array_images
from circulant.hw.array.line_shape import LineBufferShape
from circulant.hw.array.parts import Parts, Transform, array_parts, queue_memory
from circulant.hw.components.lines import LineBuffer
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.conv.plan import ConvPlan
from circulant.hw.kinds.conv.tile import TileShape
from circulant.hw.kinds.conv.tile_conv import TileConvLayer
from circulant.hw.stream.pipeline import Queue, block, connect
from circulant.hw.unit import Site, heeds_marks, unit
from circulant.sim.kinds.conv import Conv

__all__ = ["ConvLayer"]


class ConvLayer(wiring.Component):
    """Images in, images out, pixel by pixel; equals `sim.kinds.conv.Conv`.

    Every ``shape.cycles`` cycles a pixel of the output, while those that it sees are there and the output is taken.

    Parameters:
        shape: the array, and how the kernel meets it.
        marked: whether the last block of an image is marked.

    Members:
        i: stream of blocks of k channels.
        o: stream of blocks of k channels for each chain; what lies behind the last channel is zero.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, shape: LineBufferShape, *, marked: bool = True) -> None:
        self._shape, self._marked, layer = shape, marked, shape.layer
        self._program, k = shape.program, layer.product.block_size
        self._lines = LineBuffer(shape)
        self._array = LaneArray(name=layer.name, program=self._program)
        self._beats = -(-(layer.product.rows // k) // shape.chains)
        pixels = 3 + (self._array.latency + 4) // shape.cycles  # under way
        self._queue = Queue(block(k * shape.chains, layer.product.output.width), depth=pixels * self._beats)
        super().__init__({"i": self._lines.signature.members["i"],
                          "o": Out(stream.Signature(block(k * shape.chains, layer.product.output.width))),
                          **watched(shape.protection)})

    @property
    def parts(self) -> Parts:
        product = self._shape.layer.product
        return array_parts(self._program) + Parts([self._lines.memory, queue_memory(self._queue)], transforms=[
            Transform(1, product.block_size, product.spectrum.width)])

    @property
    def latency(self) -> int:
        """Cycles from the last block of the last pixel that an output pixel needs to its first block: the transform,
        the lines, the groups of the first pass, the array, the queue."""
        groups = self._shape.cycles // self._shape.passes
        transform = forward_latency(self._shape.layer.product.block_size)
        return transform + self._lines.latency + groups - 1 + self._array.latency + self._queue.latency

    @property
    def images(self) -> list[Image]:
        return array_images(self._shape.layer.name, self._program)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, layer, lines, array, queue = self._shape, self._shape.layer, self._lines, self._array, self._queue
        m.submodules.lines, m.submodules.array, m.submodules.queue = lines, array, queue
        tell(m, self, array)

        # Pixels to the lines, groups of columns to the array, while the queue has room for the pixels under way.
        connect(m, wiring.flipped(self.i), lines.i)
        connect(m, queue.o, wiring.flipped(self.o))
        promised = Signal(range(queue.depth + self._beats + 1))
        m.d.comb += [
            lines.room.eq(promised <= queue.depth - self._beats),
            array.spectra.eq(lines.spectra),
        ]
        wiring.connect(m, lines.issue, array.issue)
        m.d.sync += promised.eq(promised + Mux(lines.starts, self._beats, 0) - (queue.o.valid & queue.o.ready))

        beat = Signal(range(max(2, self._beats)))
        ends = Signal()
        m.d.comb += [queue.i.valid.eq(array.o[0].valid), ends.eq(beat == self._beats - 1)]
        with m.If(array.o[0].valid):
            m.d.sync += beat.eq(Mux(ends, 0, beat + 1))
        if self._marked:
            down, across = layer.output_grid
            pixel = Signal(range(max(2, down * across)))
            final = Signal()
            m.d.comb += [final.eq(ends & (pixel == down * across - 1)), queue.i.payload.last.eq(final)]
            with m.If(array.o[0].valid & ends):
                m.d.sync += pixel.eq(Mux(final, 0, pixel + 1))

        # ReLU, and zeros behind the last channel.
        k = layer.product.block_size
        left = layer.outputs - (self._beats - 1) * k * shape.chains  # channels of the last block
        for c, chain in enumerate(array.o):
            for j in range(k):
                value: Value = chain.data[j]
                if layer.relu:
                    value = Mux(value[-1], 0, value)
                if c * k + j >= left:
                    value = Mux(ends, 0, value)
                m.d.comb += queue.i.payload.data[c * k + j].eq(value)
        return m


@unit.register
def _(layer: Conv, plan: ConvPlan, site: Site) -> ConvLayer | TileConvLayer:
    if isinstance(plan.shape, TileShape):
        return TileConvLayer(plan.shape, single=site.gives == 1, marked=site.marked)
    return ConvLayer(plan.shape, marked=site.marked)


@heeds_marks.register
def _(layer: Conv, *, single: bool) -> bool:
    return False
