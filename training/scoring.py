"""The metric of golden outputs: of the very vectors that the hardware is compared with."""
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from circulant.sim.golden.network import Network
from circulant.sim.quantize import margins
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Lengths
from circulant.sim.vectors import Vectors
from circulant.training.data import Dataset
from circulant.training.task.batches import Part
from circulant.training.task.samples import samples
from circulant.training.task.task import Task, task_of

__all__ = ["Judged", "judge", "score"]

BATCH = 256
"""Sequences of different lengths in one array."""


class Judged(NamedTuple):
    """Samples that networks are compared on.

    Members:
        inputs: float64 arrays (N, …).
        metric: of a list of outputs (N, …) for them.
        estimate: of lists of outputs of a model and of its quantized network, the points of the metric that unseen data
            lose; see `sim.quantize.margins`.
        valid: by array the outputs (N, T) that count, where sequences have several lengths and give one each step;
            None where all do.
        lengths: by array those of its sequences (N,); None where all have T steps.
    """

    inputs: list[NDArray]
    metric: Callable[[Sequence[NDArray]], float]
    estimate: Callable[[Sequence[NDArray], Sequence[NDArray]], float]
    valid: list[NDArray | None]
    lengths: list[Lengths | None]


def score(network: Network, vectors: Vectors, data: Dataset | tuple, *, task: Task | None = None) -> float:
    """The metric of the outputs of a network's test vectors, which are those of the whole test set.

    Parameters:
        data: a data set, or its test set (x, y) or (x, y, lengths).
        task: of the metric; None for that of the data set.

    Raises:
        Refusal: when the vectors are of another network, or have other samples than the test set, or other lengths.
    """
    if vectors.network != network.hash:
        raise Refusal(f"Vectors must be of network {network.name!r} ({network.hash[:12]}) to be scored, not of "
                      f"{vectors.network[:12]}; make them with network.vectors(data.test_x)")
    part = samples(data, None if isinstance(data, Dataset) else data, task=task.kind if task else None)
    assert isinstance(part, Dataset), "arrays become one"
    given, due = vectors.steps, part.test_lengths
    if due is None:
        due = np.full(len(part.test_x), vectors.inputs.shape[1] if vectors.inputs.ndim == 3 else 1)
    if given.shape != due.shape or (given != due).any():
        raise Refusal(f"Vectors must be of the {len(due)} samples of the test set of data set {part.name!r}, with its "
                      f"lengths ({due.sum()} steps), to be scored, not of {len(given)} with {given.sum()} steps; make "
                      "them with network.vectors(data.test_x, lengths=data.test_lengths)")
    return (task or task_of(part)).score(vectors.outputs * network.output_format.step, part)


def judge(task: Task, data: Dataset, which: str, samples: int = 0) -> Judged:
    """Inputs of a part of the data, and what judges outputs for them.

    Sequences of several lengths are in the order of these, in arrays of `BATCH` that are padded to their longest; other
    samples are in one array.

    Parameters:
        which: "train" or "test".
        samples: how many of them, chosen at random and the same every time; 0 for all.
    """
    part, lengths = Part(data, which, torch.device("cpu")), getattr(data, f"{which}_lengths")
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(part))[:samples or None])
    if lengths is not None:
        chosen = chosen[np.argsort(lengths[chosen.numpy()], kind="stable")]
    batches = [part.take(some) for some in chosen.split(len(chosen) if lengths is None else BATCH)]

    def metric(outputs: Sequence[NDArray]) -> float:
        return task.figure([task.tally(torch.from_numpy(y), each) for y, each in zip(outputs, batches, strict=True)])

    def estimate(exact: Sequence[NDArray], found: Sequence[NDArray]) -> float:
        pairs = [(e[slice(None) if counted is None else counted], f[slice(None) if counted is None else counted])
                 for e, f, counted in zip(exact, found, valid, strict=True)]
        if task.kind == "regression":
            flat = [np.concatenate([each[at].reshape(-1, task.classes) for each in pairs]) for at in (0, 1)]
            return margins.added(*flat)
        taken = margins.taken_labels if task.kind == "multi-label" else margins.taken
        return margins.lost(np.concatenate([taken(*pair).reshape(-1) for pair in pairs]))

    steps = [None if each.lengths is None else each.lengths.numpy() for each in batches]
    valid = [None if known is None or not task.pads else np.arange(each.x.shape[1]) < known[:, None]
             for known, each in zip(steps, batches, strict=True)]
    return Judged([np.asarray(each.x, np.float64) for each in batches], metric, estimate, valid, steps)
