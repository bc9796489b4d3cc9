"""What a training of a model of one's own returns."""
from dataclasses import dataclass
from typing import Any

from torch import nn

from circulant.sim.metrics import shown, words
from circulant.training.blocks.constraint import block_sizes
from circulant.training.task.task import Task

__all__ = ["TrainingResult"]


@dataclass(frozen=True, eq=False, repr=False)
class TrainingResult:
    """A trained block-circulant model, and how it came about.

    Members:
        model: block-circulant, where the given one was; `circulant.export` takes it.
        history: one dict for each epoch: phase, epoch, loss, the metric, and for ADMM rho, primal, dual (the worst of
            all matrices) and ``matrices``, the same for each.
        scores: metric on the test set: "projected", after ADMM and the hard projection, where there was any, and
            "circulant", of ``model``.
        task: loss and metric, for `circulant.training.evaluate` and `circulant.training.score`.
    """

    model: nn.Module
    history: list[dict[str, Any]]
    scores: dict[str, float]
    task: Task

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, sorted(set(self.block_sizes.values()))))
        return (f"<TrainingResult {words(self.metric)} {shown(self.metric, self.score)}, block size {sizes}, "
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
