"""Verilog of a module, for readers and tools alike: expressions of what has a name, a line for each thing.

It means the same to simulators of two states and of four. There is no ``always @*``, which SystemVerilog never runs
where it only reads constants, and no choice is an ``if``, which hides an unknown condition. No register and no memory
has an initial value: what a circuit needs to start, its reset sets, so a simulator that knows X, or one that starts at
random, finds out what is missing.
"""
from collections.abc import Iterator, Mapping
from itertools import groupby

from circulant.hw.emit.choices import lowest
from circulant.hw.emit.dataflow import Dataflow, Driver, is_register
from circulant.hw.emit.declarations import Declarations, Notes
from circulant.hw.emit.expressions import ALONE, ANYWHERE, Expression, choice, constant, operation, wrapped
from circulant.hw.emit.rtlil import Bits, Cell, Chunk, single_bits, span
from circulant.hw.emit.signal_names import InstanceKind, SignalNames

__all__ = ["module_text"]

_ALWAYS, _NEVER = "1'b1", "1'b0"
LONGEST = 100
"""Characters of an expression that stands where it is used; a longer one gets a name."""


def module_text(flow: Dataflow, name: str, ports: Mapping[str, str], kinds: Mapping[str, InstanceKind],
                notes: Notes) -> str:
    """The text of a module.

    Parameters:
        name: its own.
        ports: names of its ports.
        kinds: of its instances.
    """
    writer = _Writer(flow, SignalNames(flow, ports, kinds), kinds, notes)
    return "".join(f"{line}\n" for line in writer.lines(name))


