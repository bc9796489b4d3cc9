"""A whole run folder after the least training: every kind of file that a reader meets, and every kind of layer."""
from pathlib import Path

from benchmarks.designs import Shape, of_shape
from circulant.experiment import load
from circulant.run import steps
from circulant.run.run_folder import CHECKPOINT, Run, record
from circulant.sim import design
from circulant.sim.golden.network import Network
from circulant.training.loop.checkpoint import Checkpoint

__all__ = ["networks", "victim"]

SETTINGS = ("data.subset=200", "model.hidden=8", "training.dense_epochs=2", "training.admm_epochs=2",
            "training.retrain_epochs=2", "hardware.reloadable=true", "hardware.multipliers=20")
"""Keys of digits-gru that are changed."""

PICKED = {"pick_on": "train", "pick_by": "metric", "budget": 0.5, "lost": 0.1, "cost": 0.9, "score_start": 0.97,
          "score": 0.96, "weight_bits_start": 900, "weight_bits": 700, "widths": [
              {"name": "weight_bits", "start": 12, "picked": 9, "noise": 1e-4, "clip": 0, "fixed": False}]}
"""The record of a search for widths, made up."""

SHAPES = {"both": Shape((5, 4), {"kind": "gru", "hidden": 6, "bidirectional": True}, 4),
          "lstm": Shape((5, 4), {"kind": "lstm", "hidden": 6, "projection": 5, "peephole": True}, 4),
          "images": Shape((3, 8, 8), {"kind": "resnet8"}, 8)}
"""Networks of other kinds of layers."""


def networks() -> dict[str, Network]:
    """Networks of `SHAPES`, that over images with the choice of the largest output."""
    made = {name: of_shape(name, shape) for name, shape in SHAPES.items()}
    return made | {"images": made["images"].with_argmax()}


def victim(folder: Path) -> Path:
    """Make the run folder, in seconds: what a simulation would say is made up."""
    run = Run(folder, load("digits-gru", SETTINGS))
    steps.train(run)
    found = {name: value for name, value in steps.quantize(run).items() if name not in ("format", "version", "hash")}
    quantized = record(run, "quantize", found | {"picking": PICKED})
    generated = steps.generate(run)
    for path in run.design.iterdir():
        if path.name not in ("manifest.json", *design.read(run.design)["files"]):
            path.unlink()  # It is of the kit, which no command reads.
    for name, network in networks().items():
        network.save(folder / name)
    hashes = {"design": generated["hashes"]["design"], "vectors": quantized["hashes"]["vectors"]}
    record(run, "simulate", {"hashes": hashes, "seconds": 1.0, "verification": {
        "sequences": 7, "words": 21, "words_compared": 30, "mismatches": 1, "simulator": "Verilator 5.48.0",
        "first": {"sequence": 3, "step": 4, "word": 1, "expected": 17, "got": -5, "run": "back to back"},
        "cycles_per_step": 10.0, "cycles_per_sequence": 52.0, "steps_per_sequence": 5.0,
        "latency_spaced": 40.0, "latency_contiguous": 55.0, "cycles": 999}})
    Checkpoint(run.path(CHECKPOINT) / "training.pt", {"seed": 0}).save({"epoch": 3})
    return folder
