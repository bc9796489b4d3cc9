"""Scores of several seeds in words, and when there are too few of them."""
import statistics
from collections.abc import Sequence

from circulant.sim.metrics import shown

__all__ = ["few", "spread"]


def spread(metric: str, values: Sequence[float]) -> str:
    """The mean of the seeds' scores ± their standard deviation, as people read them; of one seed its score."""
    deviation = f" ± {shown(metric, statistics.stdev(values))}" if len(values) > 1 else ""
    return shown(metric, statistics.fmean(values)) + deviation


def few(seeds: int) -> str:
    """A sentence for differences between means of fewer than three seeds; empty for more."""
    return "" if seeds >= 3 else (f" {seeds} seed{'s are' if seeds > 1 else ' is'} too few to tell a difference of a "
                                  "point from chance: train three.")