class _Writer:
    def __init__(self, flow: Dataflow, names: SignalNames, kinds: Mapping[str, InstanceKind], notes: Notes) -> None:
        self._flow, self._names, self._kinds, self._notes = flow, names, kinds, notes
        self._declared = Declarations(flow, names, notes)
        self._held: dict[str, Expression] = {}  # Values that may go where they are used.
        self._assigns: list[str] = []

    def lines(self, name: str) -> Iterator[str]:
        for wire in self._order():
            self._logic(wire)
        clocked = list(self._clocked())
        instances = [line for cell in self._flow.instances for line in self._instance(cell)]
        yield from (f"// {line}".rstrip() for line in self._notes.header)
        yield from self._declared.source(self._flow.module.attributes)
        yield f"module {name} ("
        yield from self._declared.ports()
        yield ");"
        yield from self._declared.within()
        yield from self._assigns
        yield from clocked
        yield from instances
        yield "endmodule"

    # Expressions.

    def _order(self) -> list[str]:
        """Wires of logic that are needed, each behind those that it is made of."""
        flow, done, found = self._flow, set[str](), []
        for root in flow.needed:
            stack: list[tuple[str, Iterator[str]]] = []
            entered = root
            while True:
                if entered and entered not in done:
                    done.add(entered)
                    driver = flow.drivers.get(entered)
                    if driver is not None and not is_register(driver):
                        stack.append((entered, self._sources(entered, driver)))
                if not stack:
                    break
                entered = next(stack[-1][1], "")
                if not entered:
                    found.append(stack.pop()[0])
        return found

    def _sources(self, wire: str, driver: Driver) -> Iterator[str]:
        return (chunk.name for bits in self._flow.inputs(driver, self._flow.needed[wire]) for chunk in bits
                if chunk.name)

    def _logic(self, wire: str) -> None:
        """Assign to a wire, or hold its value for its only reader."""
        flow = self._flow
        driver, width = flow.drivers[wire], flow.needed[wire]
        unnamed = wire[0] == "$" and wire not in self._names.wires
        free = unnamed and flow.references[wire] == 1 and wire not in flow.parted
        if isinstance(driver, list):
            parts = [segment for segment in driver if segment.low < width]
            if len(parts) > 1:
                for segment in parts:
                    high = min(width, segment.low + segment.width)
                    part = self._names.part(wire, segment.low, high - segment.low)
                    value = choice(lowest(segment.value, high - segment.low), self._read)
                    self._assigns += wrapped(f"  assign {part} = {value.text};")
                return
            made = choice(lowest(parts[0].value, width), self._read)
        elif isinstance(driver, Cell):
            if driver.kind == "$memrd_v2":
                address = self._read(driver.ports["ADDR"], ANYWHERE).text
                made = Expression(f"{self._names.memories[driver.memory]}[{address}]")
                free = False
            else:
                made = operation(driver, width, self._read)
        else:
            made = self._read(driver, ALONE)
        if free and len(made.text) <= LONGEST and " * " not in made.text:
            self._held[wire] = made
        else:
            self._assign(wire, made)

    def _assign(self, wire: str, made: Expression) -> None:
        self._assigns += wrapped(f"  assign {self._names.of(wire)} = {made.text};")

    def _read(self, bits: Bits, place: int) -> Expression:
        if len(bits) == 1:
            return self._chunk(bits[0], place)
        if not bits:
            return Expression(_NEVER)
        parts = []
        for chunk, same in groupby(bits):
            count, text = len(list(same)), self._chunk(chunk, ANYWHERE).text
            parts.append(f"{{{count}{{{text}}}}}" if count > 1 else text)
        return Expression(parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}")

    def _chunk(self, chunk: Chunk, place: int) -> Expression:
        name, low, width = chunk
        if not name:
            return Expression(constant(low, width))
        if name in self._held:
            made = self._held[name]
            if made.place <= place:
                return made
            del self._held[name]
            self._assign(name, made)
        return Expression(self._names.part(name, low, width))

    # What is not logic.

    def _clocked(self) -> Iterator[str]:
        """Registers and memories, those of a clock together."""
        blocks: dict[str, list[str]] = {}
        for cell in self._flow.module.cells:
            if cell.kind == "$dff":
                if (wire := cell.ports["Q"][0].name) in self._flow.needed:
                    value = self._read(cell.ports["D"], ALONE).text
                    self._put(blocks, cell, f"{self._names.of(wire)} <= {value};")
            elif cell.kind == "$memrd_v2" and cell.number("CLK_ENABLE"):
                if (wire := cell.ports["DATA"][0].name) in self._flow.needed:
                    enable, address = (self._read(cell.ports[port], ANYWHERE).text for port in ("EN", "ADDR"))
                    self._put(blocks, cell, f"{_if(enable)}{self._names.of(wire)} <= "
                                            f"{self._names.memories[cell.memory]}[{address}];")
            elif cell.kind == "$memwr_v2":
                for line in self._write(cell):
                    self._put(blocks, cell, line)
        for clock, lines in blocks.items():
            yield f"  always @(posedge {clock}) begin"
            yield from lines
            yield "  end"

    def _put(self, blocks: dict[str, list[str]], cell: Cell, line: str) -> None:
        clock = self._read(cell.ports["CLK"], ANYWHERE).text
        blocks.setdefault(clock, []).extend(wrapped(f"    {line}"))

    def _write(self, cell: Cell) -> Iterator[str]:
        """A write for each run of bits that are enabled together."""
        if cell.memory not in self._flow.memories:
            return
        word = f"{self._names.memories[cell.memory]}[{self._read(cell.ports['ADDR'], ANYWHERE).text}]"
        low = 0
        for enable, same in groupby(single_bits(cell.ports["EN"])):
            width = len(list(same))
            whole = width == cell.number("WIDTH")
            data = self._read(span(cell.ports["DATA"], low, width), ALONE).text
            place = word if whole else f"{word}[{low + width - 1}:{low}]" if width > 1 else f"{word}[{low}]"
            condition = self._read((enable,), ANYWHERE).text
            if condition != _NEVER:
                yield f"{_if(condition)}{place} <= {data};"
            low += width

    def _instance(self, cell: Cell) -> Iterator[str]:
        flow, kind = self._flow, cell.kind[1:]
        name, ports = self._kinds[kind]
        connected = []
        for port, bits in cell.ports.items():
            unread = flow.is_output(cell, port) and not any(chunk.name in flow.needed for chunk in bits)
            if bits:
                connected.append(f".{ports.get(port, port)}({'' if unread else self._read(bits, ANYWHERE).text})")
        given = ", ".join(f".{each}({value})" for each, value in cell.parameters.items())
        yield from self._declared.source(cell.attributes, "  ")
        yield f"  {name} {f'#({given}) ' if given else ''}{self._names.instances[cell.name]} ("
        yield from (line for n, each in enumerate(connected)
                    for line in wrapped(f"    {each}{',' if n < len(connected) - 1 else ''}"))
        yield "  );"


def _if(condition: str) -> str:
    return "" if condition == _ALWAYS else f"if ({condition}) "
