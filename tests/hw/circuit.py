"""A circuit as a Python program that runs several times faster than Amaranth's simulator.

Amaranth evaluates a unit whenever something that it reads has changed, in rounds, and masks every value that it reads.
Here logic runs once per change in the order in which it depends on other logic, registers only where something that
they read has changed, and values are kept as the numbers that they are. One clock domain, whose edge is a call.
`tests.hw.simulate` plays through it, and in a soak through Amaranth's own simulator; tests hold the two equal.
"""
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Fragment, Shape
from amaranth.hdl._ast import Assign, Switch
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import LHSMaskCollector

from circulant.hw.stream.storage import OLD
from tests.hw.circuit_text import Text, Values

__all__ = ["Circuit"]


class Circuit:
    """A module, compiled; in its initial state until something is set or the clock has ticked.

    Parameters:
        module: has one clock domain, ``domain``, with a synchronous reset.
        signals: those that are set and read from outside, by their places in this sequence.
    """

    def __init__(self, module: Any, domain: ClockDomain, signals: Sequence[Any]) -> None:
        with _no_garbage():
            fragment = Fragment.get(module, platform=None)
            self._places: dict[int, int] = {}
            self._signals: list[Any] = []
            self._memories: dict[int, int] = {}
            self._images: list[Any] = []
            self._domain, self._reset = domain.name, domain.rst
            for signal in signals:
                self._place(signal)
            self._compile([part for each in _flat(fragment) for part in self._of(each)])
        self.reset()

    def reset(self) -> None:
        """The initial state."""
        self._values[:] = [signal.init for signal in self._signals]
        for memory, image in zip(self._contents, self._images, strict=True):
            memory[:] = image._init._raw
        self._dirty[:] = bytes([1]) * len(self._dirty)

    def set(self, place: int, bits: int) -> None:
        """Let a signal without a driver have these bits."""
        signal = self._signals[place]
        value = bits - (1 << len(signal)) if signal.shape().signed and bits >> len(signal) - 1 else bits
        if self._values[place] != value:
            self._values[place] = value
            for reader in self._readers[place]:
                self._dirty[reader] = 1

    def settle(self) -> None:
        """Let all logic follow what was set."""
        dirty, run, count = self._dirty, self._run, self._logic
        at = dirty.find(1, 0, count)
        while at >= 0:
            dirty[at] = 0
            run[at]()
            at = dirty.find(1, 0, count)

    def get(self, place: int) -> int:
        """The bits of a signal."""
        return self._values[place] & self._masks[place]

    def tick(self) -> None:
        """The clock's edge, behind `settle`."""
        dirty, values, readers, count = self._dirty, self._values, self._readers, self._logic
        at = dirty.find(1, count)
        while at >= 0:
            dirty[at] = 0
            self._run[at]()
            at = dirty.find(1, at + 1)
        for place, mask, value in self._changes:
            value = values[place] & ~mask | value & mask
            if value != values[place]:
                values[place] = value
                for reader in readers[place]:
                    dirty[reader] = 1
        self._changes.clear()
        for memory, address, mask, value in self._writes:
            contents = self._contents[memory]
            if address < len(contents):
                shape = Shape.cast(self._images[memory].shape)
                value = contents[address] & ~mask | value & mask
                value &= (1 << shape.width) - 1
                value -= (value >> shape.width - 1 << shape.width) if shape.signed and shape.width else 0
                if value != contents[address]:
                    contents[address] = value
                    for reader in self._rereaders[memory]:
                        dirty[reader] = 1
        self._writes.clear()

    def _place(self, signal: Any) -> int:
        place = self._places.setdefault(id(signal), len(self._signals))
        if place == len(self._signals):
            self._signals.append(signal)
        return place

    def _memory(self, data: Any) -> int:
        memory = self._memories.setdefault(id(data), len(self._images))
        if memory == len(self._images):
            self._images.append(data)
        return memory

    def _of(self, fragment: Any) -> Iterator["_Part"]:
        """Processes of a fragment: its logic and its registers."""
        ports = (*fragment._read_ports, *fragment._write_ports) if isinstance(fragment, MemoryInstance) else ()
        for domain in dict.fromkeys([*fragment.statements, *(port._domain for port in ports)]):
            assert domain in ("comb", self._domain), f"A circuit under test must have one clock, not also {domain!r}"
            yield _Part(self, fragment, domain)

    def _compile(self, processes: list["_Part"]) -> None:
        logic = _ordered([part for part in processes if part.logic])
        parts = [*logic, *(part for part in processes if not part.logic)]
        self._logic = len(logic)
        self._dirty = bytearray(len(parts))
        self._values: list[int] = [0] * len(self._signals)
        self._masks = [(1 << len(signal)) - 1 for signal in self._signals]
        self._contents: list[list[int]] = [[] for _ in self._images]
        self._changes: list[tuple[int, int, int]] = []
        self._writes: list[tuple[int, int, int, int]] = []
        self._readers: list[list[int]] = [[] for _ in self._signals]
        self._rereaders: list[list[int]] = [[] for _ in self._images]
        for number, part in enumerate(parts):
            for place in part.reads:
                self._readers[place].append(number)
            for memory in part.rereads:
                self._rereaders[memory].append(number)
        names = {"V": self._values, "D": self._dirty, "M": self._contents, "change": self._changes.append,
                 "write": self._writes.append}
        self._run = [_maker(*part.text(self._readers))(*names.values(), *part.given.values()) for part in parts]


