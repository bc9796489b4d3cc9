"""From a model to a block-circulant one: by ADMM, hard projection and retraining (E-RNN, section 4), or directly."""
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from circulant.sim.metrics import shown, words
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.blocks.constraint import assign, block_sizes, resolve
from circulant.training.blocks.matrices import matrices, owner
from circulant.training.blocks.paths import Costs
from circulant.training.capture import inspect
from circulant.training.data import Dataset
from circulant.training.loop.display import Display
from circulant.training.loop.loop import evaluate
from circulant.training.loop.metrics import Metrics
from circulant.training.loop.notes import chance
from circulant.training.loop.runtime import choose_device, process_group
from circulant.training.loop.trainer import Progress, Trainer
from circulant.training.models.cells import Recurrent
from circulant.training.models.models import build, described
from circulant.training.settings.compression import CompressionSettings
from circulant.training.settings.model import ModelSettings
from circulant.training.settings.training import METHODS, TrainingSettings, idle
from circulant.training.task.losses import Loss
from circulant.training.task.metrics import Measure
from circulant.training.task.samples import Given, Samples, samples
from circulant.training.task.task import Task, task_of

__all__ = ["Progress", "Trained", "TrainingSettings", "TrainingResult", "train", "train_admm", "train_direct"]

BLOCK_SIZE = cast(int, CompressionSettings.block_size)


@dataclass(frozen=True, eq=False, repr=False)
class Trained:
    """A finished training.

    Members:
        data, inputs, classes: name of the data set, shape of its samples, and number of its classes.
        model_settings, settings: what it was made with.
        dense: state dict of the dense baseline.
        model: the block-circulant model, on the CPU.
        history: one dict for each epoch: phase, epoch, loss, the metric, and for ADMM rho, primal, dual (the worst of
            all matrices) and ``matrices``, the same for each.
        metric, higher_is_better: what the scores are: "accuracy", or "phone_error_rate", of which less is better.
        scores: on the test set: "dense", the baseline, where one was trained or given; "projected", after ADMM and the
            hard projection, where there was any; "circulant", of ``model``.
        earlier: seconds, and seconds of processor time, that a training which was resumed took up to its checkpoint.
        notes: sentences on what did not go well.
    """

    data: str
    inputs: tuple[int, ...]
    classes: int
    model_settings: ModelSettings
    settings: TrainingSettings
    dense: dict[str, Tensor]
    model: nn.Module
    history: list[Metrics]
    metric: str
    higher_is_better: bool
    scores: dict[str, float]
    earlier: tuple[float, float] = (0.0, 0.0)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        scores = ", ".join(f"{stage} {shown(self.metric, score)}" for stage, score in self.scores.items())
        return f"<Trained {self.model_settings.kind} on {self.data!r}: {self.metric} {scores}>"

    @property
    def block_sizes(self) -> dict[str, int]:
        """The block size of every matrix, by parameter name."""
        return block_sizes(self.model)

    @property
    def table(self) -> dict[str, int]:
        """The block size of each module, as `compression.block_size` takes it; the larger one where some matrices of a
        module stayed dense."""
        found: dict[str, int] = {}
        for name, k in self.block_sizes.items():
            found[owner(name)] = max(k, found.get(owner(name), 1))
        return found

    def dense_model(self) -> nn.Module:
        """The dense baseline."""
        model = build(self.model_settings, self.inputs, self.classes)
        model.load_state_dict(self.dense)
        return model


@dataclass(frozen=True, eq=False, repr=False)
class TrainingResult:
    """A trained block-circulant model, with the history of its training.

    Members:
        model: block-circulant, where the given one was; `circulant.export` takes it.
        history: one dict for each epoch: phase, epoch, loss, the metric, and for ADMM rho, primal, dual (the worst of
            all matrices) and ``matrices``, the same for each.
        scores: metric on the test set: "dense", of the dense baseline; "projected", after ADMM and the hard projection,
            where there was any; and "circulant", of ``model``.
        task: loss and metric, for `circulant.training.evaluate` and `circulant.training.score`.
        data: what was trained and measured on; of arrays a `Dataset`, as `circulant.save_run` takes it.
        notes: sentences on what did not go well; they are logged, too, by the logger "circulant".
    """

    model: nn.Module
    history: list[Metrics]
    scores: dict[str, float]
    task: Task
    data: Samples
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, sorted(set(self.block_sizes.values()))))
        return (f"<TrainingResult {words(self.metric)} {shown(self.metric, self.score)} "
                f"(dense {shown(self.metric, self.scores['dense'])}), block size {sizes}, "
                f"{len(self.history)} epochs>")

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.task.metric

    @property
    def score(self) -> float:
        """The metric of the model on the test set."""
        return self.scores["circulant"]

    @property
    def block_sizes(self) -> dict[str, int]:
        """The block size of every matrix, by parameter name."""
        return block_sizes(self.model)


