"""The metric of the golden model, which takes sequences of one length, on data whose sequences have several."""
from collections.abc import Callable

import torch
from numpy.typing import NDArray
from torch import nn

from circulant.training.batches import Part
from circulant.training.data import Dataset
from circulant.training.loop import exact
from circulant.training.task import task_of

__all__ = ["score"]


def score(run: Callable[[NDArray], NDArray], model: nn.Module, data: Dataset, outputs: NDArray) -> float:
    """The metric of a network on the test part.

    Parameters:
        run: outputs (N, …) of the network for inputs (N, T, features).
        model: what the network was made from; it says whether padding would reach the outputs that count.
        outputs: of the whole test part as it is padded; they are judged where padding does no harm. Elsewhere the
            sequences of each length are run by themselves.
    """
    task = task_of(data)
    if data.test_lengths is None or not exact(model, task):
        return task.score(outputs, data)
    part = Part(data, "test", torch.device("cpu"), exact=True)
    right = of = 0.0
    for chosen in part.order(len(part)):
        batch = part.take(chosen)
        some, all_ = task.tally(torch.from_numpy(run(batch.x.numpy())), batch)
        right, of = right + some, of + all_
    return right / of
