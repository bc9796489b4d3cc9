"""Data for a training in place of a `Dataset`: arrays, and torch's Datasets and DataLoaders."""
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset
from torch.utils.data import Dataset as TorchDataset

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.data.targets import SETS, converted, kind_of
from circulant.training.task.loaded import Loaded
from circulant.training.task.losses import Loss, task_of_loss

__all__ = ["Given", "Samples", "samples"]

Given = Dataset | tuple | list | TorchDataset | DataLoader
"""A data set: ours, arrays (x, y) or (x, y, lengths), or a Dataset or DataLoader of torch."""

Samples = Dataset | Loaded
"""A data set as a training reads it."""

PARTS = ("train", "test")
HELD_OUT = 0.2
"""The part of the samples that is the test set where none is given."""


def samples(data: Given | Loaded, test: Given | None = None, *, task: str | None = None,
            loss: str | Loss | None = None, seed: int = 0, batch: int = 32) -> Samples:
    """A data set as a training reads it: arrays in memory, all else batch by batch, anew in each epoch.

    Parameters:
        test: the test set, where ``data`` is none of ours; without it a fifth of the samples, which the seed chooses.
        task, loss: tell what targets are of, where their type leaves it open.
        batch: samples of a batch of a Dataset of torch.

    Raises:
        Refusal: when samples are missing, ragged, or not as `Dataset` says; a DataLoader without a test set; a test
            part beside one of our own.
    """
    if isinstance(data, Dataset | Loaded):
        if test is not None:
            raise Refusal(f"A {type(data).__name__} must hold its test set itself, but test is given besides; leave "
                          "it out")
        return data
    task = task or task_of_loss(loss)
    parts = [data] if test is None else [data, test]
    if all(isinstance(part, tuple | list | TensorDataset) for part in parts):
        return _in_memory([_arrays(part, name) for part, name in zip(parts, PARTS, strict=False)], task, seed)
    loaders = [_loader(part, name, batch) for part, name in zip(parts, PARTS, strict=False)]
    if len(loaders) == 1:
        if isinstance(data, DataLoader | IterableDataset):
            raise Refusal(f"A {type(data).__name__} must come with a test set, as its samples cannot be divided, but "
                          "test is not given; give one, such as test=DataLoader(…)")
        mixed = np.random.RandomState(seed).permutation(_count(data, "train"))
        cut = len(mixed) - max(1, round(HELD_OUT * len(mixed)))
        assert isinstance(data, TorchDataset)
        loaders = [_loader(Subset(data, np.sort(some).tolist()), name, batch) for some, name in zip(
            (mixed[:cut], mixed[cut:]), PARTS, strict=True)]
    return Loaded.of(*loaders, task=task)


def _arrays(part: Any, name: str) -> tuple[NDArray[Any], ...]:
    """x, y and perhaps lengths of a part, as numpy arrays of as many samples."""
    given = part.tensors if isinstance(part, TensorDataset) else part
    if len(given) not in (2, 3):
        raise Refusal(f"The {SETS[name]} must be (x, y) or (x, y, lengths), not {len(given)} arrays; give those")
    try:
        found = tuple(np.asarray(each.detach().cpu() if isinstance(each, Tensor) else each) for each in given)
    except ValueError:
        raise Refusal(f"The {SETS[name]} must be arrays of one shape for all samples, but sequences differ; pad them, "
                      "and give (x, y, lengths)") from None
    counts = {each.shape[:1] for each in found}
    if len(counts) > 1 or () in counts:
        raise Refusal(f"The {SETS[name]} must have as many targets as samples, not arrays of shape "
                      f"{', '.join(str(each.shape) for each in found)}; cut them to one length")
    if not len(found[0]):
        raise Refusal(f"The {SETS[name]} must have samples, but is empty; give some")
    if found[0].dtype.kind not in "biuf":
        raise Refusal(f"The samples of the {SETS[name]} must be numbers, not {found[0].dtype}; convert them")
    if len(found) == 3 and found[2].dtype.kind not in "iu":
        raise Refusal(f"The lengths of the {SETS[name]} must be integers, not {found[2].dtype}; convert them")
    return found


def _in_memory(parts: Sequence[tuple[NDArray[Any], ...]], task: str | None, seed: int) -> Dataset:
    if len(parts) == 1:
        parts = _divided(parts[0], seed)
    task = task or kind_of(*parts[0][:2])
    with np.errstate(over="ignore"):  # What float32 cannot hold becomes infinity, which Dataset refuses.
        (train_x, train_y, train_lengths), (test_x, test_y, test_lengths) = (
            (np.ascontiguousarray(x, np.float32), converted(task, y), lengths[0].astype(np.int64) if lengths else None)
            for x, y, *lengths in parts)
    classes = max(_classes(train_y, train_lengths), _classes(test_y, test_lengths)) if task == "classification" else 0
    return Dataset("arrays", train_x, train_y, test_x, test_y, task=task, classes=classes, train_lengths=train_lengths,
                   test_lengths=test_lengths)


def _classes(y: NDArray[Any], lengths: NDArray[np.int64] | None) -> int:
    """One more than the greatest class, padding apart."""
    if y.ndim == 2 and lengths is not None:
        y = y[np.arange(y.shape[1]) < lengths[:, None]]
    return max(0, int(y.max(initial=0))) + 1


def _divided(part: tuple[NDArray[Any], ...], seed: int) -> list[tuple[NDArray[Any], ...]]:
    count = len(part[0])
    mixed = np.random.RandomState(seed).permutation(count)
    cut = count - max(1, round(HELD_OUT * count))
    if not cut:
        raise Refusal(f"Samples must be at least two to be divided into a training and a test set, not {count}; give "
                      "more, or test")
    return [tuple(each[np.sort(some)] for each in part) for some in (mixed[:cut], mixed[cut:])]


def _count(data: Any, name: str) -> int:
    try:
        count = len(data)
    except TypeError:
        raise Refusal(f"A {type(data).__name__} must say how many samples it has, but it has no __len__; give a "
                      "DataLoader") from None
    if count < 2:
        raise Refusal(f"The {SETS[name]} must have samples, but has {count}; give more")
    return count


def _loader(part: Given | Loaded, name: str, batch: int) -> DataLoader:
    """A DataLoader of a part; that of a Dataset is mixed anew in each epoch where it is trained with."""
    if isinstance(part, DataLoader):
        return part
    if isinstance(part, Dataset | Loaded):
        raise Refusal(f"The {SETS[name]} must be arrays, or a Dataset or DataLoader of torch, not a "
                      f"{type(part).__name__} with two parts; give (x, y) of one of them")
    if isinstance(part, tuple | list):
        part = TensorDataset(*(torch.from_numpy(each) for each in _arrays(part, name)))
    mixed = name == "train" and not isinstance(part, IterableDataset)
    return DataLoader(part, batch_size=batch, shuffle=mixed)
