"""The target of elaboration: Verilog with shared modules and memory images, or Amaranth's simulator.

Amaranth elaborates every instance anew and inlines the contents of its memories. Under a `VerilogTarget` a component
that occurs many times becomes an instance of one Verilog module, and a memory becomes an instance of `circulant_rom`,
which reads its image with ``$readmemh``, or of `circulant_loadable`, which can be written as well. Anywhere else all
of that is plain Amaranth, for its simulator.
"""
import gc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, is_dataclass
from typing import Protocol, TypeVar

import numpy as np
from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Elaboratable, Fragment, Instance, Module, Mux, ResetSignal, Shape, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from circulant.hw.emit.amaranth_patches import fast_elaboration
from circulant.hw.emit.comments import components, notes
from circulant.hw.emit.image import Image
from circulant.hw.emit.inventory import Inventories
from circulant.hw.emit.modules import Modules, memory_module
from circulant.hw.emit.names import unnumbered
from circulant.hw.emit.profile import GENERIC, UNCHECKED, Piece, Profile
from circulant.hw.emit.rtlil import modules
from circulant.sim.arith.multiplier import EXACT

__all__ = ["PORT_BITS", "Platform", "Rom", "VerilogTarget", "gates_clocks", "instances", "packed", "separate_module"]

PORT_BITS = (1 << 16) - 2
"""Bits that may go into a module, or out of it: Amaranth numbers those of each cell with 16 bits, a module's inputs are
those of one cell, and two of its numbers stand for 0 and 1."""


class Window(Protocol):
    """The window of a memory: with ``write`` the word ``index`` becomes ``word``; see
    `circulant.hw.reload.config.MemoryWindow`."""

    write: Value
    index: Value
    word: Value


class Windows(Protocol):
    """The configuration port as a memory sees it: `circulant.hw.reload.config.Config`."""

    def claim(self, name: str, *, words: int, width: int) -> Window:
        """The window of a memory."""


