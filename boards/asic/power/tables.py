"""A netlist as tables, which `play.cpp` plays: each output a function of nets, each flip-flop a next state."""
from dataclasses import dataclass, field
from typing import Any

from circulant.boards.asic.cells.functions import Function, parsed
from circulant.boards.asic.cells.library import Cell, Library
from circulant.boards.asic.memories import Memory
from circulant.boards.asic.netlist import Instance, Net, Netlist
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Tables", "tables"]


@dataclass
class Tables:
    """A file that the player reads.

    Parameters:
        number: of each net; constants are 0 and 1.
        clocks: the net behind each clock gate, in the order of the pulses that are counted.
    """

    number: dict[Net, int] = field(default_factory=lambda: {"0": 0, "1": 1})
    clocks: list[Net] = field(default_factory=list)
    functions: dict[str, int] = field(default_factory=dict)
    gates: list[str] = field(default_factory=list)
    enables: list[str] = field(default_factory=list)
    flops: list[str] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    _states: int = 0

    def net(self, net: Net) -> int:
        return self.number.setdefault(net, len(self.number))

    def state(self) -> int:
        """The number of a state, which is no net."""
        self._states -= 1
        return self.net(self._states)

    def line(self, function: Function, inputs: dict[str, int], out: int, clock: int = 0) -> str:
        """A function of some nets, as the player reads it."""
        table = f"{len(function.pins)} {''.join('01'[int(bit)] for bit in function.table())}"
        index = self.functions.setdefault(table, len(self.functions))
        pins = " ".join(str(inputs[pin]) for pin in function.pins)
        return f"{index} {clock} {out} {len(function.pins)} {pins}"

    def text(self) -> str:
        """The file."""
        parts: list[list[str]] = [list(self.functions), self.gates, self.enables, self.flops, self.memories, self.ports]
        return "\n".join([str(len(self.number)), *(line for part in parts for line in (str(len(part)), *part)), ""])


def tables(netlist: Netlist, library: Library, memories: list[Memory]) -> Tables:
    """The tables of a netlist.

    Raises:
        Refusal: when a cell is of a kind that cannot be played: a latch, a falling edge, an asynchronous input in use.
        ToolError: when a clock is neither the design's nor that behind a clock gate.
    """
    made = Tables()
    root = netlist.ports["clk"][1][0]
    gates = {name: cell for name, instance in netlist.instances.items()
             if (cell := library.cells.get(instance.cell)) and cell.gating}
    clocks = {root: 0}
    waiting = dict(gates)
    while waiting:  # A gate behind another one comes after it.
        ready = [name for name, cell in waiting.items()
                 if netlist.instances[name].pins[cell.pin("clock")][0] in clocks]
        if not ready:
            raise ToolError(f"Each clock of a netlist must come from clk, but that of {next(iter(waiting))} does not; "
                            "report it with the library")
        for name in ready:
            _enable(made, netlist.instances[name], waiting.pop(name), clocks)
    parsed_of: dict[str, Function] = {}
    for instance in netlist.instances.values():  # What ties a pin high or low is a constant.
        tie = library.cells.get(instance.cell)
        if tie is not None and not tie.inputs:
            made.number |= {instance.pins[pin][0]: int(value.table()[0]) for pin in tie.outputs if pin in instance.pins
                            and not (value := parsed(tie.pins[pin].function)).pins}
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        if cell is None:
            memory = next(memory for memory in memories if memory.instance == name)
            made.memories.append(_memory(made, memory, instance))
        elif not cell.gating and cell.inputs:
            _cell(made, name, instance, cell, clocks=clocks, parsed_of=parsed_of)
    made.ports = [f"{name} {len(nets)} {' '.join(str(made.net(net)) for net in nets)}"
                  for name, (_, nets) in netlist.ports.items()]
    return made


def _enable(made: Tables, instance: Instance, cell: Cell, clocks: dict[Net, int]) -> None:
    """A clock gate: whether its clock runs in the next cycle."""
    pins = [pin for pin in (cell.pin("enable"), cell.pin("test")) if pin]
    made.enables.append(made.line(parsed("|".join(pins)), {pin: made.net(instance.pins[pin][0]) for pin in pins}, 0,
                                  clocks[instance.pins[cell.pin("clock")][0]]))
    out = instance.pins[cell.outputs[0]][0]
    clocks[out] = len(made.enables)
    made.clocks.append(out)


def _cell(made: Tables, name: str, instance: Instance, cell: Cell, *, clocks: dict[Net, int],
          parsed_of: dict[str, Function]) -> None:
    """A gate, or a flip-flop: its state, and its outputs as functions of that."""
    inputs = {pin: made.net(instance.pins[pin][0]) for pin in cell.inputs if instance.pins.get(pin)}
    found = cell.sequential
    if found is not None:
        clock = parsed(found.clock)
        if found.kind != "ff" or clock.table().tolist() != [False, True]:
            raise Refusal(f"Flip-flops of a netlist must take rising edges to be played, but {cell.name} ({name}) does "
                          "not; exclude the cell, or leave out the energy with --samples 0")
        for forced in filter(None, (found.clear, found.preset)):
            if any(inputs[pin] > 1 for pin in parsed(forced).pins):
                raise Refusal(f"Asynchronous inputs of a netlist must be constant to be played, but {cell.name} "
                              f"({name}) uses one; exclude the cell, or leave out the energy with --samples 0")
        net = instance.pins[clock.pins[0]][0]
        if net not in clocks:
            raise ToolError(f"Each clock of a netlist must come from clk, but that of {name} does not; report it with "
                            "the library")
        state = made.state()
        inputs[found.states[0]] = state
        made.flops.append(made.line(parsed_of.setdefault(found.data, parsed(found.data)), inputs, state, clocks[net]))
    for pin in cell.outputs:
        if not instance.pins.get(pin):
            continue
        function = cell.pins[pin].function
        if found is not None and len(found.states) > 1 and function == found.states[1]:
            function = f"!{found.states[0]}"
        if function not in parsed_of:
            parsed_of[function] = parsed(function)
        made.gates.append(made.line(parsed_of[function], inputs, made.net(instance.pins[pin][0])))


def _memory(made: Tables, memory: Memory, instance: Instance) -> str:
    """A macro: its shape, and the nets of its ports."""
    values = memory.cell["parameters"]
    at: dict[Any, Net] = {bit: instance.pins[pin][n] for pin, bits in memory.ports.items() if pin in instance.pins
                          for n, bit in enumerate(bits)}
    found = []
    for name in ("RD_EN", "RD_ADDR", "RD_DATA", "WR_EN", "WR_ADDR", "WR_DATA"):
        bits = memory.cell["connections"].get(name, [])
        found.append(f"{len(bits)} {' '.join(str(made.net(at.get(bit, '1' if bit == '1' else '0'))) for bit in bits)}")
    transparent = values.get("RD_TRANSPARENCY_MASK", "")[::-1].ljust(memory.reads * memory.writes, "0") or "0"
    return " ".join([f"{memory.words} {memory.width} {memory.reads} {memory.writes} {int(values['ABITS'], 2)} "
                     f"1 {transparent}", *found, memory.contents or "-"])
