"""Batches in the layout in which numpy is fast: many vectors side by side, the batch as the last axis.

A vector of q blocks of k values is (k, q), N of them are (k, q, N): a butterfly of a transform, a gate or a rounding is
then one operation over long rows, and a bin of N spectra is one matrix.
"""
import itertools
import math

import numpy as np

from circulant.sim.arith.fixed import Integers

__all__ = ["EXACT", "accumulate", "bins", "clear", "matrices", "number", "rows", "spread"]

EXACT = 1 << 53
"""Integers below it, and sums of them, are exact in float64, in any order."""


def spread(x: Integers, columns: int, k: int) -> Integers:
    """Vectors (N, …, n) as (k, q, …, N), with zeros behind them up to ``columns`` = q·k."""
    count, *steps, size = x.shape
    padded = np.zeros((columns, *steps, count), x.dtype)
    padded[:size] = np.moveaxis(x, (0, -1), (-1, 0))
    return np.ascontiguousarray(padded.reshape(columns // k, k, *steps, count).swapaxes(0, 1))


def rows(x: Integers, size: int) -> Integers:
    """The vectors (N, …, ``size``) of (k, q, …, N), without the zeros behind them."""
    vectors = x.swapaxes(0, 1).reshape(x.shape[0] * x.shape[1], *x.shape[2:])[:size]
    return np.ascontiguousarray(np.moveaxis(vectors, (-1, 0), (0, -1)), np.int64)


def clear(x: Integers, size: int) -> Integers:
    """x (k, q, …, N) with zeros behind its first ``size`` values, in place."""
    k, q, *_ = x.shape
    if size < k * q:
        x[size - k * (q - 1):, -1] = 0
    return x


def bins(k: int) -> list[slice]:
    """The places of each bin in a spectrum: one real number, or a complex one."""
    return [slice(i, i + 1) for i in range(min(k, 2))] + [slice(i, i + 2) for i in range(2, k, 2)]


def matrices(weights: Integers, reach: int) -> list[np.ndarray]:
    """For each bin of spectra (p, q, k) the matrix (parts·p, parts·q): [[re, -im], [im, re]] for a complex one.

    In float64 where 2**53 guards sums up to ``reach``, and in int64 elsewhere.
    """
    found = []
    for place in bins(weights.shape[2]):
        w = weights[:, :, place]
        columns = [w] if w.shape[2] == 1 else [w, np.stack([-w[..., 1], w[..., 0]], axis=-1)]
        whole = np.stack(columns, axis=1).transpose(3, 0, 1, 2)  # (parts, p, parts, q)
        found.append(np.ascontiguousarray(whole.reshape(whole.shape[0] * whole.shape[1], -1),
                                          np.float64 if reach < EXACT else np.int64))
    return found


def number(bits: int) -> type[np.int32 | np.int64]:
    """The numpy type for integers of so many bits."""
    return np.int32 if bits <= 32 else np.int64


def accumulate(matrices: list[np.ndarray], *spectra: Integers) -> np.ndarray:
    """Σ_j FFT(w_ij) ∘ FFT(x_j), exactly: (k, q, …) of each part in turn to (k, p, …), a matrix product for each bin.

    The integers are those of the matrices' type.
    """
    k, _, *batch = spectra[0].shape
    count, columns = math.prod(batch), [part.shape[1] for part in spectra]
    data = np.empty((k, sum(columns), *batch), matrices[0].dtype)
    for part, end in zip(spectra, itertools.accumulate(columns), strict=True):
        data[:, end - part.shape[1]:end] = part
    sums = np.empty((k, len(matrices[0]), count), data.dtype)
    for place, matrix in zip(bins(k), matrices, strict=True):
        np.matmul(matrix, data[place].reshape(matrix.shape[1], count), out=sums[place].reshape(len(matrix), count))
    return sums.reshape(k, sums.shape[1], *batch)
