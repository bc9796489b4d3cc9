"""A user's own sequences, vectors or images in one ``.npz`` file, whose keys are the fields of `Dataset`."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal, nearest
from circulant.training.data import files
from circulant.training.data.assemble import Indices, chosen, divided
from circulant.training.data.dataset import Dataset
from circulant.training.data.targets import TASKS, converted, kind_of
from circulant.training.settings.data import DataSettings

__all__ = ["KEYS", "assembled", "npz"]

FIELDS = ("x", "y", "lengths", "target_lengths")
PARTS = ("train", "test")
KEYS = (*(f"{part}_{field}" for part in PARTS for field in FIELDS), *FIELDS, "is_test", "classes", "symbols", "task")
"""Either ``train_*`` and ``test_*``, or the unsplit ones, of which ``is_test`` or the seed chooses the test set."""

TEST_FRACTION = 0.2


def npz(options: DataSettings, progress: files.Progress = files.silent) -> Dataset:
    """The data set in the file that ``path`` names; it is called after the file.

    Raises:
        Refusal: keys that are missing, unknown or contradict each other, and everything that `Dataset` refuses.
    """
    if not options.path:
        raise Refusal("The data set 'npz' must be told its file, but data.path is empty; set it")
    path = files.locate("npz", options.path)
    return assembled(path, files.load_npz(path), options)


def assembled(path: Path, given: Mapping[str, NDArray[Any]], options: DataSettings) -> Dataset:
    """The data set of the arrays of a file, after which it is called.

    Raises:
        Refusal: as `npz`.
    """
    if unknown := [key for key in given if key not in KEYS]:
        raise Refusal(f"{path}: a key must be one of {', '.join(KEYS)}, not {', '.join(unknown)}"
                      f"{nearest(unknown[0], KEYS)}")
    whole = [key for key in given if key in FIELDS or key == "is_test"]
    split = [key for key in given if key.startswith(PARTS)]
    if whole and split:
        raise Refusal(f"{path} must hold a data set that is split or one that is not, but has {', '.join(split)} "
                      f"beside {', '.join(whole)}; leave one kind out")
    needed = ("x", "y") if whole else ("train_x", "train_y", "test_x", "test_y")
    if missing := [key for key in needed if key not in given]:
        raise Refusal(f"{path} must hold the keys {', '.join(needed)}, but lacks {', '.join(missing)}; it has "
                      f"{', '.join(given) or 'none'}")
    pieces = _unsplit(path, given, options) if whole else dict(given)
    _same_length(path, pieces)
    task = _task(path, pieces)
    pieces = {key: _converted(path, key, value, task) for key, value in pieces.items() if key != "task"}
    if options.held_out:
        pieces = _held_out(pieces, options)
    for part, count in zip(PARTS, (options.subset, options.test_subset), strict=True):
        pieces |= _subset(pieces, part, count, options.seed)
    symbols = tuple(map(str, pieces.pop("symbols", np.empty(0, np.str_)).tolist()))
    classes = _classes(path, pieces, symbols, least=2 if task in ("classification", "ctc") else 1)
    return Dataset(path.stem, classes=classes, task=task, symbols=symbols, frames=1, **pieces)


def _unsplit(path: Path, given: Mapping[str, NDArray[Any]], options: DataSettings) -> dict[str, NDArray[Any]]:
    """The arrays cut into a training and a test set, by ``is_test`` or, without it, by the seed, all classes alike."""
    everything = np.arange(len(np.atleast_1d(given["x"])))
    _same_length(path, given)
    if "is_test" in given:
        flags = given["is_test"]
        if flags.dtype != bool or not flags.any() or flags.all():
            raise Refusal(f"{path}: 'is_test' must be true for some samples and false for others, not {flags.dtype} "
                          f"with {int(flags.astype(bool).sum())} of {len(flags)} true; mark the test set")
        test: Indices = everything[flags]
    else:
        alike = given["y"] if given["y"].ndim == 1 and given["y"].dtype.kind in "iu" else None
        test = chosen(everything, alike, max(1, round(TEST_FRACTION * len(everything))), options.seed)
    parts = {"test": test, "train": np.setdiff1d(everything, test)}
    cut = {f"{part}_{field}": given[field][indices] for part, indices in parts.items() for field in FIELDS
           if field in given}
    return cut | {key: given[key] for key in ("classes", "symbols", "task") if key in given}


def _task(path: Path, pieces: dict[str, NDArray[Any]]) -> str:
    """The task that the file names, else the one that type and shape of the targets tell."""
    if "task" in pieces:
        named = pieces["task"]
        if named.dtype.kind != "U" or named.size != 1 or str(named.item()) not in TASKS:
            raise Refusal(f"{path}: 'task' must be one of {', '.join(map(repr, TASKS))}, not {named.tolist()!r}; leave "
                          "it out, and the targets tell")
        return str(named.item())
    if any(f"{part}_target_lengths" in pieces for part in PARTS):
        return "ctc"
    try:
        train, test = (kind_of(pieces[f"{part}_x"], pieces[f"{part}_y"]) for part in PARTS)
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    if train != test:
        raise Refusal(f"{path} must have targets of one kind, but train_y ({pieces['train_y'].dtype}) is that of a "
                      f"{train} and test_y ({pieces['test_y'].dtype}) that of a {test}; convert one, or name the task")
    return train


def _converted(path: Path, key: str, value: NDArray[Any], task: str) -> NDArray[Any]:
    """An array in the type of its key, where that loses nothing but digits of a float."""
    field = key.partition("_")[2] if key.startswith(PARTS) else key
    if field == "symbols":
        if value.dtype.kind != "U" or value.ndim != 1:
            raise Refusal(f"{path}: 'symbols' must be a list of strings, not {value.dtype} of shape {value.shape}; "
                          "write one name for each class")
        return value
    if field == "y":
        try:
            return converted(task, value)
        except Refusal as refusal:
            raise Refusal(f"{path}: {key!r}: {refusal}") from None
    kinds, words, wanted = ("iuf", "numbers", np.float32) if field == "x" else ("iu", "integers", np.int64)
    if value.dtype.kind not in kinds:
        raise Refusal(f"{path}: {key!r} must be {words}, not {value.dtype}; convert it")
    with np.errstate(over="ignore"):  # What float32 cannot hold becomes infinity, which Dataset refuses.
        return value.astype(wanted)


def _same_length(path: Path, pieces: Mapping[str, NDArray[Any]]) -> None:
    """Check that the arrays of a part have the same number of samples."""
    for prefix in (*(f"{part}_" for part in PARTS), ""):
        counts = {f"{prefix}{field}": pieces[f"{prefix}{field}"].shape[:1]
                  for field in (*FIELDS, *(() if prefix else ("is_test",))) if f"{prefix}{field}" in pieces}
        if len(set(counts.values())) > 1 or () in counts.values():
            said = ", ".join(f"{key} of {count[0] if count else 'none'}" for key, count in counts.items())
            raise Refusal(f"{path} must have arrays with the same number of samples, not {said}; cut them to one "
                          "length")


def _held_out(pieces: dict[str, NDArray[Any]], options: DataSettings) -> dict[str, NDArray[Any]]:
    """The training set cut in two, in place of both parts."""
    y = pieces["train_y"]
    everything = np.arange(len(y))
    train, test = divided((everything, everything), y if y.ndim == 1 else None, options)
    cut = {f"{part}_{field}": pieces[f"train_{field}"][indices] for part, indices in (("train", train), ("test", test))
           for field in FIELDS if f"train_{field}" in pieces}
    return {key: value for key, value in pieces.items() if not key.startswith(PARTS)} | cut


def _subset(pieces: dict[str, NDArray[Any]], part: str, count: int, seed: int) -> dict[str, NDArray[Any]]:
    y = pieces[f"{part}_y"]
    kept = chosen(np.arange(len(y)), y if y.ndim == 1 else None, count, seed)
    return {f"{part}_{field}": pieces[f"{part}_{field}"][kept] for field in FIELDS if f"{part}_{field}" in pieces}


def _classes(path: Path, pieces: dict[str, NDArray[Any]], symbols: tuple[str, ...], *, least: int) -> int:
    """The number that the file gives, else that of the symbols; 0 where the targets tell."""
    if "classes" not in pieces:
        return len(symbols)
    classes = pieces.pop("classes")
    if classes.size != 1 or int(classes.item()) < least:
        raise Refusal(f"{path}: 'classes' must be one integer of at least {least}, not {classes.tolist()}; count the "
                      "blank too")
    return int(classes.item())
