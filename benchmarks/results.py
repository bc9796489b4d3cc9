"""The tables of docs/results.md, collected from run folders and kept records, so that no figure is typed by hand.

`python -m benchmarks results --train` trains every row that is missing (`benchmarks.campaign`), and goes on where it
was stopped; without it, what is there is collected.
"""
import csv
import io
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import click

from benchmarks import campaign, records
from benchmarks.experiments import EXPERIMENTS, FOLDER, TITLES, Row, rows
from benchmarks.records import KEPT
from circulant.report.report import compression
from circulant.sim.files.writing import atomic_text

__all__ = ["collect", "document", "keep", "sheet", "train", "write"]

SEEDS = 10
"""Seeds from 0 that are looked for."""

UNITS = {"": "512 units", "-256": "256 units"}
"""Sizes of the speech models, by the end of their names."""

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def train(experiments: Iterable[str] = EXPERIMENTS, seeds: Iterable[int] = (0, 1, 2), below: Path = FOLDER,
          kept: Path = KEPT) -> None:
    """Train what is missing, seed by seed, and keep the records.

    Raises:
        click.ClickException: when a training fails.
    """
    wanted = [(row, seed, "") for seed in seeds for name in experiments for row in rows(name)]
    campaign.train(campaign.missing(wanted, below, kept), below=below, kept=kept)


def collect(below: Path = FOLDER, experiments: Iterable[str] = EXPERIMENTS, kept: Path = KEPT) -> dict[str, Any]:
    """The figures of every row that has at least one finished training, by experiment and label."""
    found: dict[str, dict[str, Any]] = {}
    for experiment in experiments:
        for row in rows(experiment):
            trained = {seed: one for seed in range(SEEDS)
                       if (one := records.record(row, seed, below, kept)) is not None}
            if trained:
                found.setdefault(experiment, {})[row.label] = _figures(row, trained)
        for label, entry in found.get(experiment, {}).items():
            _compare(entry, found[experiment], next(row for row in rows(experiment) if row.label == label))
    return found


