"""The pages of runs, each one self-contained HTML file: the report of a run, and several runs beside one another."""
import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jinja2

from circulant.boards.device import NAMES
from circulant.experiment import Experiment
from circulant.report import gantt
from circulant.report.summary import rows, title, told
from circulant.run.quantization import loss
from circulant.run.run_folder import Run
from circulant.sim import metrics
from circulant.sim.document import Document

__all__ = ["FILES", "files", "page", "render", "settings"]

FILES = {
    "report.json": "every figure of this page",
    "experiment.toml": "the experiment, with every key",
    "hardware/top.v": "the Verilog",
    "chips/partition.json": "chips, links, their load, and when each works",
    "hardware/manifest.json": "ports, formats, latencies, and the hash of every file of the design",
    "network.json": "the golden model: layers, formats and sizes",
    "weights.npz": "the golden model: integers of all weights",
    "vectors.npz": "inputs of the test set and the outputs expected, in integers",
    "verification.json": "words compared, mismatches, cycles",
    "model.pt": "the trained model and its dense baseline, for torch",
    "training.json": "loss and metric of each epoch",
}
"""Files of a run folder that a report links to, and what they hold."""


def page(figures: Mapping[str, Any], pictures: Mapping[str, bytes], linked: Sequence[tuple[str, str]] = ()) -> str:
    """The report as one HTML page.

    Parameters:
        pictures: PNG data by name.
        linked: files beside the page, and what they hold.
    """
    clock = figures["clock"]
    return render("report.html", report=figures, title=title(figures), rows=list(rows(figures)), fit=_fit(figures),
                  files=linked,
                  pictures={name: base64.b64encode(png).decode() for name, png in pictures.items()},
                  layers=gantt.rows(figures["hardware"]["layers"]), settings=list(settings(figures["experiment"])),
                  picked=loss(figures["picking"]) if figures.get("picking") else "",
                  metric=metrics.words(figures["metric"]), shown=partial(metrics.shown, figures["metric"]),
                  clock="Throughput and latencies are the cycles that were measured, at a clock of "
                        f"{clock['mhz']:g} MHz that is {clock['source']}: this design was not placed and routed.")


def render(template: str, **values: Any) -> str:
    """A template of the package, with these values."""
    environment = jinja2.Environment(loader=jinja2.PackageLoader("circulant", "templates"), autoescape=True,
                                     undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(template).render(**values)


def files(run: Run) -> list[tuple[str, str]]:
    """The files of `FILES` that a run folder has; the report itself is about to be written."""
    return [(name, what) for name, what in FILES.items() if name == "report.json" or run.path(name).is_file()]


class Setting(NamedTuple):
    """A key of an experiment, its value and its default in words, and whether the two differ."""

    table: str
    key: str
    value: str
    default: str
    changed: bool


def settings(experiment: Mapping[str, Mapping[str, Any]]) -> Iterator[Setting]:
    """Every key of an experiment."""
    defaults = json.loads(json.dumps(Experiment("default").tables()))
    for table, keys in json.loads(json.dumps(experiment)).items():
        for key, value in keys.items():
            default = defaults.get(table, {}).get(key)
            yield Setting(table, key, _written(value), _written(default), value != default)


def _written(value: Any) -> str:
    """A value as a person writes it; nothing for an empty one."""
    if value in ("", [], {}, None):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fit(figures: Mapping[str, Any]) -> Document | None:
    """The device of a run, or the smallest that holds its design, with a line for each resource."""
    found = figures["hardware"].get("device") or figures["smallest"]
    if not found:
        return None
    return {"name": found["name"], "series": found["series"], "resources": [
        {"name": NAMES[name], "share": taken["share"], "words": told(taken)}
        for name, taken in found["resources"].items()]}
