"""All chips and their links in one circuit, to be simulated: the ports are those of the design of the whole."""
from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.channel import Frames, Pins
from circulant.hw.chips.chip import Chip
from circulant.hw.emit.target import Platform, Rom
from circulant.hw.stream.join import fork
from circulant.hw.top import SIGNALS
from circulant.sim.chips import LATENCY, SEED, SLOWER, setting

__all__ = ["System"]

class System(wiring.Component):
    """Chips, pins between them, and the host's streams: an input goes to each chip that takes it.

    Parameters:
        chips: by number, those that have a part.
        modules: the Verilog module of each.
        latency: of all links in cycles. An image for each way of pins says what it is, so that a simulation may have
            others, up to ``most``.
        faults: the seed of the first way, see `Pins`; 0 for none.
        turns: chips to which the vectors of the host go in turn, or ``samples``, up to the mark of their last beat;
            none where each goes to all that take it.

    Members:
        s_axis_tdata … m_axis_tlast: as of the design of the whole.
        malformed, overflow: of any chip.
    """

    def __init__(self, chips: Mapping[int, Chip], modules: Mapping[int, str], *, latency: int, faults: int = 0,
                 turns: Sequence[int] = (), samples: bool = False) -> None:
        self._chips, self._modules, self._latency, self._faults = chips, modules, latency, faults
        self._turns, self._samples = tuple(turns), samples
        self.most = max(latency, SLOWER)
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

        # What is between each pair, in both directions.
        seed = self._faults
        for number, chip in self._chips.items():
            for other in chip.others:
                shape = chip.link(other)
                sends, takes = ({name.removeprefix(f"link{it}_"): signal for name, signal in pins[its].items()
                                 if name.startswith(f"link{it}_")} for its, it in ((number, other), (other, number)))
                if shape.carrier:
                    frames = Frames(shape.carrier.beat, shape.frame, self.most)
                    m.d.comb += [*(getattr(frames, f"i_{each}").eq(sends[f"tx_{each}"])
                                   for each in ("tdata", "tvalid", "tlast")), sends["tx_tready"].eq(frames.i_tready),
                                 *(takes[f"rx_{each}"].eq(getattr(frames, f"o_{each}"))
                                   for each in ("tdata", "tvalid", "tlast"))]
                    ways: dict[str, Frames | Pins] = {"tx": frames}
                else:
                    ways = {}
                    for pin in ("tx", "tx_answer"):
                        to = takes[pin.replace("tx", "rx")]
                        if shape.pins and pin == "tx_answer":  # A clock.
                            m.d.comb += to.eq(sends[pin])
                            continue
                        ways[pin] = way = Pins(len(to), self.most, shape.beats)
                        m.d.comb += [way.i.eq(sends[pin]), to.eq(way.o)]
                for pin, model in ways.items():
                    name = f"link_{number}_{other}_{pin}"
                    m.submodules[name] = model
                    m.submodules[f"{name}_set"] = rom = Rom(words=[setting(self._latency, seed)],
                                                            width=LATENCY + SEED, image=name)
                    seed += bool(seed)
                    m.d.comb += [rom.en.eq(1), model.latency.eq(rom.data[:LATENCY]),
                                 model.seed.eq(rom.data[LATENCY:])]

        # The host: inputs go to each chip that takes them, outputs come from one.
        for flag in ("malformed", "overflow", "fault"):
            raised = [pins[number][flag] for number, chip in self._chips.items() if flag in chip.signature.members]
            if flag in self.signature.members:
                m.d.comb += getattr(self, flag).eq(Cat(raised).any() if raised else 0)
        if self._turns:
            self._in_turn(m, pins)
            return m
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

    def _in_turn(self, m: Module, pins: Mapping[int, Mapping[str, Signal]]) -> None:
        """Vectors or samples of the host go to the chips in turn, and results come from them so."""
        first = self._chips[self._turns[0]]
        for streams, comes in ((first.host_in, True), (first.host_out, False)):
            (prefix, each), = streams.values()
            block = Signal(range(max(2, each.blocks)), name=f"{prefix}_block")
            turn = Signal(range(max(2, len(self._turns))), name=f"{prefix}_turn")
            mine = {signal: getattr(self, f"{prefix}_{signal}") for signal in SIGNALS}
            with m.If(mine["tvalid"] & mine["tready"]):
                m.d.sync += block.eq(block + 1)
                with m.If(mine["tlast"] if self._samples else block == each.blocks - 1):
                    m.d.sync += [block.eq(0), turn.eq(Mux(turn == len(self._turns) - 1, 0, turn + 1))]
            for number in dict.fromkeys(self._turns):
                its = {signal: pins[number][f"{prefix}_{signal}"] for signal in SIGNALS}
                to, source = (its, mine) if comes else (mine, its)
                m.d.comb += [its[signal].eq(mine[signal]) for signal in ("tdata", "tlast") if comes]
                with m.If(Cat(turn == n for n, each in enumerate(self._turns) if each == number).any()):
                    m.d.comb += [to["tvalid"].eq(source["tvalid"]), source["tready"].eq(to["tready"])]
                    m.d.comb += [mine[signal].eq(its[signal]) for signal in ("tdata", "tlast") if not comes]
