"""From raw samples to a `Dataset`: subsets, normalisation, stacking, padding. Every loader ends here."""
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal
from circulant.training.data.dataset import BLANK, Dataset
from circulant.training.data.features import Frames, in_decibels, stacked, standardised, statistics, with_deltas
from circulant.training.settings.data import DataSettings

__all__ = ["Images", "Indices", "Utterances", "chosen", "divided", "image_set", "padded", "utterance_set"]

Indices = NDArray[np.int64]
BLOCK = 1000
"""Images that are worked on at once, which bounds the memory."""

DERIVATIVES = {"none": 0, "first": 1, "second": 2}
"""Order of the last time derivative by the name that `DataSettings.deltas` gives it."""

Parts = tuple[Indices, Indices]
"""Which samples are the training and the test set."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images (N, C, H, W) of integers from 0 to ``full``, their classes (N,), and the names of the classes."""

    pixels: NDArray[np.uint8]
    classes: NDArray[np.int64]
    parts: Parts
    symbols: tuple[str, ...]
    full: int = 255


@dataclass(frozen=True, eq=False)
class Utterances:
    """Features of each utterance, and its class, or its symbols from 1 up, which are named in ``symbols``.

    Members:
        speakers: the speaker of each utterance, where held-out ones shall be of others than the rest.
    """

    frames: Sequence[Frames]
    targets: NDArray[np.int64] | Sequence[NDArray[np.int64]]
    parts: Parts
    symbols: tuple[str, ...]
    speakers: NDArray[np.str_] | None = None


def image_set(name: str, images: Images, options: DataSettings, *, layout: str = "image") -> Dataset:
    """Images as the options say; ``layout`` is that of "auto". Pixels are from 0 to 1 unless they are normalised."""
    layout = layout if options.layout == "auto" else options.layout
    train, test = (chosen(part, images.classes, count, options.seed)
                   for part, count in zip(divided(images.parts, images.classes, options),
                                          (options.subset, options.test_subset), strict=True))
    normalise = options.normalise

    def part(indices: Indices) -> NDArray[np.float32]:
        pixels = images.pixels[indices]
        if normalise == "sample":
            blocks = np.split(pixels, range(BLOCK, len(pixels), BLOCK))
            x = np.concatenate([_each_standardised(block) for block in blocks])
        else:
            x = np.empty(pixels.shape, np.float32)
            for channel in range(pixels.shape[1]):
                x[:, channel] = tables[channel][pixels[:, channel]]
        if layout == "flat":
            return x.reshape(len(x), -1)
        if layout == "rows":
            return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(len(x), x.shape[2], -1)  # (N, H, C·W)
        return x

    values = np.arange(images.full + 1)
    tables = []  # What each value of a pixel becomes, for each channel.
    for channel in range(images.pixels.shape[1]):
        mean, deviation = _moments(images.pixels[train, channel]) if normalise == "train" else (0.0, float(images.full))
        tables.append(((values - mean) / deviation).astype(np.float32))
    return Dataset(name, part(train), train_y=images.classes[train], test_x=part(test), test_y=images.classes[test],
                   classes=len(images.symbols), symbols=images.symbols)


