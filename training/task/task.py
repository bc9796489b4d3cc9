"""The task of a network: the loss, the metric and its direction, for each kind of target."""
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import cross_entropy, ctc_loss
from torch.optim import Optimizer

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.task.batches import Batch, Part
from circulant.training.task.decode import Labels, edits, greedy
from circulant.training.task.loaded import Loaded
from circulant.training.task.losses import Loss, choose_loss, loss_name, scalar
from circulant.training.task.metrics import Measure, Metric, choose_metric, summed

__all__ = ["Classification", "Ctc", "Loss", "MultiLabel", "Regression", "Task", "task_of"]

HALF = (torch.float16, torch.bfloat16)


class Task(ABC):
    """The task of a network.

    Parameters:
        classes: outputs of a model, for a sample or a step.
        measured: the metric.

    Members:
        kind: of its targets; see `Dataset.task`.
        metric: name of the figure that counts.
        higher_is_better: the direction of the metric.
        pads: whether the outputs of padded steps are left out, so that sequences of different lengths may share a
            batch.
        per_step: whether each step has a target of its own, and counts as much as any other.
        chosen: names of a loss and of a metric that are not the defaults.
    """

    kind: str
    pads: bool
    per_step = False

    def __init__(self, classes: int, measured: Metric, chosen: dict[str, str] | None = None) -> None:
        self.classes, self.measured, self.chosen = classes, measured, chosen or {}
        self.metric, self.higher_is_better = measured.name, measured.higher_is_better

    @property
    def auxiliary_modules(self) -> dict[str, tuple[Module, Optimizer]]:
        """By name, what the loss trains for itself beside the model, and by which optimizer."""
        return {}

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """The mean over the samples of a batch, or over its steps where each has a target; differentiable."""

    @abstractmethod
    def tally(self, outputs: Tensor, batch: Batch) -> Any:
        """Contribution of a batch to the metric."""

    @abstractmethod
    def constant(self, batches: Sequence[Batch]) -> Tensor | None:
        """The output (classes,) that is the best one for all samples of a set; None where outputs may be anything."""

    def figure(self, tallies: Sequence[Any]) -> float:
        """The metric of what all batches added."""
        return self.measured.figure(tallies)

    def score(self, outputs: NDArray, data: Dataset) -> float:
        """The metric of outputs for the whole test set, in its order."""
        part = Part(data, "test", torch.device("cpu"))
        return self.figure([self.tally(torch.from_numpy(outputs), part.take(torch.arange(len(part))))])

    @abstractmethod
    def check(self, outputs: Tensor, batch: Batch) -> None:
        """Check that the outputs of a model are such as the targets ask for.

        Raises:
            Refusal: when they have another shape.
        """


