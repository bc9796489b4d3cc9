"""Projects for Vivado and Quartus: a design behind its UART with constraints and a script, checked by Yosys and by
Verilator's lint. Nothing here places or routes them: the vendors' tools do, on the user's machine."""
import importlib.resources as files
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path

from circulant.boards.board import require_divisor
from circulant.boards.build import require_family, used
from circulant.boards.device import NAMES, device
from circulant.boards.flow import DESIGN, Show, cells_of, silent, yosys
from circulant.boards.link.protocol import VERSION
from circulant.boards.simulated import linked_verilog
from circulant.boards.synthesis import FAMILIES, KEPT, manifest
from circulant.sim import artifact, child
from circulant.sim.cosim import toolchain
from circulant.sim.files.writing import replaced_folder
from circulant.sim.refusal import ToolError

__all__ = ["FILE", "Part", "Project", "parts", "project"]

KIND = "circulant-project"
FILE = "project.json"
LINT_SECONDS = 1800.0

TOP = """\
// The design behind its UART: bytes at {baud:,} baud, as circulant.boards.host speaks them.
module top (
  input clk,
  input rx,
  output tx
);
  // The reset lasts four cycles from configuration on.
  reg [3:0] starting;
  initial starting = 4'b1111;
  always @(posedge clk) starting <= {{starting[2:0], 1'b0}};
  linked linked (.clk(clk), .rst(starting[3]), .rx(rx), .tx(tx));
endmodule
"""

VIVADO = """\
# vivado -mode batch -source build.tcl
create_project -in_memory -part {part}
read_verilog {{top.v linked.v {design}}}
read_xdc top.xdc
synth_design -top top -part {part}
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file utilization.txt
report_timing_summary -file timing.txt
write_checkpoint -force top.dcp
set slack [get_property SLACK [get_timing_paths -max_paths 1 -setup]]
if {{$slack < 0}} {{
  puts "ERROR: the clock of {mhz:g} MHz is missed by [expr -$slack] ns, see timing.txt"
  exit 4
}}
{bits}
"""

QUARTUS = """\
# quartus_sh -t build.tcl
load_package flow
project_open top
execute_flow -compile
project_close
"""

SETTINGS = """\
set_global_assignment -name FAMILY "Cyclone V"
set_global_assignment -name DEVICE {part}
set_global_assignment -name TOP_LEVEL_ENTITY top
set_global_assignment -name VERILOG_FILE top.v
set_global_assignment -name VERILOG_FILE linked.v
set_global_assignment -name VERILOG_FILE {design}
set_global_assignment -name SDC_FILE top.sdc
set_global_assignment -name PROJECT_OUTPUT_DIRECTORY output
"""


@dataclass(frozen=True)
class Part:
    """A device for a vendor's tool.

    Parameters:
        title: for people.
        tool: "vivado" or "quartus".
        part: the tool's name of the device.
        device, profile, synthesis: names of the device, of what ``hardware.family`` must be, of the Yosys family.
        mhz: of the oscillator.
        baud: rate of the UART.
        standard, pins: of a board: levels of its pins, and where the ports lie.
    """

    name: str
    title: str
    tool: str
    part: str
    device: str
    profile: str
    synthesis: str
    mhz: float
    baud: int
    standard: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)

    def texts(self, mhz: float) -> dict[str, str]:
        """The script, the constraints and the settings of its tool, by file name."""
        period = f"{1000 / mhz:.3f}"
        if self.tool == "vivado":
            bits = "write_bitstream -force top.bit" if self.pins else "# Pins are not placed: no bitstream is written."
            return {"build.tcl": VIVADO.format(part=self.part, design=DESIGN, mhz=mhz, bits=bits),
                    "top.xdc": f"create_clock -name clk -period {period} [get_ports clk]\n" + "".join(
                        f"set_property -dict {{PACKAGE_PIN {pin} IOSTANDARD {self.standard}}} [get_ports {port}]\n"
                        for port, pin in self.pins.items())}
        return {"build.tcl": QUARTUS, "top.qpf": 'PROJECT_REVISION = "top"\n',
                "top.qsf": SETTINGS.format(part=self.part, design=DESIGN),
                "top.sdc": f"create_clock -name clk -period {period} [get_ports clk]\nderive_clock_uncertainty\n"}

    @property
    def call(self) -> str:
        """The command that builds it."""
        return "vivado -mode batch -source build.tcl" if self.tool == "vivado" else "quartus_sh -t build.tcl"


