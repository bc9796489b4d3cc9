"""The accelerator: the graph of the layers between AXI4-Stream ports, one for each of its inputs and outputs."""
import math
from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import FAULTS, faults_of, watches
from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import sharings, streams_of
from circulant.hw.array.shared_array import SharedArray
from circulant.hw.emit.image import Image, texts
from circulant.hw.emit.target import Platform, separate_module
from circulant.hw.kinds.conv.plan import ConvPlan
from circulant.hw.kinds.registry import KINDS
from circulant.hw.plan.dataflow import depths
from circulant.hw.plan.stream_plan import pooled_aside
from circulant.hw.planner import Plan, repeats
from circulant.hw.ports import MEANINGS
from circulant.hw.reload.config import Config
from circulant.hw.stream.frame_guard import FrameGuard
from circulant.hw.stream.link import link, parted, values
from circulant.hw.stream.pipeline import connect
from circulant.hw.stream.reverse import Limit
from circulant.hw.unit import Site, Unit, inputs, unelaborated, wired
from circulant.sim.configuration import ADDRESS_BITS, WORD
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT
from circulant.sim.refusal import Refusal

__all__ = ["KINDS", "Top", "container_bits", "contents", "images", "prefixes"]

CONFIG = {"addr": In(ADDRESS_BITS), "wdata": In(WORD), "we": In(1), "re": In(1), "rdata": Out(WORD), "rvalid": Out(1)}
"""Members of the configuration port."""

IN_FLIGHT = 24
"""Bits that count the sequences in a design, of which each is a step of a memory at the least."""


