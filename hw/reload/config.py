"""The configuration port: registers, and windows onto the memories; see docs/reload.md for what a host may do when.

Memories ask for a window while their layers are elaborated, so that the port must be the last submodule of the top.
What it drives (``address``, ``strobe``, the parts of the word, ``open``, ``settles`` in the cycle before that) is used
across the hierarchy.
"""
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import delay
from circulant.sim.configuration import (
    ADDRESS_BITS,
    CONTROL,
    RESUME,
    STATUS,
    WORD,
    Configuration,
    StateShape,
    Window,
)

__all__ = ["QUIET", "READ_LATENCY", "Config", "MemoryWindow"]

QUIET = 64
"""Cycles without an event after which nothing is on its way in a pipeline: more than twice the longest transform."""

READ_LATENCY = 3
"""Cycles from ``cfg_re`` to ``cfg_rvalid``."""

FIRST = 16
"""Addresses before it are those of registers."""


class MemoryWindow:
    """A window as its memory sees it.

    Members:
        write: the word ``index`` becomes ``word`` in this cycle.
        index: of the word that is written or, while the port is open, read.
        data: of a window that can be read: the memory's word, one cycle after its ``index``.
    """

    def __init__(self, config: "Config", window: Window) -> None:
        self._config, self.window = config, window
        stride, size = exact_log2(window.stride), exact_log2(window.size)
        part = config.address[:stride]
        self.here: Value = config.address[size:] == window.first >> size
        self.write: Value = config.strobe & self.here & (part == window.parts - 1)
        self.index: Value = config.address[stride:size] if size > stride else Const(0)
        self.part: Value = part
        self.word: Value = config.word(window.width)
        self.data = Signal(window.width, name=f"shown_{window.name}")

    @property
    def open(self) -> Value:
        return self._config.open


class Config(wiring.Component):
    """
    Parameters:
        streams: sequences that are interleaved.

    Members:
        addr: word address at the configuration port.
        wdata: word to write.
        we: write in this cycle.
        re: read in this cycle.
        rdata: the word that was read, from ``rvalid`` on.
        rvalid: the word that was read is there.
        busy: something is under way in the design.
        hold: no input may be taken.
        restart: for one cycle: streams with a bit in ``resume`` go on from their states, others from zero.
        resume: streams that go on from their states at a restart.
        resuming: streams that would go on from their states now.
    """

    def __init__(self, *, streams: int) -> None:
        self._openings: dict[str, MemoryWindow] = {}
        self._next, self._closed = FIRST, False
        self._parts: list[Signal] = []
        self.address = Signal(ADDRESS_BITS, name="config_address")
        self.strobe = Signal(name="config_strobe")
        self.open = Signal()
        self.settles = Signal(name="config_settles")
        self.working: list[Value] = []
        self.restoring: list[Value] = []
        super().__init__({
            "addr": In(ADDRESS_BITS), "wdata": In(WORD), "we": In(1), "re": In(1),
            "rdata": Out(WORD), "rvalid": Out(1),
            "busy": In(1), "hold": Out(1), "restart": Out(1), "resume": Out(streams), "resuming": In(streams),
        })

    @property
    def map(self) -> Configuration:
        """All windows, once the design is elaborated."""
        return Configuration(tuple(opening.window for opening in self._openings.values()))

    def claim(self, name: str, *, words: int, width: int, state: StateShape | None = None) -> MemoryWindow:
        """The window of a memory; copies of a memory share one.

        Raises:
            ValueError: when the name is taken by a memory of another size, the port elaborated already, or full.
        """
        if name in self._openings:
            taken = self._openings[name].window
            if (taken.words, taken.width) != (words, width):
                raise ValueError(f"A window must have a name of its own, not {name!r} twice")
            return self._openings[name]
        if self._closed:
            raise ValueError(f"The configuration port must be elaborated behind all memories, not before {name!r}")
        size = Window(name, 0, words, width).size
        first = -(-self._next // size) * size
        self._next = first + size
        if self._next > 1 << ADDRESS_BITS:
            raise ValueError(f"The memories must fit into {ADDRESS_BITS} address bits, but {name!r} does not")
        self._openings[name] = opening = MemoryWindow(self, Window(name, first, words, width, state))
        return opening

    def word(self, width: int) -> Value:
        """The last words that were written, the last one in the high bits."""
        parts = -(-width // WORD)
        while len(self._parts) < parts:
            self._parts.append(Signal(WORD, name=f"config_word_{len(self._parts)}", reset_less=True))
        return Cat(self._parts[:parts][::-1])[:width]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        self._closed = True

        # The port is open when the design has been held and quiet for long enough.
        accepted = Signal()
        refused = Signal()
        quiet = Signal(range(QUIET + 1))
        restoring = Signal()
        busy = Signal()
        m.d.comb += [
            busy.eq(self.busy | Cat(self.working).any()),
            restoring.eq(self.restart | Cat(self.restoring).any()),
            self.open.eq(self.hold & (quiet == QUIET) & ~restoring),
            self.settles.eq(self.hold & (quiet == QUIET - 1) & ~busy),
            accepted.eq(self.we & (self.addr != CONTROL) & self.open),
        ]
        m.d.sync += [
            quiet.eq(Mux(busy | ~self.hold, 0, quiet + (quiet != QUIET))),
            self.strobe.eq(accepted & (self.addr >= FIRST)),
            self.restart.eq(accepted & (self.addr == RESUME)),
        ]

        # Address and words as they come; the control register alone is written at any time.
        with m.If(self.we | self.re):
            m.d.sync += self.address.eq(self.addr)
        with m.If(self.we):
            m.d.sync += [now.eq(before) for now, before in zip(self._parts, [self.wdata, *self._parts], strict=False)]
            with m.If(self.addr == CONTROL):
                m.d.sync += [self.hold.eq(self.wdata[0]), refused.eq(0)]
            with m.Elif(~self.open):
                m.d.sync += refused.eq(1)
            with m.Elif(self.addr == RESUME):
                m.d.sync += self.resume.eq(self.wdata)
        self._read(m, Cat(self.open, restoring, refused))
        return m

    def _read(self, m: Module, status: Value) -> None:
        """The memory's turn, the choice, the register."""
        valid = delay(m, self.re, READ_LATENCY - 1, name="read", reset_less=False)
        shown: Value = Const(0, WORD)
        for address, value in ((CONTROL, self.hold), (STATUS, status), (RESUME, self.resuming)):
            shown = shown | Mux(delay(m, self.address == address, 1, name=f"register_{address}"), value, 0)
        for name, opening in self._openings.items():
            if opening.window.state is not None:
                here, part = (delay(m, value, 1, name=f"{what}_{name}")
                              for what, value in (("here", opening.here), ("part", opening.part)))
                shown = shown | Mux(here, opening.data.word_select(part, WORD) if len(part) else opening.data, 0)
        m.d.sync += self.rvalid.eq(valid)
        with m.If(valid):
            m.d.sync += self.rdata.eq(shown)
