"""Verilog of a module, for readers and tools alike: expressions of what has a name, a line for each thing.

It means the same to simulators of two states and of four. There is no ``always @*``, which SystemVerilog never runs
where it only reads constants, and no choice is an ``if``, which hides an unknown condition. No register and no memory
has an initial value: what a circuit needs to start, its reset sets, so a simulator that knows X, or one that starts at
random, finds out what is missing.
"""
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from circulant.hw.emit.choices import lowest
from circulant.hw.emit.dataflow import Dataflow, Driver
from circulant.hw.emit.expressions import ALONE, ANYWHERE, BREAK, Expression, choice, constant, operation
from circulant.hw.emit.names import Names
from circulant.hw.emit.profile import PROFILES
from circulant.hw.emit.rtlil import Bits, Cell, Chunk, Wire, span

__all__ = ["Notes", "module_text"]

COLUMNS = 120
_ALWAYS, _NEVER = "1'b1", "1'b0"
KEPT = ("keep", *dict.fromkeys(profile.ram for profile in PROFILES.values()))
"""Attributes for tools, beside the source."""
LONGEST = 100
"""Characters of an expression that stands where it is used; a longer one gets a name."""

KINDS = {"$add": "sum", "$sub": "difference", "$neg": "negative", "$mul": "product", "$and": "conjunction",
         "$or": "disjunction", "$xor": "parity", "$not": "inverse", "$eq": "equal", "$ne": "unequal", "$lt": "less",
         "$le": "less", "$gt": "greater", "$ge": "greater", "$shl": "shifted", "$shr": "shifted", "$sshr": "shifted",
         "$shift": "part", "$reduce_or": "any", "$reduce_bool": "any", "$reduce_and": "every", "$reduce_xor": "parity",
         "$memrd_v2": "word", "$dff": "register"}
"""Names of values that have none, by what makes them; of a choice "choice"."""


@dataclass(frozen=True)
class Notes:
    """Comments of a module.

    Parameters:
        header: lines above it.
        ports: comments by the names of its ports, in the order in which they are to stand.
        source: the place in the source of what has such an attribute; empty for none.
    """

    header: tuple[str, ...] = ()
    ports: Mapping[str, str] = field(default_factory=dict)
    source: Callable[[str], str] = str


def module_text(flow: Dataflow, name: str, ports: Mapping[str, str], kinds: Mapping[str, tuple[str, Mapping[str, str]]],
                notes: Notes) -> str:
    """The text of a module.

    Parameters:
        name: its own.
        ports: names of its ports.
        kinds: name and names of ports of each kind of instance, where they are others than in RTLIL.
    """
    return "".join(f"{line}\n" for line in _Writer(flow, ports, kinds, notes).lines(name))


