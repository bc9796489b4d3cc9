"""Contents of a data set, in figures, in words and in a picture: sizes, shapes, lengths, classes."""
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from circulant.experiment import DEFAULT, load, shipped
from circulant.report.plots import COLORS, png, style
from circulant.sim.document import Document
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.settings import choices
from circulant.training.settings import DataSettings

if TYPE_CHECKING:
    from circulant.training.data import Dataset

__all__ = ["figures", "options_of", "picture", "words"]

PARTS = ("train", "test")
KINDS = {2: "vectors", 3: "sequences", 4: "images"}
AXES = {2: "{} features", 3: "{} steps × {} features", 4: "{} × {} × {}"}
NAMED = 45
"""The most classes whose names fit below their bars."""


def options_of(source: str, overrides: Iterable[str] = ()) -> DataSettings:
    """The table ``[data]`` of a data set, an ``.npz`` file or an experiment, with the overrides laid over it.

    Raises:
        Refusal: when it is none of them, or as `circulant.experiment.load`.
    """
    names = choices(DataSettings, "name")
    if source.endswith(".npz"):
        table = {"name": "npz", "path": source}
    elif source in names:
        table = {"name": source}
    elif source in shipped() or Path(source).exists():
        return load(source, overrides).data
    else:
        raise Refusal(f"A data set must be one of {', '.join(map(repr, names))}, an .npz file or an experiment, not "
                      f"{source!r}{nearest(source, names)}")
    return load(DEFAULT, (*(f"data.{key}={json.dumps(value)}" for key, value in table.items()), *overrides)).data


def figures(data: "Dataset") -> Document:
    """Every figure: of the whole set its name, task and classes, and of each part samples, shape, bytes and values.

    ``counts`` has how often each class or label is a target, and in its place ``targets`` has least, mean, deviation
    and greatest of each number of a regression; ``lengths`` and ``target_lengths`` have least, median, greatest and
    sum, where the set has such.
    """
    return {"name": data.name, "task": data.task, "classes": data.classes, "symbols": list(data.symbols),
            "digest": data.digest(), **{part: _part(data, part) for part in PARTS}}


def words(held: Mapping[str, Any]) -> str:
    """The figures as lines for people."""
    blank = ", of which 0 is the blank" if held["task"] == "ctc" else ""
    what = {"regression": "outputs", "multi-label": "labels"}.get(held["task"], "classes")
    lines = [f"{held['name']}: {held['task']}, {held['classes']} {what}{blank}"]
    if held["symbols"]:
        lines.append("  names    " + " ".join(held["symbols"][:NAMED]) + (" …" if len(held["symbols"]) > NAMED else ""))
    for part in PARTS:
        one = held[part]
        size = AXES[len(one["shape"]) + 1].format(*one["shape"])
        lines.append(f"  {part:<8} {one['samples']:,} {KINDS[len(one['shape']) + 1]} of {size}, "
                     f"{one['bytes'] / 1e6:,.1f} MB, values {one['least']:.4g} … {one['greatest']:.4g}")
        for name, unit in (("lengths", "steps"), ("target_lengths", "symbols")):
            if name in one:
                lengths = one[name]
                lines.append(f"           {lengths['least']} … {lengths['greatest']} {unit} each, median "
                             f"{lengths['median']:g}, {lengths['sum']:,} in all")
        for at, each in enumerate(one.get("targets", [])[:NAMED]):
            lines.append(f"           target {at}: {each['least']:.4g} … {each['greatest']:.4g}, mean "
                         f"{each['mean']:.4g} ± {each['deviation']:.4g}")
        if "counts" not in one:
            continue
        counts = one["counts"][1:] if held["task"] == "ctc" else one["counts"]
        lines.append(f"           {min(counts):,} … {max(counts):,} targets per "
                     f"{'label' if what == 'labels' else 'class'}")
    lines.append(f"  digest   {held['digest']}")
    return "\n".join(lines)


