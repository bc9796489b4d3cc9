"""Verilog of a library's cells, written from the functions that its liberty file states, for simulators."""
from collections.abc import Iterable

from circulant.boards.asic.cells.functions import parsed
from circulant.boards.asic.cells.library import Cell, Library
from circulant.sim.refusal import Refusal

__all__ = ["models"]


def models(library: Library, used: Iterable[str]) -> str:
    """A module for each of the cells, without delays. Flip-flops and latches begin with any value.

    Raises:
        Refusal: when a cell has no function that can be written so.
    """
    return "\n".join(_model(library.cells[name]) for name in sorted(set(used)))


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
        lines.append(f"  assign {name} = {parsed(function).verilog()};")
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
    assert found is not None and found.kind == "ff", "designs have no latches but those of clock gates"
    state, inverse = found.states[0], found.states[1] if len(found.states) > 1 else ""
    lines = [*_register(state), *([f"  wire {inverse} = ~{state};"] if inverse else [])]
    clock, data = parsed(found.clock).verilog(), parsed(found.data).verilog()
    forced = [(parsed(text).verilog(), value) for text, value in ((found.clear, "1'b0"), (found.preset, "1'b1"))
              if text]
    body = f"{state} <= {data};"
    events = [f"posedge edge_{state}"]
    lines.append(f"  wire edge_{state} = {clock};")
    for n, (condition, value) in enumerate(forced[::-1]):
        lines.append(f"  wire force_{n} = {condition};")
        events.append(f"posedge force_{n}")
        body = f"if (force_{n}) {state} <= {value}; else {body}"
    return [*lines, f"  always @({' or '.join(events)}) {body}"]
