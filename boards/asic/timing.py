"""Static timing by OpenSTA: the clock that a netlist reaches, and its critical path. Nothing is estimated where it is
missing."""
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from circulant.boards.asic.buffers import forms
from circulant.boards.asic.library import Library
from circulant.boards.asic.netlist import Netlist
from circulant.boards.tools import run
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Timing", "constraints", "found", "repair", "timing"]

ROUNDS = 4
"""How often cells on late paths are made stronger, before the clock counts as missed."""

PATHS = 400
"""Late paths that are looked at in a round."""

_STAGE = re.compile(r"^\s*(?:\d+\.\d+\s+)*?(-?\d+\.\d+)\s+(-?\d+\.\d+)\s+[v^]\s+(\S+)/(\S+) \((\S+)\)\s*$")
_SLACK = re.compile(r"(-?\d+\.\d+)\s+slack \((?:MET|VIOLATED)\)")


@dataclass(frozen=True)
class Timing:
    """The result of an analysis, in ns.

    Parameters:
        period: that was asked for.
        slack: of the slowest path; negative when the clock is missed.
        start, end: its registers or ports.
        stages: its cells: instance, cell, delay.
        hold: slack of the fastest path, with an ideal clock.
        late: instances on late paths, with the largest delay that each has on one.
    """

    period: float
    slack: float
    start: str
    end: str
    stages: tuple[tuple[str, str, float], ...]
    hold: float
    late: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def mhz(self) -> float:
        """The clock that it reaches."""
        return 1e3 / max(self.period - self.slack, 1e-6)


def found() -> str:
    """OpenSTA's program.

    Raises:
        Refusal: when it is not installed.
    """
    for name in ("sta", "opensta"):
        if program := shutil.which(name):
            return program
    raise Refusal("Timing needs OpenSTA, but PATH has no sta; install it (on Debian: apt-get install opensta)")


def constraints(mhz: float) -> str:
    """The SDC of a design: one clock, ports without a delay of their own."""
    return (f"create_clock -name clk -period {1e3 / mhz:.4f} [get_ports clk]\n"
            "set_input_delay 0 -clock clk [get_ports {rst s_axis_* m_axis_tready}]\n"
            "set_output_delay 0 -clock clk [all_outputs]\n")


def timing(netlist: Path, top: str, libraries: list[str], mhz: float, *, scale: float, paths: int = 1) -> Timing:
    """Analyse a netlist; the liberty files lie beside it.

    Parameters:
        scale: ns of the library's unit of time.
        paths: late paths to look at.

    Raises:
        Refusal: when OpenSTA is missing.
        ToolError: when it fails.
    """
    work, program = netlist.parent, found()
    (work / "timing.sdc").write_text(_scaled(mhz, scale))
    (work / "timing.tcl").write_text("\n".join([
        *(f"read_liberty {name}" for name in libraries), f"read_verilog {netlist.name}", f"link_design {top}",
        "source timing.sdc", f"puts MAX; report_checks -path_delay max -format full -digits 4 -group_count {paths}",
        "puts MIN; report_checks -path_delay min -format full -digits 4", "exit", ""]))
    said = run([program, "-no_splash", "-exit", "timing.tcl"], folder=work, step=f"the timing of {netlist}")
    (work / "timing.log").write_text(said)
    if errors := re.findall(r"^Error: .*", said, re.M):
        raise ToolError(f"OpenSTA must read {netlist}, but it says: {errors[0]}; see {work / 'timing.log'}")
    slowest, _, fastest = said.partition("MAX\n")[2].partition("MIN\n")
    late: dict[str, float] = {}
    every = slowest.split("Startpoint: ")[1:]
    for text in every:
        slack = _SLACK.search(text)
        if slack and float(slack[1]) < 0:
            for name, _, delay in _stages(text):
                late[name] = max(late.get(name, 0.0), delay)
    if not every:
        raise ToolError(f"OpenSTA must find a path between registers in {netlist}, but it found none; see "
                        f"{work / 'timing.log'}")
    worst, least = every[0], _SLACK.search(fastest)
    slack = _SLACK.search(worst)
    end = re.search(r"Endpoint: (\S+)", worst)
    return Timing(1e3 / mhz, float(slack[1]) * scale if slack else 0.0, worst.split()[0], end[1] if end else "",
                  stages=tuple((name, cell, round(delay * scale, 4)) for name, cell, delay in _stages(worst)),
                  hold=float(least[1]) * scale if least else 0.0, late=late)


def _scaled(mhz: float, scale: float) -> str:
    """Constraints in the unit of the first library."""
    return constraints(mhz).replace(f"{1e3 / mhz:.4f}", f"{1e3 / mhz / scale:.4f}")


def _stages(text: str) -> list[tuple[str, str, float]]:
    """Instance, cell and delay of the outputs on a path."""
    return [(match[3], match[5], float(match[1])) for line in text.splitlines() if (match := _STAGE.match(line))]


def repair(netlist: Netlist, library: Library, late: dict[str, float]) -> int:
    """Make cells on late paths stronger, the slow half of them; returns how many."""
    changed = 0
    delays = sorted(late.values())
    limit = delays[len(delays) // 2] if delays else 0.0
    for name, delay in late.items():
        instance = netlist.instances.get(name.replace("\\", ""))
        if instance is None or delay < limit or instance.cell not in library.cells:
            continue
        cell = library.cells[instance.cell]
        if cell.gating:
            continue
        better = [each.name for each in forms(library, cell)]
        at = better.index(cell.name) + 1 if cell.name in better else len(better)
        if at < len(better):
            instance.cell = better[at]
            changed += 1
    return changed
