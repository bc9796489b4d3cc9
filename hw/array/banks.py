"""The data side of an array: vectors come in as blocks, are transformed once, and wait as spectra in C banks.

Column j of a vector lies in bank ``j % C`` at address ``base + j // C``, so that a group of C columns is read at
once. A vector is the input of a step and behind it the recurrent one; there is a ring of them, two for each stream.
Behind that ring lie the two vectors that are to be projected, if any.
"""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.fft import FftShape, ForwardFft
from circulant.hw.pipeline import block, delay
from circulant.hw.target import instances
from circulant.sim.circulant import Product

__all__ = ["Banks", "BankShape"]


class BankShape:
    """Sizes and places.

    Parameters:
        columns: C.
        x, h: the products with the two parts of a vector, the input and the recurrent one; they say the formats.
        projected: blocks of a vector that is to be projected, 0 without one; its formats are those of h.
        streams: sequences that are interleaved.
        width: of a number of a spectrum.
    """

    def __init__(self, *, columns: int, x: Product, h: Product, projected: int, streams: int, width: int) -> None:
        self.columns, self.x, self.h, self.projected, self.streams, self.width = (
            columns,
            x,
            h,
            projected,
            streams,
            width,
        )
        self.k = x.block_size
        self.x_blocks, self.h_blocks = (product.columns // product.block_size for product in (x, h))
        groups, projected_groups = -(-(self.x_blocks + self.h_blocks) // columns), -(-projected // columns)
        self.ring = 2 * streams
        self.bases = [n * groups for n in range(self.ring)]
        self.projected_bases = [self.ring * groups + n * projected_groups for n in range(2)]
        self.depth = self.ring * groups + 2 * projected_groups

    @property
    def most(self) -> int:
        """A bound of the layer's own blocks that have come and are not read to the end."""
        return 2 * max(self.streams * self.h_blocks, self.projected) + 2

    @property
    def needs(self) -> list[list[int]]:
        """For each command and group of columns: recurrent (or to be projected) blocks that must have come."""
        c, groups = self.columns, -(-(self.x_blocks + self.h_blocks) // self.columns)
        needs = [[min(self.h_blocks, max(0, (g + 1) * c - self.x_blocks)) for g in range(groups)]]
        if self.projected:
            needs.append([min(self.projected, (g + 1) * c) for g in range(-(-self.projected // c))])
        return needs


class Banks(wiring.Component):
    """Two writers, the input's stream and the layer's own blocks, and one reader.

    Members:
        i: stream of blocks of the input.
        inputs: whole inputs that wait, the one that is read included.
        last: for each place of the ring, whether its input was the last of a sequence.
        own: a block of the layer itself: h, or with ``projected`` one that is to be projected; with ``drop`` it is not
            kept but has its place, as after the last step of a sequence.
        have_h, have_projected: blocks of it that have come and are not read to the end.
        address, group, zero: what is read in this cycle; with ``zero`` the recurrent part reads as zero.
        done_h, done_input, done_projected: this cycle ends the reading of such a vector.
        spectra: of the columns read in the cycle before.
    """

    def __init__(self, shape: BankShape) -> None:
        self.shape = shape
        super().__init__(
            {
                "i": In(stream.Signature(block(shape.k, shape.x.input.width))),
                "inputs": Out(range(shape.ring + 1)),
                "last": Out(shape.ring),
                "own": In(
                    wiring.Signature(
                        {
                            "valid": Out(1),
                            "projected": Out(1),
                            "drop": Out(1),
                            "data": Out(data.ArrayLayout(signed(shape.h.input.width), shape.k)),
                        }
                    )
                ),
                "have_h": Out(range(shape.most + 1)),
                "have_projected": Out(range(shape.most + 1)),
                "address": In(range(shape.depth)),
                "group": In(range(max(2, shape.depth))),
                "zero": In(1),
                "done_input": In(1),
                "done_h": In(1),
                "done_projected": In(1),
                "spectra": Out(data.ArrayLayout(data.ArrayLayout(signed(shape.width), shape.k), shape.columns)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        shape = self.shape
        x_fft, x_bank, x_address, x_written = self._input(m, platform)
        comes, own_bank, own_address, own_spectrum = self._own(m, platform)
        # The layer's own blocks cannot wait; an input's block waits while they use its bank.
        conflict = comes & (own_bank == x_bank)
        m.d.comb += [x_fft.o.ready.eq(~conflict), x_written.eq(x_fft.o.valid & ~conflict)]
        spectrum = self.spectra.shape().elem_shape
        group, zero = delay(m, self.group, 1, name="group"), delay(m, self.zero, 1, name="zero")
        for bank in range(shape.columns):
            m.submodules[f"bank_{bank}"] = mem = memory.Memory(shape=spectrum, depth=shape.depth, init=[])
            write, read = mem.write_port(), mem.read_port()
            x_here = x_written & (x_bank == bank)
            m.d.comb += [read.en.eq(1), read.addr.eq(self.address), write.en.eq(x_here), write.addr.eq(x_address)]
            m.d.comb += [write.data[j].eq(x_fft.o.payload[j]) for j in range(shape.k)]
            with m.If(comes & (own_bank == bank)):
                m.d.comb += [write.en.eq(1), write.addr.eq(own_address)]
                m.d.comb += [write.data[j].eq(own_spectrum[j]) for j in range(shape.k)]
            recurrent = group >= max(0, -(-(shape.x_blocks - bank) // shape.columns))
            m.d.comb += self.spectra[bank].eq(Mux(zero & recurrent, 0, Value.cast(read.data)))
        return m

    def _input(self, m: Module, platform: Any) -> tuple[Any, Signal, Signal, Signal]:
        """Accept, count and transform the input's blocks; returns the transform, and where its next output goes."""
        shape, x = self.shape, self.shape.x
        (transform,) = instances(
            m,
            platform,
            "fft_x",
            ForwardFft,
            1,
            shape=FftShape(shape.k, x.input.width, x.twiddle_bits),
            shift=x.input.frac - x.spectrum.frac,
            spectrum_width=x.spectrum.width,
        )
        held, came, place = (
            Signal(range(shape.ring * shape.x_blocks + 1)),
            Signal(range(shape.x_blocks)),
            Signal(range(shape.ring)),
        )
        accepted, room, written = Signal(), Signal(), Signal()
        m.d.comb += [
            room.eq(held != shape.ring * shape.x_blocks),
            transform.i.payload.eq(self.i.payload.data),
            transform.i.valid.eq(self.i.valid & room),
            self.i.ready.eq(transform.i.ready & room),
            accepted.eq(self.i.valid & self.i.ready),
        ]
        m.d.sync += held.eq(held + accepted - Mux(self.done_input, shape.x_blocks, 0))
        with m.If(accepted):
            m.d.sync += came.eq(Mux(came == shape.x_blocks - 1, 0, came + 1))
            with m.If(came == shape.x_blocks - 1):
                m.d.sync += [
                    self.last.bit_select(place, 1).eq(self.i.payload.last),
                    place.eq(Mux(place == shape.ring - 1, 0, place + 1)),
                ]
        bank, address, ends = self._places(m, "x", written, 0, shape.x_blocks, shape.bases)
        m.d.sync += self.inputs.eq(self.inputs + (written & ends) - self.done_input)
        return transform, bank, address, written

    def _own(self, m: Module, platform: Any) -> tuple[Signal, Signal, Signal, Any]:
        """Transform and count the layer's own blocks; returns when, where and what is written."""
        shape, h = self.shape, self.shape.h
        fft_shape = FftShape(shape.k, h.input.width, h.twiddle_bits)
        (transform,) = instances(
            m,
            platform,
            "fft_own",
            ForwardFft,
            1,
            shape=fft_shape,
            shift=h.input.frac - h.spectrum.frac,
            spectrum_width=h.spectrum.width,
        )
        latency = fft_shape.latency + 1
        m.d.comb += [
            transform.i.payload.eq(self.own.data),
            transform.i.valid.eq(self.own.valid),
            transform.o.ready.eq(1),
        ]
        projected, drop = (
            delay(m, self.own.projected, latency, name="projected"),
            delay(m, self.own.drop, latency, name="drop"),
        )
        comes, comes_h, comes_projected = Signal(), Signal(), Signal()
        m.d.comb += [comes.eq(transform.o.valid), comes_h.eq(comes & ~projected), comes_projected.eq(comes & projected)]
        following = shape.bases[shape.streams :] + shape.bases[: shape.streams]
        bank, address, _ = self._places(m, "h", comes_h, shape.x_blocks, shape.h_blocks, following)
        m.d.sync += self.have_h.eq(self.have_h + (comes_h & ~drop) - Mux(self.done_h, shape.h_blocks, 0))
        if shape.projected:
            p_bank, p_address, _ = self._places(m, "p", comes_projected, 0, shape.projected, shape.projected_bases)
            bank, address = Mux(projected, p_bank, bank), Mux(projected, p_address, address)
            m.d.sync += self.have_projected.eq(
                self.have_projected + comes_projected - Mux(self.done_projected, shape.projected, 0)
            )
        own_bank, own_address = Signal(range(max(2, shape.columns))), Signal(range(shape.depth))
        m.d.comb += [own_bank.eq(bank), own_address.eq(address)]
        return comes, own_bank, own_address, transform.o.payload

    def _places(
        self, m: Module, name: str, step: Value, first: int, count: int, bases: list[int]
    ) -> tuple[Signal, Signal, Signal]:
        """Bank and address of block after block, ``count`` from column ``first`` on at each base in turn."""
        c, depth = self.shape.columns, self.shape.depth
        starts = [base + first // c for base in bases]
        bank, address = (
            Signal(range(max(2, c)), name=f"{name}_bank", init=first % c),
            Signal(range(depth), name=f"{name}_address", init=starts[0]),
        )
        index, turn = Signal(range(max(2, count)), name=f"{name}_index"), Signal(range(len(bases)), name=f"{name}_turn")
        ends = Signal(name=f"{name}_ends")
        m.d.comb += ends.eq(index == count - 1)
        with m.If(step):
            m.d.sync += [
                index.eq(index + 1),
                bank.eq(Mux(bank == c - 1, 0, bank + 1)),
                address.eq(address + (bank == c - 1)),
            ]
            with m.If(ends):
                m.d.sync += [
                    index.eq(0),
                    bank.eq(first % c),
                    turn.eq(Mux(turn == len(bases) - 1, 0, turn + 1)),
                    address.eq(Array([Const(start, range(depth)) for start in starts[1:] + starts[:1]])[turn]),
                ]
        return bank, address, ends
