"""Designs as standard cells of three libraries: area by kind, clock, energy from the switching of real sequences.

The digits run with trained weights; the others with random ones, drawn as `benchmarks.designs` does, on random inputs
of the spread that their formats were fitted to: area and clock hardly depend on them, and energy of random data is
above that of real ones.

What was measured is kept in a folder, under a hash of the circuit, its library, the method and what is played, so that
a call goes on where the last one ended; figures of the repository with the same key are taken, too.
"""
import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.designs import DESIGNS, network
from circulant.boards.asic.cells.catalogue import known, library
from circulant.boards.asic.flow import FILE, KIND, VERSION, asic, key, settings
from circulant.boards.asic.macros import model
from circulant.hw import generate
from circulant.hw.planner import each_step
from circulant.sim import artifact, design
from circulant.sim.document import Document
from circulant.sim.files.writing import atomic_text
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import matrices
from circulant.sim.refusal import TimingMissed
from circulant.sim.vectors import Vectors

__all__ = ["NETWORKS", "measure", "of_design"]

NETWORKS = ("digits-gru", "fsdd-gru", "lenet5")
"""Names of `benchmarks.designs`."""

LEVELS = {"sky130hd": 9, "sg13g2": 6, "asap7": 6}
"""Levels of logic between two registers: as many as the clock that is asked for leaves time for, as registers are
large."""

MEASURED = Path(__file__).parents[1] / "docs/measured/asic.json"
"""Figures that are part of the repository, each with the key of what was measured."""

MULTIPLIERS = {"lenet5": 342}
"""Budgets of multipliers other than 64."""


def measure(names: Sequence[str], libraries: Sequence[str], *, runs: Path, kept: Path, samples: int = 2,
            levels: int | None = None, note: Callable[[str], None] = lambda text: None) -> Document:
    """Figures of designs in libraries.

    Parameters:
        runs: folder of run folders, in which a network of the name is looked for first.
        kept: folder of what was measured before, and of the netlists.
        samples: sequences that each netlist plays; 0 computes no energy.
        levels: of logic between two registers; `LEVELS` where None is given.
        note: told what is next.
    """
    designs: dict[str, dict[str, Any]] = {}
    for name in names:
        made, vectors, source = _network(name, runs, max(1, samples))
        for each in libraries:
            note(f"{name}, {each}")
            depth = levels or LEVELS[each]
            design_of = generate(made, multipliers=MULTIPLIERS.get(name, 64), levels=depth, clock_gating=True,
                                 objective="throughput")
            with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
                folder = design_of.write(Path(temporary) / "design")
                figures = of_design(folder, kept / f"{name}-{each}-{depth}-gated", each, vectors=vectors,
                                    samples=samples, note=note)
                described = design.read(folder)
            designs.setdefault(name, {})[each] = figures | {
                "weights": source, "multipliers": described["multipliers"],
                "cycles": [layer["cycles"] for layer in described["layers"]],
                "levels": depth, "clock_gating": True, **_operations(described, made, vectors, figures)}
    table = {f"{name}, {each}": _line(figures) for name, found in designs.items() for each, figures in found.items()}
    return {"benchmark": "asic", "table": table, "designs": designs, "libraries": {name: entry.title for name, entry in
                                                                                 known().items()}}


def of_design(folder: Path, out: Path, each: str, *, vectors: Vectors, samples: int,
              note: Callable[[str], None]) -> Document:
    """The figures of a design in a library: those of an earlier call where nothing has changed since."""
    found, entry = library((each,))
    macros = model(found.gate_area, found.voltage)
    played = "".join(np.asarray(x).tobytes().hex() for x in vectors.first(samples).inputs) if samples else ""
    wanted = hashlib.sha256(json.dumps([key(folder, design.read(folder), found, settings(entry, entry.mhz), macros),
                                        played]).encode()).hexdigest()
    file = out / "measured.json"
    if file.is_file() and (before := json.loads(file.read_text()))["key"] == wanted:
        return cast(Document, before)
    if shipped := _shipped(wanted):
        return shipped
    try:
        figures = asic(folder, out, found, entry, mhz=entry.mhz, vectors=vectors if samples else None, samples=samples,
                       macros=macros).as_json()
    except TimingMissed as missed:  # The netlist and its figures are kept all the same.
        note(str(missed))
        figures = artifact.read_json(out / FILE, KIND, VERSION)
    figures |= {"key": wanted}
    atomic_text(file, json.dumps(figures))
    return figures


def _shipped(wanted: str) -> Document | None:
    """The figures of `MEASURED` with a key."""
    if MEASURED.is_file():
        for found in json.loads(MEASURED.read_text())["designs"].values():
            for figures in found.values():
                if figures.get("key") == wanted:
                    return dict(figures)
    return None


def _operations(described: design.Manifest, made: Network, vectors: Vectors, figures: Mapping[str, Any]
                ) -> dict[str, float]:
    """Operations of an inference, two for each multiplication: those of the circuit, and those of the same matrices
    without blocks, padding included, as CirCNN counts; with the energy of each in pJ."""
    steps = 1.0 if made.flow.grid else float(vectors.steps.mean())
    counts = described["multiplications"]
    found = {"operations": 2 * (counts["per_step"] * steps + counts["per_sequence"])}
    found["dense_operations"] = sum(
        2 * product.weights.size * product.block_size * (steps if in_steps else 1)
        * math.prod(getattr(layer, "output_grid", ()))  # A convolution multiplies once for each pixel that it gives.
        for layer, in_steps in zip(made.stages, each_step(made), strict=True) for product in matrices(layer).values())
    if "energy_nj_total" in figures:
        found |= {f"pj_per_{name[:-1]}": round(1e3 * figures["energy_nj_total"] / count, 4)
                  for name, count in list(found.items())}
    return found


def _network(name: str, runs: Path, samples: int) -> tuple[Network, Vectors, str]:
    """A network with its vectors: that of a run folder, or one of random weights."""
    if (runs / name / "network.json").exists() and (runs / name / "vectors.npz").exists():
        return Network.load(runs / name), Vectors.load(runs / name / "vectors.npz"), "trained"
    made = network(name)
    inputs = np.random.default_rng(4).normal(0, 0.5, (samples, *DESIGNS[name].sample))
    return made, made.vectors(inputs), "random"


def _line(figures: dict[str, Any]) -> str:
    said = f"{figures['logic_um2'] / 1e6:.4g} mm² of logic, {sum(figures['area_um2'].values()) / 1e6:.4g} mm² in all"
    if "fmax_mhz" in figures:
        said += f", {figures['fmax_mhz']:.0f} MHz"
    if "energy_nj_total" in figures:
        said += f", {figures['energy_nj_total']:.4g} nJ an inference"
    return said
