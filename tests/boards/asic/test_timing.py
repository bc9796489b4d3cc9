"""OpenSTA as a process: what it finds on a netlist of two cells, and what it says when it cannot read one."""
import shutil

import pytest

from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.timing import analysed, found
from circulant.sim.refusal import Refusal, ToolError
from tests.boards.asic import tiny

TIMED = pytest.mark.skipif(shutil.which("sta") is None, reason="OpenSTA is not installed (Debian: opensta)")


@pytest.fixture
def netlist(tmp_path):
    """A flip-flop whose inverse is the output, and what writes another one, in a file beside the library."""
    (tmp_path / "tiny.lib").write_text(tiny.liberty())
    Netlist("top", {"clk": ("input", [2]), "s_axis_tdata": ("input", [3]), "m_axis_tready": ("input", [7]),
                    "rst": ("input", [8]), "o": ("output", [5])}, {
        "a.b_reg[3]": Instance("DFF_1", {"CK": [2], "D": [3], "Q": [4]}),
        "u": Instance("INV_1", {"A": [4], "Y": [5]})}, {}).write(tmp_path / "netlist.v")
    return tmp_path / "netlist.v"


def test_a_missing_program_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=r"^Timing needs OpenSTA, but PATH has no sta; install it \(on Debian: apt"):
        found()


@TIMED
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_paths_and_slacks_in_the_unit_of_the_library(netlist, tmp_path, scale):
    file = tmp_path / "tiny.lib"
    file.write_text(file.read_text().replace('time_unit : 1ns', f'time_unit : {"1ns" if scale == 1 else "1ps"}'))
    reached = analysed(netlist, "top", ["tiny.lib"], 20000.0 / scale, scale=scale, work=tmp_path)
    assert (reached.start, reached.end) == ("a.b_reg[3]", "o") and reached.slack < 0
    assert [(stage.name, stage.cell) for stage in reached.stages][1:] == [("a.b_reg[3]", "DFF_1"), ("u", "INV_1")]
    assert 1e3 / reached.mhz == pytest.approx(0.05 * scale - reached.slack)
    assert sum(stage.delay for stage in reached.stages) == pytest.approx(1e3 / reached.mhz, abs=1e-5 + 1e-3 * scale)
    assert 0 < reached.hold < 0.1 * scale + 1e3 / reached.mhz


@TIMED
def test_what_it_cannot_read_is_said(netlist, tmp_path):
    with pytest.raises(ToolError, match=r"^OpenSTA must read .*netlist\.v, but it says: "):
        analysed(netlist, "other", ["missing.lib"], 100.0, scale=1.0, work=tmp_path)


@TIMED
def test_a_netlist_without_a_path_is_an_error(netlist, tmp_path):
    netlist.write_text("module top(input clk, output o); HIGH u (.Y(o)); endmodule\n")
    with pytest.raises(ToolError, match=r"^OpenSTA must find a path between registers in .*netlist\.v, but it found"):
        analysed(netlist, "top", ["tiny.lib"], 100.0, scale=1.0, work=tmp_path)
