"""Verilog of a library's cells, written from the functions that its liberty file states, for simulators."""
import re
from collections.abc import Iterable

from circulant.boards.asic.library import Cell, Library
from circulant.sim.refusal import Refusal

__all__ = ["models", "translated"]

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*(?:\[\d+\])?|[01]|[!'&*+|^()])")


def models(library: Library, used: Iterable[str]) -> str:
    """A module for each of the cells, without delays. Flip-flops and latches begin with any value.

    Raises:
        Refusal: when a cell has no function that can be written so.
    """
    return "\n".join(_model(library.cell(name)) for name in sorted(set(used)))


def translated(function: str) -> str:
    """An expression of liberty as Verilog: ``!`` and ``'`` negate, ``&``, ``*`` and a space are and, ``+``, ``|`` or.

    Raises:
        Refusal: when it is no expression.
    """
    tokens, rest = [], function.strip()
    while rest:
        found = _TOKEN.match(rest)
        if not found:
            raise Refusal(f"A function of a liberty file must be an expression of pins, not {function!r}; take the "
                          "file as the foundry gives it")
        tokens.append(found[1])
        rest = rest[found.end():].strip()
    parser = _Parser(tokens, function)
    return parser.whole()


class _Parser:
    """Precedence from loose to tight: or, exclusive or, and (also unwritten), not."""

    def __init__(self, tokens: list[str], function: str) -> None:
        self._tokens, self._function = tokens, function

    def whole(self) -> str:
        value = self._or()
        if self._tokens:
            raise self._wrong()
        return value

    def _wrong(self) -> Refusal:
        return Refusal(f"A function of a liberty file must be an expression of pins, not {self._function!r}; take the "
                       "file as the foundry gives it")

    def _or(self) -> str:
        terms = [self._xor()]
        while self._tokens and self._tokens[0] in "+|":
            self._tokens.pop(0)
            terms.append(self._xor())
        return " | ".join(terms) if len(terms) == 1 else f"({' | '.join(terms)})"

    def _xor(self) -> str:
        terms = [self._and()]
        while self._tokens and self._tokens[0] == "^":
            self._tokens.pop(0)
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else f"({' ^ '.join(terms)})"

    def _and(self) -> str:
        terms = [self._not()]
        while self._tokens and self._tokens[0] not in "+|^)":
            if self._tokens[0] in "&*":
                self._tokens.pop(0)
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else f"({' & '.join(terms)})"

    def _not(self) -> str:
        if not self._tokens:
            raise self._wrong()
        token = self._tokens.pop(0)
        if token == "!":
            return f"(~{self._not()})"
        if token == "(":
            value = self._or()
            if not self._tokens or self._tokens.pop(0) != ")":
                raise self._wrong()
        elif token in "01":
            value = f"1'b{token}"
        elif token[0].isalpha() or token[0] == "_":
            value = token
        else:
            raise self._wrong()
        while self._tokens and self._tokens[0] == "'":
            self._tokens.pop(0)
            value = f"(~{value})"
        return value


def _model(cell: Cell) -> str:
    ports = [*cell.inputs, *cell.outputs]
    lines = [f"module {cell.name} ({', '.join(ports)});", *(f"  input {name};" for name in cell.inputs),
             *(f"  output {name};" for name in cell.outputs)]
    if cell.gating:
        lines += _gate(cell)
    elif cell.sequential:
        lines += _state(cell)
    for name in cell.outputs:
        function = cell.pins[name].function
        if not function:
            raise Refusal(f"Every output of a cell must have a function to be simulated, but {cell.name} has none for "
                          f"{name}; exclude the cell with --dont-use {cell.name}")
        lines.append(f"  assign {name} = {translated(function)};")
    return "\n".join([*lines, "endmodule", ""])


def _register(state: str) -> list[str]:
    """A state that begins with any value. Verilator draws it by itself; where unknown values are simulated, gates make
    more of them than the circuit has."""
    return [f"  reg {state};", "`ifndef VERILATOR", f"  initial {state} = $random;", "`endif"]


def _gate(cell: Cell) -> list[str]:
    """The latch of a clock gate; its state is the internal pin that the output's function names."""
    state = next(name for name, pin in cell.pins.items() if pin.direction == "internal")
    enable = " | ".join(filter(None, (cell.pin("enable"), cell.pin("test"))))
    return [*_register(state), f"  always @* if (~{cell.pin('clock')}) {state} = {enable};"]


def _state(cell: Cell) -> list[str]:
    found = cell.sequential
    assert found is not None, "called for cells with a state"
    state, inverse = found.states[0], found.states[1] if len(found.states) > 1 else ""
    lines = [*_register(state), *([f"  wire {inverse} = ~{state};"] if inverse else [])]
    clock, data = translated(found.clock), translated(found.data)
    forced = [(translated(text), value) for text, value in ((found.clear, "1'b0"), (found.preset, "1'b1")) if text]
    if found.kind == "latch":
        body = f"if ({clock}) {state} = {data};"
        for condition, value in forced[::-1]:
            body = f"if ({condition}) {state} = {value}; else {body}"
        return [*lines, f"  always @* {body}"]
    body = f"{state} <= {data};"
    events = [f"posedge edge_{state}"]
    lines.append(f"  wire edge_{state} = {clock};")
    for n, (condition, value) in enumerate(forced[::-1]):
        lines.append(f"  wire force_{n} = {condition};")
        events.append(f"posedge force_{n}")
        body = f"if (force_{n}) {state} <= {value}; else {body}"
    return [*lines, f"  always @({' or '.join(events)}) {body}"]
