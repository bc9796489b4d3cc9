"""A chip: a part of a network between the streams of its host and links to other chips."""
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.cluster import Link
from circulant.hw.chips.cut import Cut, Wire
from circulant.hw.chips.frames import FrameEnd
from circulant.hw.chips.late import Late, Marks
from circulant.hw.chips.link import LinkEnd
from circulant.hw.chips.narrow import NarrowEnd
from circulant.hw.chips.words import Channel, LinkShape
from circulant.hw.emit.target import Platform
from circulant.hw.stream.link import into, parted
from circulant.hw.stream.pipeline import block, connect
from circulant.hw.stream.storage import DeepQueue
from circulant.hw.top import SIGNALS, Top, container_bits, prefixes

__all__ = ["Chip", "Stream", "Streams", "link_shapes", "pins_of", "streams_of", "waits", "wires_of"]

End = LinkEnd | NarrowEnd | FrameEnd


def pins_of(end: End) -> dict[str, wiring.Flow]:
    """The pins of an end, which words and answers, beats and clocks, or the frames of a carrier take."""
    return {name: member.flow for name, member in end.signature.members.items() if name.startswith(("tx", "rx"))}



@dataclass(frozen=True)
class Stream:
    """A stream of a part.

    Parameters:
        prefix: of its signals.
        k, width: values of a block, and bits of each.
        blocks: of a vector.
        vectors: of a sample, or a step.
    """

    prefix: str
    k: int
    width: int
    blocks: int
    vectors: int = 1

    @property
    def channel(self) -> Channel:
        return Channel(self.k, self.width, self.blocks)

    @property
    def beats(self) -> int:
        """Blocks of a sample, or a step."""
        return self.blocks * self.vectors


@dataclass(frozen=True)
class Streams:
    """The streams into and out of the circuit of a part, by name.

    Parameters:
        blocks: for each stage of the part the values of a block that comes and of one that leaves.
        whole_sequences: whether the circuit needs whole sequences.
    """

    entries: Mapping[str, Stream]
    exits: Mapping[str, Stream]
    blocks: tuple[tuple[int, int], ...]
    whole_sequences: bool


