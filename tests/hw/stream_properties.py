"""Properties of streams, beside a unit that is under proof: one word, or one element, that is picked is followed.

Each property is an output ``ok_…``, each assumption about the inputs an output ``assume_…``.
"""
from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import requantize
from circulant.hw.stream.frame_guard import FrameGuard
from circulant.hw.stream.pipeline import Registers
from circulant.hw.stream.width_converter import WidthConverter


class Pipeline(wiring.Component):
    """The skeleton of the transforms, with clocks that stop where it is ``gated``; ``fault`` plants a bug in it."""

    def __init__(self, depth, fault="", *, gated=False):
        self._depth, self._fault, self._gated = depth, fault, gated
        super().__init__({"i": In(stream.Signature(1)), "o": Out(stream.Signature(1))})

    def elaborate(self, platform):
        m = Module()
        offered = 1 if self._fault == "no stall" else self.o.ready
        registers = Registers(m, valid=self.i.valid, ready=offered, count=self._depth, gated=self._gated)
        values = [self.i.payload]
        for at in range(1, self._depth + (self._fault != "off by one")):
            values = registers.stage(values, at)
        m.d.comb += [
            self.o.payload.eq(values[0]), self.o.valid.eq(registers.close()),
            self.i.ready.eq(1 if self._fault == "always ready" else registers.move)]
        return m


def watched(m, port, kept):
    """``kept``: what was offered and not taken is offered again."""
    waits, before = Signal(), Signal.like(port.payload)
    m.d.sync += [waits.eq(port.valid & ~port.ready), before.eq(port.payload)]
    m.d.comb += kept.eq(~waits | (port.valid & (port.payload == before)))


