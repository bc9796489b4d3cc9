"""The task of a network: the loss, the metric and its direction, for each kind of target."""
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import cross_entropy, ctc_loss
from torch.optim import Optimizer

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.task.batches import Batch, Part
from circulant.training.task.decode import edits, greedy

__all__ = ["Classification", "Ctc", "Loss", "Task", "task_of"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""A loss of (outputs, targets), a mean over the batch."""


class Task(ABC):
    """The task of a network.

    Members:
        metric: name of the figure that counts.
        higher_is_better: the direction of the metric.
        pads: whether the outputs of padded steps are left out, so that sequences of different lengths may share a
            batch.
    """

    metric: str
    higher_is_better: bool
    pads: bool

    def __init__(self, classes: int) -> None:
        self.classes = classes

    @property
    def auxiliary_modules(self) -> dict[str, tuple[Module, Optimizer]]:
        """By name, what the loss trains for itself beside the model, and by which optimizer."""
        return {}

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """The mean over the samples of a batch, differentiable."""

    @abstractmethod
    def tally(self, outputs: Tensor, batch: Batch) -> tuple[float, float]:
        """The share of a batch in the numerator and in the denominator of the metric."""

    def score(self, outputs: NDArray, data: Dataset) -> float:
        """The metric of outputs for the whole test part, in its order."""
        part = Part(data, "test", torch.device("cpu"))
        part_of, of = self.tally(torch.from_numpy(outputs), part.take(torch.arange(len(part))))
        return part_of / of

    @abstractmethod
    def check(self, outputs: Tensor, batch: Batch) -> None:
        """See that the outputs of a model are such as the targets ask for.

        Raises:
            Refusal: when they have another shape.
        """


class Classification(Task):
    """One class for each sample, from outputs (N, classes): cross entropy, and the accuracy of the greatest output.

    Parameters:
        smoothing: of the labels: this part of each is spread over all classes.
        loss: another loss of (outputs, classes).
    """

    metric, higher_is_better, pads = "accuracy", True, False

    def __init__(self, classes: int, *, smoothing: float = 0.0, loss: Loss | None = None) -> None:
        super().__init__(classes)
        self._smoothing, self._loss = smoothing, loss

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        if self._loss is not None:
            return self._loss(outputs, batch.y)
        return cross_entropy(outputs.float(), batch.y, label_smoothing=self._smoothing)

    def tally(self, outputs: Tensor, batch: Batch) -> tuple[float, float]:
        return float((outputs.argmax(-1) == batch.y).sum()), float(len(batch.y))

    def check(self, outputs: Tensor, batch: Batch) -> None:
        if outputs.ndim != 2 or len(outputs) != len(batch.x) or outputs.shape[1] < self.classes:
            raise Refusal(f"A classification into {self.classes} must have outputs (N, {self.classes}), not "
                          f"{tuple(outputs.shape)}; end the model with a Linear of {self.classes} outputs")


class Ctc(Task):
    """A sequence of symbols for each sequence of steps, from outputs (N, T, classes) of which class 0 is the blank.

    The loss is connectionist temporal classification (Graves et al., ICML 2006), in nats per symbol; the metric is the
    phone error rate: insertions, deletions and substitutions over the number of symbols, of the best path.
    """

    metric, higher_is_better, pads = "phone_error_rate", False, True

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        steps, symbols = _lengths(outputs, batch)
        scores = outputs.float().log_softmax(-1).transpose(0, 1)
        each = ctc_loss(scores, batch.y, steps, symbols, reduction="none")
        return (each / symbols.to(each)).mean()

    def tally(self, outputs: Tensor, batch: Batch) -> tuple[float, float]:
        steps, symbols = _lengths(outputs, batch)
        found = greedy(outputs.float().log_softmax(-1).cpu().numpy(), steps.numpy())
        return float(edits(found, batch.y.cpu().numpy(), symbols.numpy()).sum()), float(symbols.sum())

    def check(self, outputs: Tensor, batch: Batch) -> None:
        if outputs.ndim != 3 or outputs.shape[:2] != batch.x.shape[:2] or outputs.shape[2] != self.classes:
            n, t = batch.x.shape[:2]
            raise Refusal(f"Sequences of {self.classes - 1} symbols and the blank must have outputs "
                          f"{n, t, self.classes}, not {tuple(outputs.shape)}; choose a model that returns every step")


def task_of(data: Dataset, *, loss: Loss | None = None, smoothing: float = 0.0) -> Task:
    """The task of a data set.

    Raises:
        Refusal: when it takes no other loss, or no smoothing.
    """
    if data.task == "classification":
        return Classification(data.classes, smoothing=smoothing, loss=loss)
    if loss is not None or smoothing:
        raise Refusal(f"A data set of sequences of symbols must be trained with the loss of CTC, not with "
                      f"{'another loss' if loss is not None else f'label smoothing {smoothing:g}'}; leave it out")
    return Ctc(data.classes)


def _lengths(outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Steps and symbols of each sequence."""
    full = batch.indices.new_full((len(outputs),), outputs.shape[1])
    assert batch.target_lengths is not None, "a data set of sequences of symbols has their lengths"
    return full if batch.lengths is None else batch.lengths, batch.target_lengths