@dataclass(frozen=True)
class Project:
    """A project that was written and checked.

    Parameters:
        part: its name.
        mhz: the clock that is constrained.
        used: what Yosys makes of it, by resource.
        cells: by type.
    """

    part: str
    network: str
    design: str
    mhz: float
    baud: int
    used: Mapping[str, float]
    cells: Mapping[str, int]

    @property
    def lines(self) -> list[str]:
        """Figures, in words."""
        chosen = parts()[self.part]
        held = device(chosen.device)
        uses = ", ".join(f"{self.used[name]:,g} of {getattr(held, name):,} {NAMES[name]}" for name in NAMES)
        return [f"{self.part}: {uses}, as Yosys counts; lint found no error",
                f"neither placed nor routed: run {chosen.call} in that folder, which asks for {self.mhz:g} MHz"]


@cache
def parts() -> dict[str, Part]:
    """All known parts by name, as parts.toml lists them."""
    text = files.files("circulant.boards").joinpath("parts.toml").read_text("utf-8")
    names = {each.name for each in fields(Part)}
    return {name: Part(name, **{key: value for key, value in entry.items() if key in names})
            for name, entry in tomllib.loads(text).items()}


def project(folder: str | Path, name: str, out: str | Path, *, mhz: float = 0.0, show: Show = silent) -> Project:
    """The project of the design in ``folder`` for a part, in the folder ``out``.

    Parameters:
        mhz: clock; 0 for the part's.

    Raises:
        Refusal: when the design is for another family or exceeds the device, or Yosys or Verilator is missing.
        ToolError: when one of them finds an error.
    """
    chosen, described = parts()[name], manifest(folder)
    mhz = mhz or chosen.mhz
    require_family(described, chosen, folder)
    divisor = require_divisor(name, chosen.baud, mhz)
    with replaced_folder(Path(out)) as work:
        texts = {**chosen.texts(mhz), "top.v": TOP.format(baud=chosen.baud),
                 "linked.v": linked_verilog(folder, divisor=divisor)}
        for each, text in texts.items():
            (work / each).write_text(text, "utf-8")
        for each in (*described["verilog"], *described["images"]):
            shutil.copy(Path(folder) / each, work / (DESIGN if each in described["verilog"] else each))
        show("lint", 0, 0)
        lint(work)
        show("synthesis", 0, 0)
        yosys(work, script(chosen), f"the synthesis for {name}")
        cells = cells_of(work)
        made = Project(name, described["network"], described["hash"], mhz=mhz, baud=chosen.baud,
                       used=used(chosen, cells), cells=cells)
        for each in ("yosys.ys", "yosys.log", "cells.json"):
            (work / each).unlink(missing_ok=True)
        artifact.write_json(work / FILE, KIND, VERSION, asdict(made))
    return made


def script(part: Part) -> str:
    """Commands of Yosys that check a project."""
    return "\n".join([
        f"read_verilog -defer {DESIGN}", "read_verilog linked.v top.v", "hierarchy -check -top top", "proc", "flatten",
        *KEPT, "opt_expr", "opt_clean", f"{FAMILIES[part.synthesis].command} -top top", "opt_clean", "check -assert",
        "tee -q -o cells.json stat -json", ""])


def lint(work: Path) -> None:
    """
    Raises:
        Refusal: when there is no Verilator.
        ToolError: when it finds an error, or more than is meant so.
    """
    tools = toolchain.find()
    rules = files.files("circulant.hw.emit").joinpath("lint.vlt").read_text("utf-8")
    (work / "lint.vlt").write_text(rules, "utf-8")
    program = str(tools.root / "bin" / "verilator") if tools.root else str(shutil.which("verilator"))
    done = child.run([program, "--lint-only", "-Wall", "--top-module", "top", "lint.vlt", "top.v",
                      "linked.v", DESIGN], folder=work, environment=tools.environment(), step="the lint of a project",
                     seconds=LINT_SECONDS)
    (work / "lint.vlt").unlink()
    if done.returncode:
        found = [line for line in done.stderr.splitlines() if line.startswith("%")]
        raise ToolError(f"Verilator finds an error in a project: {' '.join(found[:2]) or done.stderr.strip()[-200:]}")