class VerilogTarget:
    """Collects the shared modules and the memory images of one design while Amaranth elaborates it.

    Parameters:
        profile: of the family that the design is for.
        elsewhere: modules whose text is in another file, with their outputs.
        clock_gating: registers of pipelines hold what nobody waits for, so that an ASIC can stop their clock.
    """

    def __init__(self, profile: Profile = GENERIC, elsewhere: Mapping[str, Collection[str]] | None = None, *,
                 clock_gating: bool = False) -> None:
        self.profile, self._elsewhere, self.clock_gating = profile, elsewhere or {}, clock_gating
        self.images: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        self.inventories, self._written = Inventories(self.profile), Modules()
        self._shared: dict[str, tuple[wiring.Signature, list[str]]] = {}
        self.add_module("circulant_rom", memory_module(
            "circulant_rom", writable=False, said=f"(* {self.profile.rom} = STYLE *)"), outputs=("data",))
        for name, outputs in self._elsewhere.items():
            self.add_module(name, "", outputs=outputs)

    def add_image(self, name: str, words: Sequence[int], width: int) -> str:
        """Keep the image ``name`` and return its file name.

        Raises:
            ValueError: when the name is taken by other contents.
        """
        image = Image(words, width, name)
        text = image.text
        if self.images.setdefault(image.file, text) != text:
            raise ValueError(f"A memory image must have a name of its own, not {name!r} twice")
        return image.file

    def get_memory(self, mem: memory.Memory) -> Fragment:
        """Elaborate a memory of Amaranth, those of its own library included, with its style; Amaranth's hook.

        Raises:
            ValueError: when it has contents, which the Verilog would not have.
        """
        if any(mem.init):
            raise ValueError("A memory must start without contents, since Verilog gives it none; take a Rom")
        if mem.depth > 1:
            asynchronous = any(port.domain == "comb" for port in mem.read_ports)
            pieces = self.profile.pieces(mem.depth, Shape.cast(mem.shape).width, asynchronous=asynchronous)
            if len(pieces) > 1:
                return Fragment.get(_cut(mem, [piece.bits for piece in pieces]), self)
            mem.attrs.setdefault(self.profile.ram, self.profile.word(pieces[0].place))
            if self.profile.unchecked and not asynchronous:
                mem.attrs.setdefault(UNCHECKED, 1)
        return mem.elaborate(None)

    def add_module(self, name: str, text: str, *, outputs: Collection[str]) -> None:
        """Take in a Verilog module that is written by hand."""
        self._written.add_text(name, "" if name in self._elsewhere else text, outputs)

    def share(self, module: str, make: Callable[[], wiring.Component]) -> tuple[wiring.Signature, list[str]]:
        """Emit a component once as the module ``module``; equal names must mean equal components.

        Returns:
            The component's signature, and which of clk and rst its module has: one without registers has neither.
        """
        if module not in self._shared:
            component = make()
            self._shared[module] = (component.signature, self.write(component, module))
        return self._shared[module]

    def write(self, component: wiring.Component, module: str) -> list[str]:
        """Write a component as the module ``module``; returns which of clk and rst it has."""
        way = {In: PortDirection.Input, Out: PortDirection.Output}
        ports = {"__".join(map(str, path)): (Value.cast(value), way[member.flow])
                 for path, member, value in component.signature.flatten(component)}
        fragment = Fragment.get(component, self)
        units = components(fragment, module)
        found = list(modules(str(rtlil.convert(fragment, name=module, ports=ports, platform=self))))
        for each in found:
            self.inventories.add(each)
        self._written.add(found, {
            each.name: notes(units.get(each.name) or units.get(unnumbered(each.name))) for each in found})
        return [name for name in ("clk", "rst") if f"\\{name}" in found[0].wires]

    def convert(self, top: wiring.Component, name: str) -> str:
        """The Verilog of ``top`` and of everything that it shares, ``top`` first."""
        self._begin()
        with fast_elaboration():
            self.write(top, name)
            gc.collect(0)  # All that Amaranth has made.
        return self._written.text()


def _cut(mem: memory.Memory, widths: Sequence[int]) -> Module:
    """Memories side by side in place of one."""
    m, begin = Module(), 0
    for n, width in enumerate(widths):
        m.submodules[f"bits_{n}"] = part = memory.Memory(shape=width, depth=mem.depth, init=[])
        bits, begin = slice(begin, begin + width), begin + width
        for port in mem.write_ports:
            write = part.write_port(domain=port.domain)
            m.d.comb += [write.en.eq(port.en), write.addr.eq(port.addr), write.data.eq(Value.cast(port.data)[bits])]
        for port in mem.read_ports:
            read = part.read_port(domain=port.domain)
            m.d.comb += [read.addr.eq(port.addr), Value.cast(port.data)[bits].eq(read.data)]
            if port.domain != "comb":
                m.d.comb += read.en.eq(port.en)
    return m


C = TypeVar("C", bound=wiring.Component)

Platform = VerilogTarget | None
"""Platform that a unit is elaborated for: Verilog; None in a simulation."""


def gates_clocks(platform: Platform) -> bool:
    """Whether registers hold what nobody waits for; not in a simulation."""
    return isinstance(platform, VerilogTarget) and platform.clock_gating


def instances(m: Module, platform: Platform, name: str, kind: type[C], count: int,
              **parameters: object) -> list[C]:
    """Add ``count`` components ``kind(**parameters)`` as submodules ``name``_0, ``name``_1, …

    In simulation each is a component of its own; for Verilog all are instances of one module, which is named after the
    kind and its parameters.

    Returns:
        The components, or in their place interfaces of the same members.
    """
    if not isinstance(platform, VerilogTarget):
        components = [kind(**parameters) for _ in range(count)]
        for n, component in enumerate(components):
            m.submodules[f"{name}_{n}"] = component
        return components
    module = _module_name(kind, parameters)
    signature, controls = platform.share(module, lambda: kind(**parameters))
    interfaces = [signature.create(path=(f"{name}_{n}",)) for n in range(count)]
    for n, interface in enumerate(interfaces):
        m.submodules[f"{name}_{n}"] = _instance(module, signature, interface, controls)
    return interfaces


