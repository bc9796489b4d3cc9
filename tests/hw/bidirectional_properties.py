"""Properties of the streams of a bidirectional layer, beside a unit that is under proof; see `stream_properties`."""
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.stream.join import Join, fork
from circulant.hw.stream.reverse import Limit, Reverse
from tests.hw.stream_properties import watched

BIT = data.StructLayout({"data": data.ArrayLayout(1, 1), "last": 1})


class Forked(wiring.Component):
    """One stream to ``count`` sinks, each of which takes when it likes.

    Members:
        assume_kept, ok_kept: an offer stays as it is until it is taken, before the fork and at each sink.
        ok_once: a sink takes each word of the source, that word, and no other before the source has given it away.
        ok_alive: a word is given away in the cycle in which the last sink takes it.

    Parameters:
        fault: plants a bug: the last sink is left out.
    """

    def __init__(self, count, fault=False):
        self._count, self._fault = count, fault
        super().__init__({"valid": In(1), "payload": In(1), "ready": In(count), "assume_kept": Out(1),
                          "ok_kept": Out(1), "ok_once": Out(1), "ok_alive": Out(1)})

    def elaborate(self, platform):
        m = Module()
        source, *sinks = (stream.Signature(1).create() for _ in range(self._count + 1))
        fork(m, source, sinks[:-1] if self._fault else sinks, name="fork")
        m.d.comb += [source.valid.eq(self.valid), source.payload.eq(self.payload), *(
            sink.ready.eq(self.ready[n]) for n, sink in enumerate(sinks))]
        watched(m, source, self.assume_kept)
        kept, once, has = Signal(self._count), Signal(self._count), Signal(self._count)
        gone = source.valid & source.ready
        for n, sink in enumerate(sinks):
            watched(m, sink, kept[n])
            takes, had = sink.valid & sink.ready, Signal()
            m.d.comb += [has[n].eq(had | takes),
                         once[n].eq(~takes | (~had & source.valid & (sink.payload == source.payload)))]
            m.d.sync += had.eq(has[n] & ~gone)
        m.d.comb += [self.ok_kept.eq(kept.all()), self.ok_once.eq(once.all() & (~gone | has.all())),
                     self.ok_alive.eq(gone == has.all())]
        return m


