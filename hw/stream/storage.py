"""Memories of whole sequences, a queue in one, and words that are added to.

Amaranth writes every word of a memory into the Verilog, even where it starts as zero. So these are instances of
`circulant_ram`, whose contents are undefined after configuration: what reads a word has written it.
"""
from amaranth.hdl import ClockSignal, Const, Instance, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.profile import profile_of
from circulant.hw.emit.target import Platform, VerilogTarget
from circulant.hw.stream.pipeline import QUEUE, past

__all__ = ["OLD", "Accumulators", "DeepQueue", "Ram"]

OLD = "old"
"""Attribute, in a simulation, of a memory that gives its old word to whom reads it while it is written."""

RAM = """\
(* keep_hierarchy = 0 *)
module {name} #(
  parameter WIDTH = 1,
  parameter DEPTH = 1,
  parameter ADDRESS = 1,
  parameter STYLE = "block"
) (
  input clk,  // clock
  input w_en,  // write in this cycle
  input [ADDRESS-1:0] w_addr,  // address of the word to write
  input [WIDTH-1:0] w_data,  // the word to write
  input r_en,  // read in this cycle; r_data is kept otherwise
  input [ADDRESS-1:0] r_addr,  // address of the word to read
  output reg [WIDTH-1:0] r_data  // the word that was read last
);
  {style} reg [WIDTH-1:0] mem [0:DEPTH-1];
  always @(posedge clk) begin
    if (w_en) mem[w_addr] <= w_data;
    if (r_en) r_data <= mem[r_addr];
  end
endmodule
"""


class Ram(wiring.Component):
    """A memory that is written and read at once: ``r_data`` is word ``r_addr`` one cycle after ``r_en``.

    A word that was never written has any contents.

    Parameters:
        old: whether a word that is read while it is written has its old contents, and not any. Where block RAM gives
            none, tools build them beside it.

    Members:
        w_en: write in this cycle.
        w_addr: address of the word to write.
        w_data: the word to write.
        r_en: read in this cycle; ``r_data`` is kept otherwise.
        r_addr: address of the word to read.
        r_data: the word that was read last.
    """

    def __init__(self, *, width: int, depth: int, old: bool = False) -> None:
        self._width, self._depth, self._address = width, depth, max(1, (depth - 1).bit_length())
        self._old = old
        super().__init__({"w_en": In(1), "w_addr": In(self._address), "w_data": In(width),
                          "r_en": In(1), "r_addr": In(self._address), "r_data": Out(width)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        if isinstance(platform, VerilogTarget):
            profile = platform.profile
            name, begin = "circulant_ram_old" if self._old else "circulant_ram", 0
            style = profile.declared(profile.ram, unchecked=not self._old)
            platform.add_module(name, RAM.replace("{name}", name).replace("{style}", style), outputs=("r_data",))
            for n, piece in enumerate(profile.pieces(self._depth, self._width)):
                bits, begin = slice(begin, begin + piece.bits), begin + piece.bits
                m.submodules["ram" if n == 0 else "ram_beside"] = Instance(
                    name, p_WIDTH=piece.bits, p_DEPTH=self._depth, p_ADDRESS=self._address,
                    p_STYLE=profile.word(piece.place),
                    i_clk=ClockSignal(), i_w_en=self.w_en, i_w_addr=self.w_addr, i_w_data=self.w_data[bits],
                    i_r_en=self.r_en, i_r_addr=self.r_addr, o_r_data=self.r_data[bits])
            return m
        attributes = {OLD: 1} if self._old else {}
        m.submodules.mem = mem = memory.Memory(shape=self._width, depth=self._depth, init=[], attrs=attributes)
        write = mem.write_port()
        read = mem.read_port()
        m.d.comb += [write.en.eq(self.w_en), write.addr.eq(self.w_addr), write.data.eq(self.w_data),
                     read.en.eq(self.r_en), read.addr.eq(self.r_addr), self.r_data.eq(read.data)]
        return m


class DeepQueue(wiring.Component):
    """A first-in first-out queue in a `Ram`: ``depth`` payloads and one at the output, two cycles from input to output.

    Parameters:
        prompt: one cycle, see `circulant.hw.stream.pipeline.Queue`.

    Members:
        i: stream of payloads into the queue.
        o: stream of payloads out of the queue.
    """

    latency = QUEUE

    def __init__(self, shape: ShapeLike, *, depth: int, prompt: bool = False) -> None:
        self._prompt = prompt
        self._width, self._depth = Shape.cast(shape).width, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.ram = ram = Ram(width=self._width, depth=self._depth)

        # The output is the memory's register, filled again as soon as it is taken.
        level = Signal(range(self._depth + 1))
        write_address = Signal.like(ram.w_addr)
        read_address = Signal.like(ram.r_addr)
        passes, shown = past(m, self, ram.r_data, empty=level == 0, read=ram.r_en) if self._prompt else (
            Const(0), ram.r_data)
        m.d.comb += [
            self.i.ready.eq(level != self._depth),
            ram.w_en.eq(self.i.valid & self.i.ready & ~passes), ram.w_addr.eq(write_address),
            ram.w_data.eq(Value.cast(self.i.payload)),
            ram.r_en.eq((level != 0) & (~self.o.valid | self.o.ready)), ram.r_addr.eq(read_address),
            Value.cast(self.o.payload).eq(shown),
        ]

        # What is held is counted, and addresses go round.
        m.d.sync += [level.eq(level + ram.w_en - ram.r_en),
                     self.o.valid.eq(ram.r_en | passes | (self.o.valid & ~self.o.ready))]
        for at, moves in ((write_address, ram.w_en), (read_address, ram.r_en)):
            with m.If(moves):
                m.d.sync += at.eq(Mux(at == self._depth - 1, Const(0), at + 1))
        return m


class Accumulators(wiring.Component):
    """A memory whose word is read, changed and written back in each cycle; its address is known a cycle ahead.

    Where a family has memories that are read without a clock edge, the address is a register in front of one. Else the
    memory is read with the address, and a word that was written in the cycle before comes from a register beside it.

    Parameters:
        registered: read with the address; None where the target of elaboration decides.

    Members:
        following: the address of the next cycle.
        word: the word at the address of this cycle.
        write: the word at the address of this cycle becomes ``data``.
        data: the word to write.
    """

    def __init__(self, shape: ShapeLike, *, depth: int, registered: bool | None = None) -> None:
        self._shape, self._depth, self._registered = shape, depth, registered
        super().__init__({"following": In(range(depth)), "word": Out(shape), "write": In(1), "data": In(shape)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        registered = not profile_of(platform).asynchronous if self._registered is None else self._registered
        m.submodules.words = mem = memory.Memory(shape=self._shape, depth=self._depth, init=[])
        read = mem.read_port(domain="sync" if registered else "comb")
        write = mem.write_port()

        # The address is a register of each memory: one for all of them would have to reach across the device.
        address = Signal(range(self._depth), reset_less=True, attrs={"keep": 1})
        m.d.sync += address.eq(self.following)
        m.d.comb += [write.addr.eq(address), write.en.eq(self.write), write.data.eq(self.data)]
        if not registered:
            m.d.comb += [read.addr.eq(address), self.word.eq(read.data)]
            return m
        forwards = Signal(reset_less=True)
        forwarded = Signal(Shape.cast(self._shape), reset_less=True)
        m.d.sync += [forwards.eq(self.write & (self.following == address)), forwarded.eq(self.data)]
        m.d.comb += [read.en.eq(1), read.addr.eq(self.following),
                     Value.cast(self.word).eq(Mux(forwards, forwarded, Value.cast(read.data)))]
        return m
