"""Reductions of a sequence to one vector: rules of golden and float layers alike."""
from circulant.sim.refusal import Refusal

__all__ = ["COUNT_BITS", "MODES", "STEPS", "check_mode"]

MODES = ("max", "mean")

COUNT_BITS = 16
"""Bits of the number of steps that a mean counts."""

STEPS = (1 << COUNT_BITS) - 1
"""Steps that a mean is taken over at the most: those behind them change nothing."""


def check_mode(name: str, mode: object) -> None:
    """
    Raises:
        Refusal: when a layer takes neither the maximum nor the mean.
    """
    if mode not in MODES:
        raise Refusal(f"Layer {name!r} must take the 'max' or the 'mean' over the steps, not {mode!r}; choose one")
