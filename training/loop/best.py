"""The best weights of a phase, and when it has gone on for long enough without better ones."""
from typing import TypedDict

from torch import Tensor, nn

from circulant.training.task.task import Task

__all__ = ["Best", "BestState"]


class BestState(TypedDict):
    """The state of a phase's best weights, as a checkpoint has it."""

    score: float | None
    epoch: int
    weights: dict[str, Tensor]


class Best:
    """The weights with the best metric so far.

    Parameters:
        task: of the metric.
        patience: epochs without a better one after which the phase ends; 0 keeps no weights and ends nothing.

    Members:
        score: their metric; None where nothing is kept.
        weights: state dict.
    """

    def __init__(self, task: Task, patience: int) -> None:
        self._sign, self._patience = 1 if task.higher_is_better else -1, patience
        self.score: float | None = None
        self.weights: dict[str, Tensor] = {}
        self._epoch = 0

    def see(self, model: nn.Module, epoch: int, score: float | None) -> None:
        """Keep the weights after an epoch where its metric was measured and is better."""
        if not self._patience or score is None:
            return
        if self.score is None or self._sign * (score - self.score) > 0:
            self.score, self._epoch = score, epoch
            self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}

    def ends(self, epoch: int) -> bool:
        """Whether the phase is over after this epoch."""
        return self.score is not None and epoch - self._epoch >= self._patience

    def state_dict(self) -> BestState:
        """The state, to go on from."""
        return {"score": self.score, "epoch": self._epoch, "weights": self.weights}

    def load_state_dict(self, state: BestState | None) -> None:
        """Go on from a state; None is that of a phase which kept nothing."""
        if state is not None:
            self.score, self._epoch, self.weights = state["score"], state["epoch"], dict(state["weights"])
