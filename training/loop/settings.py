"""Training settings of an experiment."""
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from circulant.sim.public import public
from circulant.sim.refusal import Refusal, nearest
from circulant.training.blocks.admm import SCHEDULES
from circulant.training.loop.optimize import DECAYS, OPTIMIZERS, SCALED, SCALINGS
from circulant.training.loop.runtime import DEVICES, PRECISIONS
from circulant.training.task.augment import AUGMENTS

__all__ = ["METHODS", "TrainingSettings"]

METHODS = {"admm": ("dense", "admm", "retrain"), "direct": ("dense", "direct")}
"""The phases of each method. "direct" trains first columns alone: from the dense baseline, or from random ones, as
CirCNN does."""

STARTS = ("auto", "dense", "random")

CHOICES: dict[str, tuple[str, ...]] = {
    "method": tuple(METHODS), "start": STARTS, "optimizer": tuple(OPTIMIZERS), "decay": tuple(DECAYS),
    "rate_scaling": tuple(SCALINGS), "rho_schedule": SCHEDULES, "augment": tuple(AUGMENTS), "device": DEVICES,
    "precision": tuple(PRECISIONS),
}
INTEGERS = {"dense_epochs": 0, "admm_epochs": 0, "retrain_epochs": 0, "direct_epochs": 0, "batch_size": 1,
            "admm_interval": 1, "warmup_epochs": 0, "evaluate_epochs": 1, "checkpoint_epochs": 1, "seed": 0}
POSITIVE = ("learning_rate", "retrain_rate", "rho_growth", "rho_max", "tolerance")
NOT_NEGATIVE = ("weight_decay", "clip", "label_smoothing", "distillation", "hints")


@public(kinds=False)
@dataclass(frozen=True)
class TrainingSettings:
    """Training settings of an experiment.

    Parameters:
        method: "admm" from the dense baseline, or "direct": first columns from the start; see `METHODS`.
        start: what direct training starts from: "dense", the projections of the dense baseline, as large as it was, and
            all that is not compressed (see `inherit`); "random" (see `initialise`); "auto", the baseline where there is
            one that was trained or given.
        dense_epochs, admm_epochs, retrain_epochs, direct_epochs: the greatest length of each phase; 0 leaves it out.
        learning_rate: of every phase but the retraining, decaying within each.
        retrain_rate: learning rate of the retraining.
        rate_scaling: rule by which the rate of a matrix follows from its block size, or also from its inputs: "none",
            "block", "block-inputs"; see `SCALINGS`. With "adam" and "adamw".
        batch_size: sequences in a batch, over all processes together.
        rho: ADMM's ρ at first: one, or by module or parameter name, for every constrained matrix.
        rho_schedule, rho_growth, rho_max: how ρ changes at an update of Z and U, by which factor, and its bound; see
            `Admm`.
        admm_interval: epochs from one update of Z and U to the next.
        tolerance: ADMM stops when both residuals of every matrix are below it.
        optimizer, weight_decay: "adam", "adamw" and "muon" (decay apart from the gradient; see `Muon`) or "sgd"
            (momentum 0.9).
        clip: bound of the norm of the loss's gradient; 0 for none.
        label_smoothing: of a classification.
        distillation: weight that the distance from the outputs of the dense baseline has in the loss of the phases
            behind it; see `DistillationTask`.
        hints: weight that the distance from what its recurrent layers give has beside that; see `Hints`.
        augment: variants of the training samples: "none"; of images "flip", "shift" (by up to two pixels) and
            "flip-shift"; of spectrograms "delay" (steps that begin at another frame) and "mask" (that and SpecAugment).
        decay, warmup_epochs: the learning rate rises over the warm-up, and falls within each phase by "cosine", "step"
            or "none".
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        precision: "float32", "bfloat16" or "float16" of the products, or "auto": the GPU's best, float32 on a CPU.
        evaluate_epochs: epochs from one look at the test part to the next; the last of a phase always has one.
        checkpoint_epochs: epochs from one checkpoint to the next.
        tensorboard: whether curves are written for TensorBoard.
        seed: of the initial weights and the order of the batches.

    Raises:
        Refusal: all values that are out of range at once.
    """

    method: str = "admm"
    start: str = "auto"
    dense_epochs: int = 40
    admm_epochs: int = 40
    retrain_epochs: int = 40
    direct_epochs: int = 80
    learning_rate: float = 1e-2
    retrain_rate: float = 1e-2
    rate_scaling: str = "none"
    batch_size: int = 32
    rho: float | dict[str, float] = 1e-2
    rho_schedule: str = "geometric"
    rho_growth: float = 1.1
    rho_max: float = 1.0
    admm_interval: int = 1
    tolerance: float = 1e-3
    optimizer: str = "adam"
    weight_decay: float = 0.0
    clip: float = 0.0
    label_smoothing: float = 0.0
    distillation: float = 0.0
    hints: float = 0.0
    augment: str = "none"
    decay: str = "cosine"
    warmup_epochs: int = 0
    device: str = "auto"
    precision: str = "auto"
    evaluate_epochs: int = 1
    checkpoint_epochs: int = 1
    tensorboard: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        problems = [f"{name} must be an integer of at least {low}, not {getattr(self, name)!r}"
                    for name, low in INTEGERS.items()
                    if type(getattr(self, name)) is not int or getattr(self, name) < low]
        problems += [f"{name} must be a positive number, not {getattr(self, name)!r}"
                     for name in POSITIVE if not _positive(getattr(self, name))]
        problems += [f"{name} must be a number of at least 0, not {getattr(self, name)!r}"
                     for name in NOT_NEGATIVE if not (_positive(getattr(self, name)) or getattr(self, name) == 0)]
        for name, legal in CHOICES.items():
            if (value := getattr(self, name)) not in legal:
                problems.append(f"{name} must be one of {', '.join(map(repr, legal))}, not {value!r}"
                                f"{nearest(str(value), legal)}")
        rhos = self.rho.values() if isinstance(self.rho, Mapping) else (self.rho,)
        if not rhos or not all(_positive(value) for value in rhos):
            problems.append(f"rho must be a positive number, or one for each matrix, not {self.rho!r}")
        if _positive(self.rho_growth) and self.rho_growth < 1:
            problems.append(f"rho_growth must be at least 1, not {self.rho_growth!r}: rho grows")
        if _positive(self.label_smoothing) and self.label_smoothing >= 1:
            problems.append(f"label_smoothing must be below 1, not {self.label_smoothing!r}")
        if _positive(self.distillation) and self.distillation > 1:
            problems.append(f"distillation must be at most 1, not {self.distillation!r}")
        if _positive(self.hints) and not _positive(self.distillation):
            problems.append(f"hints must be 0 where distillation is, not {self.hints!r}: they stand beside it")
        if self.rate_scaling != "none" and self.optimizer not in SCALED:
            problems.append(f"rate_scaling must be 'none' with the optimizer {self.optimizer!r}, not "
                            f"{self.rate_scaling!r}: its rules are of the steps of {' and '.join(SCALED)}")
        if self.tensorboard not in (True, False):
            problems.append(f"tensorboard must be true or false, not {self.tensorboard!r}")
        if problems:
            raise Refusal("Training settings out of range: " + "; ".join(problems))

    def rate(self, phase: str) -> float:
        """Learning rate at the start of a phase."""
        return self.retrain_rate if phase == "retrain" else self.learning_rate

    def epochs(self, phase: str) -> int:
        """Greatest number of epochs of a phase."""
        return int(getattr(self, f"{phase}_epochs"))


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
