"""Log-mel features, deltas and normalisation of sound, to the same bit on every machine.

Transforms, matrix products and logarithms differ in their last bit between processors. So each value is rounded to a
grid of 1/64 dB as soon as it is in decibels; a difference of 1e-13 dB then changes a value with a probability of about
1e-11. From there on all sums are those of integers, hence exact in any order, and what follows them are single IEEE
operations in float64, rounded to a grid of 1/4096 that float32 holds exactly.
"""
import functools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal

__all__ = ["GRID", "RECIPE", "Frames", "in_decibels", "log_mel", "stacked", "standardised", "statistics", "with_deltas"]

Frames = NDArray[np.int32]
"""Features (T, F) in units of 1/64 dB."""

GRID = 64
FINE = 4096
LEAST_DEVIATION = 0.5
"""In dB: what varies less is noise of the silence, and is not blown up to variance 1."""

RECIPE = 1
"""Version of this file's results: it is part of the key under which features are cached."""


def log_mel(samples: NDArray[np.int16], rate: int, bands: int, *, low: float = 64.0, window: float = 0.025,
            hop: float = 0.010) -> Frames:
    """Energies of triangular mel bands in decibels, from ``low`` Hz to half the rate.

    Pre-emphasis 0.97, periodic Hann window, power spectrum of the next power of two, HTK's mel scale
    2595 log10(1 + f/700), 10 log10(E + 1e-10). With 16 kHz and 40 bands it is the recipe of shared speechocean762.

    Parameters:
        samples: 16 bit mono; less than a window is padded with zeros to one.
        window, hop: seconds.

    Returns:
        (T, bands) with T = 1 + (samples - window) // hop.

    Raises:
        Refusal: when there are no samples, or a band is so narrow that it holds no bin of the spectrum.
    """
    if samples.ndim != 1 or not len(samples):
        raise Refusal(f"A recording must be mono with at least one sample, not of shape {samples.shape}; leave it out")
    length, step = round(window * rate), round(hop * rate)
    points = 1 << (length - 1).bit_length()
    weights = _mel_weights(rate, bands, points, low)
    x = samples.astype(np.float64) / 32768
    x = np.append(x[0], x[1:] - 0.97 * x[:-1])
    x = np.pad(x, (0, max(0, length - len(x))))
    frames = np.lib.stride_tricks.sliding_window_view(x, length)[::step] * np.hanning(length + 1)[:length]
    spectrum = np.fft.rfft(frames, points)
    power = spectrum.real**2 + spectrum.imag**2
    return np.rint(10 * np.log10(power @ weights.T + 1e-10) * GRID).astype(np.int32)


def with_deltas(frames: Frames, order: int) -> Frames:
    """Features (T, F) with their first ``order`` time derivatives behind them: (T, F·(1 + order)).

    The regression of HTK over two frames to each side, Δ_t = Σ_n n (c_{t+n} − c_{t−n}) / 10, the ends repeated.
    """
    parts = [frames]
    for _ in range(order):
        c = np.pad(parts[-1], ((2, 2), (0, 0)), mode="edge")
        tenfold = (c[3:-1] - c[1:-3]) + 2 * (c[4:] - c[:-4])
        parts.append((tenfold + 5) // 10)
    return np.concatenate(parts, axis=1)


def statistics(sequences: Iterable[Frames]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (F,) of features over all frames of all sequences, in units of the grid."""
    count: int = 0
    total: NDArray[np.object_] | int = 0
    squares: NDArray[np.object_] | int = 0
    for frames in sequences:
        wide = frames.astype(np.int64)
        count += len(wide)
        total = total + wide.sum(0).astype(object)  # Python's integers, which do not overflow.
        squares = squares + (wide * wide).sum(0).astype(object)
    variance = np.asarray(count * squares - total * total).astype(np.float64)
    return np.asarray(total).astype(np.float64) / count, np.sqrt(variance) / count


def standardised(frames: Frames, mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float32]:
    """Features less their mean, in standard deviations, of which none counts as less than half a decibel."""
    fine = np.rint((frames - mean) / np.maximum(deviation, LEAST_DEVIATION * GRID) * FINE) / FINE
    return fine.astype(np.float32)


def in_decibels(frames: Frames) -> NDArray[np.float32]:
    """Features as they are, in dB."""
    return (frames / GRID).astype(np.float32)


def stacked(frames: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Each ``count`` successive frames (T, F) as one step: (⌈T / count⌉, F·count); the last is filled up with zeros."""
    steps = -(-len(frames) // count)
    padded = np.pad(frames, ((0, steps * count - len(frames)), (0, 0)))
    return padded.reshape(steps, -1)


@functools.lru_cache(maxsize=8)
def _mel_weights(rate: int, bands: int, points: int, low: float) -> NDArray[np.float64]:
    """Triangles (bands, points / 2 + 1) whose corners are equally far from each other in mel."""
    least, most = (2595 * math.log10(1 + hertz / 700) for hertz in (low, rate / 2))
    edges = 700 * (10 ** (np.linspace(least, most, bands + 2) / 2595) - 1)
    f = np.arange(points // 2 + 1) * rate / points
    weights = np.stack([np.maximum(0, np.minimum((f - lo) / (mid - lo), (hi - f) / (hi - mid)))
                        for lo, mid, hi in zip(edges[:-2], edges[1:-1], edges[2:], strict=True)])
    if empty := int((weights.sum(1) == 0).sum()):
        raise Refusal(f"Each mel band must hold a bin of the spectrum, but with {bands} bands at {rate} Hz {empty} "
                      "hold none; choose fewer data.bands")
    return weights
