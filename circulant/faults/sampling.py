"""Sizes of samples of faults, and intervals around what they show.

The size is that of statistical fault injection (Leveugle, Calvez, Maistri, Vanhauwaert, DATE 2009, eq. 1).
"""
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from circulant.sim.refusal import Refusal

__all__ = ["mean", "sample_size", "share"]

RESAMPLED = 2000
"""Samples of a bootstrap."""


def _quantile(confidence: float) -> float:
    """
    Raises:
        Refusal: when a confidence is none.
    """
    if not 0 < confidence < 1:
        raise Refusal(f"A confidence must be a number between 0 and 1, not {confidence!r}; 0.95 is usual")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def sample_size(population: int, margin: float, confidence: float) -> int:
    """The faults of ``population`` to draw, so that a share of them is known to ± ``margin``, whatever it is.

    Raises:
        Refusal: when the margin or the confidence is none.
    """
    if not 0 < margin < 1:
        raise Refusal(f"A margin of error must be a number between 0 and 1, not {margin!r}; 0.05 is five points")
    return math.ceil(population / (1 + margin ** 2 * (population - 1) / (_quantile(confidence) ** 2 * 0.25)))


def share(count: int, total: int, confidence: float) -> tuple[float, float]:
    """The interval of Wilson for the share of a population of which ``count`` of ``total`` drawn ones are."""
    z = _quantile(confidence)
    center, reach = count + z * z / 2, z * math.sqrt(count * (total - count) / total + z * z / 4)
    return max(0.0, (center - reach) / (total + z * z)), min(1.0, (center + reach) / (total + z * z))


def mean(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of a mean, from `RESAMPLED` bootstrap samples of a fixed seed: draws are skewed."""
    _quantile(confidence)
    drawn = np.random.default_rng(0).choice(np.asarray(values, float), (RESAMPLED, len(values)))
    low, high = np.quantile(drawn.mean(1), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
