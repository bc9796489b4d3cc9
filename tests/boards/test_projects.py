"""Projects for vendors' tools: what they hold, and that Yosys and lint take them."""
import json
import re

import pytest

from circulant.boards import projects
from circulant.boards.projects import Project, parts, project
from circulant.hw import generate
from circulant.sim.refusal import Refusal, ToolError
from tests.hw import golden


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    made = generate(golden.network(2, 4, 2, outputs=2, k_out=1), multipliers=12, family="xilinx")
    return made.write(tmp_path_factory.mktemp("project") / "design")


@pytest.fixture
def unchecked(monkeypatch):
    """Without tools: cells as a test says."""
    cells = {"LUT6": 100, "DSP48E1": 4}
    monkeypatch.setattr(projects, "lint", lambda work: None)
    monkeypatch.setattr(projects, "yosys", lambda work, commands, name: (work / "cells.json").write_text(
        json.dumps({"design": {"num_cells_by_type": cells}})))
    return cells


def test_a_project_for_vivado_is_constrained_and_says_that_nobody_routed_it(design, tmp_path, unchecked):
    made = project(design, "arty-a7-100t", tmp_path / "out")
    out = tmp_path / "out"
    script, constraints = (out / "build.tcl").read_text(), (out / "top.xdc").read_text()
    assert "synth_design -top top -part xc7a100tcsg324-1" in script and "write_bitstream" in script
    assert constraints.splitlines() == [
        "create_clock -name clk -period 10.000 [get_ports clk]",
        "set_property -dict {PACKAGE_PIN E3 IOSTANDARD LVCMOS33} [get_ports clk]",
        "set_property -dict {PACKAGE_PIN A9 IOSTANDARD LVCMOS33} [get_ports rx]",
        "set_property -dict {PACKAGE_PIN D10 IOSTANDARD LVCMOS33} [get_ports tx]"]
    named = re.search(r"read_verilog {(.*)}", script)[1].split()
    assert all((out / name).exists() for name in named) and list(out.glob("*.hex"))
    assert made.lines[1].startswith("neither placed nor routed: run vivado -mode batch -source build.tcl")
    assert (made.used["dsps"], made.used["luts"]) == (4, 100)


def test_a_part_without_a_board_has_no_bitstream(design, tmp_path, unchecked):
    project(design, "xcku060", tmp_path / "out", mhz=150)
    assert "write_bitstream" not in (tmp_path / "out" / "build.tcl").read_text()
    assert (tmp_path / "out" / "top.xdc").read_text() == "create_clock -name clk -period 6.667 [get_ports clk]\n"


def test_a_project_for_quartus_names_every_file(tmp_path, unchecked):
    design = generate(golden.network(2, 4, 2), multipliers=12, family="intel",
                      objective="throughput").write(tmp_path / "design")
    project(design, "cyclone-v-a9", tmp_path / "out")
    named = re.findall(r"(?:VERILOG|SDC)_FILE (\S+)", (tmp_path / "out" / "top.qsf").read_text())
    assert sorted(named) == ["design.v", "linked.v", "top.sdc", "top.v"]
    assert all((tmp_path / "out" / name).exists() for name in named)


def test_a_design_that_exceeds_a_part_leaves_nothing(design, tmp_path, unchecked):
    unchecked["LUT6"] = 64_000
    with pytest.raises(Refusal, match=r"^A design must fit Arty A7 with an XC7A100T, but Yosys makes 64,000 of 63,400 "
                                      r"look-up tables, 600 too many of it"):
        project(design, "arty-a7-100t", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_clock_must_suit_the_uart(design, tmp_path):
    with pytest.raises(Refusal, match=r"^The clock must be a multiple of the 1,000,000 baud of arty-a7-100t, within "
                                      r"2%, not 3 MHz"):
        project(design, "arty-a7-100t", tmp_path / "out", mhz=3)


def test_lint_takes_a_whole_project_and_finds_a_wrong_one(design, tmp_path, monkeypatch):
    monkeypatch.setattr(projects, "yosys", lambda work, commands, name: (work / "cells.json").write_text(
        json.dumps({"design": {"num_cells_by_type": {}}})))
    project(design, "arty-a7-100t", tmp_path / "out")
    monkeypatch.setattr(projects, "TOP", projects.TOP.replace(".rx(rx)", ".rx(none)"))
    with pytest.raises(ToolError, match=r"^Verilator finds an error in a project: .*IMPLICIT: top.v"):
        project(design, "arty-a7-100t", tmp_path / "wrong")


@pytest.mark.soak
@pytest.mark.parametrize("name", parts())
def test_yosys_takes_the_project_of_each_part(name, tmp_path):
    design = generate(golden.network(2, 4, 2), multipliers=12, family=parts()[name].profile,
                      objective="throughput").write(tmp_path / "design")
    made = project(design, name, tmp_path / "out")
    assert isinstance(made, Project) and made.used["dsps"] > 0 and made.used["flip_flops"] > 100
