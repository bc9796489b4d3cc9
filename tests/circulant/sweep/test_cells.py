"""Standard cells as columns of a sweep, in a small library."""
import importlib.util
import shutil
from dataclasses import replace

import pytest

from circulant.boards.asic.cells.catalogue import OWN
from circulant.boards.asic.flow import asic
from circulant.boards.asic.macros import model
from circulant.hw import generate
from circulant.sim.cosim import SimulationError
from circulant.sim.refusal import Refusal
from circulant.sweep import cells
from circulant.sweep.grid import read
from circulant.sweep.work import keyed
from tests.boards.asic import tiny

TOOLS = pytest.mark.skipif(importlib.util.find_spec("pyosys") is None or shutil.which("sta") is None,
                           reason="needs pyosys (circulant[synthesis]) and OpenSTA (Debian: opensta)")


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Every library is the small one, at a clock that it reaches, or not."""
    found = tiny.read(tmp_path)

    def at(mhz):
        monkeypatch.setattr(cells, "library", lambda names: (found, replace(OWN, mhz=mhz)))
        return found

    return at


@pytest.fixture
def design():
    return generate(tiny.network(), multipliers=2, levels=6, objective="throughput")


@TOOLS
def test_the_columns_are_what_the_command_finds(library, design, tmp_path):
    found = library(50.0)
    folder, vectors = tiny.design(tmp_path)
    made = asic(folder, tmp_path / "out", found, OWN, mhz=50.0, vectors=vectors, samples=cells.SAMPLES,
                macros=model(found.gate_area, found.voltage)).as_json()
    columns = cells.figures(design, vectors, "tiny")
    assert columns["cells_mm2"] == pytest.approx(sum(made["area_um2"].values()) / 1e6)
    assert 0 < columns["logic_mm2"] < columns["cells_mm2"] and columns["cells_mhz"] == made["fmax_mhz"] > 50
    assert columns["inference_nj"] == made["energy_nj_total"] > 0
    assert columns["rest_uw"] == pytest.approx(made["idle_pj_per_cycle"] * 50 + made["leakage_uw"])


@TOOLS
def test_a_missed_clock_has_figures_too(library, design, tmp_path):
    library(9000.0)
    columns = cells.figures(design, tiny.design(tmp_path)[1], "tiny")
    assert 50 < columns["cells_mhz"] < 9000 and columns["inference_nj"] > 0


@TOOLS
def test_a_netlist_that_differs_fails_the_point(library, design, tmp_path, monkeypatch):
    library(50.0)
    vectors = tiny.design(tmp_path)[1]
    wrong = replace(vectors, outputs=vectors.outputs + 1)
    with pytest.raises(SimulationError, match=r"8 of 8 words of the netlist in SkyWater .* differ from the golden"):
        cells.figures(design, wrong, "sky130hd")


def test_figures_of_another_library_are_others(library, sweep_file, monkeypatch):
    point, = read(sweep_file("block_size = [4]")).points
    hardware = replace(point.experiment.hardware, library="sky130hd")
    mapped = replace(point, experiment=replace(point.experiment, hardware=hardware))
    trained = {"model": "0" * 64}
    library(50.0)
    first = keyed(mapped, trained, "plan")
    assert first != keyed(point, trained, "plan")
    monkeypatch.setattr(cells, "METHOD", cells.METHOD + 1)
    assert keyed(mapped, trained, "plan") != first


def test_a_goal_in_cells_needs_a_library(sweep_file):
    head = '[search]\nobjectives = ["score", "cells_mm2"]'
    with pytest.raises(Refusal, match=r"mm² of cells are known where there is a library, but the experiment of "
                                      r"'digits-gru' has none; give set = \[\"hardware.library=NAME\"\]"):
        read(sweep_file("block_size = [1, 4]", head))
