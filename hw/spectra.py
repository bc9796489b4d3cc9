"""The data side of an engine: vectors come in as blocks, are transformed once, and wait as spectra."""
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.fft import FftShape, ForwardFft
from circulant.hw.pipeline import block
from circulant.hw.target import instances
from circulant.sim.circulant import Product

__all__ = ["SpectrumBuffer"]


class SpectrumBuffer(wiring.Component):
    """Two banks of q spectra: one is read, any number of times, while the other fills.

    Parameters:
        product: gives q, the block size, and the formats of values and spectra.

    Members:
        i: stream of blocks; q of them are a vector.
        full: a whole vector waits in the bank that is read.
        last: whether that vector is the last of its sequence.
        addr: of the spectrum that ``data`` shows one cycle later.
        free: the reading of this bank ends with this cycle.
    """

    def __init__(self, product: Product) -> None:
        self._product = product
        self._count = product.weights.shape[1]
        k = product.block_size
        super().__init__({
            "i": In(stream.Signature(block(k, product.input.width))),
            "full": Out(1),
            "last": Out(1),
            "addr": In(range(max(2, self._count))),
            "data": Out(data.ArrayLayout(signed(product.spectrum.width), k)),
            "free": In(1),
        })

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        product, count = self._product, self._count
        shape = FftShape(product.block_size, product.input.width, product.twiddle_bits)
        (transform,) = instances(
            m, platform, "fft", ForwardFft, 1, shape=shape, shift=product.input.frac - product.spectrum.frac,
            spectrum_width=product.spectrum.width)
        m.submodules.mem = mem = memory.Memory(shape=self.data.shape(), depth=2 * count, init=[])
        write, read = mem.write_port(), mem.read_port()

        def step(index: Signal, end: int) -> Value:
            return Mux(index == end - 1, 0, index + 1)

        # Blocks are counted when they are accepted, so that the transform never has to wait for room.
        held, came = Signal(range(2 * count + 1)), Signal(range(max(2, count)))
        accepted = Signal()
        last = Signal(2)
        fill, filled = Signal(range(2 * count)), Signal(range(3))
        in_bank, out_bank = Signal(), Signal()
        completes = Signal()
        m.d.comb += [
            transform.i.payload.eq(self.i.payload.data),
            transform.i.valid.eq(self.i.valid & (held != 2 * count)),
            self.i.ready.eq(transform.i.ready & (held != 2 * count)),
            accepted.eq(self.i.valid & self.i.ready),
            transform.o.ready.eq(1),
            write.en.eq(transform.o.valid), write.addr.eq(fill), write.data.eq(transform.o.payload),
            read.en.eq(1), read.addr.eq(Mux(out_bank, count, 0) + self.addr), self.data.eq(read.data),
            completes.eq(transform.o.valid & ((fill == count - 1) | (fill == 2 * count - 1))),
            # In the cycle that frees a bank the answer is about the other one.
            self.full.eq(filled > self.free), self.last.eq(last.bit_select(out_bank ^ self.free, 1)),
        ]
        m.d.sync += [held.eq(held + accepted - Mux(self.free, count, 0)), filled.eq(filled + completes - self.free)]
        with m.If(accepted):
            m.d.sync += came.eq(step(came, count))
            with m.If(came == count - 1):
                m.d.sync += [last.bit_select(in_bank, 1).eq(self.i.payload.last), in_bank.eq(~in_bank)]
        with m.If(transform.o.valid):
            m.d.sync += fill.eq(step(fill, 2 * count))
        with m.If(self.free):
            m.d.sync += out_bank.eq(~out_bank)
        return m