class _Writer:
    def __init__(self, flow: Dataflow, ports: Mapping[str, str],
                 kinds: Mapping[str, tuple[str, Mapping[str, str]]], notes: Notes) -> None:
        self._flow, self._kinds, self._notes, self._wires = flow, kinds, notes, flow.module.wires
        self._names = Names()
        self._known: dict[str, str] = {}
        for wire in self._wires.values():
            if wire.port:
                self._known[wire.name] = self._names.take(ports[wire.name[1:]])
        self._cells = {cell.name: self._names.take(cell.name[1:]) for cell in flow.instances}
        joints = self._better = self._joints()
        for each in self._wires:
            if each[0] == "\\" and each in flow.needed and each not in self._known:
                self._known[each] = self._names.take(joints.get(each, each[1:]))
        self._memories = {memory: self._names.take(memory[1:]) for memory in flow.memories}
        self._hints = self._likely()
        self._held: dict[str, Expression] = {}  # Values that may go where they are used.
        self._assigns: list[str] = []

    def lines(self, name: str) -> Iterator[str]:
        for wire in self._order():
            self._logic(wire)
        clocked = list(self._clocked())
        instances = [line for cell in self._flow.instances for line in self._instance(cell)]
        yield from (f"// {line}".rstrip() for line in self._notes.header)
        yield from self._attributes(self._flow.module.attributes)
        yield f"module {name} ("
        yield from self._ports()
        yield ");"
        yield from self._declarations()
        yield from self._assigns
        yield from clocked
        yield from instances
        yield "endmodule"

    # Names.

    def _joints(self) -> dict[str, str]:
        """Better names of wires than their own: of those that are the same the plainest, and of those that are called
        as the ports of an instance are the same with its name in front."""
        found: dict[str, str] = {}
        for (target,), value in self._flow.module.connections:
            if len(value) == 1 and value[0].name in self._wires and target.name not in self._known and (
                    value[0][1:] == target[1:] == (0, self._wires[value[0].name].width)):
                found[value[0].name] = min(found.get(value[0].name, value[0].name[1:]), target.name[1:], key=_private)
        for gives in (True, False):
            for cell in self._flow.instances:
                for port, bits in cell.ports.items():
                    wire = bits[0].name if len(bits) == 1 else ""
                    if self._flow.is_output(cell, port) is gives and wire.partition("$")[0] == f"\\{port}":
                        found.setdefault(wire, f"{self._cells[cell.name]}_{port}")
        return found

    def _likely(self) -> dict[str, str]:
        """Names of values by where they go, or what they come from."""
        found: dict[str, str] = {}
        for cell in self._flow.module.cells:
            if cell.kind == "$dff" and cell.ports["Q"][0].name in self._known and len(cell.ports["D"]) == 1:
                found.setdefault(cell.ports["D"][0].name, f"{self._known[cell.ports['Q'][0].name]}_next")
        for cell in self._flow.instances:
            for port, bits in cell.ports.items():
                if self._flow.is_output(cell, port) and len(bits) == 1:
                    inside = self._kinds[cell.kind[1:]][1].get(port, port)
                    found[bits[0].name] = f"{self._cells[cell.name]}_{inside}"
        return found

    def _name(self, wire: str) -> str:
        if wire not in self._known:
            driver = self._flow.drivers.get(wire)
            if hint := self._better.get(wire) or self._hints.get(wire):
                self._known[wire] = self._names.take(hint)
            else:
                kind = KINDS.get(driver.kind, "value") if isinstance(driver, Cell) else "choice"
                self._known[wire] = self._names.number(kind)
        return self._known[wire]

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
                    if driver is not None and not self._is_register(driver):
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

    def _is_register(self, driver: Driver) -> bool:
        return isinstance(driver, Cell) and (driver.kind == "$dff" or not driver.kind.startswith("$") or (
            driver.kind == "$memrd_v2" and driver.number("CLK_ENABLE") == 1))

    def _logic(self, wire: str) -> None:
        """Assign to a wire, or hold its value for its only reader."""
        flow = self._flow
        driver, width = flow.drivers[wire], flow.needed[wire]
        free = wire[0] == "$" and wire not in self._known and flow.references[wire] == 1 and wire not in flow.parted
        if isinstance(driver, list):
            parts = [segment for segment in driver if segment.low < width]
            if len(parts) > 1:
                for segment in parts:
                    high = min(width, segment.low + segment.width)
                    part = self._part(wire, segment.low, high - segment.low)
                    value = choice(lowest(segment.value, high - segment.low), self._read)
                    self._assigns += _wrapped(f"  assign {part} = {value.text};")
                return
            made = choice(lowest(parts[0].value, width), self._read)
        elif isinstance(driver, Cell):
            if driver.kind == "$memrd_v2":
                address = self._read(driver.ports["ADDR"], ANYWHERE).text
                made = Expression(f"{self._memories[driver.memory]}[{address}]")
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
        self._assigns += _wrapped(f"  assign {self._name(wire)} = {made.text};")

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
        return Expression(self._part(name, low, width))

    def _part(self, wire: str, low: int, width: int) -> str:
        whole = self._flow.needed[wire]
        if width == whole:
            return self._name(wire)
        return f"{self._name(wire)}[{low}]" if width == 1 else f"{self._name(wire)}[{low + width - 1}:{low}]"

    # What is not logic.

    def _clocked(self) -> Iterator[str]:
        """Registers and memories, those of a clock together."""
        blocks: dict[str, list[str]] = {}
        for cell in self._flow.module.cells:
            if cell.kind == "$dff":
                if (wire := cell.ports["Q"][0].name) in self._flow.needed:
                    value = self._read(cell.ports["D"], ALONE).text
                    self._put(blocks, cell, f"{self._name(wire)} <= {value};")
            elif cell.kind == "$memrd_v2" and cell.number("CLK_ENABLE"):
                if (wire := cell.ports["DATA"][0].name) in self._flow.needed:
                    enable, address = (self._read(cell.ports[port], ANYWHERE).text for port in ("EN", "ADDR"))
                    self._put(blocks, cell, f"{'' if enable == _ALWAYS else f'if ({enable}) '}{self._name(wire)} <= "
                                            f"{self._memories[cell.memory]}[{address}];")
            elif cell.kind == "$memwr_v2":
                for line in self._write(cell):
                    self._put(blocks, cell, line)
        for clock, lines in blocks.items():
            yield f"  always @(posedge {clock}) begin"
            yield from lines
            yield "  end"

    def _put(self, blocks: dict[str, list[str]], cell: Cell, line: str) -> None:
        clock = self._read(cell.ports["CLK"], ANYWHERE).text
        blocks.setdefault(clock, []).extend(_wrapped(f"    {line}"))

    def _write(self, cell: Cell) -> Iterator[str]:
        """A write for each run of bits that are enabled together."""
        if cell.memory not in self._flow.memories:
            return
        word = f"{self._memories[cell.memory]}[{self._read(cell.ports['ADDR'], ANYWHERE).text}]"
        enables = [span(cell.ports["EN"], bit, 1) for bit in range(cell.number("WIDTH"))]
        low = 0
        for enable, same in groupby(enables):
            width = len(list(same))
            whole = width == len(enables)
            data = self._read(span(cell.ports["DATA"], low, width), ALONE).text
            place = word if whole else f"{word}[{low + width - 1}:{low}]" if width > 1 else f"{word}[{low}]"
            condition = self._read(enable, ANYWHERE).text
            if condition != _NEVER:
                yield f"{'' if condition == _ALWAYS else f'if ({condition}) '}{place} <= {data};"
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
        yield from self._attributes(cell.attributes, "  ")
        yield f"  {name} {f'#({given}) ' if given else ''}{self._cells[cell.name]} ("
        yield from (line for n, each in enumerate(connected)
                    for line in _wrapped(f"    {each}{',' if n < len(connected) - 1 else ''}"))
        yield "  );"

    # Declarations.

    def _attributes(self, attributes: Mapping[str, str], indent: str = "") -> Iterator[str]:
        if source := self._source(attributes):
            yield f'{indent}(* src = "{source}" *)'

    def _source(self, attributes: Mapping[str, str]) -> str:
        return self._notes.source(attributes.get("src", "").strip('"'))

    def _ports(self) -> Iterator[str]:
        ports = {wire.name[1:]: wire for wire in self._wires.values() if wire.port}
        first = [name for name in ("clk", "rst", *self._notes.ports) if name in ports]
        order = dict.fromkeys([*first, *(name for name, wire in ports.items() if wire.port == "input"), *ports])
        for n, name in enumerate(order):
            wire = ports[name]
            kind = "output reg" if self._is_reg(wire.name) else wire.port
            comment = self._notes.ports.get(name) or self._source(wire.attributes)
            yield (f"  {kind} {_range(wire.width)}{self._known[wire.name]}{',' if n < len(order) - 1 else ''}"
                   f"{f'  // {comment}' if comment else ''}")

    def _is_reg(self, wire: str) -> bool:
        driver = self._flow.drivers.get(wire)
        return isinstance(driver, Cell) and driver.kind.startswith("$") and self._is_register(driver)

    def _declarations(self) -> Iterator[str]:
        flow = self._flow
        known = [wire for wire in self._wires.values()
                 if not wire.port and wire.name in self._known and wire.name in flow.needed]
        for (kind, width, attributes), same in groupby(known, self._declared):
            names = ", ".join(self._known[each.name] for each in same)
            yield from _wrapped(f"  {attributes}{kind} {_range(width)}{names};")
        for memory in flow.memories:
            size = flow.module.memories[memory]
            texts = self._attribute_text(size.attributes)
            yield f"  {texts}reg {_range(size.width)}{self._memories[memory]} [0:{size.depth - 1}];"

    def _declared(self, wire: Wire) -> tuple[str, int, str]:
        driver, attributes = self._flow.drivers.get(wire.name), wire.attributes
        if "src" not in attributes and isinstance(driver, Cell):
            attributes = {**attributes, "src": driver.attributes.get("src", "")}
        return ("reg" if self._is_reg(wire.name) else "wire", self._flow.needed[wire.name],
                self._attribute_text(attributes))

    def _attribute_text(self, attributes: Mapping[str, str]) -> str:
        texts = [f'src = "{source}"'] if (source := self._source(attributes)) else []
        texts += [f"{key} = {value}" for key, value in attributes.items() if key in KEPT]
        return f"(* {', '.join(texts)} *) " if texts else ""


def _private(name: str) -> tuple[bool, ...]:
    """How much a name says that it is nobody's own: it was found by the language, or belongs to an interface."""
    return name[0] in "$_0123456789", "__" in name, "$" in name


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _wrapped(line: str) -> Iterator[str]:
    """Lines of 120 columns: broken between choices first, then at blanks."""
    if len(line) <= COLUMNS:
        yield line.replace(BREAK, " ")
        return
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    for n, part in enumerate(line.split(BREAK)):
        text = part if n == 0 else indent + part
        while len(text) > COLUMNS:
            cut = text.rfind(" ", len(indent) + 1, COLUMNS)
            if cut < 0:
                break
            yield text[:cut]
            text = indent + text[cut + 1:]
        yield text
