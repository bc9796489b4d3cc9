"""Models of what is between two chips, with a latency, and with faults that are drawn."""
from amaranth.hdl import Array, Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.emit.target import Platform, VerilogTarget
from circulant.hw.stream.storage import Ram
from circulant.sim.chips import LATENCY, SEED

__all__ = ["Frames", "Pins"]

STEPS = 7
"""Steps of the generator of faults in a cycle."""

RARELY, SPELL = 6, 4
"""Bits that are all zero where a word is lost: one word of 64; as many are doubled, and as many have a wrong bit. Bits
of the length of a spell in which nothing comes."""

SLOTS, WAIT, FATES = 4, 8, 6
"""Frames that a carrier has at once besides those on their way, bits of the cycles that one may be late, and what may
happen to a frame, to one of 64 each."""

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


def _drawn(m: Module, seed: Value) -> Signal:
    """Bits that are drawn in each cycle, by a register that is fed back; 0 where the seed is."""
    drawn = Signal(SEED)
    bits: list[Value] = [drawn[n] for n in range(SEED)]
    for _ in range(STEPS):
        bits = [bits[30] ^ bits[27], *bits[:30]]
    m.d.sync += drawn.eq(Mux(drawn == 0, seed, Cat(bits)))
    return drawn


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
        drawn = _drawn(m, self.seed)
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


class Frames(wiring.Component):
    """A model of one direction of a carrier: each beat comes so many cycles later, and then each frame as a whole.

    Parameters:
        beat: bits of a beat.
        length: beats of a frame.
        most: the greatest latency.

    Members:
        i_tdata, i_tvalid, i_tready, i_tlast: of the chip that sends.
        o_tdata, o_tvalid, o_tlast: of the other one.
        latency: cycles, besides those of a frame.
        seed: where it is not 0, frames are lost, come twice, late, behind others, with a wrong bit, with wrong bits in
            all beats, or without their first beat, and in some cycles nothing is taken.
    """

    def __init__(self, beat: int, length: int, most: int) -> None:
        self._beat, self._at, self._most = beat, ceil_log2(length), most
        super().__init__({"i_tdata": In(beat), "i_tvalid": In(1), "i_tready": Out(1), "i_tlast": In(1),
                          "o_tdata": Out(beat), "o_tvalid": Out(1), "o_tlast": Out(1),
                          "latency": In(LATENCY), "seed": In(SEED)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        drawn = _drawn(m, self.seed)
        m.submodules.way = way = Pins(2 + self._beat, self._most)
        m.submodules.kept = kept = Ram(width=self._beat, depth=SLOTS << self._at)
        valid, last, given = way.o[0], way.o[1], way.o[2:]
        m.d.comb += [self.i_tready.eq((drawn == 0) | (drawn[-SPELL:] != 0)), way.latency.eq(self.latency),
                     way.i.eq(Cat(self.i_tvalid & self.i_tready, self.i_tlast, self.i_tdata))]

        # Where a frame goes, and what becomes of it, is chosen with its first beat.
        ends = Array(Signal(self._at, name=f"ends_{n}") for n in range(SLOTS))
        copies = Array(Signal(2, name=f"copies_{n}") for n in range(SLOTS))
        waits = Array(Signal(WAIT, name=f"waits_{n}") for n in range(SLOTS))
        slot = Signal(range(SLOTS))
        into = Signal(range(SLOTS))
        inside = Signal()
        room = Signal()
        fits = Signal()
        event = Signal(RARELY)
        fate = Signal(RARELY)
        at = Signal(self._at)
        m.d.comb += [into.eq(slot), fits.eq(room), fate.eq(event)]
        with m.If(~inside):
            m.d.comb += [fits.eq(0), fate.eq(Mux(drawn == 0, FATES, drawn[:RARELY]))]
            for n in range(SLOTS):
                with m.If(copies[n] == 0):
                    m.d.comb += [into.eq(n), fits.eq(1)]
        lost, twice, late, wrong, spoilt, cut = (fate == n for n in range(FATES))
        first = ~inside
        garbled = given ^ Mux(wrong & first, 1, 0) ^ Mux(spoilt, drawn, 0)
        m.d.comb += [kept.w_en.eq(valid & fits), kept.w_addr.eq(Cat(at, into)), kept.w_data.eq(garbled)]
        with m.If(valid):
            m.d.sync += [inside.eq(~last), slot.eq(into), room.eq(fits), event.eq(fate),
                         at.eq(Mux(last, 0, at + ~(cut & first)))]
            with m.If(last & fits & ~lost):
                m.d.sync += [ends[into].eq(at), copies[into].eq(1 + twice), waits[into].eq(Mux(late, drawn[:WAIT], 0))]

        # Of frames that wait no more the first goes.
        goes = Signal()
        which = Signal(range(SLOTS))
        place = Signal(self._at)
        ready = Signal(SLOTS)
        over = place == ends[which]
        m.d.comb += [ready.eq(Cat((copies[n] != 0) & (waits[n] == 0) for n in range(SLOTS))), kept.r_en.eq(1),
                     kept.r_addr.eq(Cat(place, which)), self.o_tdata.eq(kept.r_data)]
        m.d.sync += [self.o_tvalid.eq(goes), self.o_tlast.eq(goes & over)]
        for each in waits:
            with m.If(each != 0):
                m.d.sync += each.eq(each - 1)
        with m.If(goes):
            m.d.sync += place.eq(place + 1)
            with m.If(over):
                m.d.sync += [goes.eq(0), copies[which].eq(copies[which] - 1)]
        with m.Elif(ready.any()):
            m.d.sync += [goes.eq(1), place.eq(0)]
            for n in reversed(range(SLOTS)):
                with m.If(ready[n]):
                    m.d.sync += which.eq(n)
        return m
