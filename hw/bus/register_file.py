"""The registers of `circulant.sim.registers.REGISTERS`, and the way to the configuration port, on the core's clock."""
from amaranth.hdl import Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.bus.axi4_lite import answer_layout, request_layout
from circulant.hw.emit.target import Platform
from circulant.sim.configuration import ADDRESS_BITS, WORD
from circulant.sim.registers import IDENTIFICATION, PATIENCE, TABLE_VERSION, RegisterMap, register

__all__ = ["RESET_CYCLES", "RegisterFile"]

RESET_CYCLES = 4
"""Cycles of a soft reset."""


class RegisterFile(wiring.Component):
    """Answers a request two cycles later, or where it reads the configuration port, when the word has come.

    What is not in the table is refused, and so are writes of registers that are only read, and of parts of a word, and
    what a reset interrupts.

    Parameters:
        addresses: of the design.
        network: its hash, 64 hexadecimal digits.
        patience: cycles after which a core of protected memories hangs, a power of two.

    Members:
        execute, asked, finished, reply: see `circulant.hw.bus.crossing.Crossing`.
        enters: a beat moves at the core's input.
        leaves: a beat moves at the core's output.
        last_in: the beat at the input is the last of its sequence.
        last_out: the beat at the output is the last of its sequence.
        offered: an output is offered.
        overflow: the core's flag that a sequence was too long.
        malformed: the core's flag that a frame ended at a wrong beat.
        corrected, uncorrected: of a core with protected memories, see `circulant.hw.top.Top`.
        reset: the core is to be reset.
        cfg_…: the core's configuration port.
    """

    def __init__(self, addresses: RegisterMap, network: str, *, patience: int = PATIENCE) -> None:
        self._map, self._network, self._patience = addresses, network, patience
        super().__init__({
            "execute": In(1), "asked": In(request_layout(addresses.address_bits)), "finished": Out(1),
            "reply": Out(answer_layout()),
            **{name: In(1) for name in ("enters", "leaves", "last_in", "last_out", "offered", "overflow",
                                        "malformed", *(("corrected", "uncorrected") if addresses.guarded else ()))},
            "reset": Out(1),
            "cfg_addr": Out(ADDRESS_BITS), "cfg_wdata": Out(WORD), "cfg_we": Out(1), "cfg_re": Out(1),
            "cfg_rdata": In(WORD), "cfg_rvalid": In(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        asked, base = self.asked, self._map.base
        configurable = bool(base)
        offset = asked.address[2:(base or 1 << self._map.address_bits).bit_length() - 1]
        of_port: Value = asked.address[-1] if configurable else Const(0)

        # Registers: what they read as, which of them may be written.
        values = self._values(m, configurable)
        here = {each.name: ~of_port & (offset == each.offset // 4) for each in self._map.registers}
        known, written = Cat(here.values()).any(), Cat(
            here[each.name] for each in self._map.registers if each.writable).any()
        refused = Mux(of_port, asked.write & ~asked.whole, Mux(asked.write, ~(written & asked.whole), ~known))
        shown = Signal(WORD)
        m.d.sync += shown.eq(Value.cast(sum((Mux(here[name], value, 0) for name, value in values.items()),
                                            Const(0, WORD))))

        # A request: a cycle to decode it, another for its answer; the port takes longer to read.
        decoded = Signal()
        waits = Signal()
        wrong = Signal()
        goes = self.execute & ~refused
        m.d.sync += [decoded.eq(self.execute & ~(of_port & ~asked.write & ~refused)), wrong.eq(refused)]
        m.d.comb += [
            self.cfg_addr.eq(offset), self.cfg_wdata.eq(asked.word),
            self.cfg_we.eq(goes & of_port & asked.write), self.cfg_re.eq(goes & of_port & ~asked.write),
            self.finished.eq(decoded | (waits & (self.cfg_rvalid | self.reset))),
            self.reply.refused.eq((decoded & wrong) | (waits & self.reset) | ResetSignal()),
            self.reply.word.eq(Mux(waits, self.cfg_rdata, Mux(wrong, 0, shown)))]
        with m.If(self.cfg_re):
            m.d.sync += waits.eq(1)
        with m.Elif(self.finished):
            m.d.sync += waits.eq(0)
        self._commands(m, goes & asked.write, here)
        with m.If(decoded & wrong):
            m.d.sync += self._access.eq(1)
        with m.If(self.execute & here["cycles_low"]):
            m.d.sync += self._high.eq(self._cycles[WORD:])
        return m

    def _values(self, m: Module, configurable: bool) -> dict[str, Value]:
        """Each register as it reads."""
        self._cycles = Signal(2 * WORD, name="cycles")
        self._high = Signal(WORD, name="cycles_high")
        self._access = Signal(name="access")
        sequences = Signal(WORD)
        mid_sequence = Signal()
        in_flight = Signal(WORD)
        ends, leaves = self.enters & self.last_in, self.leaves & self.last_out
        m.d.sync += [self._cycles.eq(self._cycles + 1), sequences.eq(sequences + leaves)]
        with m.If(self.reset):
            m.d.sync += [mid_sequence.eq(0), in_flight.eq(0)]
        with m.Else():
            m.d.sync += in_flight.eq(in_flight + ends - leaves)
            with m.If(self.enters):
                m.d.sync += mid_sequence.eq(~self.last_in)
        values: dict[str, Value] = {
            "id": Const(IDENTIFICATION, WORD), "version": Const(TABLE_VERSION, WORD),
            "status": Cat(mid_sequence | (in_flight != 0), self.offered, self.reset, Const(int(configurable), 1)),
            "errors": Cat(self.overflow, self.malformed, self._access),
            "cycles_low": self._cycles[:WORD], "cycles_high": self._high, "sequences": sequences}
        if self._map.guarded:
            corrected = Signal(WORD)
            m.d.sync += corrected.eq(corrected + self.corrected)
            # The watchdog: its highest bit stays.
            waited = Signal(range(self._patience + 1))
            with m.If(self.reset | ~waited[-1] & ((in_flight == 0) | self.offered | self.enters)):
                m.d.sync += waited.eq(0)
            with m.Elif(~waited[-1]):
                m.d.sync += waited.eq(waited + 1)
            values |= {"corrected": corrected, "uncorrected": Cat(self.uncorrected, waited[-1])}
        return values | {f"network_{n}": Const(int(self._network[8 * n:8 * n + 8], 16), WORD) for n in range(8)}

    def _commands(self, m: Module, writes: Value, here: dict[str, Value]) -> None:
        """The effects of a written 1."""
        word = self.asked.word
        reset_left = Signal(range(RESET_CYCLES + 1))
        m.d.comb += self.reset.eq(reset_left != 0)
        with m.If(writes & here["control"] & word[register("control").fields[0].low]):
            m.d.sync += reset_left.eq(RESET_CYCLES)
        with m.Elif(reset_left != 0):
            m.d.sync += reset_left.eq(reset_left - 1)
        with m.If(writes & here["errors"] & word[register("errors").fields[2].low]):
            m.d.sync += self._access.eq(0)
