"""From the outputs of a connectionist temporal classifier to symbols, and how many of them are wrong.

Graves et al., "Connectionist temporal classification", ICML 2006; the prefix beam search as in Hannun et al.,
arXiv:1408.2873, without a language model. Class 0 is the blank.
"""
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rapidfuzz.distance import Levenshtein

from circulant.sim.refusal import Refusal
from circulant.training.data import BLANK

__all__ = ["Labels", "beam", "edits", "greedy", "phone_error_rate"]

Labels = NDArray[np.int64]
"""Symbols of a sequence, without blanks."""

TOLERANCE = 1e-3
"""How far the probabilities of a step may be from a sum of 1; float32 outputs are 1e-6 off."""

CHUNK = 128
"""Sequences whose beams are searched together: their arrays stay in the processor's cache."""

PRIME = np.uint64(0x9E3779B97F4A7C15)
"""The hash of the empty prefix, and a factor of all others; 0 is that of no prefix."""


def greedy(log_probs: ArrayLike, lengths: ArrayLike | None = None) -> list[Labels]:
    """The symbols on the most probable path: the greatest class of each step, repetitions and blanks removed.

    Parameters:
        log_probs: (N, T, classes), natural logarithms of probabilities.
        lengths: (N,), the valid steps; None where all T are.

    Raises:
        Refusal: wrong shapes, or outputs that are no log-probabilities.
    """
    outputs, steps = _checked(log_probs, lengths)
    found = []
    for path, length in zip(outputs.argmax(-1), steps, strict=True):
        path = path[:length]
        first = np.ones(length, bool)
        first[1:] = path[1:] != path[:-1]
        found.append(path[first & (path != BLANK)].astype(np.int64))
    return found


def beam(log_probs: ArrayLike, lengths: ArrayLike | None = None, *, width: int = 16
         ) -> tuple[list[Labels], NDArray[np.float64]]:
    """The most probable symbols that a search with ``width`` prefixes finds, summed over all their alignments.

    With at least as many prefixes as there are symbol sequences the search is exhaustive. Prefixes are told apart by a
    hash of 64 bits.

    Parameters:
        log_probs, lengths: as `greedy`.
        width: prefixes that are kept after each step.

    Returns:
        The symbols of each sequence, and the logarithm (N,) of the probability found for them, a lower bound of theirs.

    Raises:
        Refusal: as `greedy`, or a width below 1.
    """
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise Refusal(f"The width of a beam must be an integer of at least 1, not {width!r}; 16 is a good one")
    outputs, steps = _checked(log_probs, lengths)
    found: list[Labels] = [np.empty(0, np.int64)] * len(outputs)
    scores = np.empty(len(outputs))
    order = np.argsort(-steps, kind="stable")  # Sequences of like length end together.
    for begin in range(0, len(order), CHUNK):
        chunk = order[begin:begin + CHUNK]
        logs = outputs[chunk, :steps[chunk[0]]].astype(np.float64)
        labels, scores[chunk] = _Beams(len(chunk), width).run(logs, steps[chunk])
        for at, symbols in zip(chunk, labels, strict=True):
            found[at] = symbols
    return found, scores


def edits(found: Sequence[ArrayLike], targets: ArrayLike, target_lengths: ArrayLike, *,
          fold: Sequence[int] | None = None) -> NDArray[np.int64]:
    """Substitutions, deletions and insertions (N,) that make the symbols found those of the target, as few as possible.

    Parameters:
        found: the symbols of each sequence.
        targets, target_lengths: (N, L) and (N,), as in `Dataset`.
        fold: the class that each class counts as, 0 to leave it out, as `circulant.training.data.phones.folding` gives.

    Raises:
        Refusal: when these are not of as many sequences as each other.
    """
    y, counts = np.asarray(targets), np.asarray(target_lengths)
    if y.ndim != 2 or counts.shape != (len(y),) or len(found) != len(y):
        raise Refusal(f"Symbols and targets must be of as many sequences as each other, with targets (N, L) and target "
                      f"lengths (N,), not {len(found)}, {y.shape} and {counts.shape}; give those of one part")
    pairs = ((_folded(one, fold), _folded(target[:count], fold))
             for one, target, count in zip(found, y, counts, strict=True))
    return np.array([Levenshtein.distance(one, other) for one, other in pairs], np.int64)


def phone_error_rate(found: Sequence[ArrayLike], targets: ArrayLike, target_lengths: ArrayLike, *,
                     fold: Sequence[int] | None = None) -> float:
    """All `edits` of all sequences, as a fraction of all symbols of the targets; above 1 where too many were found.

    Raises:
        Refusal: as `edits`, and when no target has a symbol.
    """
    wrong = edits(found, targets, target_lengths, fold=fold).sum()
    y, counts = np.asarray(targets), np.asarray(target_lengths)
    symbols = sum(len(_folded(target[:count], fold)) for target, count in zip(y, counts, strict=True))
    if not symbols:
        raise Refusal("A phone error rate must be of targets with at least one symbol, but these have none; give "
                      "others")
    return float(wrong / symbols)


