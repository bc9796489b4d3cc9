"""Area of a netlist by kinds, so that bits of memories do not pass for logic."""
from collections.abc import Mapping, Sequence

from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.macros import Macro
from circulant.boards.asic.memories import Memory, within
from circulant.boards.asic.netlist import Netlist

__all__ = ["AREAS", "LOGIC", "area"]

AREAS = ("logic", "buffers", "registers", "clock_gates", "rom", "ram_registers", "ram_asynchronous", "ram_macros",
         "rom_macros")
"""Kinds: gates; buffers; flip-flops; clock gates; memories with fixed contents as gates, with
the flip-flops of their outputs; memories that are written in flip-flops, with what reads and writes them; such that
are read without a clock edge; macros of both, by their table or model."""

LOGIC = ("logic", "buffers", "registers", "clock_gates", "rom")
"""Kinds that together are what is called logic where memories are black boxes."""


def area(netlist: Netlist, library: Library, memories: Sequence[Memory], macros: Mapping[str, Macro]
         ) -> dict[str, float]:
    """The area of each kind, in µm², before placement: a core is about 1.4 times as large."""
    found: dict[str, float] = dict.fromkeys(AREAS, 0.0)
    places = {"rom": "rom", "registers": "ram_registers", "asynchronous": "ram_asynchronous"}
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        if cell is None:
            continue
        if memory := within(name, memories):
            kind = places[memory.kind]
        elif cell.gating:
            kind = "clock_gates"
        else:
            kind = "registers" if cell.sequential else "buffers" if cell.repeats else "logic"
        found[kind] += cell.area
    for memory in memories:
        if memory.macro:
            found["ram_macros" if memory.writes else "rom_macros"] += macros[memory.macro].area
    return {kind: round(found[kind], 4) for kind in AREAS}
