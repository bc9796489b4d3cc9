"""OpenSTA as a process: what it finds on a netlist of three cells, and what it says when it cannot read one."""
import shutil

import pytest

from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.timing.analysis import Analysis, found
from circulant.sim.refusal import Refusal, ToolError
from tests.boards.asic import tiny

TIMED = pytest.mark.skipif(shutil.which("sta") is None, reason="OpenSTA is not installed (Debian: opensta)")


def netlist(folder):
    """A flip-flop whose inverse is the output, in a file beside its library, which has that flip-flop twice."""
    text = tiny.liberty()
    flop = text[text.index("  cell (DFF_1) {"):text.index("  cell (SDFF_1) {")]
    (folder / "tiny.lib").write_text(text.removesuffix("}\n") + flop.replace("DFF_1", "DFF_4") + "}\n")
    Netlist("top", {"clk": ("input", [2]), "s_axis_tdata": ("input", [3]), "m_axis_tready": ("input", [7]),
                    "rst": ("input", [8]), "o": ("output", [5])}, {
        "a.b_reg[3]": Instance("DFF_1", {"CK": [2], "D": [3], "Q": [4]}),
        "u": Instance("INV_1", {"A": [4], "Y": [5]})}, {}).write(folder / "netlist.v")
    return folder / "netlist.v"


def test_a_missing_program_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=r"^Timing needs OpenSTA, but PATH has no sta; install it \(on Debian: apt"):
        found()


@TIMED
def test_paths_loads_and_slacks(tmp_path):
    with Analysis(netlist(tmp_path), "top", ["tiny.lib"], 20000.0, scale=1.0) as analysis:
        reached = analysis.timing(8)
        assert (reached.start, reached.end) == ("a.b_reg[3]", "o")
        assert reached.slack < 0 and len(reached.late) == 1 and reached.late[0].slack == reached.slack
        assert reached.missing == pytest.approx(-sum(path.slack for path in reached.late))
        assert [stage.name for stage in reached.stages][1:] == ["a.b_reg[3]", "u"]
        stage = next(stage for stage in reached.late[0].stages if stage.name == "a.b_reg[3]" and stage.load)
        assert stage.load == pytest.approx(0.001) and stage.delay > 0
        assert 1e3 / reached.mhz == pytest.approx(0.05 - reached.slack)
        assert reached.hold > 0
        # It follows an exchange, also of a cell whose name has brackets.
        analysis.resize({"u": "INV_4", "a.b_reg[3]": "DFF_4"})
        again = analysis.timing(8)
        assert {stage.name: stage.cell for stage in again.stages} == {"u": "INV_4", "a.b_reg[3]": "DFF_4"}


@TIMED
def test_what_it_cannot_read_is_said(tmp_path):
    file = netlist(tmp_path)
    with pytest.raises(ToolError, match=r"^OpenSTA must read .*netlist\.v, but it says: "):
        Analysis(file, "other", ["missing.lib"], 100.0, scale=1.0)
