"""A flat netlist of standard cells: read from what Yosys writes as JSON, changed in place, written as Verilog."""
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.memories import INSTANCE, Memory
from circulant.boards.yosys_json import Module
from circulant.sim.refusal import ToolError

__all__ = ["Instance", "Netlist"]

Net = int | str
"""A net by its number, or a constant, "0" or "1"."""


@dataclass
class Instance:
    """A cell of the netlist, and the net at each of its pins; a macro has several bits at a pin."""

    cell: str
    pins: dict[str, list[Net]]


@dataclass
class Netlist:
    """Instances of cells between nets.

    Parameters:
        top: name of the module.
        ports: direction and nets of each.
        instances: by name.
        names: of nets that have one.
    """

    top: str
    ports: dict[str, tuple[str, list[Net]]]
    instances: dict[str, Instance]
    names: dict[int, str] = field(repr=False)

    @classmethod
    def read(cls, file: Path, top: str, library: Library, memories: list[Memory]) -> "Netlist":
        """The module ``top`` of a file.

        Raises:
            ToolError: when a cell is neither the library's nor a macro.
        """
        module = json.loads(file.read_text())["modules"][top]
        macros = {memory.module for memory in memories if memory.macro}
        instances: dict[str, Instance] = {}
        for raw, cell in module["cells"].items():
            name = raw.removeprefix("$flatten\\")  # What lay in a memory, and has no name of its own.
            kind = cell["type"]
            if kind in ("$scopeinfo", "$print"):
                continue
            if kind not in library.cells and kind not in macros:
                raise ToolError(f"Every cell of the netlist must be of {library.name}, but Yosys left a {kind} "
                                f"({name}); report it with the library")
            instances[name] = Instance(kind, {pin: [_net(bit) for bit in bits]
                                              for pin, bits in cell["connections"].items()})
        ports = {name: (port["direction"], [_net(bit) for bit in port["bits"]])
                 for name, port in module["ports"].items()}
        made = cls(top, ports, {}, _names(module))
        for name, instance in instances.items():
            made.instances[made._called(name, instance, library)] = instance
        made.check(library)
        return made

    def copy(self) -> "Netlist":
        """A netlist whose changes do not change this one."""
        return Netlist(self.top, {name: (direction, list(nets)) for name, (direction, nets) in self.ports.items()},
                       {name: Instance(each.cell, {pin: list(nets) for pin, nets in each.pins.items()})
                        for name, each in self.instances.items()}, self.names)

    def check(self, library: Library) -> None:
        """See that each net that is read has one driver.

        Raises:
            ToolError: when one has none or several.
        """
        drivers: dict[Net, int] = {net: 1 for direction, nets in self.ports.values() if direction == "input"
                                   for net in nets}
        read = [net for direction, nets in self.ports.values() if direction == "output" for net in nets]
        for instance in self.instances.values():
            cell = library.cells.get(instance.cell)
            for pin, nets in instance.pins.items():
                if cell.pins[pin].direction == "output" if cell else pin == "rd_data":
                    for net in nets:
                        drivers[net] = drivers.get(net, 0) + 1
                else:
                    read += nets
        wrong: list[Net] = [net for net in dict.fromkeys(read) if isinstance(net, int) and drivers.get(net, 0) != 1]
        wrong += [net for net, count in drivers.items() if isinstance(net, str) or count > 1]
        if wrong:
            raise ToolError(f"Each net of a netlist must have one driver, but {len(wrong)} have none or several, among "
                            f"them {self.names.get(int(wrong[0]), wrong[0])}; report it with the library")

    def _called(self, name: str, instance: Instance, library: Library) -> str:
        """A name for people: that of a register where it is one, else a number."""
        if name.startswith(INSTANCE) and instance.cell not in library.cells:
            return name
        cell = library.cells[instance.cell]
        prefix = name.split(".")[0] + "." if name.startswith(INSTANCE) else ""
        if cell.sequential and not cell.gating:
            outputs = [net for pin in cell.outputs for net in instance.pins.get(pin, ()) if isinstance(net, int)]
            said = next((self.names[net] for net in outputs if net in self.names), "")
            stem, bracket, index = said.partition("[")
            said = f"{stem}_reg{bracket}{index}"
            if stem and said not in self.instances and (not prefix or said.startswith(prefix)):
                return said
        base = f"{prefix}u{len(self.instances)}"
        return base if base not in self.instances else f"{base}_"

    def fresh(self) -> Iterator[int]:
        """Numbers of new nets."""
        most = max([net for instance in self.instances.values() for nets in instance.pins.values() for net in nets
                    if isinstance(net, int)] + [net for _, nets in self.ports.values() for net in nets
                                                if isinstance(net, int)], default=1)
        while True:
            most += 1
            yield most

    def write(self, file: Path) -> None:
        """Write it as Verilog: one module, instances with named pins, no assignment but to ports."""
        called = {net: self.names.get(net, f"n{net}") for net in self._nets()}
        taken: dict[str, int] = {}
        for net in sorted(called):
            if called[net] in taken or called[net] in self.ports or called[net] in self.instances:
                called[net] = f"n{net}"
            taken[called[net]] = net
        inputs: dict[Net, str] = {}
        for name, (direction, nets) in self.ports.items():
            if direction == "input":
                inputs |= {net: _bit(name, n, len(nets)) for n, net in enumerate(nets)}

        def said(net: Net) -> str:
            return f"1'b{net}" if isinstance(net, str) else inputs.get(net) or _escaped(called[net])

        lines = [f"module {self.top} (", ",\n".join(f"  {_escaped(name)}" for name in self.ports), ");"]
        lines += [f"  {direction} {_range(len(nets))}{_escaped(name)};"
                  for name, (direction, nets) in self.ports.items()]
        lines += [f"  wire {_escaped(name)};" for net, name in sorted(called.items()) if net not in inputs]
        for name, instance in self.instances.items():
            pins = ", ".join(f".{pin}({_joined([said(net) for net in nets[::-1]])})"
                             for pin, nets in instance.pins.items() if nets)
            lines.append(f"  {instance.cell} {_escaped(name)} ({pins});")
        lines += [f"  assign {_bit(name, n, len(nets))} = {said(net)};" for name, (direction, nets) in
                  self.ports.items() if direction == "output" for n, net in enumerate(nets)]
        file.write_text("\n".join([*lines, "endmodule", ""]))

    def _nets(self) -> set[int]:
        return {net for instance in self.instances.values() for nets in instance.pins.values() for net in nets
                if isinstance(net, int)} | {net for _, nets in self.ports.values() for net in nets
                                            if isinstance(net, int)}


def _net(bit: Any) -> Net:
    return bit if isinstance(bit, int) else "1" if bit == "1" else "0"


def _names(module: Module) -> dict[int, str]:
    """For each net the shortest name that someone gave it."""
    names: dict[int, str] = {}
    for name, net in sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]))):
        if net["hide_name"]:
            break
        for n, bit in enumerate(net["bits"]):
            if isinstance(bit, int):
                names.setdefault(bit, f"{name}[{n}]" if len(net["bits"]) > 1 else name)
    return names


def _escaped(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "


def _joined(bits: list[str]) -> str:
    return bits[0] if len(bits) == 1 else f"{{{', '.join(bits)}}}"


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _bit(name: str, n: int, width: int) -> str:
    return f"{_escaped(name)}[{n}]" if width > 1 else _escaped(name)
