"""Batches of one part of a data set: their order, their padding, and where they lie."""
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from circulant.training.data import Dataset

__all__ = ["Batch", "Part", "Portion"]

POOL = 50
"""Sequences of this many batches are sorted by length together: little padding, and an order that is still random."""

RESIDENT = 2**31
"""Bytes up to which a part lies on the GPU as a whole."""


class Batch(NamedTuple):
    """Samples, cut after the longest of them.

    Members:
        x: float32 (N, T, F), (N, F) or (N, C, H, W).
        y: targets as in `Dataset`: (N,), (N, outputs), (N, T) or (N, T, outputs), or padded symbols (N, L).
        lengths, target_lengths: int64 (N,), the valid steps of x and y; None where all are.
        indices: int64 (N,), places in the part.
    """

    x: Tensor
    y: Tensor
    lengths: Tensor | None
    target_lengths: Tensor | None
    indices: Tensor


class Portion(NamedTuple):
    """The samples of a batch that one process trains on.

    Members:
        batch: its samples; the first one of the batch where it has none.
        share: its part of the targets, times the number of processes; 0 where it has no samples.
        weight: targets of the whole batch, over which its loss is a mean.
    """

    batch: Batch
    share: float
    weight: int


class Part:
    """The training or the test set of a data set, in batches.

    Parameters:
        name: "train" or "test".
        exact: whether the sequences of a batch all have one length, for models that would take padding for input.
    """

    def __init__(self, data: Dataset, name: str, device: torch.device, *, exact: bool = False) -> None:
        self._x, self._y = _tensor(getattr(data, f"{name}_x")), _tensor(getattr(data, f"{name}_y"))
        lengths, targets = (getattr(data, f"{name}_{field}") for field in ("lengths", "target_lengths"))
        self._lengths = None if lengths is None else _tensor(lengths)
        self._targets = None if targets is None else _tensor(targets)
        self._device, self._exact, self._per_step = device, exact, data.per_step
        if self._x.nbytes <= RESIDENT:
            self._x, self._y = self._x.to(device), self._y.to(device)

    def __len__(self) -> int:
        return len(self._x)

    def order(self, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
        """Indices of each batch of at most ``size`` samples: in random order, or sorted where there is no generator.

        Sequences of different lengths meet others of about their own length.
        """
        count = len(self)
        order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
        if self._lengths is None:
            return list(order.split(size))
        batches: list[Tensor] = []
        for pool in order.split(count if self._exact or generator is None else POOL * size):
            lengths, places = self._lengths[pool].sort(stable=True)
            groups = [len(pool)]
            if self._exact:
                groups = torch.unique_consecutive(lengths, return_counts=True)[1].tolist()
            batches += [batch for group in pool[places].split(groups) for batch in group.split(size)]
        if generator is not None:
            batches = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return batches

    def count(self, size: int) -> int:
        """Batches of an epoch."""
        return len(self.order(size))

    def portions(self, size: int, generator: torch.Generator | None = None, *, rank: int = 0, processes: int = 1
                 ) -> Iterator[Portion]:
        """The portions of a process in an epoch: every n-th sample of each batch."""
        for chosen in self.order(size, generator):
            mine, weight = chosen[rank::processes], self._weight(chosen)
            yield Portion(self.take(mine if len(mine) else chosen[:1]), self._weight(mine) * processes / weight, weight)

    def portion(self, chosen: Tensor) -> Portion:
        """A batch that one process trains on alone."""
        return Portion(self.take(chosen), 1.0, self._weight(chosen))

    def batches(self, size: int, *, rank: int = 0, processes: int = 1) -> Iterator[Batch]:
        """The batches that a process evaluates: every n-th, in order."""
        for chosen in self.order(size)[rank::processes]:
            yield self.take(chosen)

    def _weight(self, indices: Tensor) -> int:
        """How many targets these samples have, over which a mean is taken."""
        if not self._per_step:
            return len(indices)
        return len(indices) * self._x.shape[1] if self._lengths is None else int(self._lengths[indices].sum())

    def take(self, indices: Tensor) -> Batch:
        """The samples of these places, on the device."""
        here = indices.to(self._x.device)
        x, y = self._x[here], self._y[here]
        lengths, targets = (None if part is None else part[indices] for part in (self._lengths, self._targets))
        if lengths is not None:
            x = x[:, :int(lengths.max())]
            y = y[:, :x.shape[1]] if self._per_step else y
        if targets is not None:
            y = y[:, :int(targets.max())]
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)  # Convolutions take three quarters of the time.
        return Batch(x.to(self._device, non_blocking=True), y.to(self._device, non_blocking=True), lengths, targets,
                     indices)


def _tensor(array: NDArray) -> Tensor:
    """The array as a tensor that shares its memory; nothing here writes to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # A mapped file is read-only, which torch warns of.
        return torch.from_numpy(array)