def train(data: Dataset, settings: TrainingSettings, *, model: ModelSettings | None = None,
          block_size: int | Mapping[str, int] = BLOCK_SIZE, progress: Progress | None = None,
          checkpoint: str | Path | None = None, resume: bool | None = False,
          dense: Mapping[str, Tensor] | None = None, costs: Costs | None = None) -> Trained:
    """Train the dense baseline, and the block-circulant model by the method of the settings.

    Under `torchrun` all processes train together, and all return the same.

    Parameters:
        checkpoint: a file that keeps the state of the last good epoch; it stays when the training is finished.
        resume: whether to go on from it; None does so where it is of this training. On a CPU the outcome
            is that of a training that was never stopped, bit for bit.
        dense: state dict of a dense baseline of this model, in place of the phase that trains one.
        costs: of each module by block size, for the method "search", whose bound is the cost of ``block_size``; by
            default the numbers of its first columns, to which weight bits are proportional.

    Raises:
        Refusal: as `compress` (before anything is trained) and `fit`; a checkpoint of another training.
    """
    model = model or ModelSettings()
    task = task_of(data, loss=None if settings.loss == "auto" else settings.loss, smoothing=settings.label_smoothing)
    network = build(model, data.shape, data.classes, seed=settings.seed)
    block_size = assign(network, block_size, model.dense)
    resolve(network, block_size)
    phases = METHODS[settings.method] if dense is None else METHODS[settings.method][1:]
    with process_group() as team:
        trainer = Trainer(network.to(choose_device(settings.device)), data, task=task, settings=settings, phases=phases,
                          block_size=block_size,
                          team=team, progress=progress, checkpoint=checkpoint, about={"model": described(model)},
                          dense=dense, costs=costs)
        circulant = trainer.run(resume=resume)
    return Trained(data.name, inputs=data.shape, classes=data.classes, model_settings=model, settings=settings,
                   dense=trainer.dense, model=circulant.cpu(),
                   history=trainer.history, metric=task.metric, higher_is_better=task.higher_is_better,
                   scores=trainer.scores, earlier=trainer.earlier, notes=tuple(trainer.notes))


CALLED = {"learning_rate": "lr", "batch_size": "batch"}
"""Fields of the settings that the functions below take by shorter names."""

DECAY, DIRECT_DECAY, SMOOTHED, TAUGHT = 0.3, 0.2, 0.1, 0.5
"""Settings against overfitting, found with held-out samples (docs/archive/training.md): weight decay with ADMM and with
direct training, label smoothing, and the weight of a distillation, which recurrent layers prefer with ADMM."""

TAKEN = ("Direct training begins with the projection of the model's weights, rescaled to their variance, which is no "
         "longer what the model learned; start = 'dense' keeps it")


@public(more=TrainingSettings, idle=idle("dense", "admm", "retrain"), called=CALLED | {
    "method": "a call of train_direct", "admm_epochs": "epochs", "retrain_rate": "retrain_lr"})
