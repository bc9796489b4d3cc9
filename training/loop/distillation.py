"""A task whose targets are the outputs of another model: what a network does is kept while its weights change."""
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from circulant.training.blocks.clone import clone
from circulant.training.loop.hints import Hints
from circulant.training.loop.loop import forward
from circulant.training.loop.sensitivity import Sensitivity
from circulant.training.task.batches import Batch
from circulant.training.task.task import Task

__all__ = ["DistillationTask"]


class DistillationTask(Task):
    """The task of a model that shall compute what its teacher computes (Hinton et al. 2015, at high temperature).

    The loss is the squared distance of the outputs in parts of the teacher's square, at the valid steps; of classes
    both less their mean, which decides nothing. It says more of a sample than its label: also by how much each class is
    behind, which is what rounding changes first. A network that gets all of its training data right learns nothing from
    labels but to be surer of them, and drifts away.

    Parameters:
        task: of the data; the metric stays its own.
        teacher: it is copied.
        weight: of the distance in the loss; the rest is the loss of the task.
        student, hints: the model, and the weight of its `Hints` in the loss, beyond the two parts; 0 for none.
        sensitivity: of the student, to add what wrong bits in its weights add to the distance, beyond the two parts.

    Raises:
        Refusal: as `Hints`.
    """

    def __init__(self, task: Task, teacher: nn.Module, *, weight: float = 1.0, student: nn.Module | None = None,
                 hints: float = 0.0, sensitivity: Sensitivity | None = None) -> None:
        super().__init__(task.classes, task.measured, task.chosen)
        self._task, self._teacher, self._weight = task, clone(teacher).eval(), weight
        self.kind, self.pads, self.per_step = task.kind, task.pads, task.per_step
        self._hints, self._hint_weight = Hints(student, self._teacher) if student is not None and hints else None, hints
        self._sensitivity = sensitivity

    @property
    def auxiliary_modules(self) -> dict[str, tuple[nn.Module, Optimizer]]:
        return {} if self._hints is None else {"hints": (self._hints.maps, self._hints.optimizer)}

    def close(self) -> None:
        """End of the training: the student's recurrent layers are no longer observed."""
        if self._hints is not None:
            self._hints.close()

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        with torch.no_grad():
            wanted = self._compared(forward(self._teacher.to(batch.x.device), batch), batch)
        compared, power = self._compared(outputs, batch), wanted.square().sum().clamp(min=1e-30)
        loss = distance = (compared - wanted).square().sum() / power
        if self._weight != 1:
            loss = self._weight * distance + (1 - self._weight) * self._task.loss(outputs, batch)
        if self._sensitivity is not None:
            loss = loss + self._sensitivity(compared) / power
        return loss if self._hints is None else loss + self._hint_weight * self._hints.distance(batch.lengths)

    def tally(self, outputs: Tensor, batch: Batch) -> Any:
        return self._task.tally(outputs, batch)

    def constant(self, batches: Sequence[Batch]) -> Tensor | None:
        return self._task.constant(batches)

    def check(self, outputs: Tensor, batch: Batch) -> None:
        self._task.check(outputs, batch)

    def _compared(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Outputs (N, classes) or (N, T, classes), of classes less their mean; zero behind the end of a sequence."""
        outputs = outputs.float()
        if self.kind in ("classification", "ctc"):
            outputs = outputs - outputs.mean(-1, keepdim=True)
        if batch.lengths is None or outputs.ndim < 3:
            return outputs
        valid = torch.arange(outputs.shape[1], device=outputs.device) < batch.lengths.to(outputs.device)[:, None]
        return outputs * valid[..., None]