class _Part:
    """One process: the logic of a fragment, or its registers."""

    def __init__(self, circuit: Circuit, fragment: Any, domain: str) -> None:
        self.logic = domain == "comb"
        self._circuit = circuit
        self._text = Text()
        self._values = values = Values(self._text, circuit._place)
        statements = fragment.statements.get(domain, ())
        masks = LHSMaskCollector()
        masks.visit_stmt(statements)
        memory = fragment if isinstance(fragment, MemoryInstance) else None
        reads = [port for port in memory._read_ports if port._domain == domain] if memory else []
        for port in reads:
            masks.visit_value(port._data, ~0)
        self._driven = [(circuit._place(signal), signal, mask) for signal, mask in masks.masks()]
        self.drives = [place for place, _, _ in self._driven]
        for place, signal, _ in self._driven:
            name = self._text.name("a", place)
            self._text.line(f"n{name} = {signal.init}" if self.logic else f"n{name} = V[{name}]")
        self._statements(statements)
        kept = [(self._text.name("a", place), signal) for place, signal, _ in self._driven if not signal.reset_less]
        if kept and not self.logic and circuit._reset is not None:
            self._text.line(f"if {values.bits(circuit._reset)}:")
            with self._text.indented():
                for name, signal in kept:
                    self._text.line(f"n{name} = {signal.init}")
        self.rereads: list[int] = []
        if memory is not None:
            self._ports(memory, domain, reads)
        self.reads = sorted(values.read)

    @property
    def given(self) -> dict[str, Any]:
        return self._text.given

    def text(self, readers: list[list[int]]) -> tuple[str, tuple[str, ...]]:
        """The text of the process, and the names of what it is `given`; to be called once."""
        for place, signal, mask in self._driven:
            name = self._text.name("a", place)
            whole = mask == (1 << len(signal)) - 1
            if signal.shape().signed and len(signal) and mask >> len(signal) - 1:
                mask |= -1 << len(signal)
            if not self.logic:
                self._text.line(f"if n{name} != V[{name}]: change(({name}, {-1 if whole else mask}, n{name}))")
                continue
            if not whole:
                self._text.line(f"n{name} = V[{name}] & {~mask} | n{name} & {mask}")
            wake = "".join(f"; D[{self._text.name('d', reader)}] = 1" for reader in readers[place])
            self._text.line(f"if n{name} != V[{name}]: V[{name}] = n{name}{wake}")
        return self._text.whole(), tuple(self._text.given)

    def _statements(self, statements: Any) -> None:
        for each in statements:
            if isinstance(each, Assign):
                self._values.assign(each.lhs, self._values.exact(each.rhs), each.rhs.shape())
            elif isinstance(each, Switch):
                self._values.switch(each.test, [(patterns, body) for patterns, body, _ in each.cases],
                                    self._statements)
            else:
                raise NotImplementedError(f"A circuit under test must assign and switch, not {each!r}")
        self._text.line("pass")

    def _ports(self, fragment: Any, domain: str, reads: list[Any]) -> None:
        data, values, text = fragment._data, self._values, self._text
        memory = text.name("m", self._circuit._memory(data))
        written = {}
        for number, port in enumerate(fragment._write_ports):
            if port._domain == domain:
                enabled = Cat(bit.replicate(port._granularity) for bit in port._en)
                written[number] = tuple(text.variable(values.bits(each)) for each in (port._addr, port._data, enabled))
                address, value, mask = written[number]
                text.line(f"if {mask}: write(({memory}, {address}, {mask}, {value}))")
        for port in reads:
            self.rereads = [self._circuit._memory(data)]
            text.line(f"if {values.bits(port._en)}:")
            with text.indented():
                address = text.variable(values.bits(port._addr))
                read = text.variable(f"M[{memory}][{address}] if {address} < {data.depth} else 0")
                # What is read while it is written is nobody's: block RAM of some families gives anything then.
                for number, (at, _, mask) in written.items():
                    if number not in port._transparent_for and OLD not in fragment._attrs:
                        text.line(f"if {mask} and {address} == {at}: {read} = ~{read}")
                for number in port._transparent_for:
                    at, value, mask = written[number]
                    text.line(f"if {address} == {at}: {read} = {read} & ~{mask} | {value} & {mask}")
                values.assign(port._data, f"({read} & {(1 << len(port._data)) - 1})", Shape(len(port._data)))


@lru_cache(maxsize=4096)  # Lanes of a design are alike, and so are the units of many designs.
def _maker(text: str, given: tuple[str, ...]) -> Any:
    """What makes a process of its text."""
    names: dict[str, Any] = {}
    source = f"def make({', '.join(('V', 'D', 'M', 'change', 'write', *given))}):\n    def process(V=V, D=D):\n"
    exec(compile(f"{source}        pass\n{text}    return process", "<circuit>", "exec"), names)
    return names["make"]


def _flat(fragment: Any) -> Iterator[Any]:
    assert type(fragment) in (Fragment, MemoryInstance), f"{type(fragment).__name__} cannot be simulated"
    yield fragment
    for each, _, _ in fragment.subfragments:
        yield from _flat(each)


def _ordered(parts: list[_Part]) -> list[_Part]:
    """Logic behind the logic that it reads, as far as there is such an order."""
    drivers: dict[int, list[_Part]] = {}
    for part in parts:
        for place in part.drives:
            drivers.setdefault(place, []).append(part)
    found: dict[int, _Part] = {}
    begun: set[int] = set()
    for first in parts:
        stack = [(first, iter(first.reads))] if id(first) not in begun else []
        begun.add(id(first))
        while stack:
            part, places = stack[-1]
            for place in places:
                news = [each for each in drivers.get(place, ()) if id(each) not in begun]
                if news:
                    begun.update(map(id, news))
                    stack.extend((each, iter(each.reads)) for each in news)
                    break
            else:
                found[id(part)] = part
                stack.pop()
    return list(found.values())


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Nearly all that elaboration makes lives as long as the circuit, so looking for garbage is in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
