"""A flat netlist of standard cells: read from what Yosys writes as JSON, changed in place, written as Verilog."""
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
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

    def check(self, library: Library) -> None:
        """See that each net that is read has one driver.

        Raises:
            ToolError: when one has none or several.
        """
        drivers = Counter(net for direction, nets in self.ports.values() if direction == "input" for net in nets)
        read = [net for direction, nets in self.ports.values() if direction == "output" for net in nets]
        for instance in self.instances.values():
            cell = library.cells.get(instance.cell)
            for pin, nets in instance.pins.items():
                if pin in (cell.outputs if cell else ("rd_data",)):
                    drivers.update(nets)
                else:
                    read += nets
        wrong: list[Net] = [net for net in dict.fromkeys(read) if isinstance(net, int) and drivers[net] != 1]
        wrong += [net for net, number in drivers.items() if isinstance(net, str) or number > 1]
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
        return count(max(self._nets(), default=1) + 1)

    def write(self, file: Path) -> None:
        """Write it as Verilog: one module, instances with named pins, no assignment but to ports."""
        taken = {*self.ports, *self.instances}
        said: dict[Net, str] = {"0": "1'b0", "1": "1'b1"}
        for net in sorted(self._nets()):
            name = self.names.get(net, f"n{net}")
            said[net] = _escaped(name if name not in taken else f"n{net}")
            taken.add(name)
        wires = dict(said)
        for name, (direction, nets) in self.ports.items():
            for n, bit in enumerate(nets) if direction == "input" else ():
                said[bit] = _bit(name, n, len(nets))
                wires.pop(bit, None)

        def joined(nets: list[Net]) -> str:
            words = [said[net] for net in nets[::-1]]
            return words[0] if len(words) == 1 else f"{{{', '.join(words)}}}"

        lines = [f"module {self.top} (", ",\n".join(f"  {_escaped(name)}" for name in self.ports), ");"]
        lines += [f"  {direction} {f'[{len(nets) - 1}:0] ' if len(nets) > 1 else ''}{_escaped(name)};"
                  for name, (direction, nets) in self.ports.items()]
        lines += [f"  wire {name};" for net, name in wires.items() if isinstance(net, int)]
        for name, instance in self.instances.items():
            pins = ", ".join(f".{pin}({joined(nets)})" for pin, nets in instance.pins.items() if nets)
            lines.append(f"  {instance.cell} {_escaped(name)} ({pins});")
        lines += [f"  assign {_bit(name, n, len(nets))} = {said[net]};" for name, (direction, nets) in
                  self.ports.items() if direction == "output" for n, net in enumerate(nets)]
        file.write_text("\n".join([*lines, "endmodule", ""]))

    def _nets(self) -> set[int]:
        lists = (*(instance.pins.values() for instance in self.instances.values()),
                 (nets for _, nets in self.ports.values()))
        return {net for nets in chain.from_iterable(lists) for net in nets if isinstance(net, int)}


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


def _bit(name: str, n: int, width: int) -> str:
    return f"{_escaped(name)}[{n}]" if width > 1 else _escaped(name)
