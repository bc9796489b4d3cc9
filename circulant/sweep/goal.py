"""The goal of a search: the figures to optimize, the figures with bounds, and the method."""
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from circulant.sim.files.schema import shown
from circulant.sim.refusal import nearest
from circulant.sim.settings import Table, key, read
from circulant.sweep.rows import Row

__all__ = ["FIGURES", "Figure", "Search", "loss", "read_search"]


def loss(row: Row) -> float:
    """The error of the quantized network: smaller is better."""
    return 1 - row["quantized"] if row["higher_is_better"] else row["quantized"]


@dataclass(frozen=True)
class Figure:
    """A figure of a point.

    Parameters:
        words: its name in tables and pictures.
        value: in a row; bounds are compared with it.
        cost: what a search makes small.
        needs: the key of the experiment without which it is not known; empty where it always is.
    """

    words: str
    value: Callable[[Row], float]
    cost: Callable[[Row], float]
    needs: str = ""

    def known(self, row: Row) -> bool:
        """Whether a row has it: one that failed or was made before has fewer."""
        try:
            return self.value(row) is not None
        except KeyError:
            return False


def _cost(words: str, value: Callable[[Row], float], needs: str = "") -> Figure:
    return Figure(words, value, cost=value, needs=needs)


DEVICE, LIBRARY = "board.device", "hardware.library"


PRODUCT, READ = 0.003, 0.16
"""Energies in pJ at 45 nm, 0.9 V (Horowitz, ISSCC 2014): of a product for each bit of one factor times each bit of the
other (0.2 pJ for 8 × 8 bits, 3.1 pJ for 32 × 32), and of a bit that is read from a memory of 8 kB (10 pJ for 64)."""


def _energy(row: Row) -> float:
    """An estimate, in nJ a step: every product of the step and one read of every weight. Registers, wires, clocks and
    what an FPGA adds are not in it, so that it compares designs and is nobody's power supply."""
    bits = row["weight_memory_bits"] / row["weights"]
    products = row["floor_cycles"] * row["multipliers"] * PRODUCT * bits * (row["activation_bits"] + 1)
    return float(products + row["weight_memory_bits"] * READ) / 1000


FIGURES = {
    "score": Figure("metric of the golden model", lambda row: row["quantized"], cost=loss),
    "weight_memory_bits": _cost("weight bits", lambda row: row["weight_memory_bits"]),
    "memory_bits": _cost("memory bits", lambda row: row["memory_bits"]),
    "multipliers": _cost("multipliers", lambda row: row["multipliers"]),
    "cycles_per_step": _cost("cycles", lambda row: row["cycles_per_step"]),
    "work": _cost("cycles × multipliers", lambda row: row["cycles_per_step"] * row["multipliers"]),
    "latency_spaced": _cost("cycles of latency, spaced", lambda row: row["latency_spaced"]),
    "latency_contiguous": _cost("cycles of latency, contiguous", lambda row: row["latency_contiguous"]),
    "energy": _cost("nJ a step (estimate)", _energy),
    "dsps": _cost("DSP blocks", lambda row: row["dsps"], DEVICE),
    "block_rams": _cost("block RAMs", lambda row: row["block_rams"], DEVICE),
    "luts": _cost("look-up tables (estimate)", lambda row: row["luts"], DEVICE),
    "flip_flops": _cost("flip-flops (estimate)", lambda row: row["flip_flops"], DEVICE),
    "cells_mm2": _cost("mm² of cells", lambda row: row["cells_mm2"], LIBRARY),
    "logic_mm2": _cost("mm² of logic", lambda row: row["logic_mm2"], LIBRARY),
    "inference_nj": _cost("nJ an inference", lambda row: row["inference_nj"], LIBRARY),
    "rest_uw": _cost("µW at rest", lambda row: row["rest_uw"], LIBRARY),
    "cells_mhz": Figure("MHz of cells", lambda row: row["cells_mhz"], lambda row: -row["cells_mhz"], LIBRARY),
}
"""All figures that a search can aim at or bound, by the name in its file."""


@dataclass(frozen=True)
class Search(Table):
    """How the points of a space are chosen."""

    method: str = key("tpe", "random points, NSGA-II (Deb et al. 2002), or a tree-structured Parzen estimator "
                      "(Bergstra et al. 2011)", choices=("random", "nsga2", "tpe"))
    points: int = key(100, "different points that are evaluated in each grid", low=1, high=100_000)
    seed: int = key(0, "of the random numbers", low=0, high=2**31 - 1)
    objectives: tuple[str, ...] = key(("score", "work"), "figures that are made as good as can be, by Pareto")
    at_most: dict[str, float] = key({}, "upper bounds of figures")
    at_least: dict[str, float] = key({}, "lower bounds of figures")
    storage: str = key("", "URL of the Optuna storage; empty: the file search.db in the folder of the results")

    def contradictions(self) -> list[str]:
        """Unknown figures, bounds that are no numbers, and bounds that exclude each other."""
        names = [*self.objectives, *self.at_most, *self.at_least]
        problems = [f"a figure must be one of {', '.join(FIGURES)}, not {shown(name)}{nearest(name, FIGURES)}"
                    for name in dict.fromkeys(names) if name not in FIGURES]
        bounds = [(word, name, bound) for word, table in (("at_most", self.at_most), ("at_least", self.at_least))
                  for name, bound in table.items()]
        wrong = [entry for entry in bounds if type(entry[2]) not in (int, float) or not math.isfinite(entry[2])]
        problems += [f"search.{word}.{name} must be a number, not {shown(bound)}" for word, name, bound in wrong]
        if not self.objectives or len(set(self.objectives)) < len(self.objectives):
            problems.append(f"search.objectives must name one figure or several, each once, not "
                            f"{shown(list(self.objectives))}")
        if not problems:
            problems += [f"bounds must leave something, but {name} is to be at least {low:,g} and at most "
                         f"{self.at_most[name]:,g}" for name, low in self.at_least.items()
                         if low > self.at_most.get(name, math.inf)]
        return problems

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures that it asks for, objectives first."""
        return tuple(dict.fromkeys((*self.objectives, *self.at_most, *self.at_least)))

    def excess(self, row: Row) -> Iterator[tuple[str, float]]:
        """Each bound in words, and how far a row is beyond it, as a share of the bound; not above 0 where it holds."""
        for sign, word, table in ((1, "≤", self.at_most), (-1, "≥", self.at_least)):
            for name, bound in table.items():
                over = sign * (FIGURES[name].value(row) - bound)
                yield f"{name} {word} {bound:,g}", over / abs(bound) if bound else float(over)

    def violated(self, row: Row) -> list[str]:
        """The bounds that a row breaks, in words."""
        return [words for words, over in self.excess(row) if over > 0]


def read_search(given: Any) -> tuple[Search | None, list[str]]:
    """The settings of the key ``search``, a method or a table; None for "grid", every point; and what is wrong."""
    if given == "grid":
        return None, []
    if isinstance(given, str):
        given = {"method": given}
    return read(Search, given)