def separate_module(platform: Platform, component: wiring.Component, module: str) -> Elaboratable:
    """The component, for Verilog as an instance of a module of its own, which is written while what follows is
    elaborated. It must have no signals but its ports in common with others."""
    if not isinstance(platform, VerilogTarget):
        return component
    return _instance(module, component.signature, component, platform.write(component, module))


def _instance(module: str, signature: wiring.Signature, interface: wiring.PureInterface,
              controls: Sequence[str]) -> Instance:
    domain = {"clk": ClockSignal(), "rst": ResetSignal()}
    ports: dict[str, Value] = {f"i_{name}": domain[name] for name in controls}
    for path, member, value in signature.flatten(interface):
        ports[f"{'i' if member.flow is In else 'o'}_{'__'.join(map(str, path))}"] = Value.cast(value)
    return Instance(module, **ports, src_loc_at=2)


def _module_name(kind: type[wiring.Component], parameters: Mapping[str, object]) -> str:
    values: list[object] = []
    for value in parameters.values():
        values += _fields(value)
    return "_".join(["circulant", kind.__name__.lower(), *(
        str(value).replace("-", "m").replace(":", "_") for value in values if value != EXACT)])


def _fields(value: object) -> list[object]:
    """The fields of a dataclass, and of what is in it; or the value itself."""
    values = astuple(value) if is_dataclass(value) and not isinstance(value, type) else value
    return [field for each in values for field in _fields(each)] if isinstance(values, tuple) else [values]


def packed(words: NDArray[np.int64], width: int) -> list[int]:
    """Rows of numbers as memory words, ``width`` bits a number, the first in the low bits."""
    mask = (1 << width) - 1
    return [sum((number & mask) << (width * j) for j, number in enumerate(row)) for row in words.tolist()]


