"""The accelerator: the layers in a row between two AXI4-Stream ports."""
import math
from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import sharings, streams_of
from circulant.hw.array.shared_array import SharedArray
from circulant.hw.emit.image import texts
from circulant.hw.emit.target import Platform, separate_module
from circulant.hw.layers.conv import ConvPlan
from circulant.hw.layers.kinds import KINDS
from circulant.hw.plan.plan import Plan, repeats
from circulant.hw.plan.stream_plan import pooled_aside
from circulant.hw.ports import MEANINGS
from circulant.hw.reload.config import Config
from circulant.hw.stream.frame_guard import FrameGuard
from circulant.hw.stream.link import link, parted, values
from circulant.hw.stream.pipeline import connect
from circulant.hw.stream.reverse import Limit
from circulant.hw.unit import Site, Unit, inputs, unelaborated, wired
from circulant.sim.configuration import ADDRESS_BITS, WORD
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT

__all__ = ["KINDS", "Top", "container_bits", "images"]

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
        steps: of a sequence at the most, for a bidirectional layer.
    """
    pixels = plans[0].pixels if isinstance(plans[0], ConvPlan) else 1  # side by side out of the first layer
    aside = len(plans) > 1 and pixels > 1 and pooled_aside(network.stages[1], pixels)
    return wired(network.arrangement, plans, Site(gives=pixels if aside else 1, steps=steps, config=config))


class Top(wiring.Component):
    """A network as hardware; equals `sim.golden.network.Network.run_integers`.

    A beat is a block: as many values as the block size of the first (or last) layer, each sign-extended to whole bytes,
    value 0 in the low bits. A vector takes as many beats as its values fill; lanes behind its last value are not looked
    at where it comes in, and zero where it goes out. Over images a vector is a pixel, or ``pixels`` side by side where
    the first layer takes so many at once.

    tlast of the input ends a frame: an image, a vector where each is a sample of its own, or a sequence of any number
    of vectors. Misplaced, it is flagged, and the next frame is right (`FrameGuard`): a frame that ends too early is
    filled up with zeros, a sequence to the end of its vector; of an image or a vector that ends too late, what is too
    much is dropped up to its tlast. A sequence whose vectors are a beat each cannot be misframed, and has no such flag.

    A network with a bidirectional layer needs whole sequences. One of more than ``max_steps`` vectors is cut behind
    each ``max_steps`` of them where it comes in, and its parts are sequences of their own.

    Parameters:
        plans: of the layers.
        max_steps: vectors of a sequence at the most; None afterwards where all layers go forward, and any will do.
        reloadable: whether there is a configuration port, through which weights are exchanged and, where all layers go
            forward, states saved and restored.

    Members:
        s_axis_tdata … m_axis_tlast: the two streams; `circulant.hw.ports.MEANINGS` describes each port.
        overflow: only with a bidirectional layer over sequences.
        malformed: not for sequences of vectors of one beat.
        cfg_addr … cfg_rvalid: the configuration port, see `Config`.
    """

    meanings = MEANINGS

    def __init__(self, network: Network, plans: Sequence[Plan], *, max_steps: int = 128,
                 reloadable: bool = False) -> None:
        self._network = network
        self.config = config = Config(streams=streams_of(plans)) if reloadable else None
        paired = any(isinstance(layer, Bidirectional) for layer in network.stages)
        limited = paired and network.flow.grid is None  # The sequences that images become are of one length.
        self.max_steps = max_steps if limited else None
        self.units = _units(network, plans, max(2, *repeats(network)) if paired and not limited else self.max_steps,
                             config)
        self.shared = [SharedArray(each.programs[0].whole, name=f"shared{n or ''}", count=len(each.layers),
                                   in_turn=each.in_turn, config=config)
                       for n, each in enumerate(sharings(plans))]
        self._takers = [inputs(self.units[at])[network.arrangement.sources[at].index(INPUT)]
                        for at in dict.fromkeys(network.arrangement.readers(INPUT))]
        first = min((each.payload.shape() for each in self._takers), key=lambda each: each.members["data"].length)
        last = self.units[-1].o.payload.shape()
        self._first = first
        self.input_block, self.output_block = first.members["data"].length, last.members["data"].length
        self.pixels = plans[0].pixels if isinstance(plans[0], ConvPlan) else 1
        self._size = network.flow.size * self.pixels  # of a vector
        self._frame: FrameGuard | None = None
        if not network.sequence or self._size > self.input_block:
            grid = network.flow.grid
            vectors = 1 if grid is None else math.prod(grid) // self.pixels
            self._frame = FrameGuard(first, size=self._size, vectors=None if network.sequence else vectors)
        super().__init__({
            "s_axis_tdata": In(self.input_block * container_bits(network.input_format.width)),
            "s_axis_tvalid": In(1), "s_axis_tready": Out(1), "s_axis_tlast": In(1),
            "m_axis_tdata": Out(self.output_block * container_bits(network.output_format.width)),
            "m_axis_tvalid": Out(1), "m_axis_tready": In(1), "m_axis_tlast": Out(1),
            **({"overflow": Out(1)} if limited else {}),
            **({} if self._frame is None else {"malformed": Out(1)}),
            **({f"cfg_{name}": member for name, member in CONFIG.items()} if reloadable else {}),
        })

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
        return texts([image for unit in (*self.units, *self.shared) for image in unit.images])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        network, units = self._network, self.units

        # The layers, each behind those that it takes.
        head, between = self._wire(m, None if self.config else platform)

        # The arrays that layers share, each with those that follow each other.
        asking = iter([getattr(unit, name) for unit in units for name in unit.signature.members
                       if name.startswith("array")])
        for shared in self.shared:
            m.submodules[shared.name] = separate_module(None if self.config else platform, shared,
                                                        f"circulant_{shared.name}_array")
            for port in shared.ports:
                wiring.connect(m, next(asking), port)

        # What guards the way in: sequences that are not too long, frames that end where they may.
        tail = units[-1].o
        if self.max_steps is not None:
            m.submodules.limit = limit = Limit(
                head.payload.shape(), blocks=-(-network.flow.size // self.input_block), steps=self.max_steps)
            connect(m, limit.o, head)
            m.d.comb += self.overflow.eq(limit.overflow)
            head = limit.i
        if self._frame is not None:
            m.submodules.frame = frame = self._frame
            connect(m, frame.o, head)
            m.d.comb += self.malformed.eq(frame.malformed)
            head = frame.i

        # The AXI4-Stream ports: values in containers of whole bytes.
        width = network.input_format.width
        for j in range(min(self._size, self.input_block)):
            value = self.s_axis_tdata.word_select(j, container_bits(width))[:width].as_signed()
            m.d.comb += head.payload.data[j].eq(value)
        m.d.comb += [
            head.valid.eq(self.s_axis_tvalid), head.payload.last.eq(self.s_axis_tlast),
            self.s_axis_tready.eq(head.ready),
        ]
        bits = container_bits(network.output_format.width)
        for j in range(self.output_block):
            extended = Signal(signed(bits), name=f"m_value_{j}")
            m.d.comb += [
                extended.eq(Value.cast(tail.payload.data[j])), self.m_axis_tdata.word_select(j, bits).eq(extended)]
        m.d.comb += [
            self.m_axis_tvalid.eq(tail.valid), self.m_axis_tlast.eq(tail.payload.last),
            tail.ready.eq(self.m_axis_tready),
        ]
        if self.config is not None:
            self._configure(m, self.config, head, between)
        return m

    def _wire(self, m: Module, platform: Platform) -> tuple[stream.Interface, list[stream.Interface]]:
        """Add the units and what joins them; returns the stream that the input goes into, and those between units."""
        network, units, arranged = self._network, self.units, self._network.arrangement
        if arranged.chain:
            return units[0].i, [*(unit.o for unit in units), *link(m, network.stages, units, platform)]
        for layer, unit in zip(network.stages, units, strict=True):
            m.submodules[layer.name] = separate_module(platform, unit, f"circulant_layer_{layer.name}")
        head = stream.Signature(self._first).create(path=("entry",))
        for at in range(INPUT, len(units) - 1):
            sinks = [taken for n, sources in enumerate(arranged.sources)
                     for taken, source in zip(inputs(units[n]), sources, strict=True) if source == at]
            if at == INPUT:
                parted(m, head, sinks, size=network.flow.size, width=network.input_format.width, name="entry")
            else:
                layer = network.stages[at]
                parted(m, units[at].o, sinks, size=layer.outputs, width=layer.output_format.width, name=layer.name)
        return head, [unit.o for unit in units]

    def _configure(self, m: Module, config: Config, head: stream.Interface,
                   between: list[stream.Interface]) -> None:
        """The port; held, nothing enters but a beat that is on its way in. It comes behind all memories."""
        m.submodules.config = config
        entering = Signal()
        m.d.sync += entering.eq(head.valid & ~head.ready)
        holds: Value = config.hold & ~entering
        if self.max_steps is None:
            filling = [] if self._frame is None else [self._frame.busy]
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
    with unelaborated():
        return Top(network, plans).images