def utterance_set(name: str, data: Utterances, options: DataSettings, *, deltas: str, normalise: str) -> Dataset:
    """Utterances as the options say; ``deltas`` and ``normalise`` are those of "auto".

    Raises:
        Refusal: when the options leave no training sequence, or cut the sequences of a "ctc" task.
    """
    deltas = deltas if options.deltas == "auto" else options.deltas
    normalise = normalise if options.normalise == "auto" else options.normalise
    classes = data.targets if isinstance(data.targets, np.ndarray) else None
    if options.steps and classes is None:
        raise Refusal(f"data.steps must be 0 for {name!r}, not {options.steps}: sequences that are cut lose some of "
                      "their symbols; use data.longest or data.stack")
    train, test = divided(data.parts, classes, options, data.speakers)
    if options.longest:
        steps = np.array([-(-len(data.frames[at]) // options.stack) for at in train])
        train = train[steps <= options.longest]
        if not len(train):
            raise Refusal(f"data.longest must leave training sequences, but the shortest of {name!r} has {steps.min()} "
                          f"steps, not {options.longest} at most; raise it")
    train = chosen(train, classes, options.subset, options.seed)
    test = chosen(test, classes, options.test_subset, options.seed)
    order = DERIVATIVES[deltas]
    frames = {int(at): with_deltas(data.frames[at], order) for at in (*train, *test)}
    common = statistics(frames[at] for at in train) if normalise == "train" else None

    def step_features(at: int) -> NDArray[np.float32]:
        if normalise == "none":
            x = in_decibels(frames[at])
        else:
            x = standardised(frames[at], *(common or statistics([frames[at]])))
        del frames[at]  # Together with their floats they would take twice the memory.
        return stacked(x, options.stack)

    train_x, train_lengths = padded([step_features(at) for at in train], options.steps)
    test_x, test_lengths = padded([step_features(at) for at in test], options.steps)
    if classes is not None:
        return Dataset(name, train_x, train_y=classes[train], test_x=test_x, test_y=classes[test],
                       classes=len(data.symbols), symbols=data.symbols,
                       frames=options.stack, train_lengths=None if options.steps else train_lengths,
                       test_lengths=None if options.steps else test_lengths)
    train_y, train_target_lengths = _padded_symbols([data.targets[at] for at in train])
    test_y, test_target_lengths = _padded_symbols([data.targets[at] for at in test])
    return Dataset(name, train_x, train_y=train_y, test_x=test_x, test_y=test_y, classes=len(data.symbols), task="ctc",
                   symbols=data.symbols, frames=options.stack, train_lengths=train_lengths, test_lengths=test_lengths,
                   train_target_lengths=train_target_lengths, test_target_lengths=test_target_lengths)


def divided(parts: Parts, classes: NDArray[np.int64] | None, options: DataSettings,
            speakers: NDArray[np.str_] | None = None) -> Parts:
    """The two parts; with ``held_out`` so many samples of the training set are the test set, and are lost to it.

    Of classes, as many of each as of the others; of speakers, whole ones, which the seed chooses, until there are at
    least as many samples; else any, which the seed chooses.

    Raises:
        Refusal: when no training sample is left, or none of a class.
    """
    train, count = parts[0], options.held_out
    if not count:
        return parts
    if speakers is None:
        test = train if count >= len(train) else chosen(train, classes, count, options.seed)
    else:
        of, samples = np.unique(speakers[train], return_inverse=True)
        mixed = np.random.RandomState(options.seed).permutation(len(of))
        before = np.bincount(samples)[mixed].cumsum() - np.bincount(samples)[mixed]
        test = train[np.isin(samples, mixed[before < count])]
    rest = train[~np.isin(train, test)]
    lost = np.empty(0) if classes is None else np.setdiff1d(classes[train], classes[rest])
    if not len(rest) or lost.size:
        raise Refusal(f"data.held_out must leave training samples{' of each class' if len(rest) else ''}, but takes "
                      f"{len(test)} of {len(train)}; lower it")
    return rest, test


def chosen(part: Indices, classes: NDArray[np.int64] | None, count: int, seed: int) -> Indices:
    """``count`` samples of a part in its order, as many of each class as of the others; all of them for 0.

    Raises:
        Refusal: when the part has fewer.
    """
    if count > len(part):
        raise Refusal(f"A subset must have at most the {len(part)} samples that there are, not {count}; 0 takes all")
    if not count:
        return part
    # The stream of RandomState is frozen for good, that of default_rng is not (NEP 19).
    mixed = np.random.RandomState(seed).permutation(len(part))
    if classes is not None:
        labels = classes[part[mixed]]
        rank = np.empty(len(part), np.int64)  # how many of its class come before
        for label in np.unique(labels):
            rank[labels == label] = np.arange((labels == label).sum())
        mixed = mixed[np.argsort(rank, kind="stable")]
    return part[np.sort(mixed[:count])]


def padded(sequences: Sequence[NDArray[np.float32]], steps: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Sequences (T, F) as one array (N, T of the longest, F) with zeros behind, and their lengths (N,).

    With ``steps``, each is cut to its first so many, or has zeros in front, where a recurrent layer's last state does
    not forget for them.
    """
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    x = np.zeros((len(sequences), steps or int(lengths.max()), sequences[0].shape[1]), np.float32)
    for row, sequence in zip(x, sequences, strict=True):
        if steps:
            row[max(0, steps - len(sequence)):] = sequence[:steps]
        else:
            row[:len(sequence)] = sequence
    return x, lengths


def _padded_symbols(targets: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lengths = np.array([len(target) for target in targets], np.int64)
    y = np.full((len(targets), int(lengths.max())), BLANK, np.int64)
    for row, target in zip(y, targets, strict=True):
        row[:len(target)] = target
    return y, lengths


def _moments(values: NDArray[np.uint8]) -> tuple[float, float]:
    """Mean and standard deviation, at least 1, of bytes: from sums of integers, which are exact in any order."""
    histogram = np.zeros(256, np.int64)
    for block in np.split(values, range(BLOCK, len(values), BLOCK)):
        histogram += np.bincount(block.ravel(), minlength=256)
    level = np.arange(256)
    count, total, squares = (int((histogram * weight).sum()) for weight in (1, level, level * level))
    return total / count, max(1.0, math.sqrt(count * squares - total * total) / count)


def _each_standardised(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Images (N, C, H, W), each channel of each at mean 0 and variance 1."""
    wide = pixels.astype(np.int64)
    count = wide[0, 0].size
    total, squares = (power.sum((2, 3), keepdims=True) for power in (wide, wide * wide))
    deviation = np.sqrt((count * squares - total * total).astype(np.float64)) / count
    return ((wide - total / count) / np.maximum(1.0, deviation)).astype(np.float32)
