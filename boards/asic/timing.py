"""Static timing by OpenSTA: the clock that a netlist reaches, and its critical path. Nothing is estimated where it is
missing."""
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from circulant.boards.tools import run
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Stage", "Timing", "analysed", "constraints", "found"]

_STAGE = re.compile(r"^\s*(-?\d+\.\d+)\s+-?\d+\.\d+\s+[v^]\s+(\S+)/\S+ \((\S+)\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Stage:
    """An output on a path: its instance and cell, its delay in ns."""

    name: str
    cell: str
    delay: float


@dataclass(frozen=True)
class Timing:
    """The result of an analysis, in ns.

    Parameters:
        period: that was asked for.
        slack: of the slowest path; negative when the clock is missed.
        start, end: its registers or ports.
        stages: its cells.
        hold: slack of the fastest path, with an ideal clock.
    """

    period: float
    slack: float
    start: str
    end: str
    stages: tuple[Stage, ...]
    hold: float

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


def constraints(mhz: float, scale: float = 1.0) -> str:
    """The SDC of a design, in units of ``scale`` ns: one clock, ports without a delay of their own."""
    return (f"create_clock -name clk -period {1e3 / mhz / scale:.4f} [get_ports clk]\n"
            "set_input_delay 0 -clock clk [get_ports {rst s_axis_tdata* s_axis_tvalid s_axis_tlast m_axis_tready}]\n"
            "set_output_delay 0 -clock clk [all_outputs]\n")


def analysed(netlist: Path, top: str, libraries: Sequence[str], mhz: float, *, scale: float,
             work: Path) -> Timing:
    """Analyse a netlist.

    Parameters:
        libraries: liberty files, as seen from the folder ``work``.
        mhz: clock.
        scale: ns of the library's unit of time.

    Raises:
        Refusal: when OpenSTA is missing.
        ToolError: when it fails, or finds no path between registers.
    """
    (work / "timing.tcl").write_text("\n".join([
        *(f"read_liberty {name}" for name in libraries), f"read_verilog {{{netlist.resolve()}}}", f"link_design {top}",
        *constraints(mhz, scale).splitlines(),
        *(f"report_checks -path_delay {delay} -format full -digits 4" for delay in ("max", "min")), "exit", ""]))
    said = run([found(), "-no_splash", "-exit", "timing.tcl"], folder=work, step=f"the timing of {netlist}")
    (work / "timing.rpt").write_text(said)
    if wrong := re.search(r"^Error: .*", said, re.MULTILINE):
        raise ToolError(f"OpenSTA must read {netlist}, but it says: {wrong[0]}")
    paths = said.split("Startpoint: ")[1:]
    slacks = [float(slack) * scale for slack in re.findall(r"(-?\d+\.\d+)\s+slack \((?:MET|VIOLATED)\)", said)]
    if not len(paths) == len(slacks) == 2:
        raise ToolError(f"OpenSTA must find a path between registers in {netlist}, but it found none; see "
                        f"{work / 'timing.rpt'}")
    end = re.search(r"Endpoint: (\S+)", paths[0])
    return Timing(1e3 / mhz, slacks[0], paths[0].split()[0], end[1] if end else "", hold=slacks[1], stages=tuple(
        Stage(name.replace("\\", ""), cell, round(float(delay) * scale, 5))
        for delay, name, cell in _STAGE.findall(paths[0])))