class Joined(wiring.Component):
    """A `Join` of one bit per value: value ``place`` of the vectors that leave is followed; it is chosen once.

    Members:
        assume_…: offers stay until they are taken; the second stream is marked only at the end of a vector, and zero
            behind its last value; the place exists, and nothing is offered before it is chosen.
        ok_kept: an offer stays as it is until it is taken.
        ok_count: with a vector that leaves, one of each stream has been taken, and no block more.
        ok_value: the value leaves where it belongs, and zero behind the last one.
        ok_last: the last block of a vector, and none before, has the mark of the second stream's.
        ok_alive: when both offer and the sink is ready, a block leaves.
    """

    def __init__(self, sizes, k, *, really=None):
        self._sizes, self._k, self._unit = sizes, k, Join(sizes=really or sizes, width=1, k=k)
        self._blocks = [-(-size // k) for size in (*sizes, sum(sizes))]
        names = {f"{name}_{n}": In(shape) for n in range(2) for name, shape in (("valid", 1), ("data", k), ("mark", 1))}
        super().__init__({**names, "ready": In(1), "place": In(range(self._blocks[2] * k)), "assume_kept": Out(1),
                          "assume_mark": Out(1), "assume_place": Out(1), "ok_kept": Out(1), "ok_count": Out(1),
                          "ok_value": Out(1), "ok_last": Out(1), "ok_alive": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        k, (size, other), (*blocks, total) = self._k, self._sizes, self._blocks
        taken, offered, ports = Signal(2), Signal(2), (unit.first, unit.second)
        for n, port in enumerate(ports):
            m.d.comb += [port.valid.eq(getattr(self, f"valid_{n}")), port.payload.last.eq(getattr(self, f"mark_{n}")),
                         Value.cast(port.payload.data).eq(getattr(self, f"data_{n}")),
                         taken[n].eq(port.valid & port.ready)]
            watched(m, port, offered[n])
        m.d.comb += [unit.o.ready.eq(self.ready), self.assume_kept.eq(offered.all())]
        watched(m, unit.o, self.ok_kept)
        goes, at = unit.o.valid & unit.o.ready, Signal(range(total + 1))
        ends, fresh, place = at == total - 1, Signal(init=1), Signal.like(self.place)
        m.d.sync += fresh.eq(0)
        with m.If(fresh):
            m.d.sync += place.eq(self.place)
        with m.If(goes):
            m.d.sync += at.eq(Mux(ends, 0, at + 1))

        # How many blocks of this vector each stream has given, and what the followed value was.
        counts = [Signal(range(each + 2), name=f"count_{n}") for n, each in enumerate(blocks)]
        known, was, now, value = Signal(), Signal(), Signal(), Signal()
        for n, count in enumerate(counts):
            m.d.sync += count.eq(Mux(goes & ends, 0, count + taken[n]))
            own = place < size if n == 0 else (place >= size) & (place < size + other)
            index = place if n == 0 else place - size
            with m.If(own & taken[n] & (count == index // k)):
                m.d.comb += [now.eq(1), value.eq((getattr(self, f"data_{n}") >> index % k)[0])]
        m.d.sync += known.eq((known | now) & ~(goes & ends))
        with m.If(now):
            m.d.sync += was.eq(value)
        given, there = (Value.cast(unit.o.payload.data) >> place % k)[0], goes & ~fresh & (at == place // k)
        expected = Mux(place >= size + other, 0, Mux(now, value, was))
        ready_to_mark = counts[1] == blocks[1] - 1
        mark = Signal()
        with m.If(taken[1] & ready_to_mark):
            m.d.sync += mark.eq(self.mark_1)
        rest = [(1 << (each - 1) % k + 1) - 1 for each in self._sizes]
        m.d.comb += [
            self.assume_mark.eq((~(self.valid_1 & self.mark_1) | ready_to_mark) & Cat(
                ~getattr(self, f"valid_{n}") | (counts[n] != blocks[n] - 1) | (
                    getattr(self, f"data_{n}") & ~rest[n] == 0) for n in range(2)).all()),
            self.assume_place.eq((self.place < total * k) & ~(fresh & (self.valid_0 | self.valid_1))),
            self.ok_count.eq(Cat((count + taken[n] <= blocks[n]) & (
                ~(goes & ends) | (count + taken[n] == blocks[n])) for n, count in enumerate(counts)).all()),
            self.ok_value.eq(~there | (
                (known | now | (place >= size + other)) & (given == expected))),
            self.ok_last.eq(~goes | Mux(ends, unit.o.payload.last == Mux(taken[1] & ready_to_mark, self.mark_1, mark),
                                        ~unit.o.payload.last)),
            self.ok_alive.eq(~(self.valid_0 & self.valid_1 & self.ready) | goes)]
        return m


class Reversed(wiring.Component):
    """A `Reverse` of blocks of one bit: a block that is picked when it comes is followed.

    Members:
        pick: follow the block that comes.
        assume_…: an offer stays until it is taken; a sequence ends at the end of a vector.
        ok_kept: an offer stays as it is until it is taken.
        ok_count: what leaves is of a sequence that has come whole; there are two inside, and the last block of one.
        ok_block: the block leaves in its vector's place, counted from the end of its sequence or part.
        ok_last: a sequence that leaves ends, is marked, behind as many blocks as came, and not before.
        ok_alive: while the sink is ready, a sequence inside goes on leaving after two cycles, or sooner; there is room
            for a second one.
    """

    def __init__(self, blocks, steps, *, really=None):
        self._unit, self._blocks, self._steps = Reverse(BIT, blocks=really or blocks, steps=steps), blocks, steps
        super().__init__({
            "valid": In(1), "payload": In(1), "mark": In(1), "ready": In(1), "pick": In(1), "assume_kept": Out(1),
            "assume_mark": Out(1), "ok_kept": Out(1), "ok_count": Out(1), "ok_block": Out(1), "ok_last": Out(1),
            "ok_alive": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        blocks, steps = self._blocks, self._steps
        m.d.comb += [unit.i.valid.eq(self.valid), Value.cast(unit.i.payload.data).eq(self.payload),
                     unit.i.payload.last.eq(self.mark), unit.o.ready.eq(self.ready)]
        watched(m, unit.i, self.assume_kept)
        watched(m, unit.o, self.ok_kept)
        comes, goes = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready
        block, vector = Signal(range(blocks + 1)), Signal(range(steps + 1))
        turns = block == blocks - 1
        ends, leaves = comes & (self.mark | (turns & (vector == steps - 1))), goes & unit.o.payload.last
        inside, at = Signal(3), Signal(range(blocks * steps + 1))
        m.d.sync += inside.eq(inside + ends - leaves)
        with m.If(comes):
            m.d.sync += [block.eq(Mux(turns, 0, block + 1)),
                         vector.eq(Mux(ends, 0, vector + turns))]
        with m.If(goes):
            m.d.sync += at.eq(Mux(leaves, 0, at + 1))

        tracked, ahead, word, came = Signal(), Signal(3), Signal(), Signal()
        its_block, its_vector, count = Signal.like(block), Signal.like(vector), Signal.like(vector)
        with m.If(tracked & leaves):
            m.d.sync += [ahead.eq(ahead - 1), tracked.eq(ahead != 0)]
        with m.If(tracked & ends & ~came):
            m.d.sync += [came.eq(1), count.eq(vector + 1)]
        with m.If(~tracked & comes & self.pick):
            m.d.sync += [tracked.eq(1), ahead.eq(inside - leaves), word.eq(self.payload), its_block.eq(block),
                         its_vector.eq(vector), came.eq(ends), count.eq(vector + 1)]
        its = goes & tracked & (ahead == 0)
        slow = Signal(3)
        m.d.sync += slow.eq(Mux((inside != 0) & unit.o.ready & ~goes, slow + 1, 0))
        m.d.comb += [
            self.assume_mark.eq(~(self.valid & self.mark) | turns),
            self.ok_count.eq((inside <= 3) & (~goes | (inside != 0)) & (~its | came)),
            self.ok_block.eq(~its | (at != (count - 1 - its_vector) * blocks + its_block)
                             | (Value.cast(unit.o.payload.data) == word)),
            self.ok_last.eq(~its | (unit.o.payload.last == (at == count * blocks - 1))),
            self.ok_alive.eq((slow <= 2) & (unit.i.ready | (inside >= 2)))]
        return m


class Limited(wiring.Component):
    """A `Limit` of blocks of one bit.

    Members:
        assume_kept, ok_kept: an offer stays as it is until it is taken.
        ok_same: what comes leaves in the same cycle.
        ok_last: what leaves is marked where it came marked, and as block ``blocks * steps`` of a sequence.
        ok_flag: ``overflow`` tells whether a block was marked that had come without a mark.
    """

    def __init__(self, blocks, steps, *, really=None):
        self._unit, self._most = Limit(BIT, blocks=blocks, steps=really or steps), blocks * steps
        super().__init__({"valid": In(1), "payload": In(1), "mark": In(1), "ready": In(1), "assume_kept": Out(1),
                          "ok_kept": Out(1), "ok_same": Out(1), "ok_last": Out(1), "ok_flag": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        m.d.comb += [unit.i.valid.eq(self.valid), Value.cast(unit.i.payload.data).eq(self.payload),
                     unit.i.payload.last.eq(self.mark), unit.o.ready.eq(self.ready)]
        watched(m, unit.i, self.assume_kept)
        watched(m, unit.o, self.ok_kept)
        goes, length, cut = unit.o.valid & unit.o.ready, Signal(range(self._most + 1)), Signal()
        with m.If(goes):
            m.d.sync += [length.eq(Mux(unit.o.payload.last, 0, length + 1)),
                         cut.eq(cut | (unit.o.payload.last & ~self.mark))]
        m.d.comb += [
            self.ok_same.eq((unit.o.valid == self.valid) & (unit.i.ready == self.ready) & (
                ~self.valid | (Value.cast(unit.o.payload.data) == self.payload))),
            self.ok_last.eq(~goes | (unit.o.payload.last == (self.mark | (length == self._most - 1)))),
            self.ok_flag.eq(unit.overflow == cut)]
        return m