def _figures(row: Row, trained: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    seed, first = next(iter(trained.items()))
    metric = first["metric"]
    scores = {seed: {stage: record[metric][stage] for stage in record[metric]} for seed, record in trained.items()}
    linear = {name: matrix for name, matrix in first["matrices"].items() if not name.startswith("conv")}
    return {
        "metric": metric, "scores": scores,
        "epochs": {seed: len(record["history"]) for seed, record in trained.items()},
        "block_sizes": sorted({matrix["block_size"] for matrix in first["matrices"].values()}),
        "command": "circulant " + shlex.join(row.arguments(seed)),
        "weights": compression(first["matrices"]), "linear": compression(linear), "data": first["experiment"]["data"],
        "seconds": mean(record["seconds"] for record in trained.values()),
        "processor_seconds": mean(record.get("processor_seconds", record["seconds"]) for record in trained.values()),
        "machines": sorted({_machine(record["machine"]) for record in trained.values() if "machine" in record}),
    }


def _machine(machine: Mapping[str, Any]) -> str:
    where = machine["gpu"] or f"{machine['processor']}, {machine['threads']} of {machine['cores']} cores"
    return f"{where}, torch {machine['torch']}"


def _compare(entry: dict[str, Any], others: Mapping[str, Any], row: Row) -> None:
    """Add the loss against the dense model of the same budget, and what is reached of the target."""
    sign = 1 if entry["metric"] == "accuracy" else -1
    entry["losses"] = _lost(entry, others.get(row.against), sign)
    entry["behind"] = _lost(entry, others.get(row.base), sign)
    target, score = row.target, mean(scores["circulant"] for scores in entry["scores"].values())
    checks = []
    if target.score is not None:
        checks.append((f"{'≥' if sign > 0 else '<'} {target.score:.1%}", sign * (score - target.score) >= 0))
    if target.loss is not None and entry["losses"]:
        checks.append((f"loss ≤ {100 * target.loss:.2f}", mean(entry["losses"].values()) <= target.loss + 1e-9))
    if target.behind is not None and entry["behind"]:
        lost = mean(entry["behind"].values())
        checks.append((f"≤ {100 * target.behind:.2f} behind {row.base} ({100 * lost:+.2f})",
                       lost <= target.behind + 1e-9))
    if target.fewer is not None:
        ratio = entry["linear"]["weights_dense"] / entry["linear"]["weights_circulant"]
        checks.append((f"≥ {target.fewer:g}× fewer in circulant Linear layers ({ratio:.1f}×)", ratio >= target.fewer))
    entry["target"] = [{"rule": rule, "reached": bool(reached)} for rule, reached in checks]


def _lost(entry: Mapping[str, Any], dense: Mapping[str, Any] | None, sign: int) -> dict[int, float]:
    """The loss against a dense model, by seed."""
    return {seed: sign * (dense["scores"][seed]["circulant"] - scores["circulant"])
            for seed, scores in entry["scores"].items() if dense and seed in dense["scores"]}


def document(found: Mapping[str, Any], written: Mapping[str, str] | None = None) -> str:
    """The Markdown of all figures.

    Parameters:
        written: by title the sections that stand for experiments of which nothing was found.
    """
    parts = []
    for experiment in EXPERIMENTS:
        if experiment not in found:
            parts += [written[TITLES[experiment]]] if written and TITLES[experiment] in written else []
            continue
        metric = next(iter(found[experiment].values()))["metric"].replace("_", " ")
        lines = [f"## {TITLES[experiment]}", "", f"`{experiment}`", "",
                 f"| row | k | seeds | {metric} | loss | fewer weights | target |", "|---|---|---|---|---|---|---|"]
        lines += [_line(label, entry) for label, entry in found[experiment].items()]
        parts.append("\n".join([*lines, ""]))
    return "\n".join([*parts, *_orderings(found)])


def _line(label: str, entry: Mapping[str, Any]) -> str:
    scores = [each["circulant"] for each in entry["scores"].values()]
    weights, sizes = entry["weights"], [k for k in entry["block_sizes"] if k > 1]
    fewer = f"{weights['weights_dense'] / weights['weights_circulant']:.1f}×" if sizes else ""
    target = ", ".join(f"{check['rule']}: {'reached' if check['reached'] else '**missed**'}"
                       for check in entry["target"])
    losses = [*entry["losses"].values()] if label not in ("start", "dense", "start-chain") else []
    return (f"| {label} | {', '.join(map(str, sizes)) or '1'} | {len(scores)} | {spread(scores, 100)} % | "
            f"{spread(losses, 100, '+') if losses else ''} | {fewer} | {target} |")


COLUMNS = ("experiment", "row", "block sizes", "metric", "seeds", "scores", "weights before", "weights as stored",
           "epochs", "processor seconds", "machines", "command")
"""Columns of the file that has what the page leaves out; what differs by seed is separated by semicolons."""


def sheet(found: Mapping[str, Any], before: str = "") -> str:
    """The CSV of all figures.

    Parameters:
        before: the text that stands; its lines of experiments of which nothing was found stay.
    """
    lines = [line for line in csv.reader(io.StringIO(before)) if line[0] in EXPERIMENTS and line[0] not in found]
    lines += [[experiment, label, _several(entry["block_sizes"]), entry["metric"], _several(entry["scores"]),
               _several(scores["circulant"] for scores in entry["scores"].values()),
               entry["weights"]["weights_dense"], entry["weights"]["weights_circulant"],
               _several(entry["epochs"].values()), f"{entry['processor_seconds']:.0f}", _several(entry["machines"]),
               entry["command"]] for experiment, entries in found.items() for label, entry in entries.items()]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *lines])
    return text.getvalue()


def _several(values: Iterable[Any]) -> str:
    return "; ".join(map(str, values))


def spread(values: Iterable[float], scale: float = 1, sign: str = "") -> str:
    """Mean, and standard deviation where there are several values."""
    scaled = [scale * value for value in values]
    text = f"{mean(scaled):{sign}z.2f}"
    return f"{text} ± {stdev(scaled):.2f}" if len(scaled) > 1 else text


