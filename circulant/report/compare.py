"""Several runs side by side: their figures, the better ones marked, and the keys of their experiments that differ."""
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from circulant.report.page import render, settings
from circulant.report.seeds import few, spread
from circulant.report.summary import STAGES
from circulant.sim import metrics

__all__ = ["Line", "differences", "doubt", "lines", "page", "table"]

Figures = Mapping[str, Any]


class Line(NamedTuple):
    """A figure of all runs.

    Members:
        name: with its unit.
        values: in words, one for each run; empty where a run has none.
        best: places of the best values; none where all are alike, or none is better.
    """

    name: str
    values: tuple[str, ...]
    best: tuple[int, ...] = ()


FIGURES: dict[str, tuple[tuple[str, ...], str, int]] = {
    "weights of the compressed matrices": (("compression", "weights_circulant"), ",", -1),
    "multipliers": (("hardware", "multipliers"), ",", -1),
    "memory, bits": (("hardware", "memory_bits"), ",", -1),
    "cycles per step": (("hardware", "cycles_per_step"), ",.6g", -1),
    "floor of a step, cycles": (("hardware", "floor_cycles"), ",", 0),
    "cycles per sequence": (("hardware", "cycles_per_sequence"), ",.6g", -1),
    "steps of a sequence": (("hardware", "steps_per_sequence"), ",.6g", 0),
    "spaced latency, cycles": (("hardware", "latency_spaced"), ",.6g", -1),
    "contiguous latency, cycles": (("hardware", "latency_contiguous"), ",.6g", -1),
    "words verified": (("verification", "words"), ",", 0),
    "mismatches": (("verification", "mismatches"), ",", -1),
}
"""Where a figure stands in a report, how it is written, and whether more of it is better (1), less (-1) or neither."""

LOWER = ("phone_error_rate", "mse", "mae", "rmse", "loss")
"""Metrics of which less is better."""


def lines(runs: Sequence[Figures]) -> list[Line]:
    """The figures of all runs, from their reports."""
    found = [_line(f"{metrics.words(metric)}, {words}", [_score(each, metric, stage) for each in runs],
                   partial(metrics.shown, metric), -1 if metric in LOWER else 1)
             for metric in dict.fromkeys(each["metric"] for each in runs)
             for stage, words in STAGES.items() if stage != "projected"]
    found += _over_seeds(runs)
    found += [_line(name, [each[part][key] for each in runs], f"{{:{form}}}".format, better)
              for name, ((part, key), form, better) in FIGURES.items()]
    sizes = [", ".join(f"{size}" for size in sorted({matrix["block_size"] for matrix in
                                                     each["compression"]["matrices"].values()})) for each in runs]
    found.append(Line("block sizes", tuple(sizes)))
    found.append(Line("device", tuple(_device(each) for each in runs)))
    return [line for line in found if any(line.values)]


def _over_seeds(runs: Sequence[Figures]) -> list[Line]:
    """The scores of runs whose experiments differ in their seed alone, as one: means with deviations, and how many."""
    groups: dict[str, list[Figures]] = {}
    keys = []
    for run in runs:
        same = {table: {key: value for key, value in entry.items() if key != "seed"}
                for table, entry in run["experiment"].items()}
        keys.append(json.dumps([run["metric"], same], sort_keys=True, default=str))
        groups.setdefault(keys[-1], []).append(run)
    most = max(map(len, groups.values()))
    metric = runs[0]["metric"]
    if most == 1 or any(run["metric"] != metric for run in runs):
        return [Line("seeds of each", ("1",) * len(runs))]
    scores = [[run[metric]["quantized"] for run in groups[key]] for key in keys]
    means = _line("", [statistics.fmean(each) for each in scores], str, -1 if metric in LOWER else 1)
    return [Line(f"{metrics.words(metric)}, quantized, over seeds",
                 tuple(spread(metric, each) for each in scores), means.best),
            Line("seeds of each", tuple(str(len(each)) for each in scores))]


def doubt(runs: Sequence[Figures]) -> str:
    """A sentence on runs of fewer than three seeds; empty where all have more, or all are one experiment."""
    seeds = next(line.values for line in lines(runs) if line.name == "seeds of each")
    return few(min(map(int, seeds))).strip() if differences(runs) else ""


def differences(runs: Sequence[Figures]) -> list[Line]:
    """The keys of the experiments that differ between the runs, with the value of each run."""
    every = [{(each.table, each.key): each.value for each in settings(run["experiment"])} for run in runs]
    keys = dict.fromkeys(key for one in every for key in one)
    values = {key: tuple(one.get(key, "") for one in every) for key in keys}
    return [Line(f"{table}.{name}", told) for (table, name), told in values.items() if len(set(told)) > 1]


def table(names: Sequence[str], runs: Sequence[Figures]) -> Table:
    """The comparison for a terminal: a column for each run, the better figures bold."""
    shown = Table(title="runs", title_justify="left", title_style="bold")
    shown.add_column("figure", style="cyan")
    for name in names:
        shown.add_column(name, justify="right", overflow="fold")
    for part in (lines(runs), differences(runs)):
        for line in part:
            shown.add_row(line.name, *(Text(value, style="bold green" if at in line.best else "")
                                       for at, value in enumerate(line.values)))
        shown.add_section()
    return shown


def page(names: Sequence[str], runs: Sequence[Figures], links: Sequence[str]) -> str:
    """The comparison as one HTML page.

    Parameters:
        links: addresses of the reports of the runs.
    """
    return render("compare.html", names=names, links=links, lines=lines(runs), differences=differences(runs),
                  doubt=doubt(runs),
                  wrong=[name for name, run in zip(names, runs, strict=True) if run["verification"]["mismatches"]])


def _line(name: str, values: Sequence[float | None], told: Callable[[float], str], better: int) -> Line:
    known = [value for value in values if value is not None]
    written = tuple("" if value is None else told(value) for value in values)
    if not better or len(set(known)) < 2:
        return Line(name, written)
    choose: Callable[..., float] = max if better > 0 else min
    return Line(name, written, tuple(at for at, value in enumerate(values) if value == choose(known)))


def _score(run: Figures, metric: str, stage: str) -> float | None:
    return run[metric].get(stage) if run["metric"] == metric else None


def _device(run: Figures) -> str:
    """The device of a run with the share of its DSP blocks; else the smallest one that holds the design."""
    found = run["hardware"].get("device")
    if found is None:
        return f"none; fits {run['smallest']['name']}" if run["smallest"] else ""
    return f"{found['name']}, {found['resources']['dsps']['share']:.0%} of DSP blocks"
