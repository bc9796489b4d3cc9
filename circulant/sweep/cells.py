"""Standard cells of a point of a sweep: area, clock and energy of its design, as `circulant asic` finds them."""
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from circulant.boards.asic.cells.catalogue import known, library
from circulant.boards.asic.flow import FILE, KIND, METHOD, VERSION, asic
from circulant.boards.asic.macros import model
from circulant.boards.asic.source import cells
from circulant.sim import artifact
from circulant.sim.cosim import SimulationError
from circulant.sim.files import temporaries
from circulant.sim.refusal import TimingMissed
from circulant.sim.vectors import Vectors
from circulant.sweep.rows import Row

if TYPE_CHECKING:
    from circulant.hw.design import Design

__all__ = ["figures", "method"]

SAMPLES = 2
"""Sequences of the test set whose switching gives the energy."""


def method(name: str) -> str:
    """All that figures of a design in a library depend on, beside the design: the method, the files, the samples."""
    return f"{METHOD} {SAMPLES} {cells(library((name,))[0])}"


def figures(design: "Design", vectors: Vectors, name: str) -> Row:
    """The columns that a library adds to a point: ``cells_mm2`` with memories, ``logic_mm2``, ``cells_mhz`` before
    placement, also where it misses the clock that is asked for, ``inference_nj`` and ``rest_uw``, all from a netlist
    that equals the golden model.

    Raises:
        Refusal: when the library or a tool is missing.
        SimulationError: when the netlist differs from the golden model.
        ToolError: when a tool fails.
    """
    found, entry = library((name,))
    with temporaries.folder() as folder:
        path = design.write(folder / "design")
        with suppress(TimingMissed):
            asic(path, out := Path(folder, "cells"), found, entry, mhz=entry.mhz, vectors=vectors, samples=SAMPLES,
                 macros=model(found.gate_area, found.voltage))
        made = artifact.read_json(out / FILE, KIND, VERSION)
    if wrong := made["activity"]["mismatches"]:
        raise SimulationError(f"{wrong} of {made['activity']['words']} words of the netlist in {known()[name].title} "
                              "differ from the golden model")
    return Row(cells_mm2=sum(made["area_um2"].values()) / 1e6, logic_mm2=made["logic_um2"] / 1e6,
               cells_mhz=made["fmax_mhz"], inference_nj=made["energy_nj_total"],
               rest_uw=made["idle_pj_per_cycle"] * entry.mhz + made["leakage_uw"])
