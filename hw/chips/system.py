"""All chips and their links in one circuit, to be simulated: the ports are those of the design of the whole."""
from collections.abc import Mapping

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.chip import PINS, Chip
from circulant.hw.emit.target import Platform
from circulant.hw.stream.join import fork
from circulant.hw.top import SIGNALS

__all__ = ["Pins", "System"]

STEPS = 7
"""Steps of the generator of faults in a cycle."""

RARELY = 6
"""Bits that are all zero where a word is lost: one word of 64; as many are doubled, and as many have a wrong bit."""


class Pins(wiring.Component):
    """A model of one direction's pins: each word comes so many cycles later.

    Parameters:
        faults: where it is not 0, the seed by which words are lost, come again in place of the next one, or have a
            wrong bit.

    Members:
        i, o: a word, of which bit 0 says that it is there.
    """

    def __init__(self, width: int, latency: int, faults: int = 0) -> None:
        self._width, self._latency, self._faults = width, latency, faults
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        word: Value = self.i
        if self._faults:
            word = self._worse(m, word)
        for n in range(self._latency):
            later = Signal(self._width, name=f"word_{n + 1}")
            m.d.sync += later.eq(word)
            word = later
        m.d.comb += self.o.eq(word)
        return m

    def _worse(self, m: Module, word: Value) -> Value:
        """The word, or what becomes of it."""
        drawn = Signal(31, init=self._faults * 2654435761 % (2 ** 31 - 1) + 1)
        bits: list[Value] = [drawn[n] for n in range(31)]
        for _ in range(STEPS):
            bits = [bits[30] ^ bits[27], *bits[:30]]
        m.d.sync += drawn.eq(Cat(bits))
        before = Signal(self._width)
        m.d.sync += before.eq(word)
        found = Signal(self._width)
        chosen = drawn[:RARELY]
        with m.If(chosen == 0):
            m.d.comb += found.eq(Cat(Const(0, 1), word[1:]))
        with m.Elif(chosen == 1):
            m.d.comb += found.eq(before)
        with m.Elif(chosen == 2):
            m.d.comb += found.eq(word ^ Mux(word[0], Const(1, self._width) << drawn[RARELY:RARELY + 5], 0)
                                 if self._width > 32 else word ^ (Const(2, self._width)))
        with m.Else():
            m.d.comb += found.eq(word)
        return found


class System(wiring.Component):
    """Chips, pins between them, and the host's streams: an input goes to each chip that takes it.

    Parameters:
        chips: by number, those that have a part.
        modules: the Verilog module of each.
        latency: of all links in cycles.
        faults: see `Pins`; 0 for none.

    Members:
        s_axis_tdata … m_axis_tlast: as of the design of the whole.
        malformed, overflow: of any chip.
    """

    def __init__(self, chips: Mapping[int, Chip], modules: Mapping[int, str], *, latency: int, faults: int = 0) -> None:
        self._chips, self._modules, self._latency, self._faults = chips, modules, latency, faults
        hosts = {name: member for chip in chips.values() for name, member in chip.signature.members.items()
                 if not name.startswith("link") and name not in ("up", "fault")}
        super().__init__({**hosts, "fault": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        pins: dict[int, dict[str, Signal]] = {}
        for number, chip in self._chips.items():
            members = chip.signature.members
            pins[number] = {name: Signal(len(Value.cast(getattr(chip, name))), name=f"chip{number}_{name}")
                            for name in members}
            m.submodules[f"chip{number}"] = Instance(
                self._modules[number], i_clk=ClockSignal(), i_rst=ResetSignal(),
                **{f"{'i' if members[name].flow is In else 'o'}_{name}": signal
                   for name, signal in pins[number].items()})

        # Pins, each pair in both directions.
        seed = self._faults
        for number, chip in self._chips.items():
            for other in chip.others:
                for pin in PINS[:2]:
                    sends = pins[number][f"link{other}_{pin}"]
                    m.submodules[f"pins_{number}_{other}_{pin}"] = way = Pins(len(sends), self._latency, seed)
                    seed += bool(seed)
                    m.d.comb += [way.i.eq(sends), pins[other][f"link{number}_{pin.replace('tx', 'rx')}"].eq(way.o)]

        # The host: inputs go to each chip that takes them, outputs come from one.
        for flag in ("malformed", "overflow", "fault"):
            raised = [pins[number][flag] for number, chip in self._chips.items() if flag in chip.signature.members]
            if flag in self.signature.members:
                m.d.comb += getattr(self, flag).eq(Cat(raised).any() if raised else 0)
        for prefix in dict.fromkeys(prefix for chip in self._chips.values() for prefix, _ in chip.host_in.values()):
            takers = [pins[number] for number, chip in self._chips.items()
                      if prefix in [name for name, _ in chip.host_in.values()]]
            layout = data.StructLayout({"data": len(getattr(self, f"{prefix}_tdata")), "last": 1})
            source = stream.Signature(layout).create(path=(f"{prefix}_all",))
            sinks = [stream.Signature(layout).create(path=(f"{prefix}_{n}",)) for n in range(len(takers))]
            m.d.comb += [source.valid.eq(getattr(self, f"{prefix}_tvalid")),
                         source.payload.data.eq(getattr(self, f"{prefix}_tdata")),
                         source.payload.last.eq(getattr(self, f"{prefix}_tlast")),
                         getattr(self, f"{prefix}_tready").eq(source.ready)]
            fork(m, source, sinks, name=f"{prefix}_fork")
            for sink, each in zip(sinks, takers, strict=True):
                m.d.comb += [each[f"{prefix}_tvalid"].eq(sink.valid), each[f"{prefix}_tdata"].eq(sink.payload.data),
                             each[f"{prefix}_tlast"].eq(sink.payload.last), sink.ready.eq(each[f"{prefix}_tready"])]
        for number, chip in self._chips.items():
            for prefix, _ in chip.host_out.values():
                for signal in SIGNALS:
                    mine, its = getattr(self, f"{prefix}_{signal}"), pins[number][f"{prefix}_{signal}"]
                    m.d.comb += its.eq(mine) if signal == "tready" else mine.eq(its)
        return m