class _Beams:
    """The beams (N, B) of N sequences: log-probabilities of ending in a blank or not, hashes, last symbols, histories.

    Prefixes that share a beam are equal where their hashes are: extending one by a symbol may give another.
    """

    def __init__(self, count: int, width: int) -> None:
        self.width = width
        self.blank = np.full((count, 1), 0.0)
        self.symbol = np.full((count, 1), -np.inf)
        self.hash, self.parent = np.full((count, 1), PRIME), np.zeros((count, 1), np.uint64)
        self.last = np.zeros((count, 1), np.int64)
        self.history: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # of each step: beam before, symbol added

    def run(self, outputs: NDArray[np.float64], steps: NDArray[np.int64]) -> tuple[list[Labels], NDArray[np.float64]]:
        """The best of each beam after the steps of each sequence, which fall with the index, and their scores."""
        scores = np.empty(len(outputs))
        labels: list[Labels] = [np.empty(0, np.int64)] * len(outputs)
        for step in range(outputs.shape[1]):
            active = int(np.searchsorted(-steps, -step, side="left"))  # those of more steps than this one
            self._drop(active)
            self._advance(outputs[:active, step])
            for at in np.flatnonzero(steps[:active] == step + 1):
                total = np.logaddexp(self.blank[at], self.symbol[at])
                best = int(total.argmax())
                scores[at], labels[at] = total[best], self._trace(int(at), best)
        return labels, scores

    def _drop(self, active: int) -> None:
        for name in ("blank", "symbol", "hash", "parent", "last"):
            setattr(self, name, getattr(self, name)[:active])

    def _advance(self, logs: NDArray[np.float64]) -> None:
        """One step with the log-probabilities (N, classes) of each sequence."""
        count, classes = logs.shape
        every = np.arange(count)[:, None]
        total = np.logaddexp(self.blank, self.symbol)
        stay_blank = total + logs[:, BLANK, None]
        stay_symbol = np.where(self.last > 0, self.symbol + logs[every, self.last], -np.inf)
        # A repeated symbol is a new one only after a blank.
        added = np.repeat(total[:, :, None], classes, 2)
        np.put_along_axis(added, self.last[:, :, None], self.blank[:, :, None], 2)
        added += logs[:, None, :]
        # What makes a prefix that is in the beam already is added to it: (N, B of the prefix, B of its parent).
        same = (self.parent[:, :, None] == self.hash[:, None, :]) & (self.last > 0)[:, :, None]
        who, prefix, parent = np.nonzero(same)
        symbol = self.last[who, prefix]
        stay_symbol[who, prefix] = np.logaddexp(stay_symbol[who, prefix], added[who, parent, symbol])
        added[who, parent, symbol] = -np.inf
        self._keep(added, stay_blank, stay_symbol)

    def _keep(self, added: NDArray[np.float64], stay_blank: NDArray[np.float64],
              stay_symbol: NDArray[np.float64]) -> None:
        """Keep the best of the old prefixes and of the new ones in ``added`` (N, B, classes)."""
        count, _, classes = added.shape
        added[:, :, BLANK] = np.logaddexp(stay_blank, stay_symbol)
        flat = added.reshape(count, -1)
        width = min(self.width, flat.shape[1])
        kept = np.argpartition(-flat, width - 1, axis=1)[:, :width]
        kept.sort(axis=1)  # An order that does not depend on how the partition was found.
        every = np.arange(count)[:, None]
        before, symbol = kept // classes, kept % classes
        old, score = symbol == BLANK, flat[every, kept]
        hashes = self.hash[every, before]
        # What is impossible may be a prefix that is in the beam already: it must not be taken for that one.
        dead = score == -np.inf
        self.parent = np.where(dead, 0, np.where(old, self.parent[every, before], hashes))
        self.last = np.where(dead, 0, np.where(old, self.last[every, before], symbol))
        self.hash = np.where(dead, 0, np.where(old, hashes, _extended(hashes, symbol)))
        self.blank = np.where(old, stay_blank[every, before], -np.inf)
        self.symbol = np.where(old, stay_symbol[every, before], score)
        self.history.append((before, symbol))

    def _trace(self, at: int, best: int) -> Labels:
        """The symbols of a prefix, from the last step back to the first."""
        symbols = []
        for before, symbol in reversed(self.history):
            if symbol[at, best]:
                symbols.append(int(symbol[at, best]))
            best = int(before[at, best])
        return np.array(symbols[::-1], np.int64)


def _extended(hashes: NDArray[np.uint64], symbols: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The hash of each prefix with one more symbol: a step of splitmix64, whose multiplications wrap."""
    mixed = (hashes ^ symbols.astype(np.uint64)) * PRIME
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _checked(log_probs: ArrayLike, lengths: ArrayLike | None
             ) -> tuple[NDArray[np.floating[Any]], NDArray[np.int64]]:
    outputs = np.asarray(log_probs)
    if outputs.ndim != 3 or outputs.shape[-1] < 2 or not outputs.size or outputs.dtype.kind != "f":
        raise Refusal("Log-probabilities must be floats of shape (N, steps, classes) with a blank and at least one "
                      f"symbol, not {outputs.dtype} of shape {outputs.shape}; reshape them")
    steps = np.full(len(outputs), outputs.shape[1]) if lengths is None else np.asarray(lengths)
    if steps.shape != (len(outputs),) or steps.dtype.kind not in "iu" or not (
            steps.min() >= 1 and steps.max() <= outputs.shape[1]):
        raise Refusal(f"Lengths must be {len(outputs)} integers from 1 to {outputs.shape[1]}, not {steps.tolist()}; "
                      "give those of this batch")
    for number, (logs, length) in enumerate(zip(outputs, steps, strict=True)):
        with np.errstate(invalid="ignore", over="ignore"):
            sums = np.exp(logs[:length]).sum(-1)
        if not (np.abs(sums - 1) < TOLERANCE).all():
            raise Refusal("Log-probabilities must be of classes whose probabilities sum up to 1 at each step, but "
                          f"those of sequence {number} sum up to {sums.min():.4g} … {sums.max():.4g}; take "
                          "log_softmax of the outputs")
    return outputs, steps.astype(np.int64)


def _folded(symbols: ArrayLike, fold: Sequence[int] | None) -> list[int]:
    values = np.asarray(symbols, np.int64)
    if fold is not None:
        values = np.asarray(fold, np.int64)[values]
        values = values[values != BLANK]
    return [int(value) for value in values]
