"""From a trained model to integers as the experiment says: bit widths given or picked, weights trained on them."""
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from circulant.progress import Show, silent
from circulant.run.run_folder import Picking
from circulant.sim import artifact
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.network import Network
from circulant.sim.metrics import shown
from circulant.sim.passes.bases import factors
from circulant.sim.passes.bitwidths import Widths
from circulant.sim.quantize.bitwidth_cost import CostModel, weight_bits
from circulant.sim.quantize.bitwidth_search import LOUDER, SearchResult, search_bitwidths
from circulant.sim.quantize.bitwidth_space import FIELDS
from circulant.sim.quantize.evaluations import Evaluations
from circulant.sim.quantize.quantize import calibrate, grids, quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.training.loop.display import PHASES

if TYPE_CHECKING:
    from circulant.training.data import Dataset
    from circulant.training.settings.training import TrainingSettings
    from circulant.training.task.task import Task

__all__ = ["Golden", "calibration", "float_model", "golden", "loss", "picked_table", "ranges_table", "score", "widths"]

SAMPLE = 64
"""Samples that a model is compared with its reference on."""

STEPS = 6400
"""Steps of all samples together that the noise of a width is measured on."""

FINETUNED = ("noise", "sensitivity", "labels")
"""Keys of [quantization], behind finetune_, that `circulant.training.finetune` takes by these names."""


@dataclass(frozen=True, eq=False)
class Golden:
    """The golden network of a trained model.

    Parameters:
        model: the mathematics that it was quantized from, after training on the integers where there was any.
        picking: for the record: the outcome of the search, or nothing.
        finetuning: for the record: the metric of the integers before it, or nothing.
        never: tensors that the calibration never exercised.
    """

    network: Network
    model: Model
    picking: Picking = field(default_factory=lambda: Picking())
    finetuning: Mapping[str, Any] = field(default_factory=dict)
    never: list[str] = field(default_factory=list)


def widths(table: Mapping[str, Any]) -> Widths:
    """The bit widths of [quantization]: an integer for every tensor of a kind, a table for those of named layers.

    Raises:
        Refusal: when a width is out of its range.
    """
    names = (*FIELDS, "activation_bits", "weight_scale", "activation_table", "activation_error", "segments",
             "multiplier")
    apart = [name for name in names if isinstance(table[name], Mapping)]
    return Widths(**{name: table[name] for name in names if name not in apart}, tensors={
        f"{layer}.{name}": value for name in apart for layer, value in table[name].items()})


def golden(model: Any, data: "Dataset", table: Mapping[str, Any], *, name: str | None = None,
           settings: "TrainingSettings | None" = None, folder: str | Path | None = None,
           show: Show = silent) -> Golden:
    """Quantize a trained model as [quantization] says.

    Parameters:
        model: a torch module, or where nothing is trained further the mathematics of one.
        table: that of the experiment.
        settings: of a fine-tuning.
        folder: keeps the evaluations of a search, so that one which was interrupted goes on.

    Raises:
        Refusal: as `quantize` and `search_bitwidths`.
    """
    from circulant import training

    show("calibration", 0, 0)
    reference = float_model(model, data, name)
    seen = calibration(data, table["calibration"])
    peaks, bits, picking = calibrate(reference, *seen), widths(table), Picking()
    task = training.task_of(data)
    if table["budget"]:
        evaluations = _evaluations(reference, data, task, table, folder)
        picked = search_bitwidths(reference, peaks, bits, evaluations, budget=table["budget"], search=table["search"],
                      fields=table["pick"] or FIELDS, progress=show,
                      louder=LOUDER if table["pick_by"] == "metric" else math.inf,
                      price=lambda network: CostModel(network, bits, memory_share=table["memory_share"],
                                                      ports=_ports(table["dsp"])))
        picking = _picking(picked, quantize(reference, peaks, **bits.as_dict()), data, table)
        bits = picked.widths
    if not table["finetune_epochs"] and any(
            table[f"finetune_{each}"] for each in (*FINETUNED, "clip")):
        raise Refusal("quantization.finetune_noise, finetune_sensitivity, finetune_clip and finetune_labels need a "
                      "fine-tuning that they act on, but quantization.finetune_epochs is 0; give it epochs, or leave "
                      "them out")
    network, tuned = quantize(reference, peaks, **bits.as_dict()), dict[str, float]()
    if table["finetune_epochs"] or table["joint_epochs"]:
        vectors = {path for layer in network.layers for path in factors(layer)}
        known = {path: grid if path in vectors else cut(grid, table["finetune_clip"])
                 for path, grid in grids(network).items()}
        forms = {name: known[path] for name, path in training.golden_paths(model, network).items()}
        tuned, through = {"before": score(network, data)}, None
        if network.multiplier != EXACT:
            through = quantize(reference, peaks, **replace(bits, grids=known).as_dict())
        model = training.finetune(
            model, data, forms, epochs=table["finetune_epochs"], joint_epochs=table["joint_epochs"], settings=settings,
            rate=table["finetune_rate"], **{each: table[f"finetune_{each}"] for each in FINETUNED}, through=through,
            progress=lambda phase, epoch, epochs, metrics: show(
                PHASES[phase], epoch, epochs, f"loss {metrics['loss']:.4f}, "
                f"{shown(task.metric, training.scored(metrics, task.metric) or 0.0)}"))
        reference = training.reference(model, data.train_x[:SAMPLE], name=name)
        peaks, bits = calibrate(reference, *seen), replace(bits, grids=known)
        network = quantize(reference, peaks, **bits.as_dict()) if through is None else quantize_like(reference, through)
    return Golden(network, reference, picking, tuned, peaks.never)


