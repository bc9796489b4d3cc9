"""An array that several layers share: each has a sequencer of its own, and in each cycle one of them gets the array.

Either who is furthest behind in the network goes first, so that a sample that is under way is done before the next one
begins, and what others have to do fills the gaps; or they go in turn, so that no layer waits for long and samples come
at an even pace. A block product over several cycles is not interrupted.
"""
from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import tell, watched
from circulant.hw.array.issue import issues_of, spectra_latency
from circulant.hw.array.lanes import LaneArray, array_images, row_shape
from circulant.hw.array.output_pipeline import chain_output
from circulant.hw.array.parts import Parts, Shared, array_parts
from circulant.hw.array.program import Program
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import delay

__all__ = ["SharedArray", "array_port"]

def array_port(program: Program) -> wiring.Signature:
    """Interface from the engine of a layer to the array that it shares.

    Parameters:
        program: of the array.

    Members:
        issue, second, spectra: see `LaneArray`.
        o_…: rows of each chain, those of all layers, see `chain_output`.
        grant, free: see `circulant.hw.array.sequencer.Sequencer`.
    """
    row = row_shape(program)
    spectrum = data.ArrayLayout(signed(row.data_width), row.k)
    return wiring.Signature({
        "issue": Out(issues_of(program)), "second": Out(1),
        "spectra": Out(data.ArrayLayout(spectrum, program.shape.columns)),
        "grant": In(1), "free": In(1),
        **{f"o_{chain}": In(chain_output(program)) for chain in range(program.shape.chains)}})


class SharedArray(wiring.Component):
    """The array and its arbiter.

    Parameters:
        program: see `circulant.hw.array.schedules.merged.Merged`.
        name: in front of those of its memory images.
        count: of layers.
        in_turn: whether behind each layer the next one that asks goes first; else who is furthest behind does.
        config: the port of a reloadable design; None otherwise.

    Members:
        port_…: one of the layers, in the order of the network, see `array_port`.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, program: Program, *, count: int, name: str = "shared", in_turn: bool = False,
                 config: Config | None = None) -> None:
        self.name = name
        self._program, self._count, self._in_turn, self._config = program, count, in_turn, config
        super().__init__({**{f"port_{n}": In(array_port(program)) for n in range(count)},
                          **watched(program.shape.protection)})

    @property
    def ports(self) -> list[wiring.PureInterface]:
        """Ports of all layers."""
        return [getattr(self, f"port_{n}") for n in range(self._count)]

    @property
    def parts(self) -> Parts:
        row = row_shape(self._program)
        return array_parts(self._program, loadable=self._config is not None) + Parts(
            shared=[Shared(self._count, row.columns * row.k * row.data_width)])

    @property
    def images(self) -> list[Image]:
        return array_images(self.name, self._program)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.array = array = LaneArray(name=self.name, program=self._program, config=self._config)
        shape, ports = self._program.shape, self.ports
        tell(m, self, array)

        # Who gets the array: whoever is in the middle of a block product, else the first of those that ask.
        inside = Cat(port.issue.phase != 0 for port in ports)
        asks = Cat(port.issue.valid for port in ports)
        for port, mine, first in zip(ports, inside, self._first(m, ports, asks), strict=True):
            m.d.comb += port.grant.eq(port.issue.valid & (mine | (first & ~inside.any())))

        # Its issue, and its spectra when they come.
        late = [delay(m, port.grant, spectra_latency(self._program.shape.levels), name=f"granted_{n}")
                for n, port in enumerate(ports)]
        fields = [name for name in array.issue.signature.members if name != "valid"]
        m.d.comb += [array.issue.valid.eq(Cat(port.grant for port in ports).any()),
                     *(getattr(array.issue, name).eq(getattr(ports[0].issue, name)) for name in fields),
                     array.second.eq(ports[0].second), Value.cast(array.spectra).eq(Value.cast(ports[0].spectra))]
        for port, come in zip(ports[1:], late[1:], strict=True):
            with m.If(port.grant):
                m.d.comb += [*(getattr(array.issue, name).eq(getattr(port.issue, name)) for name in fields),
                             array.second.eq(port.second)]
            with m.If(come):
                m.d.comb += Value.cast(array.spectra).eq(Value.cast(port.spectra))

        # The drain, which all of them fill.
        draining = Signal(range(max(2, shape.slots)))
        free = Signal()
        ends = Signal()
        m.d.comb += [ends.eq(array.issue.valid & array.issue.ends),
                     free.eq(Mux(ends, shape.slots <= shape.fold, draining <= shape.fold))]
        with m.If(draining != 0):
            m.d.sync += draining.eq(draining - 1)
        with m.If(ends):
            m.d.sync += draining.eq(shape.slots - 1)

        # Rows go to all of them; each knows its own.
        for port in ports:
            m.d.comb += port.free.eq(free)
            for c, chain in enumerate(array.o):
                given = getattr(port, f"o_{c}")
                m.d.comb += [getattr(given, name).eq(getattr(chain, name)) for name in chain.signature.members]
        return m

    def _first(self, m: Module, ports: Sequence[wiring.PureInterface], asks: Value) -> list[Value]:
        """For each layer whether it goes before all others that ask."""
        if not self._in_turn:
            return [~asks[n + 1:].any() for n in range(len(ports))]
        behind = Signal(len(ports))  # Those behind the layer that had the array last.
        later = asks & behind
        for n, port in enumerate(ports):
            with m.If(port.grant):
                m.d.sync += behind.eq((1 << len(ports)) - (2 << n))
        return [Mux(later.any(), behind[n] & ~later[:n].any(), ~asks[:n].any()) for n in range(len(ports))]