def train_admm(model: nn.Module, data: Given, *, test: Given | None = None, loss: str | Loss | None = None,
               metric: str | Measure | None = None, higher_is_better: bool | None = None,
               block_size: int | Mapping[str, int] | None = None, epochs: int = TrainingSettings.admm_epochs,
               retrain_epochs: int = TrainingSettings.retrain_epochs, dense_epochs: int | None = None,
               lr: float = TrainingSettings.learning_rate, retrain_lr: float = TrainingSettings.retrain_rate,
               rho: float | Mapping[str, float] = TrainingSettings.rho, batch: int = TrainingSettings.batch_size,
               seed: int = TrainingSettings.seed, progress: bool = True,
               on_epoch: Progress | None = None, checkpoint: str | Path | None = None, resume: bool = False,
               **settings: Any) -> TrainingResult:
    """Train a block-circulant model from one with dense weights, which stays as it is.

    The dense baseline for ``dense_epochs``, ADMM for ``epochs``, hard projection by `compress`, ``retrain_epochs``
    inside the set, where the model is.

    Parameters:
        data: a `Dataset`, arrays (x, y) or (x, y, lengths), or a Dataset or DataLoader of torch, whose batches are
            such. Floats are the targets of a regression, integers classes, truth values labels; with an axis of steps,
            at each step.
        test: the test set, where ``data`` is none of ours; without it a fifth of the samples, which the seed chooses.
        loss: "cross_entropy", "mse", "l1", "huber" or "bce", or a function of (outputs, targets), of which each is of
            as many samples or valid steps; None for the first of the targets' kind.
        metric: "accuracy", "r2", "rmse", "mse", "mae" or "f1", or a function of (outputs, targets) of the whole test
            part; None for the first of the kind.
        higher_is_better: the direction of a metric that is a function.
        block_size: None for 8, except where a matrix has fewer outputs, which then stays dense.
        dense_epochs: None for as many as of ADMM; 0 for a model that is trained, which then is the baseline itself.
        seed: of the order of the batches, of dropout and of the test set; the weights are the model's own.
        progress: whether it is shown on stderr.
        on_epoch: called after each epoch with the phase, the epoch from 1, their number, and the metrics.
        checkpoint, resume: as for `train`.
        settings: further fields of `TrainingSettings`. Where they are left out, ``averaging`` is "ema". A model with
            recurrent layers then has a ``distillation`` of 0.5, or 0 where ``dense_epochs`` is given; another one has
            ``label_smoothing`` 0.1, if it is of classes and without distillation, and "adamw" with a ``weight_decay``
            of 0.3 where both are left out.

    Raises:
        Refusal: before anything is trained as `samples`, `task_of`, `compress` and `Admm`, and when the forward method
            cannot be traced; as `fit`; a checkpoint of another training.
    """
    read = samples(data, test, loss=loss, seed=seed, batch=batch)
    recurrent = any(isinstance(matrix.module, nn.RNNBase | Recurrent) for matrix in matrices(model).values())
    settings = ({"averaging": "ema", "distillation": TAUGHT if dense_epochs is None else 0.0, **settings} if recurrent
                else _regular(read, DECAY, settings))
    chosen = TrainingSettings(admm_epochs=epochs, retrain_epochs=retrain_epochs,
                              dense_epochs=epochs if dense_epochs is None else dense_epochs, learning_rate=lr,
                              retrain_rate=retrain_lr, rho=dict(rho) if isinstance(rho, Mapping) else rho,
                              batch_size=batch, seed=seed, **settings)
    task = task_of(read, loss=loss, metric=metric, higher_is_better=higher_is_better, smoothing=chosen.label_smoothing)
    return _alone(model, read, task, settings=chosen, phases=("admm", "retrain"), block_size=block_size,
                  visible=progress, on_epoch=on_epoch, checkpoint=checkpoint, resume=resume)


@public(more=TrainingSettings, idle=idle("dense", "direct"), called=CALLED | {
    "method": "a call of train_admm", "direct_epochs": "epochs"})
