"""The five steps of a run. Each starts from the files of the one before in the run folder, and is whole or not at all.

torch is imported by `train` and `quantize` only, Amaranth by `generate` only, cocotb by `simulate` only.
"""
import time
from typing import Any

import numpy as np

from circulant import report as reports
from circulant.boards.device import device, fits
from circulant.extras import extras
from circulant.progress import Show, silent
from circulant.records import Run, record, require, sha256
from circulant.sim import artifact
from circulant.sim.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["generate", "quantize", "report", "simulate", "train"]

PHASES = {"dense": "dense baseline", "admm": "ADMM", "retrain": "retraining"}
STAGES = {"build": "compiling Verilog", "simulate": "simulating"}


def train(run: Run, show: Show = silent) -> dict[str, Any]:
    """Dense baseline, ADMM, projection, retraining: ``model.pt`` and ``training.json``."""
    with extras("circulant train"):
        from circulant import training

    def progress(phase: str, epoch: int, epochs: int, metrics: dict[str, float]) -> None:
        show(PHASES[phase], epoch, epochs, f"loss {metrics['loss']:.4f}, accuracy {metrics['accuracy']:.2%}")

    run.require_writable()
    start, tables = time.perf_counter(), run.experiment.tables()
    data = training.load_data(**tables["data"])
    trained = training.train(data, training.TrainingSettings(**tables["training"]),
                             model=training.ModelSettings(**tables["model"]),
                             block_size=run.experiment.compression.block_size, progress=progress)
    training.save_trained(run.path("model.pt"), trained)
    return record(run, "train", {
        "hashes": {"model": sha256(run.path("model.pt"))},
        "accuracy": {"dense": trained.dense_accuracy, "projected": trained.projected_accuracy,
                     "circulant": trained.accuracy},
        "matrices": _matrices(trained.model), "history": trained.history, "seconds": time.perf_counter() - start,
    })


def quantize(run: Run, show: Show = silent) -> dict[str, Any]:
    """Integers: ``network.json``, ``weights.npz``, ``vectors.npz`` of the whole test split, ``quantization.json``."""
    with extras("circulant quantize"):
        from circulant import training
    trained = require(run, "train")
    if sha256(run.path("model.pt")) != trained["hashes"]["model"]:
        raise Refusal(f"{run.path('model.pt')} must be the file of training.json beside it, but it was changed or "
                      f"damaged; run {run.command('train')} again")
    start, tables = time.perf_counter(), run.experiment.tables()
    data = training.load_data(**tables["data"])
    show("calibration", 0, 0)
    network = training.export(training.load_trained(run.path("model.pt")).model, data.train_x, name=run.experiment.name,
                              **tables["quantization"])
    show("golden model", 0, 0)
    vectors = network.vectors(data.test_x)
    network.save(run.folder)
    return record(run, "quantize", {
        "hashes": {"network": network.hash, "vectors": vectors.save(run.path("vectors.npz"))},
        "accuracy": {"quantized": float(np.mean(vectors.outputs.argmax(-1) == data.test_y))},
        "seconds": time.perf_counter() - start,
    })


def generate(run: Run, show: Show = silent) -> dict[str, Any]:
    """Verilog: the folder ``hardware`` and ``generation.json``.

    Raises:
        Refusal: when the design exceeds the device of the board.
    """
    with extras("circulant generate"):
        from circulant.hw import generate as design_of
    quantized = require(run, "quantize")
    network = _network(run, quantized)
    start, tables = time.perf_counter(), run.experiment.tables()
    show("Verilog", 0, 0)
    part = None if tables["board"]["device"] == "none" else device(tables["board"]["device"])
    budget = tables["hardware"].pop("multipliers") or (part.multipliers if part else 0)
    if not budget:
        raise Refusal("hardware.multipliers may only be 0, all of the device's, where board.device names one, not "
                      "'none'; give a number or a device")
    design = design_of(network, multipliers=budget, **tables["hardware"])
    if part is not None:
        fits(part, design.multipliers, design.memory_bits)
    design.write(run.path("hardware"))
    return record(run, "generate", {
        "hashes": {"network": network.hash, "design": _design_hash(run)},
        "hardware": {"multipliers": design.multipliers, "memory_bits": design.memory_bits,
                     "multiplications": design.manifest["multiplications"], "layers": design.manifest["layers"]},
        "seconds": time.perf_counter() - start,
    })


def simulate(run: Run, show: Show = silent) -> dict[str, Any]:
    """The Verilog under Verilator against the golden model: ``verification.json``, also when it finds a mismatch."""
    with extras("circulant simulate"):
        from circulant.sim.cosim import verify
    quantized, generated = require(run, "quantize"), require(run, "generate")
    vectors = Vectors.load(run.path("vectors.npz"))
    if vectors.network != quantized["hashes"]["network"]:
        raise Refusal(f"{run.path('vectors.npz')} must be of the network beside it, but it is another's; "
                      f"run {run.command('quantize')} again")
    if _design_hash(run) != generated["hashes"]["design"]:
        raise Refusal(f"{run.path('hardware')} must be the design of generation.json beside it, but it is another; "
                      f"run {run.command('generate')} again")

    def progress(stage: str, done: int, total: int) -> None:
        show(STAGES[stage], done, 0 if stage == "build" and not done else total)

    start = time.perf_counter()
    verification = verify(run.path("hardware"), vectors, progress=progress)
    return record(run, "simulate", {"verification": verification.as_json(), "seconds": time.perf_counter() - start})


def report(run: Run, show: Show = silent) -> dict[str, Any]:
    """Every figure: ``report.json``, ``report.html`` and its pictures."""
    show("report", 0, 0)
    return reports.write(run)


def _network(run: Run, quantized: dict[str, Any]) -> Network:
    network = Network.load(run.folder)
    if network.hash != quantized["hashes"]["network"]:
        raise Refusal(f"{run.path('network.json')} must be the network of quantization.json beside it, but it is "
                      f"another; run {run.command('quantize')} again")
    return network


def _design_hash(run: Run) -> str:
    return str(artifact.read_json(run.path("hardware/manifest.json"), "circulant-design", 1)["hash"])


def _matrices(model: Any) -> dict[str, dict[str, int]]:
    from circulant.training.constraint import block_sizes, matrices

    sizes = block_sizes(model)
    return {name: {"groups": matrix.groups, "rows": matrix.rows, "columns": matrix.columns, "block_size": sizes[name]}
            for name, matrix in matrices(model).items()}
