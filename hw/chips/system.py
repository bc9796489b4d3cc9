"""All chips and their links in one circuit, to be simulated: the ports are those of the design of the whole."""
from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.chip import PINS, Chip
from circulant.hw.emit.target import Platform, Rom, VerilogTarget
from circulant.hw.stream.join import fork
from circulant.hw.top import SIGNALS
from circulant.sim.chips import LATENCY, SEED, SLOWER, setting

__all__ = ["Pins", "System"]

STEPS = 7
"""Steps of the generator of faults in a cycle."""

RARELY, SPELL = 6, 4
"""Bits that are all zero where a word is lost: one word of 64; as many are doubled, and as many have a wrong bit. Bits
of the length of a spell in which nothing comes."""

WAY = """\
module circulant_way #(
  parameter WIDTH = 1,
  parameter BITS = 1
) (
  input clk,  // clock
  input [BITS-1:0] latency,  // cycles
  input [WIDTH-1:0] i,  // a word
  output [WIDTH-1:0] o  // the word so many cycles before; none at first
);
  reg [WIDTH-1:0] mem [0:(1<<BITS)-1];
  reg [BITS-1:0] now;
  integer n;
  initial for (n = 0; n < (1<<BITS); n = n + 1) mem[n] = 0;
  always @(posedge clk) begin
    mem[now] <= i;
    now <= now + 1'b1;
  end
  assign o = mem[now - latency];
endmodule
"""
"""Words under way, which a reset leaves as they are."""


