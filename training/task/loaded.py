"""A data set that DataLoaders of torch give batch by batch, so that what they do to samples is done anew each time."""
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from circulant.sim.artifact import digest
from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.data.checks import check
from circulant.training.data.targets import SETS, converted, kind_of, per_step
from circulant.training.task.batches import Batch, Part, Portion

__all__ = ["Loaded", "LoadedPart", "part_of"]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A training and a test set that come in batches (x, y) or (x, y, lengths).

    Members:
        task, per_step: as of `Dataset`, told by the first batch.
        classes: outputs of a model; 0 of a classification, as no batch has all classes.
        sample: the first samples of a batch.
        name, frames: as of `Dataset`.
    """

    train: DataLoader
    test: DataLoader
    task: str
    classes: int
    per_step: bool
    sample: NDArray[np.float32]
    name: str = "DataLoader"
    frames: int = 1

    @classmethod
    def of(cls, train: DataLoader, test: DataLoader, *, task: str | None = None) -> "Loaded":
        """The data set of two loaders, of which each gives a batch to tell what they hold.

        Raises:
            Refusal: when one has no batch, or a batch is not as it should be.
        """
        for name, loader in (("train", train), ("test", test)):
            with torch.random.fork_rng(devices=[]):  # The first epoch begins with the same numbers as without a look.
                batch = next(iter(loader), None)
            if batch is None:
                raise Refusal(f"The {SETS[name]} must have samples, but the DataLoader gives no batch; give some")
            x, y, lengths = _arrays(batch, name)
            kind = task or kind_of(x, y)
            y = converted(kind, y)
            classes = 0 if kind == "classification" else int(y.shape[-1])
            check(f"first batch of the {SETS[name]}", kind, x, y, classes=classes, lengths=lengths)
            if name == "train":
                made = cls(train, test, task=kind, classes=classes, per_step=per_step(kind, y), sample=x[:2])
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a sample: (T, F), (F,) or (C, H, W)."""
        return tuple(map(int, self.sample.shape[1:]))

    def digest(self) -> str:
        """SHA-256 of what is known of them before they are read: two loaders of other samples may have the same."""
        return digest({"task": self.task, "classes": self.classes, "shape": list(self.shape[-1:]),
                       "batches": [_batches(self.train, "train"), _batches(self.test, "test")]})


class LoadedPart:
    """The training or the test set of `Loaded`, with the interface of `circulant.training.task.batches.Part`."""

    def __init__(self, data: Loaded, name: str, device: torch.device, *, exact: bool = False) -> None:
        self._data, self._name, self._device, self._exact = data, name, device, exact
        self._loader: DataLoader = getattr(data, name)

    def count(self, size: int) -> int:
        """Batches of an epoch, whose size is the loader's own."""
        return _batches(self._loader, self._name)

    def portions(self, size: int, generator: torch.Generator | None = None, *, rank: int = 0, processes: int = 1
                 ) -> Iterator[Portion]:
        """The batches of an epoch, in the order of the loader.

        Raises:
            Refusal: when several processes would share a batch; as `batches`.
        """
        if processes > 1:
            raise Refusal(f"A DataLoader must be read by one process, not by {processes}, which share each batch; give "
                          "arrays (x, y), or train in one process")
        for batch in self.batches(size):
            weight = len(batch.x)
            if self._data.per_step:
                weight = weight * batch.x.shape[1] if batch.lengths is None else int(batch.lengths.sum())
            yield Portion(batch, 1.0, weight)

    def batches(self, size: int, *, rank: int = 0, processes: int = 1) -> Iterator[Batch]:
        """Every batch, or those that one of several processes evaluates.

        Raises:
            Refusal: when a batch is none of (x, y) or (x, y, lengths), or not like the first one.
        """
        begin = 0
        for number, batch in enumerate(self._loader, start=1):
            if number % processes == rank:
                yield self._checked(batch, number, begin)
            begin += len(batch[0])

    def _checked(self, batch: Any, number: int, begin: int) -> Batch:
        data, where = self._data, f"batch {number} of the {SETS[self._name]}"
        x, y, lengths = _arrays(batch, self._name)
        y = converted(data.task, y)
        check(where, data.task, x, y, classes=data.classes, lengths=lengths)
        if x.shape[-1] != data.sample.shape[-1] or x.ndim != data.sample.ndim or (
                per_step(data.task, y) != data.per_step):
            raise Refusal(f"The {where} must be like the first, of samples {data.shape}, not of {x.shape[1:]} with "
                          f"targets {y.shape}; make all alike")
        if self._exact and lengths is not None and lengths.min() != lengths.max():
            raise Refusal(f"The {where} must hold sequences of one length, as padding would reach the outputs, not of "
                          f"{lengths.min()} to {lengths.max()} steps; let the model's forward take lengths, or give "
                          "arrays (x, y, lengths)")
        steps = None if lengths is None else torch.from_numpy(lengths)
        inputs, targets = torch.from_numpy(x), torch.from_numpy(y)
        if steps is not None:
            inputs = inputs[:, :int(steps.max())]
            targets = targets[:, :int(steps.max())] if data.per_step else targets
        if inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return Batch(inputs.to(self._device), targets.to(self._device), lengths=steps, target_lengths=None,
                     indices=torch.arange(begin, begin + len(x)))


def part_of(data: Dataset | Loaded, name: str, device: torch.device, *, exact: bool = False) -> Part | LoadedPart:
    """The training or the test set of a data set, in batches."""
    if isinstance(data, Loaded):
        return LoadedPart(data, name, device, exact=exact)
    return Part(data, name, device, exact=exact)


def _batches(loader: DataLoader, name: str) -> int:
    try:
        return len(loader)
    except TypeError:
        raise Refusal(f"The DataLoader of the {SETS[name]} must say how many batches it has, as the learning rate "
                      "falls over them, but its dataset has no __len__; give it one") from None


def _arrays(batch: Any, name: str) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[np.int64] | None]:
    """x, y and lengths of a batch, which may be tensors or arrays."""
    given = type(batch).__name__
    if isinstance(batch, tuple | list):
        if len(batch) in (2, 3) and all(isinstance(each, Tensor | np.ndarray) for each in batch):
            x, y, *lengths = (each.detach().cpu().numpy() if isinstance(each, Tensor) else each for each in batch)
            with np.errstate(over="ignore"):  # What float32 cannot hold becomes infinity, which is refused.
                return np.ascontiguousarray(x, np.float32), y, lengths[0].astype(np.int64) if lengths else None
        given = f"{len(batch)} values ({', '.join(type(each).__name__ for each in batch)})"
    raise Refusal(f"Batches of the {SETS[name]} must be tensors (x, y) or (x, y, lengths), not {given}; give a Dataset "
                  "or a collate_fn that makes them")