class Words(wiring.Component):
    """A unit that gives a word for a word, and holds ``holds`` of them at the most.

    Members:
        assume_kept, ok_kept: an offer stays as it is until it is taken, before the unit and behind it.
        ok_count: what leaves has come, and no more is inside than there is room for.
        ok_word: a word that was picked leaves when those before it have left, as ``becomes`` of it.
        ok_alive: when there is something inside and the sink is ready, something leaves after ``holds`` + 1 cycles.
        ok_room: what there is room for is accepted.
        ok_ring: of a queue: what the others follow from by induction.

    Parameters:
        ring: words of a queue's memory, in front of one at the output; 0 for other units.
        prompt: whether what comes goes past the empty memory.
    """

    def __init__(self, unit, *, holds, becomes=lambda word: word, room=False, ring=0, prompt=False):
        self._prompt = prompt
        self._unit, self._holds, self._becomes, self._room, self._ring = unit, holds, becomes, room, ring
        super().__init__({
            "valid": In(1), "payload": In(unit.i.payload.shape()), "ready": In(1), "pick": In(1),
            "assume_kept": Out(1), "ok_kept": Out(1), "ok_count": Out(1), "ok_word": Out(1), "ok_alive": Out(1),
            "ok_room": Out(1), "ok_ring": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        m.d.comb += [unit.i.valid.eq(self.valid), unit.i.payload.eq(self.payload), unit.o.ready.eq(self.ready)]
        watched(m, unit.i, self.assume_kept)
        watched(m, unit.o, self.ok_kept)
        comes, goes = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready

        inside, ahead = Signal(range(self._holds + 2)), Signal(range(self._holds + 2))
        tracked, word = Signal(), Signal(len(Value.cast(unit.o.payload)))
        leaves = tracked & goes & (ahead == 0)
        m.d.sync += inside.eq(inside + comes - goes)
        with m.If(leaves):
            m.d.sync += tracked.eq(0)
        with m.If(tracked & goes):
            m.d.sync += ahead.eq(ahead - 1)
        with m.If(~tracked & comes & self.pick):
            m.d.sync += [tracked.eq(1), ahead.eq(inside - goes), word.eq(self._becomes(unit.i.payload))]
        slow = Signal(range(self._holds + 3))
        with m.If((inside != 0) & unit.o.ready & ~goes):
            m.d.sync += slow.eq(slow + 1)
        with m.Else():
            m.d.sync += slow.eq(0)
        m.d.comb += [
            self.ok_count.eq((~goes | (inside != 0)) & (inside <= self._holds)),
            self.ok_word.eq(~leaves | (Value.cast(unit.o.payload) == word)),
            self.ok_alive.eq(slow <= self._holds),
            self.ok_room.eq(unit.i.ready | (inside == self._holds) if self._room else 1),
            self.ok_ring.eq(self._known(
                m, comes=comes, inside=inside, tracked=tracked, ahead=ahead, word=word) if self._ring else 1)]
        return m

    def _known(self, m, *, comes, inside, tracked, ahead, word):
        """A second ring beside the queue's, which holds the same, and where in it the word that was picked is."""
        size, port = self._ring, self._unit.o
        m.submodules.ring = ring = memory.Memory(shape=len(word), depth=size, init=[])
        write, read = ring.write_port(), ring.read_port(domain="comb")
        waits, first, full, reads = Signal(range(size + 1)), Signal(range(size)), Signal(), Signal()
        behind, place = Signal(range(size + 2)), Signal(range(2 * size + 2))
        at = Signal(range(2 * size + 2))
        passes, kept = Signal(), Signal()
        m.d.comb += [
            passes.eq(comes & (waits == 0) & (~full | port.ready) & self._prompt), kept.eq(comes & ~passes),
            reads.eq((waits != 0) & (~full | port.ready)), write.en.eq(kept), write.data.eq(self._unit.i.payload),
            behind.eq(ahead - full), place.eq(first + behind), read.addr.eq(Mux(place >= size, place - size, place)),
            at.eq(first + waits)]
        m.d.sync += [full.eq(reads | passes | (full & ~port.ready)), waits.eq(waits + kept - reads)]
        for address, moves in ((write.addr, kept), (first, reads)):
            with m.If(moves):
                m.d.sync += address.eq(Mux(address == size - 1, 0, address + 1))
        there = Mux(full & (ahead == 0), Value.cast(port.payload), read.data) == word
        return ((port.valid == full) & (inside == waits + full) & (waits <= size) & (first < size)
                & (full | (waits <= int(not self._prompt))) & (write.addr == Mux(at >= size, at - size, at))
                & (~tracked | ((ahead < inside) & there)))


class Elements(wiring.Component):
    """A `WidthConverter` of one bit per element: element ``place`` of a vector that is picked leaves where it belongs.

    Members:
        pick, place: in the cycle before a vector begins: follow this element of it.
        assume_…: offers stay until they are taken; only the last block of a vector may be marked; the place exists.
        ok_kept: an offer stays as it is until it is taken.
        ok_element: the element leaves after it has come, in its block and vector, and zero where the input has none.
        ok_last: the last block of a vector, and none before, carries its mark.
        ok_count: a vector ends at the output in the cycle in which it ends at the input, or later, but before the next.
        ok_alive: when the sink is ready, and something waits or is offered, a block leaves in the cycles of its parts.
    """

    def __init__(self, unit, *, size, k_in, k_out):
        self._unit, self._k_in, self._k_out = unit, k_in, k_out
        self._blocks_in, self._blocks_out = -(-size // k_in), -(-size // k_out)
        self._places = self._blocks_out * k_out
        super().__init__({
            "valid": In(1), "payload": In(k_in), "mark": In(1), "ready": In(1), "pick": In(1),
            "place": In(range(self._places)),
            "assume_kept": Out(1), "assume_mark": Out(1), "assume_place": Out(1),
            "ok_kept": Out(1), "ok_element": Out(1), "ok_last": Out(1), "ok_count": Out(1), "ok_alive": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        k_in, k_out, blocks_in, blocks_out = self._k_in, self._k_out, self._blocks_in, self._blocks_out
        m.d.comb += [
            unit.i.valid.eq(self.valid), Value.cast(unit.i.payload.data).eq(self.payload),
            unit.i.payload.last.eq(self.mark), unit.o.ready.eq(self.ready)]
        watched(m, unit.i, self.assume_kept)
        watched(m, unit.o, self.ok_kept)
        comes, goes = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready

        at_in, at_out = Signal(range(blocks_in + 1)), Signal(range(blocks_out + 1))
        inside, fresh = Signal(2), Signal(init=1)
        ends_in, ends_out = at_in == blocks_in - 1, at_out == blocks_out - 1
        m.d.sync += [inside.eq(inside + (comes & ends_in) - (goes & ends_out)), fresh.eq(0)]
        with m.If(comes):
            m.d.sync += at_in.eq(Mux(ends_in, 0, at_in + 1))
        with m.If(goes):
            m.d.sync += at_out.eq(Mux(ends_out, 0, at_out + 1))

        # The vector at the input is followed when ``entering``; ``ahead`` whole vectors leave before it.
        tracked, entering, ahead, place = Signal(), Signal(), Signal(2), Signal.like(self.place)
        known, element, marked = Signal(), Signal(), Signal()
        with m.If(goes & ends_out & tracked):
            m.d.sync += [ahead.eq(ahead - 1), tracked.eq(ahead != 0)]
        with m.If(comes & ends_in):
            m.d.sync += entering.eq(0)
        with m.If(self.pick & ~tracked & (fresh | (comes & ends_in))):
            m.d.sync += [tracked.eq(1), entering.eq(1), place.eq(self.place), known.eq(0),
                         ahead.eq(Mux(fresh, 0, inside + 1 - (goes & ends_out)))]
        arrives = entering & self.valid & (at_in == place // k_in)
        here, now_known = (self.payload >> place % k_in)[0], Signal()
        with m.If(arrives & comes):
            m.d.sync += [known.eq(1), element.eq(here)]
        with m.If(entering & comes & ends_in):
            m.d.sync += marked.eq(self.mark)
        absent = place >= blocks_in * k_in
        expected = Mux(absent, 0, Mux(arrives, here, element))
        m.d.comb += now_known.eq(absent | arrives | known)
        leaves = tracked & goes & (ahead == 0)
        given = (Value.cast(unit.o.payload.data) >> place % k_out)[0]

        parts = max(k_in // k_out, k_out // k_in)
        owed, slow = (inside != 0) | (at_in * k_in >= (at_out + 1) * k_out), Signal(range(parts + 3))
        with m.If(unit.o.ready & (unit.i.valid | owed) & ~goes):
            m.d.sync += slow.eq(slow + 1)
        with m.Else():
            m.d.sync += slow.eq(0)
        m.d.comb += [
            self.assume_mark.eq(~(self.valid & self.mark) | ends_in),
            self.assume_place.eq((self.place < self._places) & ~(fresh & self.valid)),
            self.ok_element.eq(~(leaves & (at_out == place // k_out)) | (now_known & (given == expected))),
            self.ok_last.eq(~goes | Mux(ends_out, ~leaves | (unit.o.payload.last == Mux(entering, self.mark, marked)),
                                        ~unit.o.payload.last)),
            self.ok_count.eq((inside <= 1) & ~(goes & ends_out & (inside == 0) & ~(comes & ends_in))),
            self.ok_alive.eq(slow <= parts)]
        return m


class Frames(wiring.Component):
    """A `FrameGuard` of ``lanes`` values of a bit; before it nothing is assumed but that an offer stays until it is
    taken.

    Members:
        assume_kept, ok_kept: an offer stays as it is until it is taken, before the unit and behind it.
        ok_last: what passes is marked where a frame may end: at the end of a vector, of a sample at its size.
        ok_data: a beat passes as it came, but for what lies behind the vector, which is zero.
        ok_next: the first beat behind a mark, or behind a reset, is the first one of a frame.
        ok_flag: ``malformed`` tells whether a mark has been where no frame ends, or none where one does.
        ok_alive: when the sink is ready and a beat is offered, one comes or one goes; zeros end without an offer.
    """

    def __init__(self, unit, *, size, vectors, lanes=2):
        self._unit, self._size, self._vectors, self._lanes = unit, size, vectors, lanes
        super().__init__({
            "valid": In(1), "payload": In(lanes), "mark": In(1), "ready": In(1),
            "assume_kept": Out(1), "ok_kept": Out(1), "ok_last": Out(1), "ok_data": Out(1), "ok_next": Out(1),
            "ok_flag": Out(1), "ok_alive": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        lanes = self._lanes
        beats, count = -(-self._size // lanes), self._vectors or 1
        every, rest = (1 << lanes) - 1, (1 << (self._size - 1) % lanes + 1) - 1
        m.d.comb += [unit.i.valid.eq(self.valid), Value.cast(unit.i.payload.data).eq(self.payload),
                     unit.i.payload.last.eq(self.mark), unit.o.ready.eq(self.ready)]
        watched(m, unit.i, self.assume_kept)
        watched(m, unit.o, self.ok_kept)
        comes, goes = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready

        at, part, fresh, flag = Signal(range(beats * count + 1)), Signal(range(beats + 1)), Signal(init=1), Signal()
        late = Signal()  # What comes is too much, up to its mark.
        stops = at == beats * count - 1
        passes = comes & ~late
        with m.If(goes):
            m.d.sync += [at.eq(Mux(stops, 0, at + 1)), part.eq(Mux(part == beats - 1, 0, part + 1))]
        with m.If(comes):
            m.d.sync += fresh.eq(self.mark)
        wrong = self.mark & ~stops if self._vectors is None else self.mark != stops
        with m.If(passes & wrong):
            m.d.sync += [flag.eq(1), late.eq(~self.mark)]
        with m.If(comes & self.mark):
            m.d.sync += late.eq(0)
        wanted = Mux(passes, self.payload & Mux(part == beats - 1, rest, every), 0)
        marks = stops if self._vectors else stops & (~passes | self.mark)
        m.d.comb += [
            self.ok_last.eq(~goes | (unit.o.payload.last == marks)),
            self.ok_data.eq(~goes | (Value.cast(unit.o.payload.data) == wanted)),
            self.ok_next.eq(~(comes & fresh) | (goes & (at == 0))),
            self.ok_flag.eq(unit.malformed == flag),
            self.ok_alive.eq(~unit.o.ready | comes | goes | ~(unit.i.valid | unit.busy))]
        return m


class Clipped(wiring.Component):
    """A number of ``size`` bits, rounded by ``shift`` bits and clipped to ``width``.

    Members:
        ok_range: what comes out is rounded half-up where the format has it, else the nearest limit: it never wraps.
    """

    def __init__(self, size, shift, width, rounded=requantize):
        self._size, self._shift, self._width, self._rounded = size, shift, width, rounded
        super().__init__({"x": In(signed(size)), "ok_range": Out(1)})

    def elaborate(self, platform):
        m = Module()
        given = Signal(signed(max(self._width, self._size - self._shift + 1)))
        whole, high = Signal(signed(self._size + abs(self._shift) + 2)), (1 << self._width - 1) - 1
        half = (1 << self._shift >> 1) if self._shift > 0 else 0
        moved = (self.x + half) >> self._shift if self._shift > 0 else self.x << -self._shift
        m.d.comb += [given.eq(self._rounded(self.x, self._shift, self._width)), whole.eq(moved),
                     self.ok_range.eq(given == Mux(whole > high, high, Mux(whole < -high - 1, -high - 1, whole)))]
        return m


def frames(size, vectors, *, really=None, lanes=2):
    shape = data.StructLayout({"data": data.ArrayLayout(1, lanes), "last": 1})
    return Frames(FrameGuard(shape, size=really or size, vectors=vectors), size=size, vectors=vectors, lanes=lanes)


def elements(size, k_in, k_out, *, really=None):
    return Elements(WidthConverter(size=really or size, width=1, k_in=k_in, k_out=k_out), size=size, k_in=k_in,
                    k_out=k_out)