def cut(grid: WeightGrid, bits: int) -> WeightGrid:
    """The grid of as many values in a range that is ``bits`` bits smaller."""
    return replace(grid, form=replace(grid.form, frac=grid.form.frac + bits))


def float_model(model: Any, data: "Dataset", name: str | None) -> Model:
    """The mathematics of a torch module; a model that is in float64 already, as it is."""
    from circulant import training

    return model if isinstance(model, Model) else training.reference(model, data.train_x[:SAMPLE], name=name)


def calibration(data: "Dataset", count: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """``count`` training samples at equal distances, and their lengths; all of them for 0, or if there are no more."""
    x, lengths = data.train_x, data.train_lengths
    if not 0 < count < len(x):
        return x, lengths
    some = np.arange(count) * len(x) // count
    return x[some], None if lengths is None else lengths[some]


def _evaluations(reference: Model, data: "Dataset", task: "Task", table: Mapping[str, Any],
                 folder: str | Path | None) -> Evaluations:
    """The loss of a network on the samples of the table."""
    from circulant.training.scoring import judge

    judged = judge(task, data, table["pick_on"], table["samples"])
    parts = list(zip(judged.inputs, judged.lengths, strict=True))
    exact = [reference.run(x, lengths=lengths) for x, lengths in parts]
    sign = -100.0 if task.higher_is_better else 100.0
    best = judged.metric(exact)

    def lost(network: Network) -> float:
        found = [y + table["margin"] * (network.run(x, lengths=lengths).real - y)
                 for (x, lengths), y in zip(parts, exact, strict=True)]
        if table["pick_by"] == "metric":
            return sign * (judged.metric(found) - best)
        return judged.estimate(exact, found)

    few, lengths = parts[len(parts) // 2]
    steps = few.shape[1] if few.ndim == 3 else 1
    subject = artifact.digest({"data": data.digest(), "metric": task.metric,
                               **{name: table[name] for name in ("pick_on", "samples", "margin")}})
    some = slice(max(4, min(SAMPLE, STEPS // steps)))
    return Evaluations(lost, reference, few[some], subject=subject, folder=folder,
                       lengths=None if lengths is None else lengths[some])


def _ports(dsp: str) -> tuple[int, int] | None:
    if dsp == "none":
        return None
    x, y = dsp.split("x")
    return int(x), int(y)


def score(network: Network, data: "Dataset") -> float:
    """The metric of a golden network on the test set."""
    from circulant import training

    return training.score(network, network.vectors(data.test_x, lengths=data.test_lengths), data)


def _picking(picked: SearchResult, start: Network, data: "Dataset", table: Mapping[str, Any]) -> Picking:
    return {
        "pick_on": table["pick_on"], "pick_by": table["pick_by"], "margin": table["margin"],
        "search": picked.search, "budget": picked.budget, "lost_start": picked.lost_start + 0.0,
        "lost": picked.lost + 0.0,
        "cost": picked.cost, "evaluations": picked.evaluations, "cached": picked.cached,
        "score_start": score(start, data), "score": score(picked.network, data),
        "weight_bits_start": weight_bits(start), "weight_bits": weight_bits(picked.network),
        "widths": [row._asdict() for row in picked.rows],
    }


def loss(picking: Picking) -> str:
    """The loss of the picked widths, in words."""
    from circulant.training.data.targets import SETS

    how = "estimated" if picking["pick_by"] == "margins" else "measured"
    return (f"{how} loss {picking['lost']:.2f} points on the {SETS[picking['pick_on']]} "
            f"(budget {picking['budget']:g})")


def picked_table(picking: Picking) -> Table:
    """The bit widths that were picked, for a terminal."""
    saved = 1 - picking["weight_bits"] / picking["weight_bits_start"]
    table = Table("bit width", "from", "to", "noise of this width alone", title_justify="left", title=(
        f"{loss(picking)}; weights {picking['weight_bits_start']:,} → "
        f"{picking['weight_bits']:,} bits ({saved:.0%} fewer), cost {picking['cost']:.2f}"))
    for row in picking["widths"]:
        clip = f", {row['clip']} integer bits fewer" if row["clip"] else ""
        table.add_row(row["name"], str(row["start"]), "given" if row["fixed"] else f"{row['picked']}{clip}",
                      "" if row["noise"] is None else f"{row['noise']:.1e}")
    return table


def ranges_table(ranges: Sequence[Mapping[str, Any]]) -> Table:
    """Every tensor against its format, for a terminal."""
    table = Table(title="tensors", title_justify="left")
    for at, name in enumerate(("tensor", "bits", "frac", "least", "greatest", "at a limit", "SQNR")):
        table.add_column(name, no_wrap=True, overflow="fold" if at else "ellipsis")
    for each in ranges:
        table.add_row(each["name"], str(each["format"]["width"]), str(each["format"]["frac"]), f"{each['lo']:.4g}",
                      f"{each['hi']:.4g}", f"{each['ends'] / each['count']:.2%}",
                      "–" if each["sqnr_db"] is None else f"{each['sqnr_db']:.1f} dB")
    return table