class _Supervised(Task):
    """Targets that outputs are compared with one by one, for samples or for steps.

    Loss and metric are functions of outputs (M, classes) and targets (M, …), for M samples, or for the steps of all
    sequences of a batch that are no padding.

    Parameters:
        per_step: whether there is a target at each step.
        loss, metric, higher_is_better: as for `task_of`.
    """

    def __init__(self, classes: int, *, per_step: bool = False, loss: str | Loss | None = None,
                 metric: str | Measure | None = None, higher_is_better: bool | None = None) -> None:
        chosen = {name: loss_name(value) for name, value in (("loss", loss), ("metric", metric)) if value is not None}
        super().__init__(classes, choose_metric(self.kind, metric, higher_is_better), chosen)
        self._loss, self._name = choose_loss(self.kind, loss), loss_name(loss or "")
        self._free = callable(loss) and callable(metric)
        self.per_step = self.pads = per_step

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        outputs, targets = self._pairs(outputs, batch)
        if len(outputs) != len(targets):
            raise Refusal(f"Outputs must be as many as targets, but the model gives {len(outputs)} for {len(targets)}; "
                          "let it give one for each sample" + (" and step" if self.per_step else ""))
        return scalar(self._loss(_full(outputs), targets), self._name)

    def tally(self, outputs: Tensor, batch: Batch) -> Any:
        return self.measured.tally(*self._pairs(outputs, batch))

    def constant(self, batches: Sequence[Batch]) -> Tensor | None:
        if self._free:
            return None
        return self._best(torch.cat([self._pairs(batch.y, batch)[1] for batch in batches]))

    @abstractmethod
    def _best(self, targets: Tensor) -> Tensor:
        """The output that is the best one for all targets (M, …)."""

    def check(self, outputs: Tensor, batch: Batch) -> None:
        if self._free:  # Both are the user's own, who may give outputs of any shape.
            return
        wanted = (*batch.x.shape[:2 if self.per_step else 1], self.classes)
        last = outputs.shape[-1] if outputs.ndim else 0
        if outputs.shape[:-1] != wanted[:-1] or not self._fits(last):
            axes = f"({'N, steps' if self.per_step else 'N'}, {self.classes or 'classes'})"
            way = "choose a model that returns every step, with" if self.per_step else "end the model with"
            raise Refusal(f"{self._words()} must have outputs {axes}, not {tuple(outputs.shape)}; {way} a Linear of "
                          f"{self.classes or 'so many'} outputs")

    def _fits(self, outputs: int) -> bool:
        return outputs == self.classes

    @abstractmethod
    def _words(self) -> str:
        """The task with its number of outputs."""

    def _pairs(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Outputs and targets of what counts, with samples or steps on the first axis."""
        if not self.per_step or outputs.ndim < 2:
            return outputs, batch.y
        if batch.lengths is None:
            return outputs.flatten(0, 1), batch.y.flatten(0, 1)
        valid = (torch.arange(batch.x.shape[1]) < batch.lengths[:, None]).to(outputs.device)
        return outputs[valid], batch.y[valid]


class Classification(_Supervised):
    """One class for each sample or step: cross entropy, and the accuracy of the greatest output.

    Parameters:
        smoothing: of the labels: this part of each is spread over all classes.
    """

    kind = "classification"

    def __init__(self, classes: int, *, smoothing: float = 0.0, **more: Any) -> None:
        super().__init__(classes, **more)
        if smoothing and "loss" not in self.chosen:
            self._loss = partial(cross_entropy, label_smoothing=smoothing)

    def _fits(self, outputs: int) -> bool:
        return outputs >= self.classes

    def _best(self, targets: Tensor) -> Tensor:
        return targets.bincount(minlength=self.classes).float()

    def _words(self) -> str:
        return f"A classification into {self.classes} classes" if self.classes else "A classification"

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        if not self.classes and outputs.ndim > 1 and batch.y.max() >= outputs.shape[-1]:
            raise Refusal(f"Classes must be from 0 to {outputs.shape[-1] - 1}, as the model has {outputs.shape[-1]} "
                          f"outputs, not up to {int(batch.y.max())}; give the model more, or renumber them")
        return super().loss(outputs, batch)


class Regression(_Supervised):
    """Numbers for each sample or step: the squared error, and R²."""

    kind = "regression"

    def _best(self, targets: Tensor) -> Tensor:
        return targets.double().mean(0).float()

    def _words(self) -> str:
        return f"A regression of {self.classes} values"


class MultiLabel(_Supervised):
    """Any of the labels for each sample or step, where outputs are above 0: binary cross entropy, and F1."""

    kind = "multi-label"

    def _best(self, targets: Tensor) -> Tensor:
        return targets.new_ones(self.classes, dtype=torch.float32)

    def _words(self) -> str:
        return f"Targets of {self.classes} labels"


class Ctc(Task):
    """A sequence of symbols for each sequence of steps, from outputs (N, T, classes) of which class 0 is the blank.

    The loss is connectionist temporal classification (Graves et al., ICML 2006), in nats per symbol; the metric is the
    phone error rate: insertions, deletions and substitutions over the number of symbols, of the best path.
    """

    kind, pads = "ctc", True

    def __init__(self, classes: int) -> None:
        super().__init__(classes, summed("phone_error_rate", False, _errors))

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        steps, symbols = _lengths(outputs, batch)
        scores = _full(outputs).log_softmax(-1).transpose(0, 1)
        each = ctc_loss(scores, batch.y, steps, symbols, reduction="none")
        return (each / symbols.to(each)).mean()

    def constant(self, batches: Sequence[Batch]) -> Tensor | None:
        return torch.eye(self.classes)[0]

    def tally(self, outputs: Tensor, batch: Batch) -> tuple[float, float]:
        steps, symbols = _lengths(outputs, batch)
        found = greedy(_full(outputs).log_softmax(-1).cpu().numpy(), steps.numpy())
        sums: tuple[float, float] = self.measured.tally(found, (batch.y.cpu().numpy(), symbols.numpy()))
        return sums

    def check(self, outputs: Tensor, batch: Batch) -> None:
        if outputs.ndim != 3 or outputs.shape[:2] != batch.x.shape[:2] or outputs.shape[2] != self.classes:
            n, t = batch.x.shape[:2]
            raise Refusal(f"Sequences of {self.classes - 1} symbols and the blank must have outputs "
                          f"{n, t, self.classes}, not {tuple(outputs.shape)}; choose a model that returns every step")


SUPERVISED: dict[str, type[_Supervised]] = {"regression": Regression, "multi-label": MultiLabel}


def task_of(data: Dataset | Loaded, *, loss: str | Loss | None = None, metric: str | Measure | None = None,
            higher_is_better: bool | None = None, smoothing: float = 0.0) -> Task:
    """The task of a data set.

    Parameters:
        loss: one of `LOSSES` by name, or a function of (outputs, targets), a mean over the batch; None for the first of
            the task.
        metric: one of `METRICS` by name, or a function of (outputs, targets) of the whole test set; None for the first
            of the task.
        higher_is_better: the direction of a metric that is a function.
        smoothing: of the labels of a classification.

    Raises:
        Refusal: when the data set takes no such loss or metric, or no smoothing.
    """
    if data.task == "ctc":
        if loss is not None or metric is not None or smoothing:
            other = ("another loss" if loss is not None else "another metric" if metric is not None else
                     f"label smoothing {smoothing:g}")
            raise Refusal(f"A data set of sequences of symbols must be trained with the loss of CTC, not with {other}; "
                          "leave it out")
        return Ctc(data.classes)
    if smoothing and data.task != "classification":
        raise Refusal(f"Label smoothing must be of a classification, not {smoothing:g} of a {data.task}; leave it out")
    kind = partial(Classification, smoothing=smoothing) if data.task == "classification" else SUPERVISED[data.task]
    return kind(data.classes, per_step=data.per_step, loss=loss, metric=metric, higher_is_better=higher_is_better)


def _full(outputs: Tensor) -> Tensor:
    """Outputs in at least 32 bits."""
    return outputs.float() if outputs.dtype in HALF else outputs


def _errors(found: Sequence[Labels], targets: tuple[NDArray, NDArray]) -> tuple[float, float]:
    """Insertions, deletions and substitutions, and the number of symbols."""
    return float(edits(found, *targets).sum()), float(targets[1].sum())


def _lengths(outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Steps and symbols of each sequence."""
    full = batch.indices.new_full((len(outputs),), outputs.shape[1])
    assert batch.target_lengths is not None, "a data set of sequences of symbols has their lengths"
    return full if batch.lengths is None else batch.lengths, batch.target_lengths
