"""Losses: those of each task by name, and functions of one's own, which may be known to be of a task."""
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from circulant.sim.refusal import Refusal, nearest

__all__ = ["LOSSES", "Loss", "choose_loss", "loss_name", "scalar", "task_of_loss"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""A loss of (outputs, targets), a mean over the batch."""


def _labels(outputs: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype))


LOSSES: dict[str, dict[str, Loss]] = {
    "classification": {"cross_entropy": functional.cross_entropy},
    "regression": {"mse": functional.mse_loss, "l1": functional.l1_loss, "huber": functional.huber_loss},
    "multi-label": {"bce": _labels},
}
"""By task its losses by name; the first is the default."""

KNOWN = {
    "classification": (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss, functional.cross_entropy,
                       functional.nll_loss, functional.multi_margin_loss),
    "regression": (nn.MSELoss, nn.L1Loss, nn.HuberLoss, nn.SmoothL1Loss, functional.mse_loss, functional.l1_loss,
                   functional.huber_loss, functional.smooth_l1_loss),
    "multi-label": (nn.BCEWithLogitsLoss, nn.MultiLabelSoftMarginLoss, functional.binary_cross_entropy_with_logits,
                    functional.multilabel_soft_margin_loss),
}
"""torch's own, by the task whose targets they take."""


def loss_name(loss: str | Loss) -> str:
    """The name of a loss for people."""
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)


def task_of_loss(loss: str | Loss | None) -> str | None:
    """The task whose targets a loss takes; None where that is not known.

    Raises:
        Refusal: when no loss has this name.
    """
    if isinstance(loss, str):
        found = next((task for task, losses in LOSSES.items() if loss in losses), None)
        if found is None:
            names = [name for losses in LOSSES.values() for name in losses]
            raise Refusal(f"A loss must be one of {', '.join(map(repr, names))}, or a function of (outputs, targets), "
                          f"not {loss!r}{nearest(loss, names)}")
        return found
    return next((task for task, known in KNOWN.items() if loss in known or type(loss) in known), None)


def choose_loss(task: str, loss: str | Loss | None) -> Loss:
    """The loss of a task: its default, one of its names, or a function of (outputs, targets).

    Raises:
        Refusal: when the loss is known to take the targets of another task.
    """
    if loss is None:
        return next(iter(LOSSES[task].values()))
    if (of := task_of_loss(loss)) not in (None, task):
        raise Refusal(f"Targets must be those that the loss {loss_name(loss)!r} takes, of a {of}, but they are of a "
                      f"{task}; choose {' or '.join(map(repr, LOSSES[task]))}, or give targets of a {of}")
    if isinstance(loss, str):
        return LOSSES[task][loss]
    return (lambda outputs, labels: loss(outputs, labels.to(outputs.dtype))) if of == "multi-label" else loss


def scalar(value: object, name: str) -> Tensor:
    """The value that a loss returned.

    Raises:
        Refusal: when it is no tensor of one number.
    """
    if isinstance(value, Tensor) and value.ndim == 0:
        return value
    given = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
    raise Refusal(f"A loss must return a tensor of one number, but {name!r} returns {given}; end it with .mean()")