def train_direct(model: nn.Module, data: Given, *, test: Given | None = None, loss: str | Loss | None = None,
                 metric: str | Measure | None = None, higher_is_better: bool | None = None,
                 block_size: int | Mapping[str, int] | None = None, epochs: int = TrainingSettings.direct_epochs,
                 dense_epochs: int | None = None, lr: float = TrainingSettings.learning_rate,
                 batch: int = TrainingSettings.batch_size, seed: int = TrainingSettings.seed, progress: bool = True,
                 on_epoch: Progress | None = None, checkpoint: str | Path | None = None,
                 resume: bool = False, **settings: Any) -> TrainingResult:
    """Train a block-circulant model by its first columns alone, from a model which stays as it is.

    Parameters:
        model: straight from its constructor, as for `initialise` (CirCNN), which is where ``start="projected"``, the
            default here, begins; "dense" begins with the dense baseline, as for `inherit`.
        dense_epochs: of the dense baseline, which the result is compared with; None for as many as ``epochs``; 0 for a
            model that is trained, which then is the baseline itself.
        data, test, loss, metric, higher_is_better, block_size, seed, progress, on_epoch, checkpoint, resume: as for
            `train_admm`.
        settings: further fields of `TrainingSettings`. Where they are left out, ``averaging`` is "ema", of classes
            without distillation ``label_smoothing`` 0.1, and where ``optimizer`` and ``weight_decay`` both are, "adamw"
            and 0.2.

    Raises:
        Refusal: before anything is trained as `samples`, `task_of` and `compress`, and when the forward method cannot
            be traced; as `fit`; a checkpoint of another training.
    """
    said = []
    if settings.get("start", "auto") == "auto":
        settings["start"] = "projected"
        said = [TAKEN] if dense_epochs == 0 and block_size != 1 else []
    read = samples(data, test, loss=loss, seed=seed, batch=batch)
    chosen = TrainingSettings(method="direct", direct_epochs=epochs, learning_rate=lr, batch_size=batch, seed=seed,
                              dense_epochs=epochs if dense_epochs is None else dense_epochs,
                              **_regular(read, DIRECT_DECAY, settings))
    task = task_of(read, loss=loss, metric=metric, higher_is_better=higher_is_better, smoothing=chosen.label_smoothing)
    return _alone(model, read, task, settings=chosen, phases=("direct",), block_size=block_size, visible=progress,
                  on_epoch=on_epoch, checkpoint=checkpoint, resume=resume, said=said)


def _regular(data: Samples, decay: float, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, and those against overfitting that they leave out."""
    decayed = {"optimizer": "adamw", "weight_decay": decay}
    smoothed = data.task == "classification" and not settings.get("distillation")
    return {"averaging": "ema", **(decayed if decayed.keys().isdisjoint(settings) else {}),
            **({"label_smoothing": SMOOTHED} if smoothed else {}), **settings}


def _alone(model: nn.Module, data: Samples, task: Task, *, settings: TrainingSettings, phases: tuple[str, ...],
           block_size: int | Mapping[str, int] | None, visible: bool, on_epoch: Progress | None,
           checkpoint: str | Path | None, resume: bool, said: Sequence[str] = ()) -> TrainingResult:
    """The result of phases, before which the dense baseline is trained, or is the model itself.

    Parameters:
        said: the first of its notes.
    """
    phases, dense = (("dense", *phases), None) if settings.dense_epochs else (phases, model.state_dict())
    if block_size is None:
        block_size = {name: BLOCK_SIZE if matrix.rows >= BLOCK_SIZE else 1 for name, matrix in matrices(model).items()}
    resolve(model, block_size)
    inspect(model, data.sample).require_traced()
    if dense is not None:
        _require_taught(model, data, task, settings)
    with process_group() as team, Display(task.metric, visible=visible and team.leads) as display:
        def progress(phase: str, epoch: int, epochs: int, metrics: Metrics) -> None:
            display(phase, epoch, epochs, metrics)
            if on_epoch is not None:
                on_epoch(phase, epoch, epochs, metrics)

        trainer = Trainer(clone(model), data, task=task, settings=settings, phases=phases, block_size=block_size,
                          team=team, progress=progress, checkpoint=checkpoint, about=task.chosen, dense=dense)
        trained = trainer.run(resume=resume)
    notes = (*said, *trainer.notes)
    for note in notes if team.leads else ():
        logging.getLogger("circulant").warning(note)
    return TrainingResult(trained, trainer.history, trainer.scores, task=task, data=data,
                          notes=notes)


def _require_taught(model: nn.Module, data: Samples, task: Task, settings: TrainingSettings) -> None:
    """Refuse to learn from a model that was never trained, or to keep its weights."""
    asked: dict[str, object] = {"distillation": settings.distillation} if settings.distillation else {}
    asked |= {"start": settings.start} if settings.start == "dense" else {}
    if asked and (guessed := chance(evaluate(model, data, task=task), data, task)):
        name, value = next(iter(asked.items()))
        raise Refusal(f"{name} = {value!r} must have a model that is trained, but the one given has {guessed}; train "
                      "it first, or give dense_epochs")
