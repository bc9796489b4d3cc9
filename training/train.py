"""From a dense model to a block-circulant one: ADMM, hard projection, retraining inside the set (E-RNN, section 4)."""
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from circulant.sim.refusal import Refusal, nearest
from circulant.training.admm import Admm
from circulant.training.clone import clone
from circulant.training.constraint import assign, block_sizes, compress, resolve
from circulant.training.data import Dataset
from circulant.training.loop import DECAYS, Loss, Metrics, evaluate, fit
from circulant.training.models import ModelSettings, build

__all__ = ["Progress", "Trained", "TrainingSettings", "train", "train_admm"]

Progress = Callable[[str, int, int, Metrics], None]
"""Called after each epoch with the phase ("dense", "admm", "retrain"), the epoch from 1, their number, the metrics."""


@dataclass(frozen=True)
class TrainingSettings:
    """What an experiment says of its training.

    Parameters:
        dense_epochs, admm_epochs, retrain_epochs: the greatest length of each phase; 0 leaves it out.
        learning_rate: of the dense phase and of ADMM, each decaying by itself.
        retrain_rate: learning rate of the retraining.
        batch_size: sequences in a batch.
        rho, rho_growth, rho_max: ADMM's ρ at first, its factor at each epoch, and its bound.
        tolerance: ADMM stops when both residuals of every matrix are below it.
        decay: of the learning rate within each phase: "cosine", "step" or "none".
        seed: of the initial weights and the order of the batches.

    Raises:
        Refusal: all values that are out of range at once.
    """

    dense_epochs: int = 40
    admm_epochs: int = 40
    retrain_epochs: int = 40
    learning_rate: float = 1e-2
    retrain_rate: float = 1e-2
    batch_size: int = 32
    rho: float = 1e-2
    rho_growth: float = 1.1
    rho_max: float = 1.0
    tolerance: float = 1e-3
    decay: str = "cosine"
    seed: int = 0

    def __post_init__(self) -> None:
        problems = []
        least = {"dense_epochs": 0, "admm_epochs": 0, "retrain_epochs": 0, "batch_size": 1, "seed": 0}
        for name, low in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                problems.append(f"{name} must be an integer of at least {low}, not {value!r}")
        for name in ("learning_rate", "retrain_rate", "rho", "rho_max", "tolerance", "rho_growth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                problems.append(f"{name} must be a positive number, not {value!r}")
            elif name == "rho_growth" and value < 1:
                problems.append(f"rho_growth must be at least 1, not {value!r}: rho grows")
        if self.decay not in DECAYS:
            problems.append(f"decay must be one of {', '.join(map(repr, DECAYS))}, not {self.decay!r}"
                            f"{nearest(str(self.decay), DECAYS)}")
        if problems:
            raise Refusal("Training settings out of range: " + "; ".join(problems))


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished training.

    Members:
        data, inputs, classes: name of the data set, shape of its samples, and number of its classes.
        model_settings, settings: what it was made with.
        dense: state dict of the dense baseline.
        model: the block-circulant model.
        history: one dict for each epoch: phase, epoch, loss, accuracy, and for ADMM rho, primal, dual (the worst of all
            matrices).
        dense_accuracy, projected_accuracy, accuracy: on the test part: of the baseline, after ADMM and the hard
            projection, and of ``model``.
    """

    data: str
    inputs: tuple[int, ...]
    classes: int
    model_settings: ModelSettings
    settings: TrainingSettings
    dense: dict[str, Tensor]
    model: nn.Module
    history: list[dict[str, Any]]
    dense_accuracy: float
    projected_accuracy: float
    accuracy: float

    @property
    def block_sizes(self) -> dict[str, int]:
        """The block size of every matrix, by parameter name."""
        return block_sizes(self.model)

    def dense_model(self) -> nn.Module:
        """The dense baseline."""
        model = build(self.model_settings, self.inputs, self.classes)
        model.load_state_dict(self.dense)
        return model


def train(data: Dataset, settings: TrainingSettings, *, model: ModelSettings | None = None,
          block_size: int | Mapping[str, int] = 8, progress: Progress | None = None) -> Trained:
    """Train the dense baseline, then the block-circulant model from it.

    Raises:
        Refusal: as `compress` (before anything is trained) and `fit`.
    """
    model = model or ModelSettings()
    shape = tuple(data.train_x.shape[1:])
    network = build(model, shape, data.classes, seed=settings.seed)
    block_size = assign(network, block_size, model.dense)
    resolve(network, block_size)
    history: list[dict[str, Any]] = []
    recorder = _recorder(history, progress)
    _phase("dense", network, data, settings, settings.dense_epochs, settings.learning_rate, cross_entropy, recorder)
    dense = {name: value.detach().clone() for name, value in network.state_dict().items()}
    dense_accuracy = evaluate(network, data)
    circulant, projected_accuracy = _constrain(network, data, settings, block_size, cross_entropy, recorder)
    return Trained(data.name, shape, data.classes, model, settings, dense, circulant, history, dense_accuracy,
                   projected_accuracy, evaluate(circulant, data))


def train_admm(model: nn.Module, data: Dataset, *, block_size: int | Mapping[str, int] = 8,
               epochs: int = TrainingSettings.admm_epochs, retrain_epochs: int = TrainingSettings.retrain_epochs,
               lr: float = TrainingSettings.learning_rate, retrain_lr: float = TrainingSettings.retrain_rate,
               rho: float = TrainingSettings.rho, rho_growth: float = TrainingSettings.rho_growth,
               batch: int = TrainingSettings.batch_size, seed: int = 0, loss: Loss = cross_entropy,
               on_epoch: Progress | None = None) -> nn.Module:
    """A block-circulant model from a model with dense weights, which stays as it is.

    ADMM for ``epochs``, hard projection by `compress`, ``retrain_epochs`` inside the set; see `TrainingSettings`.

    Raises:
        Refusal: as `compress` (before anything is trained), `Admm` and `fit`.
    """
    settings = TrainingSettings(admm_epochs=epochs, retrain_epochs=retrain_epochs, learning_rate=lr,
                                retrain_rate=retrain_lr, rho=rho, rho_growth=rho_growth, batch_size=batch, seed=seed)
    return _constrain(clone(model), data, settings, block_size, loss, on_epoch)[0]


def _constrain(model: nn.Module, data: Dataset, settings: TrainingSettings, block_size: int | Mapping[str, int],
               loss: Loss, progress: Progress | None) -> tuple[nn.Module, float]:
    """The block-circulant model, and its accuracy before it was retrained; ``model`` is trained on the way."""
    admm = Admm(model, block_size, rho=settings.rho, growth=settings.rho_growth, rho_max=settings.rho_max,
                tolerance=settings.tolerance)
    _phase("admm", model, data, settings, settings.admm_epochs, settings.learning_rate, loss, progress, admm)
    circulant = compress(model, block_size)
    projected = evaluate(circulant, data)
    _phase("retrain", circulant, data, settings, settings.retrain_epochs, settings.retrain_rate, loss, progress)
    return circulant, projected


def _phase(phase: str, model: nn.Module, data: Dataset, settings: TrainingSettings, epochs: int, lr: float, loss: Loss,
           progress: Progress | None, admm: Admm | None = None) -> None:
    def on_epoch(epoch: int, metrics: Metrics) -> bool:
        if admm is not None:
            metrics["rho"] = admm.rho
            admm.update()
            metrics["primal"], metrics["dual"] = admm.worst
        if progress is not None:
            progress(phase, epoch, epochs, metrics)
        return admm is not None and admm.converged

    offset = ("dense", "admm", "retrain").index(phase)
    fit(model, data, epochs=epochs, lr=lr, batch=settings.batch_size, seed=settings.seed + offset, loss=loss,
        decay=settings.decay, penalty=admm.penalty if admm else None, on_epoch=on_epoch)


def _recorder(history: list[dict[str, Any]], progress: Progress | None) -> Progress:
    def record(phase: str, epoch: int, epochs: int, metrics: Metrics) -> None:
        history.append({"phase": phase, "epoch": epoch, **metrics})
        if progress is not None:
            progress(phase, epoch, epochs, metrics)

    return record