def picture(data: "Dataset") -> bytes:
    """PNG data: steps of the sequences where they differ, symbols where there are some, how often each class is."""
    panels: list[tuple[str, str]] = [(name, title) for name, title in (
        ("lengths", "steps of a sequence"), ("target_lengths", "symbols of a sequence"))
        if getattr(data, f"train_{name}") is not None]
    figure = Figure(figsize=(10, 3.2 * (len(panels) + 1)), layout="constrained")
    every = np.atleast_1d(figure.subplots(len(panels) + 1))
    for axes, (name, title) in zip(every, panels, strict=False):
        _histogram(axes, {part: getattr(data, f"{part}_{name}") for part in PARTS}, title)
    _classes(every[-1], data)
    return png(figure)


def _part(data: "Dataset", part: str) -> Document:
    x = getattr(data, f"{part}_x")
    found = {"samples": len(x), "shape": list(x.shape[1:]), "bytes": x.nbytes, "least": float(x.min()),
             "greatest": float(x.max())}
    if data.task == "regression":
        found["targets"] = [{"least": float(y.min()), "greatest": float(y.max()), "mean": float(y.mean(dtype=float)),
                             "deviation": float(y.std(dtype=float))} for y in _targets(data, part).T]
    else:
        found["counts"] = _counts(data, part).tolist()
    for name in ("lengths", "target_lengths"):
        lengths = getattr(data, f"{part}_{name}")
        if lengths is not None:
            found[name] = {"least": int(lengths.min()), "median": float(np.median(lengths)),
                           "greatest": int(lengths.max()), "sum": int(lengths.sum())}
    return found


def _counts(data: "Dataset", part: str) -> NDArray[np.int64]:
    """How often each class or label is a target; padding is none."""
    y = _targets(data, part)
    return y.sum(0) if data.task == "multi-label" else np.bincount(y, minlength=data.classes)


def _targets(data: "Dataset", part: str) -> NDArray[Any]:
    """Targets that count: (M,) classes, or (M, outputs)."""
    y = getattr(data, f"{part}_y")
    lengths = getattr(data, f"{part}_{'target_lengths' if data.task == 'ctc' else 'lengths'}")
    if data.task != "ctc" and not data.per_step:
        return y
    if lengths is None:
        return y.reshape(-1, *y.shape[2:])
    return y[np.arange(y.shape[1]) < lengths[:, None]]


def _histogram(axes: Axes, lengths: dict[str, NDArray[np.int64]], title: str) -> None:
    both = np.concatenate(list(lengths.values()))
    edges = np.unique(np.linspace(both.min(), both.max() + 1, 61).round())  # Whole numbers: no bar has one more.
    for (part, values), color in zip(lengths.items(), (COLORS["dense"], COLORS["admm"]), strict=True):
        axes.hist(values, edges.tolist(), color=color, alpha=0.6, label=f"{part}, {len(values):,}")
    style(axes, title)
    axes.legend(frameon=False, fontsize=8)


def _classes(axes: Axes, data: "Dataset") -> None:
    if data.task == "regression":
        for part, color in (("train", COLORS["dense"]), ("test", COLORS["admm"])):
            axes.hist(_targets(data, part).reshape(-1), 60, color=color, alpha=0.6, label=part)
        style(axes, f"targets of {data.name}")
        axes.legend(frameon=False, fontsize=8)
        return
    first = 1 if data.task == "ctc" else 0
    at = np.arange(first, data.classes)
    for part, color, shift in (("train", COLORS["dense"], -0.2), ("test", COLORS["admm"], 0.2)):
        axes.bar(at + shift, _counts(data, part)[first:], width=0.4, color=color, label=part)
    if data.symbols and len(at) <= NAMED:
        axes.set_xticks(at, data.symbols[first:], rotation=45 if max(map(len, data.symbols)) > 3 else 0)
    style(axes, f"targets of each class of {data.name}")
    axes.legend(frameon=False, fontsize=8)
