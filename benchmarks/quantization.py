"""Widths picked within a budget against the uniform 12 bits of E-RNN, and weights trained on 8, 6 and 4 bits.

Each network is that of a run folder below ``runs``; a shipped experiment that has none yet is trained there first.
"""
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from circulant import training
from circulant.experiment import FILE, load
from circulant.progress import Bars
from circulant.run import quantization, steps
from circulant.run.run_folder import Run, require
from circulant.sim.quantize.bitwidth_cost import weight_bits
from circulant.sim.quantize.bitwidth_space import FIELDS

__all__ = ["NETWORKS", "measure", "table"]

NETWORKS = ("digits-gru", "fsdd-gru", "speech-gru", "mnist-mlp")

BUDGET = 0.1
UNIFORM = {"weight_bits": 12, "activation_bits": 16}
TUNED = (8, 6, 4)
EPOCHS = 5


def measure(networks: Sequence[str] = NETWORKS, *, runs: str | Path = "runs", budget: float = BUDGET,
            tuned: Sequence[int] = TUNED, pick_on: str = "train", pick_by: str | None = None, margin: float = 1.0,
            samples: int | None = None, subset: int = 0) -> dict[str, Any]:
    """Figures of each network, and a table.

    Parameters:
        runs: folder of the run folders.
        budget: points that may be lost.
        tuned: weight widths to which each network is also quantized with and without fine-tuning.
        pick_on, pick_by, margin, samples: keys of [quantization]; None for what the experiment says.
        subset: training and test samples to keep, for a quick look; 0 for all.

    Raises:
        Refusal: when a network is neither trained nor a shipped experiment, or has no golden model.
    """
    figures: dict[str, Any] = {}
    asked = {"budget": budget, "pick_on": pick_on, "pick_by": pick_by, "margin": margin, "samples": samples}
    search = {key: value for key, value in asked.items() if value is not None}
    with Bars(Console(stderr=True)) as bars:
        for name in networks:
            figures[name] = _network(_run(Path(runs) / name, name, bars), bars, search, tuned, subset)
    machine = {"system": platform.platform(), "cores": os.cpu_count()}
    return {"benchmark": "quantization", "table": table(figures), **search, "subset": subset,
            "networks": figures, "machine": machine}


def _run(folder: Path, name: str, bars: Bars) -> Run:
    run = Run(folder, load(folder if (folder / FILE).exists() else name))
    if not (folder / "training.json").exists():
        steps.train(run, bars, resume=None)
    require(run, "train")
    return run


def _network(run: Run, bars: Bars, search: dict[str, Any], tuned: Sequence[int], subset: int) -> dict[str, Any]:
    """Accuracies are those of the test set; of sequences of phones 1 less the phone error rate."""
    tables = run.experiment.tables()
    del tables["training"]["dense"]  # A folder, and no setting of a training.
    few = {"subset": subset, "test_subset": subset} if subset else {}
    data = training.load_data(**tables["data"] | few, progress=bars)
    model, task = training.load_trained(run.path("model.pt")).model, training.task_of(data)
    settings = training.TrainingSettings(**tables["training"])
    base = asdict(run.experiment.quantization) | dict.fromkeys(FIELDS, 0) | UNIFORM | {
        "twiddle_bits": 16, "budget": 0.0, "finetune_epochs": 0, "joint_epochs": 0}

    def made(**changes: Any) -> quantization.Golden:
        return quantization.golden(model, data, base | changes, settings=settings, folder=run.path("evaluations"),
                                   show=bars)

    def accuracy(score: float) -> float:
        return score if task.higher_is_better else 1 - score

    def score(golden: quantization.Golden) -> float:
        return accuracy(quantization.score(golden.network, data))

    picked = made(**search)
    return {
        "metric": task.metric, "accuracy_float": accuracy(training.evaluate(model, data)),
        "accuracy_uniform12": accuracy(picked.picking["score_start"]),
        "accuracy_picked": accuracy(picked.picking["score"]),
        "weight_bits_uniform12": picked.picking["weight_bits_start"],
        "weight_bits_picked": weight_bits(picked.network),
        "pick_by": picked.picking["pick_by"], "cost": picked.picking["cost"],
        "evaluations": picked.picking["evaluations"],
        "widths": {row["name"]: row["picked"] for row in picked.picking["widths"]},
        "tuned": {str(bits): _tuned(bits, made, score) for bits in tuned},
    }


def _tuned(bits: int, made: Any, score: Any) -> dict[str, float]:
    """All weights at one width: rounded, trained straight through, and with ADMM towards the joint set before that."""
    ways = {"rounded": {}, "finetuned": {"finetune_epochs": EPOCHS},
            "joint": {"joint_epochs": EPOCHS, "finetune_epochs": EPOCHS}}
    return {way: score(made(weight_bits=bits, **changes)) for way, changes in ways.items()}


def table(figures: dict[str, Any]) -> dict[str, str]:
    """The rows for people."""
    rows = {}
    for name, one in figures.items():
        fewer = 1 - one["weight_bits_picked"] / one["weight_bits_uniform12"]
        rows[f"{name}: accuracy of float, uniform 12 bits, picked"] = (
            f"{one['accuracy_float']:.2%}, {one['accuracy_uniform12']:.2%}, {one['accuracy_picked']:.2%}")
        rows[f"{name}: bits of the weights, uniform and picked"] = (
            f"{one['weight_bits_uniform12']:,}, {one['weight_bits_picked']:,} ({fewer:.0%} fewer)")
        for bits, ways in one["tuned"].items():
            rows[f"{name}: weights of {bits} bits, rounded, fine-tuned, ADMM before"] = ", ".join(
                f"{value:.2%}" for value in ways.values())
    return rows
