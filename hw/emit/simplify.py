"""Logic without what says nothing: operations with constants that do nothing, choices that are made, and the same
operation twice.

Products are left as they are, since they are what a design is measured by.
"""
from collections.abc import Iterable, Iterator

from circulant.hw.emit.rtlil import Bits, Case, Cell, Chunk, Module, Process, Switch, joined, span, width_of

__all__ = ["simplify"]

_RESULTS = ("Y", "Q", "DATA")
_TWICE = frozenset({"$add", "$sub", "$neg", "$and", "$or", "$xor", "$not", "$eq", "$ne", "$lt", "$le", "$gt", "$ge",
                    "$shl", "$shr", "$sshr", "$mux", "$reduce_and", "$reduce_or", "$reduce_xor", "$reduce_bool"})
"""Cells of which one does for two with the same operands."""


def simplify(module: Module) -> None:
    """Simplify a module; its wires remain."""
    _Simplifier(module).run()


class _Simplifier:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._same: dict[str, Bits] = {}
        self._known: dict[object, str] = {}

    def run(self) -> None:
        module, gone = self._module, set[str]()
        self._same = {target.name: value for (target,), value in module.connections if _number(value) is not None}
        for cell in self._order():
            cell.ports = {name: bits if name in _RESULTS else self._resolved(bits) for name, bits in cell.ports.items()}
            result = cell.ports["Y"][0].name
            value = self._value(cell)
            if result[0] != "$":  # A wire with a name remains, and is read unless it is a constant.
                if value is not None:
                    module.connections.append((cell.ports["Y"], value))
                    gone.add(cell.name)
                    if _number(value) is not None:
                        self._same[result] = value
                continue
            if value is None and cell.kind in _TWICE:
                operands = (bits for name, bits in cell.ports.items() if name != "Y")
                key = (cell.kind, *cell.parameters.values(), *operands)
                if (first := self._known.setdefault(key, result)) != result:
                    value = (Chunk(first, 0, module.wires[result].width),)
            if value is not None:
                self._same[result] = value
                gone.add(cell.name)
        module.cells = [cell for cell in module.cells if cell.name not in gone]
        for cell in module.cells:
            cell.ports = {name: bits if name in _RESULTS else self._resolved(bits) for name, bits in cell.ports.items()}
        module.processes = [self._process(process) for process in module.processes]
        module.connections = [(target, self._resolved(value)) for target, value in module.connections]

    def _order(self) -> Iterator[Cell]:
        """Cells of logic, each behind those that it reads."""
        makers = {cell.ports["Y"][0].name: cell for cell in self._module.cells if cell.kind.startswith("$")
                  and cell.ports.get("Y")}
        done: set[str] = set()
        for root in makers:
            stack: list[tuple[Cell | None, Iterator[str]]] = [(None, iter((root,)))]
            while stack:
                name = next(stack[-1][1], None)
                if name is None:
                    cell, _ = stack.pop()
                    if cell is not None:
                        yield cell
                elif name in makers and name not in done:
                    done.add(name)
                    stack.append((makers[name], _sources(makers[name])))

    def _resolved(self, bits: Bits) -> Bits:
        same = self._same
        if not any(chunk.name in same for chunk in bits):
            return bits
        found: Bits = ()
        for chunk in bits:
            found = joined(found, span(same[chunk.name], chunk.low, chunk.width) if chunk.name in same else (chunk,))
        return found

    def _process(self, process: Process) -> Process:
        found: Process = []
        for each in process:
            if not isinstance(each, Switch):
                found.append((each[0], self._resolved(each[1])))
                continue
            selector = self._resolved(each.selector)
            cases = [Case(case.patterns, self._process(case.body)) for case in each.cases]
            if (number := _number(selector)) is None:
                found.append(Switch(selector, cases))
            else:  # What is chosen is known.
                bits = format(number, f"0{width_of(selector)}b") if selector else ""
                found += next((case.body for case in cases if _takes(case, bits)), [])
        return found

    def _value(self, cell: Cell) -> Bits | None:
        """Value of a cell that computes nothing; None where it computes something."""
        ports, width = cell.ports, width_of(cell.ports["Y"])
        if cell.kind in ("$and", "$or"):
            return _masked(ports["A"], ports["B"], width, ones=cell.kind == "$or")
        if cell.kind == "$not" and (number := _number(ports["A"])) is not None and width_of(ports["A"]) == width:
            return (Chunk("", ~number & ((1 << width) - 1), width),)
        if cell.kind == "$mux" and (chosen := _number(ports["S"])) is not None:
            return ports["B"] if chosen else ports["A"]
        if cell.kind == "$mux" and ports["A"] == ports["B"]:
            return ports["A"]
        if cell.kind in ("$add", "$sub", "$shl", "$shr", "$sshr", "$shift") and _number(ports["B"]) == 0:
            return _extended(ports["A"], width, cell.number("A_SIGNED"))
        if cell.kind == "$add" and _number(ports["A"]) == 0:
            return _extended(ports["B"], width, cell.number("B_SIGNED"))
        if cell.kind in ("$eq", "$ne") and not cell.number("A_SIGNED"):
            a, b = _number(ports["A"]), _number(ports["B"])
            if a is not None and b is not None:
                return (Chunk("", int((a == b) is (cell.kind == "$eq")), width),)
        return None


def _takes(case: Case, bits: str) -> bool:
    """Whether a case is for a selector of these bits."""
    return not case.patterns or any(
        all(mine in ("-", its) for mine, its in zip(pattern, bits, strict=True)) for pattern in case.patterns)


def _sources(cell: Cell) -> Iterator[str]:
    return (chunk.name for port, bits in cell.ports.items() if port != "Y" for chunk in bits)


def _number(bits: Iterable[Chunk]) -> int | None:
    """A constant's value, of no bits zero; None of what is none."""
    value = 0
    for chunk in bits:
        if chunk.name:
            return None
        value = value << chunk.width | chunk.low
    return value


def _extended(bits: Bits, width: int, signed: int) -> Bits | None:
    missing = width - width_of(bits)
    if missing < 0 or not bits:
        return None
    sign = span(bits, width_of(bits) - 1, 1) if signed else (Chunk("", 0, 1),)
    for _ in range(missing):
        bits = (*sign, *bits)
    return bits


def _masked(a: Bits, b: Bits, width: int, *, ones: bool) -> Bits | None:
    """The value of "and", or of "or", where an operand is all zeros or all ones."""
    if width_of(a) != width or width_of(b) != width:
        return None
    every = (1 << width) - 1
    for mine, its in ((a, b), (b, a)):
        number = _number(mine)
        if number in (0, every):
            return its if (number == 0) is ones else mine
    return None
