"""Engines that a network can have within a budget, and in words why one of them is chosen."""
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from circulant.hw.array.plans import Plan

__all__ = ["APART", "EACH", "GROUPS", "ONE", "Alternative", "known_latency", "reason_of"]

EACH, ONE, APART = "an array for each layer", "one array for all layers", "one array for the fully connected layers"
GROUPS = ("an array for each group of layers with one block size and one width of twiddles, as lanes and transforms "
          "have one")


@dataclass(frozen=True)
class Alternative:
    """Engines that a network can have within a budget.

    Parameters:
        engines: in words.
        period: cycles from step to step, of the slowest layer.
        latency: of a sample through recurrent and fully connected layers, in a closed loop, in cycles; None of others.
        reason: of the choice, in words; that of others is empty.
    """

    engines: str
    plans: list[Plan]
    period: float
    latency: int | None
    reason: str = ""

    @property
    def multipliers(self) -> int:
        return sum(each.multipliers for each in self.plans)


def reason_of(best: Alternative, others: Sequence[Alternative], objective: str, least: int) -> str:
    """The reason of a choice, in words."""
    if objective == "area":
        return "it is what 'area' asks for"
    if not others:
        return f"{EACH} needs at least {least} multipliers"
    alike = "both take as long"
    if objective == "latency":
        if known_latency(best) < known_latency(others[0]):
            return "a sample takes less"
        return "samples take as long, and its step is shorter" if best.period < others[0].period else alike
    step, sample = (_more(mine, its) for mine, its in (
        (best.period, others[0].period), (known_latency(best), known_latency(others[0]))))
    if step and sample and step[0] != sample[0]:
        return f"its step takes {' '.join(step[::-1])}, and a sample {' '.join(sample[::-1])}"
    if step:
        return "its step is shorter"
    return "steps are as long, and a sample takes less" if sample else alike


def _more(mine: float, its: float) -> tuple[str, str] | None:
    """Whether a figure is more or less than another one, and by which share; None of equals and of what is not
    known."""
    if mine == its or inf in (mine, its):
        return None
    return "more" if mine > its else "less", f"{abs(mine - its) / its:.0%}"


def known_latency(each: Alternative) -> float:
    """The latency of a sample, infinite where it is not known."""
    return inf if each.latency is None else each.latency
