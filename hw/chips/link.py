"""An end of a link: words go out and come in, numbered, checked, acknowledged, sent again, and held back by credits.

A block of a stream goes as words in a row. The receiver takes the word that is due and no other, so one that is lost,
wrong or doubled changes nothing: it tells in each cycle which one is due, and the sender goes back to it when that has
not changed for long. A sender has as many blocks of a stream under way as the queue behind it holds, so one stream
that waits holds up no other.

Behind a reset an end first lets pass what is from before it. Then it sends idle words, with the hash of the network,
until it has heard those of the other end and that end has heard it. An idle word of another network, one of an end
that has not heard this one any more, as it was reset, or no word for long: each is a fault, which stays until reset,
and nothing more is taken or sent but idle words that say so to the other end.
"""
from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.words import LinkShape, intact, seal
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block, connect
from circulant.hw.stream.storage import DeepQueue, Ram

__all__ = ["Aside", "LinkEnd", "Receiver", "Sender", "around"]


class Sender(wiring.Component):
    """The streams of one direction as words; three cycles from a block to its first word on the pins.

    Members:
        i_0 …: streams of blocks.
        run: words may go.
        step: a word goes in this cycle, if one is due; of few pins once in a frame.
        heard: what idle words say.
        named: the hash of the network in idle words.
        word: to the other end.
        answer: from the other end.
    """

    def __init__(self, shape: LinkShape) -> None:
        self._shape = shape
        super().__init__({
            **{f"i_{n}": In(stream.Signature(block(each.k, each.width))) for n, each in enumerate(shape.channels)},
            "run": In(1), "step": In(1, init=1), "heard": In(1), "named": In(shape.named), "word": Out(shape.word),
            "answer": In(shape.answer)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape = self._shape
        sends = Signal()
        seq = Signal(shape.seq_bits)
        kept = Signal(data.StructLayout(
            {name: shape.word.members[name] for name in ("mark", "channel", "data")}))
        if shape.channels:
            self._numbered(m, sends, seq, kept)

        # What goes: a word that is due, else an idle one.
        out = Signal(shape.word)
        m.d.comb += [out.valid.eq(1), out.idle.eq(~sends), out.mark.eq(Mux(sends, kept.mark, self.heard)),
                     out.channel.eq(Mux(sends, kept.channel, 0)), out.seq.eq(Mux(sends, seq, 0)),
                     out.data.eq(Mux(sends, kept.data, self.named))]
        seal(m, out)
        m.d.sync += self.word.eq(out)
        return m

    def _numbered(self, m: Module, sends: Signal, seq: Signal, word: Value) -> None:
        """Give the number, the marks and the data of the word that is due."""
        shape, bits, count = self._shape, self._shape.seq_bits, len(self._shape.channels)
        answer = Signal(shape.answer)
        m.d.sync += answer.eq(self.answer)
        following = Signal(bits)
        due = Signal(bits)
        base = Signal(bits)
        under_way = Signal(bits)
        known = Signal(bits)
        m.d.comb += [under_way.eq(following - base), known.eq(answer.ack - base)]

        # Which stream goes: the one whose block is under way, else the first that offers one and has credit.
        offers = Signal(count)
        sent = [Signal(shape.credit_bits(n), name=f"sent_{n}") for n in range(count)]
        taken = [Signal.like(each, name=f"taken_{n}") for n, each in enumerate(sent)]
        for n in range(count):
            used = Signal.like(sent[n], name=f"used_{n}")
            m.d.comb += [used.eq(sent[n] - taken[n]),
                         offers[n].eq(getattr(self, f"i_{n}").valid & (used < shape.depth(n)))]
        held = Signal(range(max(2, count)))
        busy = Signal()
        first = Signal.like(held)
        active = Signal.like(held)
        for n in reversed(range(count)):
            with m.If(offers[n]):
                m.d.comb += first.eq(n)
        accepts = Signal()
        m.d.comb += [active.eq(Mux(busy, held, first)),
                     accepts.eq(self.run & (busy | offers.any()) & (under_way < shape.window))]

        # Its words, one in each cycle, are kept until they are acknowledged.
        index = Signal(range(max(2, *(shape.words(n) for n in range(count)))))
        ends = Signal()
        m.submodules.kept = kept = Ram(width=len(Value.cast(word)), depth=shape.window)
        current = Signal(shape.bits)
        marked = Signal()
        with m.Switch(active):
            for n in range(count):
                with m.Case(n):
                    source = getattr(self, f"i_{n}")
                    slices = shape.slices(Value.cast(source.payload.data), n)
                    with m.Switch(index):
                        for at, each in enumerate(slices):
                            with m.Case(at):
                                m.d.comb += current.eq(each)
                    m.d.comb += [ends.eq(index == len(slices) - 1), marked.eq(source.payload.last & ends),
                                 source.ready.eq(accepts & ends)]
                    with m.If(accepts & ends):
                        m.d.sync += sent[n].eq(sent[n] + 1)
        m.d.comb += [kept.w_en.eq(accepts), kept.w_addr.eq(following), kept.w_data.eq(Cat(marked, active, current))]
        with m.If(accepts):
            m.d.sync += [following.eq(following + 1), busy.eq(~ends), held.eq(active),
                         index.eq(Mux(ends, 0, index + 1))]

        # They go in their order; what is acknowledged is forgotten, and what is not for long goes again.
        reads = Signal()
        late = Signal(range(shape.patience + 1))
        again = late == shape.patience
        m.d.comb += [reads.eq(self.run & self.step & (due != following) & ~again), kept.r_en.eq(reads),
                     kept.r_addr.eq(due), Value.cast(word).eq(kept.r_data)]
        m.d.sync += [sends.eq(reads), seq.eq(due), late.eq(late + 1)]
        with m.If(reads):
            m.d.sync += due.eq(due + 1)
        with m.If((under_way == 0) | again):
            m.d.sync += late.eq(0)
        with m.If(again):
            m.d.sync += due.eq(base)
        with m.If(self.run & intact(answer) & (known <= under_way)):
            m.d.sync += [each.eq(getattr(answer, f"taken_{n}")) for n, each in enumerate(taken)]
            m.d.sync += base.eq(answer.ack)
            with m.If(known != 0):
                m.d.sync += late.eq(0)


class Receiver(wiring.Component):
    """The streams of one direction from its words; five cycles from the pins to a block that can be taken.

    Members:
        o_0 …: streams of blocks.
        run: words may come.
        word: from the other end.
        answer: to the other end.
        idle: an idle word is there; ``mark`` and ``named`` are what it says.
        works: any other word is there.
    """

    def __init__(self, shape: LinkShape) -> None:
        self._shape = shape
        super().__init__({
            **{f"o_{n}": Out(stream.Signature(block(each.k, each.width))) for n, each in enumerate(shape.channels)},
            "run": In(1), "word": In(shape.word), "answer": Out(shape.answer),
            "idle": Out(1), "works": Out(1), "mark": Out(1), "named": Out(shape.named)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape = self._shape
        word = Signal(shape.word)
        expected = Signal(shape.seq_bits)
        m.d.sync += word.eq(self.word)
        right = intact(word)
        m.d.comb += [self.idle.eq(right & word.idle), self.works.eq(right & ~word.idle), self.mark.eq(word.mark),
                     self.named.eq(word.data[:shape.named])]

        # The word that is due is taken, and no other.
        takes = Signal()
        m.d.comb += takes.eq(self.run & self.works & (word.seq == expected))
        answer = Signal(shape.answer)
        m.d.comb += [answer.valid.eq(1), answer.ack.eq(expected)]
        if shape.channels:
            m.d.sync += expected.eq(expected + takes)
            self._assemble(m, word, takes, answer)
        seal(m, answer)
        m.d.sync += self.answer.eq(answer)
        return m

    def _assemble(self, m: Module, word: Value, takes: Signal, answer: Value) -> None:
        """Words in a row become a block, which goes into the queue of its channel: credits say that it has room."""
        shape = self._shape
        most = max(shape.words(n) for n in range(len(shape.channels)))
        index = Signal(range(max(2, most)))
        held = Signal(shape.bits * most)
        for n, each in enumerate(shape.channels):
            layout, words = block(each.k, each.width), shape.words(n)
            m.submodules[f"queue_{n}"] = queue = DeepQueue(layout, depth=shape.depth(n))
            mine, ends = takes & (word.channel == n), index == words - 1
            bits = Cat(held[:shape.bits * (words - 1)], word.data)[:each.k * each.width]
            m.d.comb += [Value.cast(queue.i.payload.data).eq(bits), queue.i.payload.last.eq(word.mark),
                         queue.i.valid.eq(mine & ends)]
            with m.If(mine):
                m.d.sync += index.eq(Mux(ends, 0, index + 1))
                for at in range(words - 1):
                    with m.If(index == at):
                        m.d.sync += held[at * shape.bits:(at + 1) * shape.bits].eq(word.data)
            sink = getattr(self, f"o_{n}")
            connect(m, queue.o, wiring.flipped(sink))
            taken = Signal(shape.credit_bits(n), name=f"taken_{n}")
            m.d.sync += taken.eq(taken + (queue.o.valid & queue.o.ready))
            m.d.comb += getattr(answer, f"taken_{n}").eq(taken)


class Aside(wiring.Component):
    """A queue for what other readers of a stream need not wait for: payloads go through at once, or wait, one in a
    register and more of them in a memory.

    Members:
        i, o: streams of payloads.
    """

    def __init__(self, shape: ShapeLike, *, depth: int) -> None:
        self._shape, self._depth = shape, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.queue = queue = DeepQueue(self._shape, depth=self._depth)
        waiting = Signal(range(self._depth + 2))
        held = Signal.like(Value.cast(self.i.payload))
        full = Signal()
        moves = Signal()
        more = Signal()
        given = Value.cast(self.i.payload)
        following = Mux(more, Value.cast(queue.o.payload), given)
        comes = Mux(more, queue.o.valid, self.i.valid)
        m.d.comb += [
            more.eq(waiting != 0), moves.eq(~full | self.o.ready),  # What waits moves up.
            Value.cast(self.o.payload).eq(Mux(full, held, following)), self.o.valid.eq(full | comes),
            Value.cast(queue.i.payload).eq(given), queue.i.valid.eq(self.i.valid & ~(moves & ~more)),
            self.i.ready.eq((moves & ~more) | queue.i.ready), queue.o.ready.eq(moves & more)]
        m.d.sync += waiting.eq(waiting + (queue.i.valid & queue.i.ready) - (queue.o.valid & queue.o.ready))
        with m.If(moves):
            m.d.sync += [held.eq(following), full.eq(comes & (full | ~self.o.ready))]
        return m


class LinkEnd(wiring.Component):
    """Both directions at one end of a link, see this module.

    Parameters:
        out, into: the two directions.
        named: hash of the network, of which the low bits are compared.

    Members:
        i_0 …, o_0 …: streams of blocks that go out, and that come in.
        tx, tx_answer, rx, rx_answer: pins.
        step: as of `Sender`.
        up: both ends have heard each other.
        fault: the other end is of another network, was reset, or has fallen silent; until reset.
    """

    def __init__(self, out: LinkShape, into: LinkShape, *, named: int) -> None:
        self._named = named & (1 << out.named) - 1
        self.sender, self.receiver, self._out = Sender(out), Receiver(into), out
        self._into_count = len(into.channels)
        super().__init__({
            **{name: member for name, member in self.sender.signature.members.items() if name.startswith("i_")},
            **{name: member for name, member in self.receiver.signature.members.items() if name.startswith("o_")},
            "tx": Out(out.word), "tx_answer": Out(into.answer), "rx": In(into.word), "rx_answer": In(out.answer),
            "up": Out(1), "fault": Out(1), "step": In(1, init=1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.sender, m.submodules.receiver = sender, receiver = self.sender, self.receiver
        for n, each in enumerate(self._out.channels):
            source, sink = wiring.flipped(getattr(self, f"i_{n}")), getattr(sender, f"i_{n}")
            if self._out.words(n) > 1:
                m.submodules[f"aside_{n}"] = aside = Aside(source.payload.shape(), depth=each.blocks)
                connect(m, source, aside.i)
                source = aside.o
            connect(m, source, sink)
        for n in range(self._into_count):
            connect(m, getattr(receiver, f"o_{n}"), wiring.flipped(getattr(self, f"o_{n}")))
        m.d.comb += [self.tx.eq(sender.word), self.tx_answer.eq(receiver.answer), receiver.word.eq(self.rx),
                     sender.answer.eq(self.rx_answer), sender.named.eq(self._named), sender.step.eq(self.step)]

        # Behind a reset what comes at first is from before it; then both ends have to hear each other.
        quiet = Signal(range(self._out.quiet + 1))
        silence = Signal(range(2 * self._out.patience + 1))
        listens = quiet == self._out.quiet
        heard = Signal()
        ours = receiver.named == self._named
        with m.If(~listens):
            m.d.sync += quiet.eq(quiet + 1)
        with m.If(listens & receiver.idle & ours):
            m.d.sync += heard.eq(1)
        with m.If(listens & ((receiver.idle & receiver.mark & ours) | (receiver.works & heard))):
            m.d.sync += self.up.eq(1)
        alive = receiver.idle | receiver.works
        with m.If(~self.up | alive):
            m.d.sync += silence.eq(0)
        with m.Elif(silence != 2 * self._out.patience):
            m.d.sync += silence.eq(silence + 1)
        with m.If((listens & receiver.idle & (~ours | (self.up & ~receiver.mark)))
                  | (silence == 2 * self._out.patience)):
            m.d.sync += self.fault.eq(1)
        m.d.comb += [sender.heard.eq(heard & ~self.fault), sender.run.eq(self.up & ~self.fault),
                     receiver.run.eq(listens & heard & ~self.fault)]
        return m


def around(m: Module, outer: wiring.Component, end: LinkEnd) -> None:
    """Join the streams and the flags of an end with those of what is around it."""
    for name in outer.signature.members:
        if name.startswith("i_"):
            connect(m, wiring.flipped(getattr(outer, name)), getattr(end, name))
        elif name.startswith("o_"):
            connect(m, getattr(end, name), wiring.flipped(getattr(outer, name)))
        elif name in ("up", "fault"):
            m.d.comb += getattr(outer, name).eq(getattr(end, name))
