"""The modules of a design: their names and ports, from the units to the text of a file."""
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from circulant.hw.emit.dataflow import Dataflow
from circulant.hw.emit.declarations import Notes
from circulant.hw.emit.names import Names, unnumbered
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
        members = {module.name: _members(module, notes[module.name].ports) for module in modules}
        ports = _port_names(modules, {name: of_ports for name, (of_ports, _) in members.items()})
        for module in modules:
            self._kinds[module.name] = (self._names.take(module.name), ports[module.name])
        text = [module_text(Dataflow(module, self._outputs), self._kinds[module.name][0], ports[module.name],
                            self._kinds, replace(notes[module.name], ports=members[module.name][1]))
                for module in modules]
        self._texts[:0] = text

    def text(self) -> str:
        """All of them, the last unit first."""
        return "\n".join([*self._texts, *self._by_hand.values()])


def _members(module: Module, said: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Names of ports by the members of a unit that they are, or some bits of, or several of; and their comments.
    Amaranth calls a port as any of the signals that it is.

    Parameters:
        said: comments of the members.
    """
    ports = [wire.name for wire in module.wires.values() if wire.port]
    found = {port: (member, said[member], member) for port in sorted(ports, key=len)
             if (member := unnumbered(port[1:])) in said and (f"\\{member}" == port or f"\\{member}" not in ports)}
    within: dict[str, list[str]] = {}
    for member, low, width, port, whole in _aliases(module, {name for name in said if f"\\{name}" not in ports}):
        if not whole:
            within.setdefault(port, []).append(member)
        elif width == module.wires[f"\\{member}"].width:
            found.setdefault(port, (member, said[member], member))
        else:
            bits = f"{low + width - 1}:{low}" if width > 1 else f"{low}"
            found.setdefault(port, (f"{member}_{bits.replace(':', '_')}",
                                    f"{said[member]}, bit{'s' * (width > 1)} {bits}", member))
    for port, those in within.items():
        parents = {each.rpartition("__")[0] for each in those}
        names = [each.rpartition("__")[2] for each in those]
        name = parents.pop() if len(parents) == 1 else ""
        found.setdefault(port, (name or "_".join(names), f"{name}{': ' * bool(name)}{', '.join(names)} side by side",
                                those[0]))
    order = {member: n for n, member in enumerate(said)}
    entries = sorted(found.items(), key=lambda entry: order[entry[1][2]])
    return {port[1:]: name for port, (name, _, _) in entries}, {name: text for _, (name, text, _) in entries}


def _aliases(module: Module, names: Collection[str]) -> Iterator[tuple[str, int, int, str, bool]]:
    """Bits of wires that are ports, or bits of one: the wire, its lowest bit, their number, the port, and whether they
    are all of it."""
    ports = {wire.name: wire for wire in module.wires.values() if wire.port}
    given = [(value[0], target.name) for (target,), value in module.connections
             if len(value) == 1 and target.name in ports]
    for (target,), value in module.connections:
        low = 0
        for name, start, width in reversed(value if target.name[1:] in names else ()):
            port = name if name in ports else next((port for (wire, first, count), port in given if wire == name
                                                    and first <= start and start + width <= first + count), "")
            if port:
                yield target.name[1:], low, width, port, width == ports[port].width
            low += width


def _port_names(modules: Sequence[Module], members: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Names of the ports of each module: those of members, and others as Amaranth calls them. It numbers what passes
    through a module and has no name there: such a port is called as it is in the module, or as in the one around.

    Parameters:
        members: names of ports that are members, for each module.
    """
    found: dict[str, dict[str, str]] = {}
    around: dict[str, dict[str, str]] = {}
    for module in modules:
        inside = {value[0].name: target[0].name[1:] for target, value in reversed(module.connections)
                  if len(value) == 1 and not value[0].low and value[0].width == target[0].width}
        names, given = Names(), around.get(module.name, {})
        ports = [wire.name[1:] for wire in module.wires.values() if wire.port]
        known = {port: names.take(name) for port, name in members[module.name].items()}
        plain = known | {port: names.take(port) for port in ports
                         if port not in known and not port.startswith("port$")}
        found[module.name] = mine = plain | {
            port: names.take(inside.get(f"\\{port}") or given.get(port) or "value")
            for port in ports if port not in plain}
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
    ports = """,  // the word that was read last
  input wen,  // write in this cycle
  input [ADDRESS-1:0] waddr,  // address of the word to write
  input [WIDTH-1:0] wdata  // the word to write""" if writable else "  // the word that was read last"
    write = "  always @(posedge clk) if (wen) mem[waddr] <= wdata;\n" if writable else ""
    return f"""\
(* keep_hierarchy = 0 *)
module {name} #(
  parameter IMAGE = "",
  parameter WIDTH = 1,
  parameter DEPTH = 1,
  parameter ADDRESS = 1{parameter}
) (
  input clk,  // clock
  input en,  // read in this cycle; data is kept otherwise
  input [ADDRESS-1:0] addr,  // address of the word to read
  output reg [WIDTH-1:0] data{ports}
);
  {said}reg [WIDTH-1:0] mem [0:DEPTH-1];
  generate if (IMAGE != "") begin : contents
    initial $readmemh(IMAGE, mem);
  end endgenerate
{write}  always @(posedge clk) if (en) data <= mem[addr];
endmodule
"""
