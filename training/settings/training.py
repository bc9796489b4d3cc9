"""Settings of the training: methods, phases, learning rates, ADMM."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from circulant.sim.public import public
from circulant.sim.settings import Table, key

__all__ = ["METHODS", "PHASES", "SCALED", "TrainingSettings", "idle", "renamed"]

METHODS = {"admm": ("dense", "admm", "retrain"), "direct": ("dense", "direct"),
           "search": ("dense", "search", "admm", "retrain")}
"""The phases of each method. "direct" trains first columns alone: from the dense baseline, or from random ones, as
CirCNN does. "search" learns the block sizes; ADMM then starts from the dense baseline, as it would with their table."""

SCALED = ("adam", "adamw")
"""Optimizers whose steps have the size of the rate, whatever the gradient."""

PHASES = {
    "dense": ("dense_epochs",),
    "admm": ("admm_epochs", "rho", "rho_schedule", "rho_growth", "rho_max", "admm_interval", "tolerance"),
    "retrain": ("retrain_epochs", "retrain_rate"),
    "direct": ("direct_epochs", "start", "stages", "self_guided"),
    "search": ("search_epochs", "search_cost", "search_share"),
}
"""Settings that one phase alone obeys."""

COMMANDS = {"device": "it trains where the model is; move that", "tensorboard": "curves are written by `Curves`, as "
            "on_epoch"}
"""Settings that a function obeys which builds its model itself, and what stands for them elsewhere."""


@public(kinds=False)
@dataclass(frozen=True)
class TrainingSettings(Table):
    """Dense baseline, then ADMM, projection and retraining inside the set, or direct training of first columns."""

    method: str = key("admm", "how the block-circulant network is trained: from the dense baseline by ADMM; directly, "
                      "by training its first columns; or after a search of the block sizes, by ADMM",
                      choices=tuple(METHODS))
    start: str = key("auto", "initial values of direct training: the means of the dense baseline's blocks, or the "
                     "projection of the initial weights, rescaled; auto uses the baseline if there is one",
                     choices=("auto", "dense", "projected"))
    stages: int = key(1, "stages of direct training from the dense baseline, which share its epochs; block sizes "
                      "double from stage to stage, up to the final ones", low=1, high=7)
    self_guided: float = key(0.0, "part of direct training in which matrices are mixed with a dense twin, whose share "
                             "falls from 1 to 0", low=0, high=1)
    dense_epochs: int = key(40, "epochs of the dense baseline", low=0, high=10000)
    admm_epochs: int = key(40, "epochs of ADMM at most", low=0, high=10000)
    retrain_epochs: int = key(40, "epochs of retraining after the projection", low=0, high=10000)
    direct_epochs: int = key(80, "epochs of direct training", low=0, high=10000)
    search_epochs: int = key(40, "epochs of the search of block sizes", low=1, high=10000)
    search_cost: str = key("weight_bits", "cost that the search limits: weight bits, or the cycles of each layer with "
                           "all multipliers", choices=("weight_bits", "cycles"))
    search_share: float = key(1.0, "limit of that cost, as a fraction of the cost of compression.block_size",
                              low=0.001, high=64)
    learning_rate: float = key(1e-2, "learning rate of all phases except the retraining", low=1e-8, high=10)
    retrain_rate: float = key(1e-2, "learning rate of the retraining", low=1e-8, high=10)
    rate_scaling: str = key("none", "factor on the learning rate of a matrix with adam or adamw: √k of its block "
                            "size, or that times 256 / inputs", choices=("none", "block", "block-inputs"))
    batch_size: int = key(32, "samples in a batch, over all processes together", low=1, high=65536)
    rho: float | dict[str, float] = key(1e-2, "initial penalty ρ of ADMM, for all matrices or for each by name",
                                        low=1e-9, high=1000000)
    rho_schedule: str = key("geometric", "whether ρ grows at each update, balances the residuals, or stays constant",
                            choices=("geometric", "balance", "constant"))
    rho_growth: float = key(0.0, "factor by which ρ changes at an update", low=1, high=100,
                            zero="what takes it to rho_max with the last epoch (1.1 where it balances)")
    rho_max: float = key(1.0, "largest ρ", low=1e-9, high=1000000)
    admm_interval: int = key(1, "epochs between two updates of ADMM's Z and U", low=1, high=10000)
    tolerance: float = key(1e-3, "ADMM stops when both residuals of every matrix are below it", low=1e-12, high=1)
    optimizer: str = key("adam", "optimizer of all phases; muon makes the steps of matrices orthonormal, sgd has a "
                         "momentum of 0.9", choices=("adam", "adamw", "muon", "sgd"))
    weight_decay: float = key(0.0, "weight decay", low=0, high=10)
    loss: str = key("auto", "loss to minimise; auto: cross entropy for classes, squared error for numbers (mse), "
                    "binary cross entropy for labels (bce), CTC for symbols",
                    choices=("auto", "cross_entropy", "mse", "l1", "huber", "bce"))
    early_stopping: int = key(0, "a phase ends after this many epochs without a better metric on the test set, and "
                              "restores its best weights; ADMM ends only by its residuals",
                              low=1, high=10000, zero="never")
    clip: float = key(0.0, "largest norm of the loss's gradient", low=1e-6, high=1000000, zero="none")
    label_smoothing: float = key(0.0, "fraction of each label that is spread over all classes", low=0, high=0.9)
    distillation: float = key(0.0, "weight of the distance from the outputs of the dense baseline in the loss of the "
                              "later phases; the loss on the targets has the rest", low=0, high=1)
    hints: float = key(0.0, "weight of an added distance from the outputs of the baseline's recurrent layers, or of "
                       "its convolutions", low=0, high=100)
    averaging: str = key("none", "weights that a phase leaves: the last ones; their moving average (ema), whose memory "
                         "is a twentieth of the phase; or the mean over its last quarter (swa). Not of ADMM",
                         choices=("none", "ema", "swa"))
    augment: str = key("none", "random changes of the training samples: images mirrored, shifted by up to two pixels, "
                       "or both; sequences whose steps begin at another frame, or that also are masked, faster or "
                       "slower, or both",
                       choices=("none", "flip", "shift", "flip-shift", "delay", "mask", "speed", "speed-mask"))
    decay: str = key("cosine", "how the learning rate falls within each phase", choices=("cosine", "step", "none"))
    warmup_epochs: int = key(1, "epochs in which the learning rate rises at the start of a phase", low=0, high=10000)
    communication: str = key("allreduce", "what processes under torchrun send each other: gradients, in float32 or in "
                             "float16, or as products of thin matrices; or weights after a few steps of their own",
                             choices=("allreduce", "fp16", "powersgd", "local"))
    device: str = key("auto", "device of the training; auto uses a GPU if there is one",
                      choices=("auto", "cpu", "cuda"))
    precision: str = key("auto", "number format of the products in training; auto is the fastest on a GPU, and "
                         "float32 on a CPU", choices=("auto", "float32", "bfloat16", "float16"))
    evaluate_epochs: int = key(1, "epochs between two evaluations on the test set; the last of a phase always has one",
                               low=1, high=10000)
    checkpoint_epochs: int = key(1, "epochs between two checkpoints", low=1, high=10000)
    tensorboard: bool = key(False, "write curves for TensorBoard")
    seed: int = key(0, "seed of the initial weights and of the order of samples", low=0, high=2**31 - 1)

    def contradictions(self) -> list[str]:
        problems = []
        if self.hints and not self.distillation:
            problems.append(f"training.hints must be 0 if training.distillation is 0, not {self.hints!r}: hints are "
                            "added to it")
        if self.rate_scaling != "none" and self.optimizer not in SCALED:
            problems.append(f"training.rate_scaling must be 'none' with the optimizer {self.optimizer!r}, not "
                            f"{self.rate_scaling!r}: its rules are for the steps of {' and '.join(SCALED)}")
        if self.direct_epochs < self.stages > 1:
            problems.append(f"training.stages must not exceed the {self.direct_epochs} direct_epochs, which they "
                            f"share, not {self.stages!r}")
        alone = {"hints": self.hints, "self_guided": self.self_guided}
        if self.communication == "local" and (given := [name for name, value in alone.items() if value]):
            problems.append(f"training.communication = 'local' must be without {' and '.join(given)}, which count "
                            "steps that all processes share; choose 'allreduce'")
        if self.self_guided and self.stages > 1:
            problems.append(f"training.self_guided must be 0 with {self.stages} stages, not {self.self_guided!r}: both "
                            "lead from dense matrices to blocks")
        return problems

    def rate(self, phase: str) -> float:
        """Learning rate at the start of a phase."""
        return self.retrain_rate if phase == "retrain" else self.learning_rate

    def epochs(self, phase: str) -> int:
        """Greatest number of epochs of a phase."""
        return int(getattr(self, f"{phase}_epochs"))


def idle(*phases: str) -> dict[str, str]:
    """Settings that do nothing where a given model goes through these phases alone, by name, and why."""
    return COMMANDS | {name: f"it has no phase {phase!r}; leave it out" for phase, names in PHASES.items()
                       if phase not in phases for name in names}


def renamed(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a file from before direct training had a choice of its start, or from before that had its name."""
    start = kept.get("start", "random")
    return {**kept, "start": "projected" if start == "random" else start}
