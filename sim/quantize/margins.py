"""How far a network is from deciding otherwise: what quantization takes of the margins of its decisions.

A decision is the class with the greatest output, its margin over another class the distance of their outputs. Data
that a network was trained on are decided by wide margins, so that its metric there changes only when far too much is
lost already; margins say it from the first bit on, and need no labels.

Numbers have no margins. What quantization adds to them is noise, and independent noise takes from R² its power in parts
of the variance of what is predicted.
"""
import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals

__all__ = ["UNSEEN", "added", "lost", "taken", "taken_labels"]

UNSEEN = 0.08
"""Points of the metric that are lost where data that were not trained on lose a percent of their margins.

Unseen samples are decided by margins that are some part of those of trained ones; were every part from 0 to 1 as
likely, a sample would be decided otherwise as often as the part says that is taken. Measured, it is about a fifth as
often (docs/quantization.md), and what is decided otherwise was wrong before about as often as it becomes wrong: no more
than half of it counts.
"""


def taken(exact: ArrayLike, found: ArrayLike) -> Reals:
    """The part, 0 to 1, that each decision loses of its margin over the class that comes nearest to it.

    Parameters:
        exact: outputs (…, classes) of the model.
        found: those of the quantized network.

    Returns:
        (…); 1 where it is decided otherwise, 0 where every margin grew.
    """
    exact, found = np.asarray(exact, np.float64), np.asarray(found, np.float64)
    if exact.shape[-1] < 2:
        return np.zeros(exact.shape[:-1])
    best = exact.argmax(-1)[..., None]
    before, after = (np.take_along_axis(each, best, -1) - each for each in (exact, found))
    others = np.arange(exact.shape[-1]) != best
    gone = np.divide(before - after, before, out=(after < before).astype(np.float64), where=before > 0)
    return np.clip(np.where(others, gone, 0.0).max(-1), 0.0, 1.0)


def taken_labels(exact: ArrayLike, found: ArrayLike) -> Reals:
    """The part, 0 to 1, that the decision on each label loses of its distance from 0.

    Parameters:
        exact, found: as for `taken`, with outputs (…, labels).

    Returns:
        (…, labels).
    """
    pairs = (np.stack(np.broadcast_arrays(np.asarray(each, np.float64), 0.0), -1) for each in (exact, found))
    return taken(*pairs)


def added(exact: ArrayLike, found: ArrayLike) -> float:
    """Points of R² that numbers lose: the power of what quantization adds, in parts of their variance.

    Parameters:
        exact: outputs (M, outputs) of the model; each has its own mean.
        found: those of the quantized network.
    """
    exact, found = np.asarray(exact, np.float64), np.asarray(found, np.float64)
    spread = float(np.square(exact - exact.mean(0)).sum())
    return 100 * float(np.square(found - exact).sum()) / max(spread, float(np.finfo(np.float64).tiny))


def lost(parts: ArrayLike) -> float:
    """Points of the metric that unseen data lose, estimated from the parts that `taken` found."""
    return UNSEEN * 100 * float(np.mean(np.asarray(parts, np.float64)))
