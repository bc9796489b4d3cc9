"""Yosys and ABC: from the Verilog of a design to a netlist of standard cells.

The memories are taken apart first (`circulant.boards.asic.memories`), registers with an enable go behind clock gates,
products become Booth multipliers, and what is left is mapped with the clock as the constraint.
"""
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from circulant.boards.asic.cells.library import Library, read_text
from circulant.boards.asic.memories import Memory, separate
from circulant.boards.asic.netlist import Netlist
from circulant.boards.asic.source import bare
from circulant.boards.flow import Show, yosys
from circulant.sim.files.writing import atomic_text

__all__ = ["Settings", "mapped", "unpacked"]

GATED = 3
"""Flip-flops that one clock gate must serve at least: it is as large as so many multiplexers."""

SHARE = 0.7
"""Part of the period that ABC may fill: it knows neither the flip-flops' delays nor their trees of buffers."""

ABC = "+&get,-n;&dch,-f;&nf,-R,10;&put;topo;upsize,-D,{0:.0f};dnsize,-D,{0:.0f}"
"""Structural choices, a mapping for area within 10 % of the least delay, and the sizes that reach some ps with the
least area."""

ELABORATION = """
proc; flatten; opt_expr; opt_clean; check -assert; opt -nodffe -nosdff; wreduce; peepopt; opt_clean; opt_dff; opt_clean
memory -nomap; opt_clean; write_json elaborated.json
"""

CELLS = """
booth; alumacc; opt_expr; opt_merge; opt_clean; memory_map; opt_expr; opt_clean
techmap; opt_expr; opt_merge; opt_clean; simplemap; {simple}; opt_clean; {flops}; opt_clean
{gate}
dfflibmap {files}
opt_expr; opt_clean
abc {files} -script {abc}
opt_clean -purge; setundef -undriven -zero
{ties}
flatten; opt_clean -purge; write_json mapped.json
"""


@dataclass(frozen=True)
class Settings:
    """Choices of a mapping.

    Parameters:
        mhz: clock.
        gating: put registers with an enable behind clock gates; else behind multiplexers.
        scan: leave room for scan flip-flops.
        dont_use: patterns of cells that are left alone.
    """

    mhz: float
    gating: bool = True
    scan: bool = False
    dont_use: tuple[str, ...] = ()


def unpacked(library: Library, folder: Path) -> list[str]:
    """Liberty files of a library as tools read them; names below ``folder``."""
    for n, file in enumerate(library.files):
        (folder / f"library_{n}.lib").write_text(read_text(file))
    return [f"library_{n}.lib" for n in range(len(library.files))]


def mapped(design: Path, described: Mapping[str, Any], work: Path, library: Library, settings: Settings, *, key: str,
           macro: Callable[..., str], show: Show) -> tuple[Netlist, list[Memory]]:
    """The netlist of a design, flat but for macros, and its memories; ``work`` keeps what the tools wrote.

    Parameters:
        design: folder of the design.
        described: its manifest.
        key: names all that the mapping follows from; what was made in ``work`` under the same one is taken.
        macro: see `circulant.boards.asic.memories.separate`.

    Raises:
        Refusal, ToolError: as `circulant.boards.flow.yosys`.
    """
    top, kept = described["top"], work / "key"
    made = kept.is_file() and kept.read_text() == key
    if not made:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        for name in described["verilog"]:
            (work / name).write_text(bare((design / name).read_text()))
        for name in described["images"]:
            shutil.copy(design / name, work / name)
        show("elaboration", 0, 0)
        yosys(work, f"read_verilog -defer {' '.join(described['verilog'])}; hierarchy -check -top {top}\n{ELABORATION}",
              f"elaboration of {design}", "elaboration")
    netlist = json.loads((work / "elaborated.json").read_text())
    memories = separate(netlist, top, macro)
    if not made:
        (work / "separated.json").write_text(json.dumps(netlist))
        show("mapping", 0, 0, f"to {library.name}")
        yosys(work, script(top, unpacked(library, work), library, settings, memories=memories),
              f"mapping of {design} to {library.name}", "mapping")
        atomic_text(kept, key)
    return Netlist.read(work / "mapped.json", top, library, memories), memories


def script(top: str, libraries: Sequence[str], library: Library, settings: Settings, *, memories: Sequence[Memory]
           ) -> str:
    """Commands from the netlist with separate memories to cells."""
    unused = [pattern for pattern in settings.dont_use if any(fnmatchcase(name, pattern) for name in library.cells)]
    files = " ".join([*(f"-liberty {name}" for name in libraries), *(
        f"-dont_use {cell}" for cell in (*unused, *(cell.name for cell in library.clock_gates)))])
    macros = " ".join(dict.fromkeys(memory.module for memory in memories if memory.macro))
    gates = [cell for cell in library.clock_gates if cell.pin("test") or not settings.scan] if settings.gating else []
    gate = ""
    if gates:
        cell = gates[0]
        ports = f"{cell.pin('enable')}:{cell.pin('clock')}:{cell.outputs[0]}"
        tied = f" -tie_lo {cell.pin('test')}" if cell.pin("test") else ""
        gate = f"clockgate -min_net_size {GATED} -pos {cell.name} {ports}{tied}"
    # No enable stays where no clock gate takes it; a reset that is one is a gate before the flip-flop.
    flops = "dfflegalize -cell $_DFFE_PP_ x -cell $_DFF_P_ x" + (f" -mince {GATED}" if gates else "")
    apart = f"select {macros}; write_verilog -noattr -selected macros.v; select -clear; blackbox {macros}"
    return f"read_json separated.json; hierarchy -check -top {top}\n{apart if macros else ''}{CELLS}".format(
        simple="opt_dff -simple-dffe" if gates else "opt_clean", flops=flops, gate=gate, files=files,
        abc=ABC.format(1e6 / settings.mhz * SHARE), ties=_ties(library))


def _ties(library: Library) -> str:
    """The command that gives constants cells; empty for a library without them."""
    high, low = (next((f"{option} {cell.name} {pin}" for cell in library.cells.values() if not cell.inputs
                       for pin in cell.outputs if cell.pins[pin].function.strip("()") == value), "")
                 for option, value in (("-hicell", "1"), ("-locell", "0")))
    return f"hilomap -singleton {high} {low}" if high and low else ""

