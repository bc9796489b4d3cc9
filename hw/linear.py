"""A fully connected layer: an engine with one matrix, and a queue that its rows always fit into."""
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.engine import Engine
from circulant.hw.pipeline import Queue, block, connect
from circulant.hw.sequencer import groups
from circulant.sim.linear import Linear

__all__ = ["LinearLayer"]


class LinearLayer(wiring.Component):
    """Vectors in, vectors out; equals `sim.linear.Linear`.

    Parameters:
        layer: the golden layer.
        lanes: of the engine.

    Members:
        i: stream of blocks of x.
        o: stream of blocks of y; what lies behind the last output is zero.
    """

    def __init__(self, layer: Linear, *, lanes: int) -> None:
        self._layer = layer
        product = layer.product
        self._rows, columns, _ = product.weights.shape
        self._engine = Engine(name=layer.name, products=[product], lanes=lanes)
        # Vectors under way: as many as start while one passes the engine, its drain and the queue; a power of two.
        period, behind = groups(self._rows, lanes) * max(columns, lanes), self._engine.latency + lanes + 3
        self._vectors = 1 << ceil_log2(1 + -(-behind // period))
        self._output = block(product.block_size, product.output.width)
        super().__init__({
            "i": In(stream.Signature(block(product.block_size, product.input.width))),
            "o": Out(stream.Signature(self._output)),
        })

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.engine = engine = self._engine
        m.submodules.queue = queue = Queue(self._output, depth=self._vectors * self._rows)
        connect(m, wiring.flipped(self.i), engine.i0)
        connect(m, queue.o, wiring.flipped(self.o))

        # A vector starts when the queue has room for all of its rows, those of the vectors before it included.
        count = self._vectors
        promised, starts, leaves = Signal(range(count * self._rows + 1)), Signal(), Signal()
        last, started, finished = Signal(count), Signal(range(count)), Signal(range(count))
        row = Signal(range(max(2, self._rows)))
        m.d.comb += [
            engine.go.valid.eq(engine.full[0] & (promised <= (count - 1) * self._rows)),
            starts.eq(engine.go.valid & engine.go.ready),
            leaves.eq(queue.o.valid & queue.o.ready),
        ]
        m.d.sync += promised.eq(promised + Mux(starts, self._rows, 0) - leaves)
        with m.If(starts):
            m.d.sync += [last.bit_select(started, 1).eq(engine.last[0]), started.eq(started + 1)]

        final, k = row == self._rows - 1, self._layer.product.block_size
        padding = self._rows * k - self._layer.outputs
        m.d.comb += [queue.i.valid.eq(engine.o.valid), queue.i.payload.last.eq(final & last.bit_select(finished, 1))]
        for j in range(k):
            value = engine.o.data[j]
            m.d.comb += queue.i.payload.data[j].eq(Mux(final, 0, value) if j >= k - padding else value)
        with m.If(engine.o.valid):
            m.d.sync += row.eq(Mux(final, 0, row + 1))
            with m.If(final):
                m.d.sync += finished.eq(finished + 1)
        return m
