"""The data side of an array: vectors come in as blocks, are transformed once, and wait as spectra in C banks.

Column j of a vector lies in bank ``j % C`` at address ``base + j // C``, so that a group of C columns is read at once.
A vector is the input of a step and behind it the recurrent one, if any, from the column on that the schedule says;
there is a ring of them, two for each stream, or three where there is no recurrent one: one that is read, one that
comes, and one on its way. Behind that ring lie two second vectors, if any: what the pointwise unit gives for a product
of its own.
"""
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fft import FftShape, ForwardFft, forward_latency
from circulant.hw.array.bank_shape import BankShape, forwards, write_latency
from circulant.hw.array.issue import spectra_latency
from circulant.hw.emit.target import Platform, instances
from circulant.hw.stream.pipeline import block, delay, when
from circulant.sim.arith.circulant import Product

__all__ = ["Banks"]


class Banks(wiring.Component):
    """Two writers, the input's stream and the layer's own blocks, and one reader.

    Parameters:
        reloadable: whether there is a ``restart``.

    Members:
        i: stream of blocks of the input, ``aside`` of them side by side.
        inputs: whole inputs that wait, the one that is read included.
        last: for each place of the ring, whether its input was the last of a sequence.
        own: a block of the layer itself, or as many side by side as the shape says.
        own.valid: a block comes.
        own.second: it belongs to the second vector, not to the recurrent one.
        own.drop: it is not kept but has its place, as after the last step of a sequence.
        own.data: its values.
        have: blocks of the recurrent and the second vector that have come and are not read to the end. A block counts
            in the cycle before that in which it can be read, see `write_latency`. Where ``counts`` of `BankShape` is 3
            also those of the input, which count a cycle later unless they are ``foreknown``.
        address: address in all banks that is read in this cycle.
        group: number of the group of columns that is read in this cycle.
        zero: the recurrent part of the vector reads as zero.
        done_input: this cycle ends the reading of an input.
        done_h: this cycle ends the reading of a recurrent vector.
        done_second: this cycle ends the reading of a second vector.
        spectra: spectra of the columns that were read `circulant.hw.array.issue.spectra_latency` cycles before.
        restart: the recurrent vectors of all streams that wait are forgotten, and come anew, the next one first.
        again: the recurrent vector that was read is to be read once more.
    """

    def __init__(self, shape: BankShape, *, reloadable: bool = False) -> None:
        self.shape, self._reloadable = shape, reloadable
        state = shape.x.input.width if shape.h is None else shape.h.input.width
        super().__init__({
            "i": In(stream.Signature(block(shape.k * shape.aside, shape.x.input.width))),
            **shape.waiting.members,
            "own": In(wiring.Signature({
                "valid": Out(1), "second": Out(1), "drop": Out(1),
                "data": Out(data.ArrayLayout(signed(state), shape.own * shape.k)),
            })),
            "have": Out(data.ArrayLayout(range(shape.most + 1), shape.counts)),
            "address": In(range(max(2, shape.depth))), "group": In(range(max(2, shape.depth))), "zero": In(1),
            "done_input": In(1), "done_h": In(1), "done_second": In(1),
            "spectra": Out(data.ArrayLayout(data.ArrayLayout(signed(shape.width), shape.k), shape.columns)),
            **({"restart": In(1), "again": In(1)} if reloadable else {}),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape = self.shape

        # The two writers: the input's transforms and the layer's own one.
        x_ffts, x_bank, x_address, x_written = self._input(m, platform)
        x_fft = x_ffts[0]
        m.d.comb += x_written.eq(x_fft.o.valid & x_fft.o.ready)
        comes, own_bank, own_address, own_spectra = Const(0), x_bank, x_address, [each.o.payload for each in x_ffts]
        if shape.h is not None:
            comes, own_bank, own_address, own_spectra = self._own(m, platform, shape.h)
        # The layer's own blocks cannot wait; an input's block waits while they use its bank.
        places = shape.own.bit_length() - 1
        m.d.comb += [each.o.ready.eq(~(comes & (own_bank[places:] == x_bank[places:]))) for each in x_ffts]

        # The banks: what comes is written to its bank, and all of them are read at once.
        spectrum, beside = self.spectra.shape().elem_shape, len(own_spectra)
        forwarding = shape.foreknown or (shape.h is not None and forwards(shape.k, shape.levels))
        forwarded = [delay(m, Value.cast(each), int(forwarding), name="forwarded") for each in own_spectra]
        group, zero, address = (delay(m, value, 1, name=name) for name, value in (
            ("group", self.group), ("zero", self.zero), ("address", self.address)))
        for bank in range(shape.columns):
            m.submodules[f"bank_{bank}"] = mem = memory.Memory(shape=spectrum, depth=shape.depth, init=[])
            write = mem.write_port()
            read = mem.read_port()
            x_here = x_written & (x_bank == bank - bank % shape.aside)
            m.d.comb += [read.en.eq(1), read.addr.eq(self.address), write.en.eq(x_here), write.addr.eq(x_address)]
            word: Value = read.data
            m.d.comb += [write.data[j].eq(x_ffts[bank % shape.aside].o.payload[j]) for j in range(shape.k)]
            here = x_here if shape.foreknown else comes & (own_bank == bank - bank % beside)
            if not shape.foreknown:
                with m.If(here):
                    m.d.comb += [write.en.eq(1), write.addr.eq(own_address)]
                    m.d.comb += [write.data[j].eq(own_spectra[bank % beside][j]) for j in range(shape.k)]
            if forwarding:  # What is written in the cycle of its reading.
                again = delay(m, here & (own_address == self.address), 1, name=f"again_{bank}")
                word = Mux(again, forwarded[bank % beside], Value.cast(word))
            nothing = self._beyond(bank, group, address)
            if shape.h is not None:
                nothing |= zero & (group >= max(0, -(-(shape.head - bank) // shape.columns)))
            m.d.comb += Value.cast(self.spectra[bank]).eq(when(
                m, Mux(nothing, 0, Value.cast(word)), spectrum, kept=spectra_latency(shape.levels) > 1,
                name=f"spectrum_{bank}"))
        return m

    def _beyond(self, bank: int, group: Value, address: Value) -> Value:
        """Whether a bank is read behind the last column of a vector, where nothing was ever written: its weights are
        zero, but to a simulator an unknown number times zero is unknown."""
        shape, found = self.shape, []
        first = address < shape.second_bases[0]
        for blocks, here in ((shape.x_blocks if shape.head > shape.x_blocks else 0, first),
                             (shape.head + shape.h_blocks, first),
                             (shape.second_blocks, address >= shape.second_bases[0])):
            if bank >= (blocks % shape.columns or shape.columns):
                last = group == blocks // shape.columns
                found.append(last & here if shape.second_blocks else last)
        return Cat(*found).any() if found else Const(0)

    def _input(self, m: Module, platform: Platform) -> tuple[list[ForwardFft], Value, Signal, Signal]:
        """Accept, count and transform the input's blocks; returns the transforms, and where their next output goes."""
        shape, x = self.shape, self.shape.x
        beats = shape.beats
        transforms = instances(m, platform, "fft_x", ForwardFft, shape.aside, shape=_fft(x, shape.levels),
                               shift=_shift(x), spectrum_width=x.spectrum.width)

        # Accepted while the ring has a place for it.
        held = Signal(range(shape.ring * beats + 1))
        accepted = Signal()
        room = Signal()
        written = Signal()
        m.d.comb += [
            room.eq(held != shape.ring * beats),
            *(transform.i.payload[j].eq(self.i.payload.data[n * shape.k + j])
              for n, transform in enumerate(transforms) for j in range(shape.k)),
            *(transform.i.valid.eq(self.i.valid & room) for transform in transforms),
            self.i.ready.eq(transforms[0].i.ready & room),
            accepted.eq(self.i.valid & self.i.ready),
        ]
        m.d.sync += held.eq(held + accepted - Mux(self.done_input, beats, 0))
        self._note_ends(m, accepted, beats)

        # The place of what leaves the transforms, and the whole inputs that wait.
        bank, address, ends = self._places(m, "x", written, first=0, count=beats, bases=shape.bases,
                                           aside=shape.aside)
        counts = written
        if shape.foreknown:  # Known a cycle before it can be read.
            counts = delay(m, accepted, write_latency(shape.k, shape.levels) - 2, name="counts", reset_less=False)
            ends = Const(1)
            if beats > 1:
                beat = Signal(range(beats), name="counted")
                ends = beat == beats - 1
                with m.If(counts):
                    m.d.sync += beat.eq(Mux(ends, 0, beat + 1))
        m.d.sync += self.inputs.eq(self.inputs + (counts & ends) - self.done_input)
        if shape.counts > 2:
            come = counts if shape.aside == 1 else Mux(counts, shape.aside, 0)
            m.d.sync += self.have[2].eq(self.have[2] + come - Mux(self.done_input, beats * shape.aside, 0))
        return transforms, bank, address, written

    def _note_ends(self, m: Module, accepted: Value, beats: int) -> None:
        """Note for each input whether it is the last of its sequence."""
        if self.shape.single:
            m.d.comb += self.last.eq(-1)
            return
        beat = Signal(range(max(2, beats)))
        vector = Signal(range(self.shape.ring))
        with m.If(accepted):
            m.d.sync += beat.eq(Mux(beat == beats - 1, 0, beat + 1))
            with m.If(beat == beats - 1):
                m.d.sync += [
                    self.last.bit_select(vector, 1).eq(self.i.payload.last),
                    vector.eq(Mux(vector == self.shape.ring - 1, 0, vector + 1)),
                ]

    def _own(self, m: Module, platform: Platform, h: Product) -> tuple[Value, Value, Value, list[data.View]]:
        """Transform and count the layer's own blocks; returns when, where, of the first one, and what is written."""
        shape, other = self.shape, {}
        if shape.second is not None:
            other = {"other_shift": _shift(shape.second), "other_width": shape.second.spectrum.width}
        transforms = instances(m, platform, "fft_own", ForwardFft, shape.own, shape=_fft(h, shape.levels),
                               shift=_shift(h), spectrum_width=h.spectrum.width, **other)
        known = write_latency(shape.k, shape.levels) - 2
        for n, transform in enumerate(transforms):
            m.d.comb += [*(transform.i.payload[j].eq(self.own.data[n * shape.k + j]) for j in range(shape.k)),
                         transform.i.valid.eq(self.own.valid), transform.o.ready.eq(1)]

        # What comes out of the transform, known a cycle before it can be read.
        soon = delay(m, self.own.valid, known, name="soon", reset_less=False)
        drop_soon = delay(m, self.own.drop, known, name="drop_soon")
        second_soon: Value = Const(0)
        second: Value = Const(0)
        if shape.second is not None:
            second_soon = delay(m, self.own.second, known, name="second_soon")
            second = delay(m, second_soon, forward_latency(shape.k, shape.levels) - known, name="second")
        comes = Signal()
        comes_h = Signal()
        comes_second = Signal()
        m.d.comb += [comes.eq(transforms[0].o.valid), comes_h.eq(comes & ~second), comes_second.eq(comes & second)]

        # The place of the recurrent vector, and its blocks that have come.
        following = shape.bases[shape.streams:] + shape.bases[:shape.streams]
        h_soon = soon & ~second_soon & ~drop_soon
        restart = self.restart if self._reloadable else None
        bank, address, _ = self._places(m, "h", step=comes_h, first=shape.head,
                                        count=shape.h_blocks // shape.own, bases=following, half=restart,
                                        aside=shape.own)
        m.d.sync += self.have[0].eq(self.have[0] + Mux(h_soon, shape.own, 0) - Mux(self.done_h, shape.h_blocks, 0))
        if restart is not None:
            with m.If(self.again):
                m.d.sync += self.have[0].eq(shape.h_blocks)
            with m.If(restart):
                m.d.sync += self.have[0].eq(0)
        if shape.second is not None:
            m.d.comb += [transform.other.eq(self.own.second) for transform in transforms]
            places = self._places(m, "second", comes_second, first=0, count=shape.second_blocks // shape.own,
                                  bases=shape.second_bases, aside=shape.own)
            own_bank = Signal.like(bank, name="own_bank")
            own_address = Signal.like(address, name="own_address")
            m.d.comb += [own_bank.eq(Mux(second, places[0], bank)), own_address.eq(Mux(second, places[1], address))]
            bank, address = own_bank, own_address
            m.d.sync += self.have[1].eq(
                self.have[1] + Mux(soon & second_soon, shape.own, 0) - Mux(self.done_second, shape.second_blocks, 0))
        return comes, bank, address, [transform.o.payload for transform in transforms]

    def _places(self, m: Module, name: str, step: Value, first: int, count: int, bases: list[int],
                half: Value | None = None, *, aside: int = 1) -> tuple[Value, Signal, Signal]:
        """Bank and address of block after block, ``count`` from column ``first`` on at each base in turn; of the first
        of so many ``aside`` that are written at once, ``count`` times.

        With ``half``, between two vectors, it goes half the bases back, which is as well half of them on.
        """
        c, depth = self.shape.columns, self.shape.depth
        starts = [base + first // c for base in bases]
        address = Signal(range(max(2, depth)), name=f"{name}_address", init=starts[0])
        turn = Signal(range(len(bases)), name=f"{name}_turn")

        # The bank, and whether the vector ends: known where all of it is one bank, or one block.
        bank: Value = Const(0)
        wraps: Value = Const(1)
        if c > aside:
            bank = Signal(range(c), name=f"{name}_bank", init=first % c)
            wraps = bank == c - aside
        ends = Signal(name=f"{name}_ends", init=1)
        with m.If(step):
            m.d.sync += address.eq(address + wraps)
            if c > aside:
                m.d.sync += bank.eq(Mux(ends, first % c, Mux(wraps, 0, bank + aside)))
            with m.If(ends):
                m.d.sync += [
                    turn.eq(Mux(turn == len(bases) - 1, 0, turn + 1)),
                    address.eq(Array([Const(start, range(max(2, depth)))
                                      for start in starts[1:] + starts[:1]])[turn]),
                ]
        if count > 1:
            index = Signal(range(count), name=f"{name}_index")
            m.d.comb += ends.eq(index == count - 1)
            with m.If(step):
                m.d.sync += index.eq(Mux(ends, 0, index + 1))
        if half is not None:
            n = len(bases) // 2
            with m.If(half):
                m.d.sync += [
                    turn.eq(Mux(turn < n, turn + n, turn - n)),
                    address.eq(Array([Const(start, range(max(2, depth))) for start in starts[n:] + starts[:n]])[turn]),
                ]
        return bank, address, ends


def _fft(product: Product, levels: int) -> FftShape:
    return FftShape(product.block_size, product.input.width, product.twiddle_bits, levels)


def _shift(product: Product) -> int:
    return product.input.frac - product.spectrum.frac