def _orderings(found: Mapping[str, Any]) -> list[str]:
    """E-RNN's statements about block sizes and cells, beside what was measured."""
    later = [said for units in UNITS for said in _later_layers(found, units)]
    lines = ["- Larger blocks in the later layer hurt less: the error rate with k = 16 in layer 0 and 4 in layer 1, "
             f"less the reverse, in points: {', '.join(later)}."] * bool(later) + _cells(found)
    return ["## Orderings of E-RNN", "", *lines, ""] if lines else []


def _later_layers(found: Mapping[str, Any], units: str) -> Iterator[str]:
    for cell in ("gru", "lstm"):
        entries = found.get(f"speech-{cell}{units}", {})
        if gains := _apart(*(entries.get(label, {}).get("scores", {}) for label in ("k16-4", "k4-16"))):
            yield f"`speech-{cell}{units}` {spread(gains, 100, '+')} ({_seeds(gains)}: {_verdict(gains)})"


def _cells(found: Mapping[str, Any]) -> list[str]:
    apart: dict[str, dict[str, str]] = {}
    for units in UNITS:
        gru, lstm = (found.get(f"speech-{cell}{units}", {}) for cell in ("gru", "lstm"))
        for label in (label for label in gru if label in lstm and gru[label]["losses"]):
            if values := _apart(gru[label]["scores"], lstm[label]["scores"]):
                apart.setdefault(label, {})[units] = f"{spread(values, 100, '+')} ({len(values)})"
    head = ["- GRU near LSTM: the GRU's error rate less the LSTM's, in points; the number of seeds in brackets:", "",
            f"| row | {' | '.join(UNITS.values())} |", "|---|---|---|"]
    return [*head, *(f"| {label} | {' | '.join(its.get(units, '') for units in UNITS)} |"
                     for label, its in apart.items())] if apart else []


def _apart(first: Mapping[int, Any], second: Mapping[int, Any]) -> list[float]:
    """The scores of the first row less those of the second, of each seed that both have."""
    return [first[seed]["circulant"] - second[seed]["circulant"] for seed in first if seed in second]


def _seeds(values: list[float]) -> str:
    return "one seed" if len(values) == 1 else f"{len(values)} seeds"


def _verdict(gains: list[float]) -> str:
    """Confirmed or refuted where the mean is beyond two standard errors."""
    if len(gains) < 2:
        return "no more than a hint"
    if abs(mean(gains)) <= 2 * stdev(gains) / len(gains) ** 0.5:
        return "undecided, within two standard errors"
    return "confirmed" if mean(gains) > 0 else "refuted"


def table(found: Mapping[str, Any]) -> dict[str, str]:
    """The rows for people."""
    rows_ = {}
    for experiment, entries in found.items():
        for label, entry in entries.items():
            scores = spread([each["circulant"] for each in entry["scores"].values()], 100)
            checks = ", ".join(f"{check['rule']}: {'reached' if check['reached'] else 'missed'}"
                               for check in entry["target"])
            rows_[f"{experiment} {label}"] = f"{scores} %" + (f" ({checks})" if checks else "")
    return rows_


def keep(below: Path = FOLDER, experiments: Iterable[str] = EXPERIMENTS, kept: Path = KEPT) -> None:
    """Keep the records of all finished trainings, beside those that are kept."""
    for row in (row for experiment in experiments for row in rows(experiment)):
        for seed in range(SEEDS):
            records.keep(row, seed, below, kept)


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Replace what stands between the two marks of a document, and the file `measured/results.csv` beside it.

    The section of an experiment of which nothing was found stays: its run folders are on another machine.

    Raises:
        click.ClickException: when it has not both marks.
    """
    text = path.read_text("utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise click.ClickException(f"{path} must have the lines {BEGIN} and {END} once each; put them back")
    head, _, rest = text.partition(BEGIN)
    between, _, tail = rest.partition(END)
    written = {section.partition("\n")[0]: f"## {section.rstrip()}\n" for section in between.split("\n## ")[1:]}
    atomic_text(path, f"{head}{BEGIN}\n\n{document(found, written)}\n{END}{tail}")
    rows_ = path.parent / "measured" / "results.csv"
    rows_.parent.mkdir(exist_ok=True)
    atomic_text(rows_, sheet(found, rows_.read_text("utf-8") if rows_.exists() else ""))
