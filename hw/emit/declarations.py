"""Declarations of a module of Verilog: its ports, wires, registers and memories, with their comments and attributes."""
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from circulant.hw.emit.dataflow import Dataflow, is_register
from circulant.hw.emit.expressions import wrapped
from circulant.hw.emit.names import identifier
from circulant.hw.emit.profile import PROFILES, UNCHECKED
from circulant.hw.emit.rtlil import Cell, Wire
from circulant.hw.emit.signal_names import SignalNames

__all__ = ["Declarations", "Notes"]

KEPT = ("keep", "ASYNC_REG", UNCHECKED, *dict.fromkeys(profile.ram for profile in PROFILES.values()))
"""Attributes for tools, beside the source."""


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


class Declarations:
    """Lines of declarations of one module, whose names are known."""

    def __init__(self, flow: Dataflow, names: SignalNames, notes: Notes) -> None:
        self._flow, self._names, self._notes = flow, names, notes

    def ports(self) -> Iterator[str]:
        """A line for each port: the clock and the reset, those with comments, the other inputs, the rest."""
        ports = {self._names.wires[wire.name]: wire for wire in self._flow.module.wires.values() if wire.port}
        said = {identifier(name): comment for name, comment in self._notes.ports.items()}
        first = [name for name in ("clk", "rst", *said) if name in ports]
        order = dict.fromkeys([*first, *(name for name, wire in ports.items() if wire.port == "input"), *ports])
        for n, name in enumerate(order):
            wire = ports[name]
            kind = "output reg" if self._is_reg(wire.name) else wire.port
            comment = said.get(name) or self._source(wire.attributes)
            yield (f"  {kind} {_range(wire.width)}{name}{',' if n < len(order) - 1 else ''}"
                   f"{f'  // {comment}' if comment else ''}")

    def within(self) -> Iterator[str]:
        """Wires and registers, those of one kind side by side in a line, then memories."""
        flow = self._flow
        known = [wire for wire in flow.module.wires.values()
                 if not wire.port and wire.name in self._names.wires and wire.name in flow.needed]
        for (kind, width, attributes), same in groupby(known, self._declared):
            names = ", ".join(self._names.wires[each.name] for each in same)
            yield from wrapped(f"  {attributes}{kind} {_range(width)}{names};")
        for memory in flow.memories:
            size = flow.module.memories[memory]
            texts = self._attribute_text(size.attributes)
            yield f"  {texts}reg {_range(size.width)}{self._names.memories[memory]} [0:{size.depth - 1}];"

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

    def source(self, attributes: Mapping[str, str], indent: str = "") -> Iterator[str]:
        """A line with the place in the source, where it is known."""
        if source := self._source(attributes):
            yield f'{indent}(* src = "{source}" *)'

    def _source(self, attributes: Mapping[str, str]) -> str:
        return self._notes.source(attributes.get("src", "").strip('"'))

    def _is_reg(self, wire: str) -> bool:
        driver = self._flow.drivers.get(wire)
        return isinstance(driver, Cell) and driver.kind.startswith("$") and is_register(driver)


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