class Rom(wiring.Component):
    """A memory with given contents: ``data`` is word ``addr`` one cycle after ``en``.

    Parameters:
        words: contents, each taken modulo 2**width.
        width: bits of a word.
        image: name of the image, unique in the design.
        config: the port through which the contents can be written; None for contents that are fixed.
        scrubbed: whether the word that was read last can be written, as soon as it is not read in the same cycle.

    Members:
        counts, wrong, right: of a scrubbed memory, whether the word that was read last counts in this cycle, and then
            is to become ``right``.
        en: read in this cycle; ``data`` is kept otherwise.
        addr: address of the word to read.
        data: the word that was read last.
    """

    def __init__(self, *, words: Sequence[int], width: int, image: str, config: Windows | None = None,
                 scrubbed: bool = False) -> None:
        self._words = [int(word) & ((1 << width) - 1) for word in words]
        self._width = width
        self._image, self._config = image, config
        self._address = max(1, (len(words) - 1).bit_length())
        self.scrubbed = scrubbed
        super().__init__({"en": In(1), "addr": In(self._address), "data": Out(width),
                          **({"counts": In(1), "wrong": In(1), "right": In(width)} if scrubbed else {})})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        # The window through which it can be written.
        depth = len(self._words)
        writer: dict[str, Value] = {}
        if self._config is not None or self.scrubbed:
            writer |= {name: Signal(bits, name=name) for name, bits in (
                ("wen", 1), ("waddr", self._address), ("wdata", self._width))}
        if self._config is not None:
            opening = self._config.claim(self._image, words=depth, width=self._width)
            m.d.comb += [writer["wen"].eq(opening.write), writer["waddr"].eq(opening.index),
                         writer["wdata"].eq(opening.word)]
        if self.scrubbed:  # While the port is open nobody reads.
            last = Signal(self._address)
            waits = Signal()
            again = self.en & (self.addr == last)
            with m.If(self.en):
                m.d.sync += last.eq(self.addr)
            m.d.sync += waits.eq((self.counts | waits) & again)
            with m.If((self.counts | waits) & self.wrong & ~again):
                m.d.comb += [writer["wen"].eq(1), writer["waddr"].eq(last), writer["wdata"].eq(self.right)]

        # Verilog: an instance that reads the image.
        if isinstance(platform, VerilogTarget):
            profile = platform.profile
            if not writer:
                self._fixed(m, platform, profile.pieces(depth, self._width, writable=False))
                return m
            platform.add_module("circulant_loadable", memory_module(
                "circulant_loadable", writable=True, said=profile.declared(profile.ram)), outputs=("data",))
            place = profile.place(depth, self._width, writable=False)
            place = "block" if place == "block" else profile.place(depth, self._width)
            if self.scrubbed:  # Before a reset it may be anything.
                writer["wen"] = writer["wen"] & ~ResetSignal()
            m.submodules.rom = Instance(
                "circulant_loadable", p_IMAGE=platform.add_image(self._image, self._words, self._width),
                p_WIDTH=self._width, p_DEPTH=depth, p_ADDRESS=self._address, p_STYLE=profile.word(place),
                i_clk=ClockSignal(), i_en=self.en, i_addr=self.addr, o_data=self.data,
                **{f"i_{name}": value for name, value in writer.items()})
            return m

        # A simulation: a memory of Amaranth.
        m.submodules.mem = mem = memory.Memory(shape=self._width, depth=depth, init=self._words)
        port = mem.read_port()
        m.d.comb += [port.en.eq(self.en), port.addr.eq(self.addr), self.data.eq(port.data)]
        if writer:
            write = mem.write_port()
            m.d.comb += [write.en.eq(writer["wen"]), write.addr.eq(writer["waddr"]), write.data.eq(writer["wdata"])]
        return m

    def _fixed(self, m: Module, platform: VerilogTarget, pieces: Sequence[Piece]) -> None:
        """Instances for the pieces of fixed contents: side by side, or the second one behind the addresses of the
        first."""
        read, bit, word, beside = [], 0, 0, pieces[0].bits < self._width
        for n, piece in enumerate(pieces):
            contents = [each >> bit & (1 << piece.bits) - 1 for each in self._words[word:word + piece.words]]
            kind = "circulant_table" if piece.place in platform.profile.silent else "circulant_rom"
            said = f"(* {platform.profile.rom} = STYLE *)" if kind == "circulant_rom" else ""
            platform.add_module(kind, memory_module(kind, writable=False, said=said), outputs=("data",))
            read.append(data := Signal(piece.bits, name=f"read_{n}"))
            name, address = f"{self._image}{'_beside' * n}", max(1, (piece.words - 1).bit_length())
            m.submodules[f"rom{'_beside' * n}"] = Instance(
                kind, p_IMAGE=platform.add_image(name, contents, piece.bits), p_WIDTH=piece.bits, p_DEPTH=piece.words,
                p_ADDRESS=address, **({"p_STYLE": platform.profile.word(piece.place)} if said else {}),
                i_clk=ClockSignal(), i_en=self.en, i_addr=self.addr[:address], o_data=data)
            if beside or len(pieces) == 1:
                m.d.comb += self.data[bit:bit + piece.bits].eq(data)
            bit, word = (bit + piece.bits, word) if beside else (bit, word + piece.words)
        if beside or len(pieces) == 1:
            return
        behind = Signal()
        with m.If(self.en):
            m.d.sync += behind.eq(self.addr >= pieces[0].words)
        m.d.comb += self.data.eq(Mux(behind, read[1], read[0]))
