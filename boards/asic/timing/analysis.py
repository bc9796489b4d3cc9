"""Static timing by OpenSTA: the clock that a netlist reaches, and its critical path. Nothing is estimated where it is
missing."""
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from circulant.sim import child
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Analysis", "Late", "Stage", "Timing", "constraints", "found"]

_STAGE = re.compile(r"^\s*(?:(\d+\.\d+)\s+)?(-?\d+\.\d+)\s+(-?\d+\.\d+)\s+[v^]\s+(\S+)/(\S+) \((\S+)\)\s*$")
_SLACK = re.compile(r"(-?\d+\.\d+)\s+slack \((?:MET|VIOLATED)\)")


@dataclass(frozen=True)
class Stage:
    """An output on a path: its instance and cell, its load in the library's unit of capacitance, its delay in ns."""

    name: str
    cell: str
    load: float
    delay: float


@dataclass(frozen=True)
class Late:
    """A path with its slack in ns, and the outputs on it."""

    slack: float
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Timing:
    """The result of an analysis, in ns.

    Parameters:
        period: that was asked for.
        slack: of the slowest path; negative when the clock is missed.
        start, end: its registers or ports.
        stages: its cells.
        hold: slack of the fastest path, with an ideal clock.
        late: the slowest path to each end that misses the clock, the slowest first.
    """

    period: float
    slack: float
    start: str
    end: str
    stages: tuple[Stage, ...]
    hold: float
    late: tuple[Late, ...] = field(default=(), repr=False)

    @property
    def mhz(self) -> float:
        """The clock that it reaches."""
        return 1e3 / max(self.period - self.slack, 1e-6)

    @property
    def missing(self) -> float:
        """Time that all late ends together lack, in ns."""
        return -sum(path.slack for path in self.late)


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
            "set_input_delay 0 -clock clk [get_ports {rst s_axis_tdata* s_axis_tvalid s_axis_tlast m_axis_tready}]\n"
            "set_output_delay 0 -clock clk [all_outputs]\n")


class Analysis:
    """An OpenSTA that has read a netlist, and follows changes of its cells.

    Parameters:
        netlist: Verilog; the liberty files lie beside it.
        scale: ns of the library's unit of time.
        mhz: clock.

    Raises:
        Refusal: when OpenSTA is missing.
        ToolError: when it fails.
    """

    def __init__(self, netlist: Path, top: str, libraries: Sequence[str], mhz: float, *, scale: float) -> None:
        self._netlist, self._work, self._scale, self._mhz = netlist, netlist.parent, scale, mhz
        program = found()
        (self._work / "timing.sdc").write_text(_scaled(mhz, scale))
        self._child = child.started([program, "-no_splash"], step=f"the timing of {netlist}", folder=self._work,
                                    stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._process = self._child.__enter__()
        try:
            self._ask(*(f"read_liberty {name}" for name in libraries), f"read_verilog {netlist.name}",
                      f"link_design {top}", "source timing.sdc")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Analysis":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._child.__exit__(None, None, None)

    def _ask(self, *commands: str) -> None:
        """Have commands carried out.

        Raises:
            ToolError: when one of them fails.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        braced = "; ".join(commands)
        with suppress(BrokenPipeError):
            # What is written is echoed, so no mark stands in it as it comes back.
            self._process.stdin.write(f"if {{[catch {{ {braced} }} said]}} {{puts [join [list FAI LED] {{}}]=$said}}; "
                                      "puts [join {DO NE} {}]; flush stdout\n")
            self._process.stdin.flush()
        said: list[str] = []
        for line in self._process.stdout:
            if line.rstrip().endswith("DONE"):
                break
            said.append(line.rstrip())
        else:
            said.append("FAILED=it ended")
        if wrong := [line for line in said if "FAILED" in line or line.startswith("Error")]:
            raise ToolError(f"OpenSTA must read {self._netlist}, but it says: "
                            f"{wrong[0].partition('FAILED=')[2] or wrong[0]}")

    def resize(self, cells: Mapping[str, str]) -> None:
        """Exchange the cells of instances.

        Raises:
            ToolError: when OpenSTA does not know one.
        """
        self._ask(*(f"replace_cell [get_cells {{{_pattern(name)}}}] {cell}" for name, cell in cells.items()))

    def timing(self, ends: int = 1, *, hold: bool = True) -> Timing:
        """Analyse the netlist as it is now.

        Parameters:
            ends: late ends of paths to look at, at the most.
            hold: look at the fastest path, too.

        Raises:
            ToolError: when there is no path between registers.
        """
        commands = [f"report_checks -path_delay max -format full -fields {{capacitance}} -digits 4 -group_count {ends} "
                    "> slowest.rpt"]
        if hold:
            commands.append("report_checks -path_delay min -format full -digits 4 > fastest.rpt")
        self._ask(*commands)
        every = (self._work / "slowest.rpt").read_text().split("Startpoint: ")[1:]
        if not every:
            raise ToolError(f"OpenSTA must find a path between registers in {self._netlist}, but it found none; see "
                            f"{self._work / 'slowest.rpt'}")
        least = _SLACK.search((self._work / "fastest.rpt").read_text()) if hold else None
        paths = [self._path(text) for text in every]
        end = re.search(r"Endpoint: (\S+)", every[0])
        return Timing(1e3 / self._mhz, paths[0].slack, every[0].split()[0], end[1] if end else "",
                      stages=paths[0].stages, hold=float(least[1]) * self._scale if least else 0.0,
                      late=tuple(path for path in paths if path.slack < 0))

    def _path(self, text: str) -> Late:
        slack = _SLACK.search(text)
        stages = [match for line in text.splitlines() if (match := _STAGE.match(line))]
        return Late(float(slack[1]) * self._scale if slack else 0.0, tuple(
            Stage(match[4].replace("\\", ""), match[6], float(match[1] or 0), round(float(match[2]) * self._scale, 5))
            for match in stages))


def _pattern(name: str) -> str:
    """A pattern of Tcl that matches a name alone."""
    return re.sub(r"([\[\]*?\\])", r"\\\1", name)


def _scaled(mhz: float, scale: float) -> str:
    """Constraints in the unit of the first library."""
    return constraints(mhz).replace(f"{1e3 / mhz:.4f}", f"{1e3 / mhz / scale:.4f}")
