"""`circulant train --find-rate`: short trainings at several learning rates, a choice, and a picture of it."""
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from matplotlib.figure import Figure

from circulant.extras import TRAINING, extras
from circulant.progress import Show, leads, silent
from circulant.report.plots import COLORS, png, style
from circulant.run.preparation import baseline, inspected
from circulant.run.run_folder import Run
from circulant.sim import artifact
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.metrics import words
from circulant.sim.refusal import Refusal
from circulant.sim.settings import keys

__all__ = ["best", "closing", "find_rate"]

EPOCHS, SHARE = 4, 4
"""A training has this many epochs, or one of so many of the phase where that is more."""

KIND, VERSION = "circulant-rates", 1

Tried = Sequence[Mapping[str, Any]]


class Rates(TypedDict):
    """The record of a search: each rate that was tried has ``rate``, ``loss`` and the metric on samples held out, None
    where the loss did not stay finite."""

    experiment: Mapping[str, Mapping[str, Any]]
    tried: Tried
    best: float
    held_out: int
    epochs: int
    metric: str


def find_rate(run: Run, show: Show = silent) -> Rates:
    """Try rates around that of the experiment: ``rates.json`` and ``rates.png`` in the run folder.

    Raises:
        Refusal: as `circulant.run.steps.train`, and when no rate keeps the loss finite.
    """
    with extras("circulant train", *TRAINING):
        from circulant import training

    run.require_writable()
    experiment, tables = run.experiment, run.experiment.tables()
    if not (held := experiment.data.held_out):
        held = max(1, len(training.load_data(**tables["data"], progress=show).train_x) // training.PART)
    experiment = replace(experiment, data=replace(experiment.data, held_out=held))
    named, settings = tables["training"].pop("dense"), training.TrainingSettings(**tables["training"])
    dense = baseline(experiment, Path(named)) if named else None
    data = training.load_data(**experiment.tables()["data"], progress=show)
    inspected(experiment, data).require()
    rule, kind, _ = keys(training.TrainingSettings)["learning_rate"]
    rates = [rate for factor in training.FACTORS
             if not rule.refuses(rate := float(f"{settings.learning_rate * factor:.6g}"), kind)]

    whole = settings.epochs("direct" if settings.method == "direct" else "dense")
    epochs = min(whole, max(EPOCHS, whole // SHARE)) or EPOCHS

    def progress(phase: str, epoch: int, of: int, metrics: "training.Metrics") -> None:
        show("trying rates", epoch, of, f"{phase}, loss {metrics['loss']:.4f}")

    found = training.try_rates(data, settings, rates, model=training.ModelSettings(**tables["model"]),
                               block_size=experiment.compression.block_size, dense=dense, epochs=epochs,
                               progress=progress)
    metric = training.task_of(data).metric
    tried = [{"rate": each.rate, "loss": each.loss, metric: each.score} for each in found]
    if all(each["loss"] is None for each in tried):
        raise Refusal(f"A learning rate must keep the loss finite, but none from {rates[0]:g} to {rates[-1]:g} does; "
                      "set training.learning_rate to less, or training.clip")
    body: Rates = {"experiment": experiment.tables(("data", "model", "compression", "training")), "tried": tried,
            "best": best(tried), "held_out": held, "epochs": epochs, "metric": metric}
    if leads():
        artifact.write_json(run.path("rates.json"), KIND, VERSION, body)
        atomic_bytes(run.path("rates.png"), _picture(tried, metric))
    return body


def best(tried: Tried) -> float:
    """The rate with the least loss."""
    return float(min((each for each in tried if each["loss"] is not None), key=lambda each: each["loss"])["rate"])


def closing(tried: Tried, held: int, epochs: int, *, warm: bool = True) -> str:
    """The rate with the least loss, in words, and how to take it.

    Parameters:
        warm: whether the rate rises at the start of a phase; else greater ones may have failed for the lack of it.
    """
    rate = best(tried)
    edge = {tried[0]["rate"]: "least", tried[-1]["rate"]: "greatest"}.get(rate)
    return (f"of {len(tried)} rates {rate:g} has the least loss on {held} training samples held out, after {epochs} "
            f"epochs; take it with --set training.learning_rate={rate:g}"
            + (f". It is the {edge}: the best may be beyond" if edge else "")
            + ("" if warm or edge == "greatest" else
               ". Greater ones may do with a rate that rises first: try --set training.warmup_epochs=1"))


def _picture(tried: Tried, metric: str) -> bytes:
    """Loss and metric against the rate, the choice marked."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    finite = [each for each in tried if each["loss"] is not None]
    for axes, name in zip(figure.subplots(1, 2), ("loss", metric), strict=True):
        axes.plot([each["rate"] for each in finite], [each[name] for each in finite], "o-", color=COLORS["direct"])
        axes.axvline(best(tried), color=COLORS["retrain"], linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_xticks([each["rate"] for each in tried], [f"{each['rate']:g}" for each in tried])
        axes.minorticks_off()
        axes.set_xlabel("learning rate")
        style(axes, f"{words(name)}, held out")
    return png(figure)
