"""Files for a full flow: they parse, and name what lies beside them."""
import ast
import json
import re
from itertools import pairwise

import pytest

from circulant.boards.asic.cells.catalogue import OWN, known
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.handover import handover, lef, placement
from circulant.boards.asic.macros import Macro
from circulant.boards.asic.memories import Memory

AREAS = {"logic": 5000.0, "ram_macros": 2600.0}
MEMORIES = [Memory(f"memory_{n}", f"circulant_memory_{n}", words, 8, kind="macro", reads=1, writes=1,
                   macro=f"ram{words}", ports={"rd_clk": [2], "wr_data": [3, 4], "rd_data": [5, 6]})
            for n, words in enumerate((64, 256))]
MACROS = {"ram64": Macro("ram64", 64, 8, 100.0, 1.0), "ram256": Macro("ram256", 256, 8, 2500.0, 1.0)}


def named(name):
    return Library(name, (), 1.0, 1.0, title=name, cells={})


@pytest.mark.parametrize("name", ["sky130hd", "sg13g2"])
def test_librelane_and_siliconcompiler(name, tmp_path):
    handover(tmp_path, named(name), known()[name], "top", mhz=125.0, areas=AREAS, memories=MEMORIES, macros=MACROS)
    config = json.loads((tmp_path / "librelane.json").read_text())
    assert (config["DESIGN_NAME"], config["CLOCK_PORT"], config["CLOCK_PERIOD"]) == ("top", "clk", 8.0)
    assert config["PDK"] == known()[name].pdk and config["MACRO_PLACEMENT_CFG"] == "dir::macro_placement.cfg"
    tree = ast.parse((tmp_path / "siliconcompiler_flow.py").read_text())
    assert any(isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run" for node in ast.walk(tree))


def test_every_line_of_the_constraints_is_a_command_of_sdc(tmp_path):
    handover(tmp_path, named("own"), OWN, "top", mhz=80.0, areas=AREAS, memories=[], macros={})
    lines = (tmp_path / "design.sdc").read_text().splitlines()
    assert lines[0] == "create_clock -name clk -period 12.5000 [get_ports clk]"
    assert all(re.fullmatch(r"(create_clock|set_input_delay|set_output_delay) .*\[(get_ports|all_outputs).*\]", line)
               for line in lines)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["design.sdc"]


def test_macros_do_not_overlap_and_the_largest_is_first():
    found = placement(7600.0, MEMORIES, MACROS)
    assert [name for name, _, _ in found] == ["circulant_memory_1", "circulant_memory_0"]
    assert found[1][1] >= 50.0  # Beside the first, which is 50 µm wide.


def test_macros_fill_rows_of_the_core():
    many = [Memory("memory_0", f"circulant_memory_{n}", 256, 8, kind="macro", reads=1, writes=1,
                   macro="ram256") for n in range(5)]
    found = placement(7600.0, many, MACROS)  # A side of 104 µm has room for two macros of 50 µm.
    assert [(x, y) for _, x, y in found] == [(0, 0), (50, 0), (0, 50), (50, 50), (0, 100)]


def test_stubs_of_macros_have_their_area_and_pins_that_do_not_touch():
    text = lef(MEMORIES * 2, MACROS, known()["sky130hd"])
    assert re.findall(r"MACRO (\w+)", text) == re.findall(r"END (memory_\d)", text) == ["memory_0", "memory_1"]
    assert "SIZE 50.000 BY 50.000 ;" in text and "LAYER met3 ;" in text
    second = text[text.index("MACRO memory_1"):text.index("  OBS", text.index("MACRO memory_1"))]
    pins = re.findall(r"PIN (\S+)\n    DIRECTION (\w+) ;\n    USE (\w+) ;.*?RECT (\S+) \S+ (\S+)", second, re.DOTALL)
    assert [each[:3] for each in pins] == [
        ("rd_clk", "INPUT", "CLOCK"), ("wr_data[0]", "INPUT", "SIGNAL"), ("wr_data[1]", "INPUT", "SIGNAL"),
        ("rd_data[0]", "OUTPUT", "SIGNAL"), ("rd_data[1]", "OUTPUT", "SIGNAL"), ("VPWR", "INOUT", "POWER"),
        ("VGND", "INOUT", "GROUND")]
    sides = sorted((float(left), float(right)) for *_, left, right in pins)
    assert all(a[1] < b[0] for a, b in pairwise(sides)) and sides[-1][1] < 50