def streams_of(top: Top) -> Streams:
    """The streams of a circuit."""
    return Streams(
        {each.given.name: Stream(each.prefix, each.block, each.form.width, -(-each.size // each.block),
                                 each.given.flow.pixels // each.pixels) for each in top.entries},
        {each.name: Stream(each.prefix, each.block, each.form.width, -(-flow.size // each.block), flow.pixels)
         for each in top.exits for flow in [top.network.flows[each.name]]},
        tuple(top.blocks), top.max_steps is not None)


def waits(cut: Cut, chip: int, streams: Sequence[Streams | None]) -> dict[str, tuple[Stream, int]]:
    """The streams of a chip that whole samples wait in, where these go to chips in turn, in the widest blocks of all
    chips, and how many of these: the next sample, and all results of a turn."""
    if cut.whole.sequence or not cut.turns:
        return {}
    some = [each for each in streams if each is not None]
    entries, exits = ({name: max((each[name] for each in sides), key=lambda one: one.k) for name in sides[0]}
                      for sides in ([each.entries for each in some], [each.exits for each in some]))
    return {**{name: (each, each.beats) for name, each in entries.items()},
            **{name: (each, each.beats * cut.turns.count(chip)) for name, each in exits.items()}}


def wires_of(cut: Cut, start: int, to: int) -> tuple[Wire, ...]:
    """The wires from one chip to another in the order in which a link prefers them: those of states first, as what
    waits for them is a step; of the others those of later layers, as the vectors behind wait for what is under way."""
    found = [each for each in cut.wires if (each.start, each.to) == (start, to)]
    return (*(each for each in found if each.before), *(each for each in found[::-1] if not each.before))


def link_shapes(cut: Cut, streams: Sequence[Streams | None], link: Link) -> dict[tuple[int, int], LinkShape]:
    """The directed links between chips that have something to say to each other."""
    found: dict[tuple[int, int], tuple[Channel, ...]] = {}
    for pair in {pair for each in cut.wires for pair in ((each.start, each.to), (each.to, each.start))}:
        start = streams[pair[0]]
        assert start is not None, "a wire comes from a part"
        found[pair] = tuple(start.exits[each.name].channel for each in wires_of(cut, *pair))
    shapes = {pair: LinkShape.over(link.bits, link.latency, found[pair], found[pair[::-1]], pins=link.pins)
              for pair in sorted(found)}
    if link.carrier is None:
        return shapes
    most = Counter(chip for chip, _ in shapes)
    return {pair: shape.over_carrier(link.carrier, max(most[chip] for chip in pair)) for pair, shape in shapes.items()}


class Chip(wiring.Component):
    """A part, an end of a link to each chip that it has wires to or from, and what joins them.

    Parameters:
        module: the Verilog module of the part's circuit.
        ports: of that, by name their direction and bits.
        links: of `link_shapes`.
        streams: of all chips.

    Members:
        s_axis_tdata … m_axis_tlast: streams of the host, as those of the design of the whole are called.
        link0_tx … : pins to chip 0, or frames.
        up: all links have found their other ends.
        fault: a link's other end is of another network, was reset, or has fallen silent; until reset.
        malformed, overflow: of the part's circuit, where it has them.
    """

    def __init__(self, cut: Cut, number: int, top: Top, module: str, links: Mapping[tuple[int, int], LinkShape], *,
                 streams: Sequence[Streams | None]) -> None:
        self._cut, self._number, self._module, self._top, self._links = cut, number, module, top, links
        self._ports = {name: (member.flow, len(Value.cast(getattr(top, name))))
                       for name, member in top.signature.members.items()}
        own = streams_of(top)
        entries, exits = own.entries, own.exits
        self._waits = waits(cut, number, streams)
        entering, leaving = prefixes(cut.whole)
        of = dict(zip((each.name for each in cut.whole.inputs), entering, strict=True)) | dict(
            zip(cut.whole.outputs, leaving, strict=True))
        given = [name for name, chip in cut.leaving if chip == number]
        wide = {name: each for name, (each, _) in self._waits.items()}
        self.host_in = {name: (of[name], wide.get(name, entries[name])) for name in cut.entering(number)}
        self.host_out = {name: (of[name], wide.get(name, exits[name])) for name in given}
        self.others = sorted(to for start, to in links if start == number)
        self.ends: dict[int, End] = {
            other: (FrameEnd if links[number, other].carrier else NarrowEnd if links[number, other].pins else LinkEnd)(
                links[number, other], links[other, number], named=int(cut.whole.hash[:8], 16))
            for other in self.others}
        self._entries, self._exits = entries, exits
        super().__init__({
            **{f"{prefix}_{signal}": flow(bits) for prefix, each in self.host_in.values()
               for signal, flow, bits in _axis(each, In)},
            **{f"{prefix}_{signal}": flow(bits) for prefix, each in self.host_out.values()
               for signal, flow, bits in _axis(each, Out)},
            **{f"link{other}_{pin}": flow(len(Value.cast(getattr(end, pin))))
               for other, end in self.ends.items() for pin, flow in pins_of(end).items()},
            **({"up": Out(1), "fault": Out(1)} if self.ends else {}),
            **{flag: Out(1) for flag in ("malformed", "overflow") if flag in self._ports}})

    def link(self, other: int) -> LinkShape:
        """The link to a chip."""
        return self._links[self._number, other]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        cut, number = self._cut, self._number
        for other, end in self.ends.items():
            m.submodules[f"end_{other}"] = end
            for pin, flow in pins_of(end).items():
                mine, its = getattr(self, f"link{other}_{pin}"), Value.cast(getattr(end, pin))
                m.d.comb += its.eq(mine) if flow is In else mine.eq(its)
        if self.ends:
            m.d.comb += [self.up.eq(Cat(end.up for end in self.ends.values()).all()),
                         self.fault.eq(Cat(end.fault for end in self.ends.values()).any())]

        # The circuit of the part.
        inner = {name: Signal(bits, name=f"part_{name}") for name, (_, bits) in self._ports.items()}
        m.submodules.part = Instance(
            self._module, i_clk=ClockSignal(), i_rst=ResetSignal(),
            **{f"{'i' if flow is In else 'o'}_{name}": inner[name] for name, (flow, _) in self._ports.items()})
        for flag in ("malformed", "overflow"):
            if flag in inner:
                m.d.comb += getattr(self, flag).eq(inner[flag])
        into = {name: _stream(each, f"in_{n}") for n, (name, each) in enumerate(self._entries.items())}
        out = {name: _stream(each, f"out_{n}") for n, (name, each) in enumerate(self._exits.items())}
        for name, each in self._entries.items():
            m.d.comb += _to_axis(into[name], {signal: inner[f"{each.prefix}_{signal}"] for signal in SIGNALS}, each)
        for name, each in self._exits.items():
            m.d.comb += _of_axis(out[name], {signal: inner[f"{each.prefix}_{signal}"] for signal in SIGNALS}, each)

        # What comes from the host and over links, and which streams of the part each becomes.
        sources: dict[str, tuple[stream.Interface, Stream]] = {}
        sinks: dict[str, list[stream.Interface]] = {}
        sizes = {each.given.name: each.size for each in self._top.entries} | {
            name: self._top.network.flows[name].size for name in self._exits}
        for name, (prefix, each) in self.host_in.items():
            sources[name] = _stream(each, f"host_{name}"), each
            m.d.comb += _of_axis(sources[name][0], {signal: getattr(self, f"{prefix}_{signal}")
                                                    for signal in SIGNALS}, each)
            sinks[name] = [self._queued(m, name, into[name])]
        late: dict[str, Late] = {}
        for other, end in self.ends.items():
            for n, wire in enumerate(wires_of(cut, other, number)):
                each = self._entries[wire.name if wire.direct else wire.before]
                sources[f"{wire.name} of {other}"] = getattr(end, f"o_{n}"), each
                sizes[f"{wire.name} of {other}"] = wire.flow.size
                sinks[f"{wire.name} of {other}"] = taken = [into[wire.name]] if wire.direct else []
                if wire.direct:
                    sources[wire.name] = sources[f"{wire.name} of {other}"]
                    sinks[wire.name] = taken
                if wire.before:
                    m.submodules[f"late_{len(late)}"] = late[wire.before] = Late(
                        k=each.k, width=each.width, blocks=each.blocks, marked=not cut.state_first)
                    connect(m, late[wire.before].o, into[wire.before])
                    taken.append(late[wire.before].i)
        for name, each in self._exits.items():
            sources[name] = out[name], each
            sinks[name] = [getattr(end, f"i_{n}") for other, end in self.ends.items()
                           for n, wire in enumerate(wires_of(cut, number, other)) if wire.name == name]
            if name in self.host_out:
                prefix, wide = self.host_out[name]
                host = _stream(wide, f"given_{name}")
                sinks[name].append(self._queued(m, name, host))
                m.d.comb += _to_axis(host, {signal: getattr(self, f"{prefix}_{signal}") for signal in SIGNALS}, wide)

        # Where sequences end, of those whose states come a step late.
        for n, (name, unit) in enumerate(late.items()):
            given = sources[cut.ends[name]][1]
            m.submodules[f"marks_{n}"] = marks = Marks(k=given.k, width=given.width, blocks=given.blocks)
            wiring.connect(m, marks.o, unit.ends)
            sinks[cut.ends[name]].append(marks.i)
        done: set[int] = set()
        for n, (name, (source, each)) in enumerate(sources.items()):
            if id(source) in done:
                continue
            done.add(id(source))
            parted(m, source, sinks[name], size=sizes[name], width=each.width, name=f"stream_{n}")
        return m

    def _queued(self, m: Module, name: str, sink: stream.Interface) -> stream.Interface:
        """The sink of a stream, or a queue of whole samples in front of it."""
        if name not in self._waits:
            return sink
        (each, depth), flow = self._waits[name], self._cut.whole.flows[name]
        m.submodules[f"waits_{each.prefix}"] = queue = DeepQueue(block(each.k, each.width), depth=depth)
        into(m, queue.o, sink, size=flow.size * flow.pixels // each.vectors, width=each.width,
             name=f"waits_{each.prefix}")
        return queue.i


def _axis(each: Stream, way: wiring.Flow) -> list[tuple[str, wiring.Flow, int]]:
    back = Out if way is In else In
    return [("tdata", way, each.k * container_bits(each.width)), ("tvalid", way, 1), ("tready", back, 1),
            ("tlast", way, 1)]


def _stream(each: Stream, name: str) -> stream.Interface:
    return stream.Signature(block(each.k, each.width)).create(path=(name.replace(".", "_"),))


def _of_axis(inner: stream.Interface, axis: Mapping[str, Value], each: Stream) -> list[object]:
    """A stream whose blocks come in containers of whole bytes."""
    bits = container_bits(each.width)
    return [*(inner.payload.data[j].eq(axis["tdata"].word_select(j, bits)[:each.width].as_signed())
              for j in range(each.k)),
            inner.valid.eq(axis["tvalid"]), inner.payload.last.eq(axis["tlast"]), axis["tready"].eq(inner.ready)]


def _to_axis(inner: stream.Interface, axis: Mapping[str, Value], each: Stream) -> list[object]:
    """A stream whose blocks go into containers of whole bytes."""
    bits = container_bits(each.width)
    return [axis["tdata"].eq(Cat(_wide(inner.payload.data[j], bits) for j in range(each.k))),
            axis["tvalid"].eq(inner.valid), axis["tlast"].eq(inner.payload.last), inner.ready.eq(axis["tready"])]


def _wide(value: Value, bits: int) -> Value:
    """A signed value in so many bits."""
    value = Value.cast(value)
    return Cat(value, *[value[-1]] * (bits - len(value)))
