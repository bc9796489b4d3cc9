"""A library: its cells, and what is refused."""
import gzip
import os

import pytest

from circulant.boards.asic.cells.library import Library
from circulant.sim.refusal import Refusal
from tests.boards.asic import tiny


def test_cells_with_their_units(tmp_path):
    library = tiny.read(tmp_path)
    flop, gate = library.cells["DFF_1"], library.cells["GATE_1"]
    assert (library.voltage, library.nanoseconds, library.title, library.gate_area) == (1.0, 1.0, "tiny", 2.0)
    assert (flop.area, flop.leakage, flop.pins["CK"].capacitance, flop.pins["CK"].role) == (5, 4, 1.0, "clock")
    assert flop.pins["Q"].most == 80
    assert flop.pins["CK"].at(0.0) == pytest.approx(10)  # 0.01 pJ.
    assert (flop.sequential.kind, flop.sequential.clock, flop.sequential.data) == ("ff", "CK", "D")
    assert (gate.pin("enable"), gate.pin("clock"), gate.pin("test"), gate.outputs) == ("E", "CK", "T", ["GCK"])
    assert [cell.name for cell in library.buffers] == ["BUF_2", "BUF_8"] == [
        name for name, cell in library.cells.items() if cell.repeats]
    assert library.cells["SDFF_1"].scan and library.cells["SDFF_1"].pin("scan_in") == "SI"


def test_a_packed_file_is_the_same(tmp_path):
    packed = tmp_path / "tiny.lib.gz"
    packed.write_bytes(gzip.compress(tiny.liberty().encode()))
    assert Library.read([packed]).cells == tiny.read(tmp_path).cells


def test_a_file_without_flip_flops_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"^A library must have flip-flops, but tiny\.lib holds 10 cells and none "
                                      r"of them; name the file of sequential cells, too$"):
        tiny.read(tmp_path, flip_flops=False)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"must be readable, but .*none\.lib is not"):
        Library.read([tmp_path / "none.lib"])
    os.mkfifo(tmp_path / "pipe.lib")
    with pytest.raises(Refusal, match=r"must be readable, but .*pipe\.lib is not \(it is a pipe\); name another one$"):
        Library.read([tmp_path / "pipe.lib"])
