"""Settings of the training: methods, phases, learning rates, ADMM."""
from dataclasses import dataclass

from circulant.sim.public import public
from circulant.sim.settings import Table, key

__all__ = ["METHODS", "PHASES", "SCALED", "TrainingSettings", "idle"]

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
    "direct": ("direct_epochs", "start", "stages"),
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

    method: str = key("admm", "how the block-circulant network comes about: from the dense baseline by ADMM, or "
                      "directly, by training its first columns alone; search learns the block sizes, then goes on by "
                      "ADMM", choices=tuple(METHODS))
    start: str = key("auto", "what direct training starts from: the dense baseline, or random first columns; auto "
                     "takes the baseline where there is one", choices=("auto", "dense", "random"))
    stages: int = key(1, "stages of direct training from the dense baseline, which share its epochs: block sizes "
                      "double from stage to stage, up to their own", low=1, high=7)
    dense_epochs: int = key(40, "epochs of the dense baseline", low=0, high=10000)
    admm_epochs: int = key(40, "epochs of ADMM at most", low=0, high=10000)
    retrain_epochs: int = key(40, "epochs of retraining after the projection", low=0, high=10000)
    direct_epochs: int = key(80, "epochs of direct training", low=0, high=10000)
    search_epochs: int = key(40, "epochs in which the block sizes are learned", low=1, high=10000)
    search_cost: str = key("weight_bits", "what that holds down: weight bits, or the cycles that each layer takes with "
                           "all multipliers", choices=("weight_bits", "cycles"))
    search_share: float = key(1.0, "bound of that cost, as a part of what compression.block_size costs", low=0.001,
                              high=64)
    learning_rate: float = key(1e-2, "learning rate of every phase but the retraining", low=1e-8, high=10)
    retrain_rate: float = key(1e-2, "learning rate of the retraining", low=1e-8, high=10)
    rate_scaling: str = key("none", "factor of a matrix' learning rate with adam or adamw: √k of its block size, or "
                            "that times 256 / inputs", choices=("none", "block", "block-inputs"))
    batch_size: int = key(32, "examples of one step, over all processes together", low=1, high=65536)
    rho: float | dict[str, float] = key(1e-2, "penalty ρ that ADMM starts with, of every matrix or by name",
                                        low=1e-9, high=1000000)
    rho_schedule: str = key("geometric", "whether ρ grows at each update, follows the balance of the residuals, or "
                            "stays", choices=("geometric", "balance", "constant"))
    rho_growth: float = key(1.1, "factor by which ρ changes at an update", low=1, high=100)
    rho_max: float = key(1.0, "ρ grows no further", low=1e-9, high=1000000)
    admm_interval: int = key(1, "epochs between two updates of ADMM's Z and U", low=1, high=10000)
    tolerance: float = key(1e-3, "ADMM stops when both residuals of every matrix are below it", low=1e-12, high=1)
    optimizer: str = key("adam", "optimizer of every phase; muon turns the steps of matrices into orthonormal ones, "
                         "sgd has a momentum of 0.9", choices=("adam", "adamw", "muon", "sgd"))
    weight_decay: float = key(0.0, "weight decay", low=0, high=10)
    loss: str = key("auto", "what is minimised; auto: cross entropy of classes, the squared error of numbers (mse), "
                    "binary cross entropy of labels (bce), CTC of symbols",
                    choices=("auto", "cross_entropy", "mse", "l1", "huber", "bce"))
    early_stopping: int = key(0, "epochs without a better metric on the test set after which a phase ends; it then "
                              "goes back to its best weights. ADMM ends by its residuals alone", low=1, high=10000,
                              zero="never")
    clip: float = key(0.0, "bound of the norm of the loss's gradient", low=1e-6, high=1000000, zero="none")
    label_smoothing: float = key(0.0, "part of each label that is spread over all classes", low=0, high=0.9)
    distillation: float = key(0.0, "part of the loss behind the dense baseline that is the distance from its outputs",
                              low=0, high=1)
    hints: float = key(0.0, "weight of the distance from what the recurrent layers of that baseline give, besides",
                       low=0, high=100)
    augment: str = key("none", "variants of the training samples, drawn anew each time: images mirrored, moved by up "
                       "to two pixels, or both; sequences whose steps begin at another frame, or also masked",
                       choices=("none", "flip", "shift", "flip-shift", "delay", "mask"))
    decay: str = key("cosine", "how the learning rate falls within each phase", choices=("cosine", "step", "none"))
    warmup_epochs: int = key(0, "epochs over which the learning rate rises at first", low=0, high=10000)
    device: str = key("auto", "where the training runs; auto takes a GPU where there is one",
                      choices=("auto", "cpu", "cuda"))
    precision: str = key("auto", "type of the products in training; auto is the GPU's fastest, and float32 on a CPU",
                         choices=("auto", "float32", "bfloat16", "float16"))
    evaluate_epochs: int = key(1, "epochs between two evaluations on the test set; the last of a phase always has one",
                               low=1, high=10000)
    checkpoint_epochs: int = key(1, "epochs between two checkpoints", low=1, high=10000)
    tensorboard: bool = key(False, "write curves for TensorBoard")
    seed: int = key(0, "seed of initial weights and of the order of examples", low=0, high=2**31 - 1)

    def contradictions(self) -> list[str]:
        problems = []
        if self.hints and not self.distillation:
            problems.append(f"training.hints must be 0 where training.distillation is, not {self.hints!r}: they stand "
                            "beside it")
        if self.rate_scaling != "none" and self.optimizer not in SCALED:
            problems.append(f"training.rate_scaling must be 'none' with the optimizer {self.optimizer!r}, not "
                            f"{self.rate_scaling!r}: its rules are of the steps of {' and '.join(SCALED)}")
        if self.direct_epochs < self.stages > 1:
            problems.append(f"training.stages must not exceed the {self.direct_epochs} direct_epochs, which they "
                            f"share, not {self.stages!r}")
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
