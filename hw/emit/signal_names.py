"""Names of what stands in a module of Verilog: its ports, instances, memories, and the wires that something reads."""
from collections.abc import Mapping

from circulant.hw.emit.dataflow import Dataflow
from circulant.hw.emit.names import Names
from circulant.hw.emit.rtlil import Cell

__all__ = ["InstanceKind", "SignalNames"]

InstanceKind = tuple[str, Mapping[str, str]]
"""Name of a kind of instance, and those of its ports that are others than in RTLIL."""

KINDS = {"$add": "sum", "$sub": "difference", "$neg": "negative", "$mul": "product", "$and": "conjunction",
         "$or": "disjunction", "$xor": "parity", "$not": "inverse", "$eq": "equal", "$ne": "unequal", "$lt": "less",
         "$le": "less", "$gt": "greater", "$ge": "greater", "$shl": "shifted", "$shr": "shifted", "$sshr": "shifted",
         "$shift": "part", "$reduce_or": "any", "$reduce_bool": "any", "$reduce_and": "every", "$reduce_xor": "parity",
         "$memrd_v2": "word", "$dff": "register"}
"""Names of values that have none, by what makes them; of a choice "choice"."""


class SignalNames:
    """Names in one module. A wire that has none in the source gets one when it is asked for.

    Parameters:
        ports: names of its ports.
        kinds: of its instances.

    Attributes:
        wires: names of the wires that have one by now.
        instances: names by those of the cells.
        memories: of the memories that are read.
    """

    def __init__(self, flow: Dataflow, ports: Mapping[str, str], kinds: Mapping[str, InstanceKind]) -> None:
        self._flow, self._kinds, self._names = flow, kinds, Names()
        self.wires = {wire.name: self._names.take(ports[wire.name[1:]])
                      for wire in flow.module.wires.values() if wire.port}
        self.instances = {cell.name: self._names.take(cell.name[1:]) for cell in flow.instances}
        self._better = self._joints()
        for wire in flow.module.wires:
            if wire[0] == "\\" and wire in flow.needed and wire not in self.wires:
                self.wires[wire] = self._names.take(self._better.get(wire, wire[1:]))
        self.memories = {memory: self._names.take(memory[1:]) for memory in flow.memories}
        self._hints = self._likely()

    def of(self, wire: str) -> str:
        """The name of a wire."""
        if wire not in self.wires:
            driver = self._flow.drivers.get(wire)
            if hint := self._better.get(wire) or self._hints.get(wire):
                self.wires[wire] = self._names.take(hint)
            else:
                kind = KINDS.get(driver.kind, "value") if isinstance(driver, Cell) else "choice"
                self.wires[wire] = self._names.number(kind)
        return self.wires[wire]

    def part(self, wire: str, low: int, width: int) -> str:
        """Bits ``low`` to ``low`` + ``width`` - 1 of a wire."""
        if width == self._flow.needed[wire]:
            return self.of(wire)
        return f"{self.of(wire)}[{low}]" if width == 1 else f"{self.of(wire)}[{low + width - 1}:{low}]"

    def _joints(self) -> dict[str, str]:
        """Better names of wires than their own: of those that are the same the plainest, and of those that are called
        as the ports of an instance are the same with its name in front."""
        found: dict[str, str] = {}
        for (target,), value in self._flow.module.connections:
            if len(value) == 1 and value[0].name in self._flow.module.wires and target.name not in self.wires and (
                    value[0][1:] == target[1:] == (0, self._flow.module.wires[value[0].name].width)):
                found[value[0].name] = min(found.get(value[0].name, value[0].name[1:]), target.name[1:], key=_private)
        for gives in (True, False):
            for cell in self._flow.instances:
                for port, bits in cell.ports.items():
                    wire = bits[0].name if len(bits) == 1 else ""
                    if self._flow.is_output(cell, port) is gives and wire.partition("$")[0] == f"\\{port}":
                        found.setdefault(wire, f"{self.instances[cell.name]}_{port}")
        return found

    def _likely(self) -> dict[str, str]:
        """Names of values by where they go, or what they come from."""
        found: dict[str, str] = {}
        for cell in self._flow.module.cells:
            if cell.kind == "$dff" and cell.ports["Q"][0].name in self.wires and len(cell.ports["D"]) == 1:
                found.setdefault(cell.ports["D"][0].name, f"{self.wires[cell.ports['Q'][0].name]}_next")
        for cell in self._flow.instances:
            for port, bits in cell.ports.items():
                if self._flow.is_output(cell, port) and len(bits) == 1:
                    inside = self._kinds[cell.kind[1:]][1].get(port, port)
                    found[bits[0].name] = f"{self.instances[cell.name]}_{inside}"
        return found


def _private(name: str) -> tuple[bool, ...]:
    """How much a name says that it is nobody's own: it was found by the language, or belongs to an interface."""
    return name[0] in "$_0123456789", "__" in name, "$" in name
