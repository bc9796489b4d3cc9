"""The metric of the golden model, which takes sequences of one length, on data whose sequences have several."""
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from circulant.training.batches import Part
from circulant.training.data import Dataset
from circulant.training.loop import feels_padding
from circulant.training.task import Task, task_of

__all__ = ["Judged", "judge", "score"]


class Judged(NamedTuple):
    """Samples that networks are compared on.

    Members:
        inputs: float64 arrays (N, …).
        metric: of a list of outputs (N, …) for them.
        valid: by array the outputs (N, T) that count, where sequences have several lengths and give one each step;
            None where all do.
    """

    inputs: list[NDArray]
    metric: Callable[[Sequence[NDArray]], float]
    valid: list[NDArray | None]


def score(run: Callable[[NDArray], NDArray], model: nn.Module, data: Dataset, outputs: NDArray) -> float:
    """The metric of a network on the test part.

    Parameters:
        run: outputs (N, …) of the network for inputs (N, T, features).
        model: what the network was made from; it says whether padding would reach the outputs that count.
        outputs: of the whole test part as it is padded; they are judged where padding does no harm. Elsewhere the
            sequences of each length are run by themselves.
    """
    task = task_of(data)
    if data.test_lengths is None or not feels_padding(model, task):
        return task.score(outputs, data)
    part = Part(data, "test", torch.device("cpu"), exact=True)
    right = of = 0.0
    for chosen in part.order(len(part)):
        batch = part.take(chosen)
        some, all_ = task.tally(torch.from_numpy(run(batch.x.numpy())), batch)
        right, of = right + some, of + all_
    return right / of


def judge(task: Task, data: Dataset, which: str, samples: int = 0, *,
          batch: int | None = None) -> Judged:
    """Inputs of a part of the data, and what judges outputs for them.

    Parameters:
        which: "train" or "test".
        samples: how many of them, chosen at random and the same every time; 0 for all.
        batch: samples of an array of inputs, which are then in the order of their lengths and padded to the longest
            among them; None for all in one.
    """
    part = Part(data, which, torch.device("cpu"))
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(part))[:samples or None])
    if batch is not None:
        chosen = chosen[np.argsort(getattr(data, f"{which}_lengths")[chosen.numpy()], kind="stable")]
    batches = [part.take(some) for some in chosen.split(batch or len(chosen))]

    def metric(outputs: Sequence[NDArray]) -> float:
        counts = np.sum([task.tally(torch.from_numpy(y), each) for y, each in zip(outputs, batches, strict=True)], 0)
        return float(counts[0] / counts[1])

    steps = [each.lengths.numpy() if task.pads and each.lengths is not None else None for each in batches]
    return Judged([np.asarray(each.x, np.float64) for each in batches], metric,
                  [None if known is None else np.arange(each.x.shape[1]) < known[:, None]
                   for known, each in zip(steps, batches, strict=True)])