def container_bits(width: int) -> int:
    """Bits that a value takes on an AXI4-Stream port: whole bytes."""
    return 8 * -(-width // 8)


def _units(network: Network, plans: Sequence[Plan], steps: int | None, config: Config | None) -> list[Unit]:
    """The layers' units.

    Parameters:
        steps: of a sequence at the most, for a layer that keeps whole ones.
    """
    pixels = plans[0].pixels if isinstance(plans[0], ConvPlan) else 1  # side by side out of the first layer
    aside = len(plans) > 1 and pixels > 1 and pooled_aside(network.stages[1], pixels)
    return wired(network.arrangement, plans, Site(gives=pixels if aside else 1, steps=steps, config=config))


SIGNALS = ("tdata", "tvalid", "tready", "tlast")


def prefixes(network: Network) -> tuple[list[str], list[str]]:
    """The prefixes of the signals of inputs and outputs: "s_axis" or "m_axis", and their names, where there are
    several.

    Raises:
        Refusal: when the signals of two would have one name.
    """
    return _prefixes("s", [each.name for each in network.inputs]), _prefixes("m", network.outputs)


def _prefixes(side: str, names: Sequence[str]) -> list[str]:
    if len(names) == 1:
        return [f"{side}_axis"]
    found = [f"{side}_axis_{name.replace('.', '_')}" for name in names]
    for name, prefix in zip(names, found, strict=True):
        if found.count(prefix) > 1:
            raise Refusal(f"The ports of a circuit must have different names, but two are {prefix}; rename {name!r}")
    return found


class _Entry:
    """An input of a network, and what stands behind its port: what guards the frames that come.

    Members:
        at: the number of the input among the sources of stages.
        part: what its parts in the circuit are called after.
        flags: by the name of a port of `Top` what it says of these frames; once they are guarded.
    """

    def __init__(self, network: Network, n: int, prefix: str, units: Sequence[Unit], *, pixels: int,
                 max_steps: int | None) -> None:
        self.given, self.at = network.inputs[n], INPUT - n
        flow, arranged = self.given.flow, network.arrangement
        self.form = network.formats[self.given.name]
        self.prefix = prefix
        self.part = "entry" if len(network.inputs) == 1 else f"entry_{self.prefix.removeprefix('s_axis_')}"
        self._suffix = self.part.removeprefix("entry")
        takers = [inputs(units[at])[arranged.sources[at].index(self.at)]
                  for at in dict.fromkeys(arranged.readers(self.at))]
        self.block = min(map(values, takers))
        self.shape = next(each.payload.shape() for each in takers if values(each) == self.block)
        self.pixels = pixels if flow.grid is not None else 1
        self.size = flow.size * self.pixels  # of a vector
        self._limit = max_steps if flow.sequence else None
        self.frame: FrameGuard | None = None
        if not flow.sequence or self.size > self.block:
            vectors = 1 if flow.grid is None else math.prod(flow.grid) // self.pixels
            self.frame = FrameGuard(self.shape, size=self.size, vectors=None if flow.sequence else vectors)
        self.members = dict(zip((f"{self.prefix}_{signal}" for signal in SIGNALS), (
            In(self.block * container_bits(self.form.width)), In(1), Out(1), In(1)), strict=True))
        self.flags: dict[str, Signal] = {}

    def guard(self, m: Module, head: stream.Interface) -> stream.Interface:
        """The stream in front of what guards another one."""
        if self._limit is not None:
            m.submodules[f"limit{self._suffix}"] = limit = Limit(
                head.payload.shape(), blocks=-(-self.given.flow.size // self.block), steps=self._limit)
            connect(m, limit.o, head)
            self.flags["overflow"] = limit.overflow
            head = limit.i
        if self.frame is not None:
            m.submodules[f"frame{self._suffix}"] = self.frame
            connect(m, self.frame.o, head)
            self.flags["malformed"] = self.frame.malformed
            head = self.frame.i
        return head

    def connect(self, m: Module, top: wiring.Component, head: stream.Interface) -> None:
        """Values of the port, in their containers, become those of a stream."""
        data, valid, ready, last = (getattr(top, name) for name in self.members)
        width = self.form.width
        for j in range(min(self.size, self.block)):
            value = data.word_select(j, container_bits(width))[:width].as_signed()
            m.d.comb += head.payload.data[j].eq(value)
        m.d.comb += [
            head.valid.eq(valid), head.payload.last.eq(last),
            ready.eq(head.ready),
        ]


class _Exit:
    """An output of a network, and its port."""

    def __init__(self, network: Network, n: int, prefix: str, units: Sequence[Unit]) -> None:
        self.name, at = network.outputs[n], network.arrangement.outputs[n]
        self.form = network.formats[self.name]
        self.prefix = prefix
        self.block = values(units[at].o)
        self.members = dict(zip((f"{self.prefix}_{signal}" for signal in SIGNALS), (
            Out(self.block * container_bits(self.form.width)), Out(1), In(1), Out(1)), strict=True))

    def connect(self, m: Module, top: wiring.Component, tail: stream.Interface) -> None:
        """Values of a stream become those of the port, in their containers."""
        data, valid, ready, last = (getattr(top, name) for name in self.members)
        bits, before = container_bits(self.form.width), self.prefix.replace("_axis", "")
        for j in range(self.block):
            extended = Signal(signed(bits), name=f"{before}_value_{j}")
            m.d.comb += [
                extended.eq(Value.cast(tail.payload.data[j])), data.word_select(j, bits).eq(extended)]
        m.d.comb += [
            valid.eq(tail.valid), last.eq(tail.payload.last),
            tail.ready.eq(ready),
        ]


class Top(wiring.Component):
    """A network as hardware; equals `sim.golden.network.Network.run_integers`.

    A beat is a block, or several: as many values as the first layer takes in a cycle, or the last one gives, each
    sign-extended to whole bytes, value 0 in the low bits. A vector takes as many beats as its values fill; lanes behind
    its last value are not looked at where it comes in, and zero where it goes out. Over images a vector is a pixel, or
    ``pixels`` side by side where the first layer takes so many at once.

    tlast of the input ends a frame: an image, a vector where each is a sample of its own, or a sequence of any number
    of vectors. Misplaced, it is flagged, and the next frame is right (`FrameGuard`): a frame that ends too early is
    filled up with zeros, a sequence to the end of its vector; of an image or a vector that ends too late, what is too
    much is dropped up to its tlast. A sequence whose vectors are a beat each cannot be misframed, and has no such flag.

    Of several inputs and outputs each is a stream of its own, called after it; it equals `Network.compute`. A host has
    to serve each whatever the others do: what one is kept back by may wait for another.

    A network with a bidirectional layer, or with a gate for all steps of a sequence, keeps whole sequences. One of more
    than ``max_steps`` vectors is cut behind each ``max_steps`` of them where it comes in, and its parts are sequences
    of their own.

    Parameters:
        plans: of the layers.
        max_steps: vectors of a sequence at the most; None afterwards where none is kept, and any will do.
        reloadable: whether there is a configuration port, through which weights are exchanged and, where all layers go
            forward, states saved and restored.

    Members:
        s_axis_tdata … m_axis_tlast: the two streams; `circulant.hw.ports.MEANINGS` describes each port. Of several
            inputs or outputs s_axis_NAME_tdata … m_axis_NAME_tlast.
        overflow: only where sequences are cut.
        malformed: not for sequences of vectors of one beat.
        cfg_addr … cfg_rvalid: the configuration port, see `Config`.
        corrected, uncorrected: of protected memories.
    """

    meanings = MEANINGS

    def __init__(self, network: Network, plans: Sequence[Plan], *, max_steps: int = 128,
                 reloadable: bool = False) -> None:
        self.network = network
        entering, leaving = prefixes(network)
        self.config = config = Config(streams=streams_of(plans)) if reloadable else None
        keeps = network.arrangement.keeps
        limited = keeps and network.sequence  # The sequences that images become are of one length.
        self.max_steps = max_steps if limited else None
        self.units = _units(network, plans, max(2, *repeats(network)) if keeps and not limited else self.max_steps,
                            config)
        self.shared = [SharedArray(each.programs[0].whole, name=f"shared{n or ''}", count=len(each.layers),
                                   in_turn=each.in_turn, config=config)
                       for n, each in enumerate(sharings(plans))]
        pixels = plans[0].pixels if isinstance(plans[0], ConvPlan) else 1
        self.entries = [_Entry(network, n, prefix, self.units, pixels=pixels, max_steps=self.max_steps)
                        for n, prefix in enumerate(entering)]
        self.exits = [_Exit(network, n, prefix, self.units) for n, prefix in enumerate(leaving)]
        for at, each in ({} if network.arrangement.chain else depths(network, plans, self.blocks)).items():
            self.units[at].depths = each
        super().__init__({
            **{name: member for entry in self.entries for name, member in entry.members.items()},
            **{name: member for end in self.exits for name, member in end.members.items()},
            **({"overflow": Out(1)} if limited else {}),
            **({"malformed": Out(1)} if any(each.frame is not None for each in self.entries) else {}),
            **({f"cfg_{name}": member for name, member in CONFIG.items()} if reloadable else {}),
            **({"corrected": Out(1), "uncorrected": Out(1)} if watches((*self.units, *self.shared)) else {}),
        })

    @property
    def input_block(self) -> int:
        """Values of a beat of the first input."""
        return self.entries[0].block

    @property
    def output_block(self) -> int:
        """Values of a beat of the first output."""
        return self.exits[0].block

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Values of a block that comes and of one that leaves, unit by unit."""
        return [(values(inputs(unit)[0]), values(unit.o)) for unit in self.units]

    @property
    def parts(self) -> Parts:
        """Every memory and every product."""
        return sum((unit.parts for unit in (*self.units, *self.shared)), Parts())

    @property
    def images(self) -> dict[str, str]:
        """Texts of the memory images by file name, those that elaboration collects."""
        return texts(self.contents)

    @property
    def contents(self) -> list[Image]:
        """The memories with given contents."""
        return [image for unit in (*self.units, *self.shared) for image in unit.images]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        units = self.units

        # The layers, each behind those that it takes.
        inner, tails, between = self._wire(m, None if self.config else platform)

        # The arrays that layers share, each with those that follow each other.
        asking = iter([getattr(unit, name) for unit in units for name in unit.signature.members
                       if name.startswith("array")])
        for shared in self.shared:
            m.submodules[shared.name] = separate_module(None if self.config else platform, shared,
                                                        f"circulant_{shared.name}_array")
            for port in shared.ports:
                wiring.connect(m, next(asking), port)

        # What guards the ways in: sequences that are not too long, frames that end where they may.
        heads = [entry.guard(m, head) for entry, head in zip(self.entries, inner, strict=True)]
        for flag in ("overflow", "malformed"):
            raised = [each.flags[flag] for each in self.entries if flag in each.flags]
            if raised:
                m.d.comb += getattr(self, flag).eq(raised[0] if len(raised) == 1 else Cat(raised).any())

        # The AXI4-Stream ports: values in containers of whole bytes.
        for entry, head in zip(self.entries, heads, strict=True):
            entry.connect(m, self, head)
        for each, tail in zip(self.exits, tails, strict=True):
            each.connect(m, self, tail)
        if self.config is not None:
            self._configure(m, self.config, heads[0], between)
        if "corrected" in self.signature.members:
            seen = Signal(FAULTS)
            m.d.comb += seen.eq(reduce(or_, faults_of((*units, *self.shared))))
            m.d.sync += [self.corrected.eq(seen[0]), self.uncorrected.eq(self.uncorrected | seen[1])]
        return m

    def _wire(self, m: Module, platform: Platform
              ) -> tuple[list[stream.Interface], list[stream.Interface], list[stream.Interface]]:
        """Add the units and what joins them; returns the streams that the inputs go into, those that the outputs come
        from, and those between units."""
        network, units, arranged = self.network, self.units, self.network.arrangement
        if arranged.chain:
            return [units[0].i], [units[-1].o], [*(unit.o for unit in units), *link(m, network.stages, units, platform)]
        for layer, unit in zip(network.stages, units, strict=True):
            m.submodules[layer.name] = separate_module(platform, unit, f"circulant_layer_{layer.name}")
        tails: dict[int, stream.Interface] = {}

        def part(at: int, source: stream.Interface, size: int, width: int, name: str) -> None:
            sinks = [taken for n, sources in enumerate(arranged.sources)
                     for taken, each in zip(inputs(units[n]), sources, strict=True) if each == at]
            if at in arranged.outputs:
                tails[at] = source
                if not sinks:
                    return
                tails[at] = stream.Signature(source.payload.shape()).create(path=(f"{name}_out",))
                sinks.append(tails[at])
            parted(m, source, sinks, size=size, width=width, name=name)

        heads = [stream.Signature(entry.shape).create(path=(entry.part,)) for entry in self.entries]
        for entry, head in zip(self.entries, heads, strict=True):
            part(entry.at, head, entry.given.flow.size, entry.form.width, entry.part)
        for at, (layer, unit) in enumerate(zip(network.stages, units, strict=True)):
            part(at, unit.o, layer.outputs, layer.output_format.width, layer.name)
        return heads, [tails[at] for at in arranged.outputs], [unit.o for unit in units]

    def _configure(self, m: Module, config: Config, head: stream.Interface,
                   between: list[stream.Interface]) -> None:
        """The port; held, nothing enters but a beat that is on its way in, on shared arrays the rest of its vector. It
        comes behind all memories."""
        m.submodules.config = config
        entering = Signal()
        m.d.sync += entering.eq(head.valid & ~head.ready)
        holds: Value = config.hold & ~entering
        if self.shared:
            beats = -(-self.network.flow.size // values(head))
            beat = Signal(range(max(2, beats)))
            with m.If(head.valid & head.ready):
                m.d.sync += beat.eq(Mux(beat == beats - 1, 0, beat + 1))
            holds &= beat == 0
        if self.max_steps is None:
            filling = [each.frame.busy for each in self.entries if each.frame is not None]
            busy: Value = Cat(*(unit.busy for unit in self.units), *(each.valid for each in between), *filling).any()
        else:
            inside, busy = self._sequences(m, self.units[0].i, self.units[-1].o)
            holds = holds & ~inside
        m.d.comb += [config.busy.eq(busy), *(
            mine.eq(its) if member.flow is Out else its.eq(mine) for name, member in CONFIG.items()
            for mine, its in [(getattr(self, f"cfg_{name}"), getattr(config, name))])]
        with m.If(holds):
            m.d.comb += [head.valid.eq(0), self.s_axis_tready.eq(0)]
        for unit in self.units[::-1]:
            if getattr(unit, "keeps", False):
                m.d.comb += config.resuming.eq(unit.resuming)  # The first one's; all agree while nothing is under way.

    def _sequences(self, m: Module, first: stream.Interface, final: stream.Interface) -> tuple[Signal, Value]:
        """Whether a sequence has begun to enter the first layer, and whether one has not left the final one: what a
        bidirectional layer keeps of it comes out only if the whole of it gets in."""
        inside = Signal()
        in_flight = Signal(IN_FLIGHT)
        enters = Signal()
        ends = Signal()
        leaves = Signal()
        m.d.comb += [enters.eq(first.valid & first.ready), ends.eq(enters & first.payload.last),
                     leaves.eq(final.valid & final.ready & final.payload.last)]
        m.d.sync += in_flight.eq(in_flight + ends - leaves)
        with m.If(enters):
            m.d.sync += inside.eq(~first.payload.last)
        return inside, inside | (in_flight != 0)


def images(network: Network, plans: Sequence[Plan]) -> dict[str, str]:
    """Texts of all memory images of a network by file name, without an elaboration."""
    return texts(contents(network, plans))


def contents(network: Network, plans: Sequence[Plan]) -> list[Image]:
    """The memories with given contents of a network, without an elaboration."""
    with unelaborated():
        return Top(network, plans).contents
