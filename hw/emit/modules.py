"""The modules of a design: their names and ports, from the units to the text of a file."""
from collections.abc import Collection, Mapping, Sequence

from circulant.hw.emit.dataflow import Dataflow
from circulant.hw.emit.declarations import Notes
from circulant.hw.emit.names import Names
from circulant.hw.emit.rtlil import Module
from circulant.hw.emit.signal_names import InstanceKind
from circulant.hw.emit.simplify import simplify
from circulant.hw.emit.verilog import module_text

__all__ = ["Modules", "memory_module"]


class Modules:
    """Verilog of modules, which are given units first and leaves before what holds them."""

    def __init__(self) -> None:
        self._names = Names()
        self._outputs: dict[str, set[str]] = {}
        self._kinds: dict[str, InstanceKind] = {}
        self._texts: list[str] = []
        self._by_hand: dict[str, str] = {}

    def add_text(self, name: str, text: str, outputs: Collection[str]) -> None:
        """Take in a module that is written by hand."""
        if name not in self._by_hand:
            self._by_hand[name] = text
            self._outputs[name] = set(outputs)
            self._kinds[name] = (self._names.take(name), {})

    def add(self, modules: Sequence[Module], notes: Mapping[str, Notes]) -> None:
        """Take in a unit and all that lies in it.

        Parameters:
            notes: what is said of each, by its name.

        Raises:
            ValueError: when a module that is instantiated has not been taken in.
        """
        for module in modules:
            simplify(module)
            self._outputs[module.name] = {wire.name[1:] for wire in module.wires.values() if wire.port == "output"}
        ports = _port_names(modules)
        for module in modules:
            self._kinds[module.name] = (self._names.take(module.name), ports[module.name])
        text = [module_text(Dataflow(module, self._outputs), self._kinds[module.name][0], ports[module.name],
                            self._kinds, notes[module.name]) for module in modules]
        self._texts[:0] = text

    def text(self) -> str:
        """All of them, the last unit first."""
        return "\n".join([*self._texts, *self._by_hand.values()])


def _port_names(modules: Sequence[Module]) -> dict[str, dict[str, str]]:
    """Names of the ports of each module. Amaranth numbers what passes through a module and has no name there: such a
    port is called as it is in the module, or else as in the one around."""
    found: dict[str, dict[str, str]] = {}
    around: dict[str, dict[str, str]] = {}
    for module in modules:
        inside = {value[0].name: target[0].name[1:] for target, value in reversed(module.connections)
                  if len(value) == 1 and not value[0].low and value[0].width == target[0].width}
        names, given = Names(), around.get(module.name, {})
        ports = [wire.name[1:] for wire in module.wires.values() if wire.port]
        plain = {port: names.take(port) for port in ports if not port.startswith("port$")}
        found[module.name] = mine = plain | {
            port: names.take(inside.get(f"\\{port}") or given.get(port) or "value")
            for port in ports if port.startswith("port$")}
        for cell in module.cells:
            if not cell.kind.startswith("$"):
                around[cell.kind[1:]] = {
                    port: mine.get(bits[0].name[1:], bits[0].name[1:]) for port, bits in cell.ports.items()
                    if len(bits) == 1 and bits[0].name and bits[0].name[0] == "\\" and not bits[0].low}
    return found


def memory_module(name: str, *, writable: bool, said: str) -> str:
    """Verilog of a memory that reads its contents from a file, with a port to write it or without.

    Parameters:
        said: attributes that say where it lies, by its parameter STYLE; empty where nothing is said.
    """
    said, parameter = (f"{said} ", ',\n  parameter STYLE = "block"') if said else ("", "")
    ports = ",\n  input wen,\n  input [ADDRESS-1:0] waddr,\n  input [WIDTH-1:0] wdata" if writable else ""
    write = "  always @(posedge clk) if (wen) mem[waddr] <= wdata;\n" if writable else ""
    return f"""\
(* keep_hierarchy = 0 *)
module {name} #(
  parameter IMAGE = "",
  parameter WIDTH = 1,
  parameter DEPTH = 1,
  parameter ADDRESS = 1{parameter}
) (
  input clk,
  input en,
  input [ADDRESS-1:0] addr,
  output reg [WIDTH-1:0] data{ports}
);
  {said}reg [WIDTH-1:0] mem [0:DEPTH-1];
  generate if (IMAGE != "") begin : contents
    initial $readmemh(IMAGE, mem);
  end endgenerate
{write}  always @(posedge clk) if (en) data <= mem[addr];
endmodule
"""