class Pins(wiring.Component):
    """A model of one direction's pins: each word comes so many cycles later, also behind a reset.

    Parameters:
        most: the greatest latency.
        beats: that a word takes: as many fewer of these are wrong.

    Members:
        i, o: a word, of which bit 0 says that it is there.
        latency: cycles.
        seed: where it is not 0, words are lost, come again in place of the next one, or have a wrong bit, and in spells
            of up to 16 cycles nothing comes.
    """

    def __init__(self, width: int, most: int, beats: int = 1) -> None:
        self._width, self._bits, self._rarely = width, max(2, most.bit_length()), RARELY + (beats - 1).bit_length()
        super().__init__({"i": In(width), "o": Out(width), "latency": In(LATENCY), "seed": In(SEED)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        word = self._worse(m, self.i)
        late = Signal(self._width)
        if isinstance(platform, VerilogTarget):
            platform.add_module("circulant_way", WAY, outputs=("o",))
            m.submodules.way = Instance("circulant_way", p_WIDTH=self._width, p_BITS=self._bits, i_clk=ClockSignal(),
                                        i_latency=self.latency[:self._bits], i_i=word, o_o=late)
        else:
            m.submodules.way = way = memory.Memory(shape=self._width, depth=1 << self._bits, init=[])
            now = Signal(self._bits)
            write = way.write_port()
            read = way.read_port(domain="comb")
            m.d.sync += now.eq(now + 1)
            m.d.comb += [write.en.eq(1), write.addr.eq(now), write.data.eq(word), read.addr.eq(now - self.latency),
                         late.eq(read.data)]
        m.d.comb += self.o.eq(Mux(self.latency == 0, word, late))
        return m

    def _worse(self, m: Module, word: Value) -> Value:
        """The word, or what becomes of it."""
        drawn = Signal(SEED)
        bits: list[Value] = [drawn[n] for n in range(SEED)]
        for _ in range(STEPS):
            bits = [bits[30] ^ bits[27], *bits[:30]]
        m.d.sync += drawn.eq(Mux(drawn == 0, self.seed, Cat(bits)))
        before = Signal(self._width)
        spell = Signal(SPELL)
        found = Signal(self._width)
        rarely = self._rarely
        chosen = drawn[:rarely]
        m.d.sync += [before.eq(word), spell.eq(Mux(spell == 0, Mux(drawn[rarely:2 * rarely] == 3, drawn[-SPELL:], 0),
                                                   spell - 1))]
        m.d.comb += found.eq(word)
        with m.If(drawn != 0):
            with m.If((chosen == 0) | (spell != 0)):
                m.d.comb += found.eq(Cat(Const(0, 1), word[1:]))
            with m.Elif(chosen == 1):
                m.d.comb += found.eq(before)
            with m.Elif(chosen == 2):
                m.d.comb += found.eq(word ^ Mux(word[0], Const(1, self._width) << drawn[RARELY:RARELY + 5], 0)
                                     if self._width > 32 else word ^ (Const(2, self._width)))
        return found


class System(wiring.Component):
    """Chips, pins between them, and the host's streams: an input goes to each chip that takes it.

    Parameters:
        chips: by number, those that have a part.
        modules: the Verilog module of each.
        latency: of all links in cycles. An image for each way of pins says what it is, so that a simulation may have
            others, up to ``most``.
        faults: the seed of the first way, see `Pins`; 0 for none.
        turns: chips to which the vectors of the host go in turn; none where each goes to all that take it.

    Members:
        s_axis_tdata … m_axis_tlast: as of the design of the whole.
        malformed, overflow: of any chip.
    """

    def __init__(self, chips: Mapping[int, Chip], modules: Mapping[int, str], *, latency: int, faults: int = 0,
                 turns: Sequence[int] = ()) -> None:
        self._chips, self._modules, self._latency, self._faults = chips, modules, latency, faults
        self._turns = tuple(turns)
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

        # Pins, each pair in both directions.
        seed = self._faults
        for number, chip in self._chips.items():
            for other in chip.others:
                for pin in PINS[:2]:
                    sends = pins[number][f"link{other}_{pin}"]
                    takes = pins[other][f"link{number}_{pin.replace('tx', 'rx')}"]
                    if chip.beats(other) > 1 and pin == "tx_answer":  # A clock.
                        m.d.comb += takes.eq(sends)
                        continue
                    name = f"link_{number}_{other}_{pin}"
                    m.submodules[name] = way = Pins(len(sends), self.most, chip.beats(other))
                    m.submodules[f"{name}_set"] = rom = Rom(words=[setting(self._latency, seed)],
                                                            width=LATENCY + SEED, image=name)
                    seed += bool(seed)
                    m.d.comb += [rom.en.eq(1), way.latency.eq(rom.data[:LATENCY]), way.seed.eq(rom.data[LATENCY:]),
                                 way.i.eq(sends), takes.eq(way.o)]

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
        """Vectors of the host go to the chips in turn, and results come from them so."""
        first = self._chips[self._turns[0]]
        for streams, comes in ((first.host_in, True), (first.host_out, False)):
            (prefix, each), = streams.values()
            block = Signal(range(max(2, each.blocks)), name=f"{prefix}_block")
            turn = Signal(range(max(2, len(self._turns))), name=f"{prefix}_turn")
            mine = {signal: getattr(self, f"{prefix}_{signal}") for signal in SIGNALS}
            with m.If(mine["tvalid"] & mine["tready"]):
                m.d.sync += block.eq(block + 1)
                with m.If(block == each.blocks - 1):
                    m.d.sync += [block.eq(0), turn.eq(Mux(turn == len(self._turns) - 1, 0, turn + 1))]
            for n, number in enumerate(self._turns):
                its = {signal: pins[number][f"{prefix}_{signal}"] for signal in SIGNALS}
                to, source = (its, mine) if comes else (mine, its)
                m.d.comb += [its[signal].eq(mine[signal]) for signal in ("tdata", "tlast") if comes]
                with m.If(turn == n):
                    m.d.comb += [to["tvalid"].eq(source["tvalid"]), source["tready"].eq(to["tready"])]
                    m.d.comb += [mine[signal].eq(its[signal]) for signal in ("tdata", "tlast") if not comes]
