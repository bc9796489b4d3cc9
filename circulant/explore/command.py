"""The command ``circulant explore``: from an accuracy and a device to a design."""
import math
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from circulant.arguments import CLUSTER, JOBS, JSON, Number, say, workers
from circulant.boards.device import device
from circulant.completion import device_names, experiments
from circulant.experiment import Board, Experiment, load, save, shipped
from circulant.explore.bounds import Bounds, bounds
from circulant.explore.designs import Designs, Limits, phase_two
from circulant.explore.fair import Comparison, compare
from circulant.explore.models import Models, phase_one
from circulant.explore.page import page
from circulant.explore.seeds import others, repeat, said
from circulant.extras import TRAINING, extras
from circulant.progress import Bars, Show
from circulant.run.sizing import clock
from circulant.sim import artifact
from circulant.sim.files.writing import atomic_text
from circulant.sim.metrics import shown
from circulant.sim.refusal import Refusal
from circulant.sweep.rows import Row
from circulant.sweep.run import run

__all__ = ["explore"]

KIND, VERSION = "circulant-exploration", 1

WIDE = 140
"""Characters of a line that is not for a terminal."""

PART = 5
"""One of so many training samples is held out where the experiment does not say how many."""


@click.command("explore", short_help="Find a design for an accuracy and a device",
               epilog=f"EXPERIMENT is a shipped experiment ({', '.join(shipped())}), a .toml file or a run folder. "
                      "docs/explore.md describes the steps.")
@click.argument("experiment", shell_complete=experiments)
@click.option("--accuracy-loss", "lost", type=Number(min=0, max=100), required=True, metavar="POINTS",
              help="Points of the metric that may be lost against the dense network.")
@click.option("--device", "part", required=True, metavar="NAME", shell_complete=device_names,
              help="FPGA that the design must fit.")
@click.option("--latency-us", type=Number(min=0, min_open=True), metavar="µs",
              help="Largest time of a step in microseconds.")
@click.option("--mhz", type=Number(min=0, min_open=True), metavar="MHz",
              help="Clock for --latency-us.  [default: the estimate for the device]")
@click.option("--memory-bits", type=click.IntRange(min=1), metavar="BITS",
              help="Largest number of bits in all memories.")
@click.option("--widths", is_flag=True,
              help="Choose the number of units, too, at equal multiplications.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True,
              help="Train the chosen, the uniform and the dense models from this many seeds, and show the spread.")
@click.option("--hours", type=Number(min=0, min_open=True),
              help="End after this many hours: what is at work ends with its epoch or design.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the results.  [default: runs/explore-NAME]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
              help="Change a key of the experiment; may be repeated.")
@JOBS
@CLUSTER
@JSON
def explore(experiment: str, part: str, out: Path | None, overrides: tuple[str, ...], *, jobs: int, cluster: str | None,
            as_json: bool, **limits: Any) -> int:
    """Choose block sizes with few trainings, then bit widths and multipliers, as E-RNN does.

    Everything is chosen on held-out training samples. The result is a folder with the experiments of the best design
    and of its runners-up; `circulant run` trains such an experiment on all samples and verifies its design. Results are
    cached, so the same command continues after an interruption.

    \b
    Example:
      circulant explore fsdd-gru --accuracy-loss 0.5 --device LFE5U-25F
      circulant explore mine.toml --accuracy-loss 0.3 --device XCKU060 --latency-us 2
    """
    given, where = load(experiment, overrides), workers(jobs, cluster)
    if isinstance(where, str):  # Costs are computed first, and nobody should wait for these in vain.
        from circulant.sweep.cluster import connected

        with connected(where):
            pass
    out = out or Path("runs") / f"explore-{given.name}"
    deadline = time.monotonic() + 3600 * limits["hours"] if limits["hours"] else math.inf
    try:
        with Bars(Console(stderr=True)) as bars:
            evaluate = partial(run, jobs=where, show=bars)
            prepared = _prepared(given, part, bars)
            cycles = _cycles(prepared, limits["latency_us"], limits["mhz"])
            found = bounds(prepared, memory_bits=limits["memory_bits"] or 0, cycles=cycles, deadline=deadline)
            models = phase_one(prepared, found, limits["lost"], deadline=deadline, share=_share(deadline, 1 / 2),
                               widths=limits["widths"], evaluate=evaluate)
            within = Limits(limits["lost"], cycles, limits["memory_bits"] or math.inf)
            designs = phase_two(models, within, deadline=deadline, share=_share(deadline, 1 / 3), evaluate=evaluate)
            repeated = repeat(designs, limits["seeds"], deadline=_share(deadline, 1 / 2), evaluate=evaluate)
            fair = Comparison(verdicts=("No dense networks were trained: the time was over.",))
            if time.monotonic() < deadline:
                at = designs.points[designs.chosen].experiment
                row = designs.rows[designs.chosen]
                fair = compare(at, row, samples=at.data.held_out, others=others(row, repeated), deadline=deadline,
                               evaluate=evaluate)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Interrupted; what is computed is kept: the same command goes on") from None
    body = _written(given, out, found, models=models, designs=designs, fair=fair, repeated=repeated)
    asked = [("accuracy-loss", f"{limits['lost']:g}"), ("device", part), *(
        (name.replace("_", "-"), f"{limits[name]:.12g}")
        for name in ("latency_us", "mhz", "memory_bits", "seeds", "hours")
        if limits[name] and (name, limits[name]) != ("seeds", 1)),
        *(("set", each) for each in overrides)]
    again = shlex.join(["circulant", "explore", experiment, *(word for name, value in asked for word in (
        f"--{name}", value)), *(["--widths"] if limits["widths"] else [])])
    atomic_text(out / "explore.html", page(given, found=found, models=models, designs=designs, fair=fair,
                                           repeated=repeated, command=again))
    if not as_json:
        Console(width=None if sys.stdout.isatty() else WIDE).print(_decisions(found, models), _table(models, designs))
    failed = [f"Better designs could not be generated: {designs.failed}."] if designs.failed else []
    say({"file": out / "explore.json", "page": out / "explore.html", **body}, as_json, *failed,
        *said(designs, repeated), *fair.verdicts, f"{out / 'explore.html'}: the exploration as pictures",
        f"{out / 'chosen'}: train and verify it by `circulant run {out / 'chosen'}`")
    return 0


def _share(deadline: float, part: float) -> float:
    """The end of a phase that may take a part of the time that is left."""
    now = time.monotonic()
    return now + part * (deadline - now)


def _prepared(given: Experiment, part: str, show: Show) -> Experiment:
    """The experiment on its device, with all of its multipliers and memories of its family, and samples held out to
    choose by. Thousands of candidates are planned, so each has an array for each layer where objective is "auto"; each
    has the bit widths it is planned with, so that none is searched for narrower ones.

    Raises:
        Refusal: an unknown device; an experiment that names a dense baseline, which saw the samples held out; products
            that share DSP blocks.
    """
    device(part)  # Known, or refused before anything is looked at.
    if given.hardware.dsp_packing != "none":
        raise Refusal("An exploration counts a DSP block for each product, so hardware.dsp_packing must be 'none', not "
                      f"{given.hardware.dsp_packing!r}; leave it out, and set it to generate the chosen design")
    if given.hardware.beat_blocks != 1:
        raise Refusal("An exploration counts a block a cycle, so hardware.beat_blocks must be 1, not "
                      f"{given.hardware.beat_blocks}; leave it out, and set it to generate the chosen design")
    if given.hardware.latency or given.hardware.latency_us:
        raise Refusal("An exploration takes cycles from step to step at the most by --latency-us, so hardware.latency "
                      "and hardware.latency_us must be 0; leave them out, and set one to generate the chosen design")
    if given.training.dense:
        raise Refusal("An exploration must train its own dense baseline, as another one has seen the samples held out, "
                      f"but training.dense names {given.training.dense}; leave it out")
    with extras("circulant explore", *TRAINING):
        from circulant import training

    objective = "throughput" if given.hardware.objective == "auto" else given.hardware.objective
    held = given.data.held_out
    if not held:
        held = max(1, len(training.load_data(**given.tables()["data"], progress=show).train_x) // PART)
    return replace(given, data=replace(given.data, held_out=held), board=Board(part),
                   quantization=replace(given.quantization, budget=0.0),
                   hardware=replace(given.hardware, multipliers=0, objective=objective))


def _cycles(experiment: Experiment, latency_us: float | None, mhz: float | None) -> float:
    """Cycles from step to step at the most."""
    return math.inf if latency_us is None else latency_us * (mhz or clock(experiment) or 0)


def _written(given: Experiment, out: Path, found: Bounds, *, models: Models, designs: Designs, fair: Comparison,
             repeated: Sequence[Row]) -> Mapping[str, Any]:
    """Write the run folders and the record; returns the record."""
    for name, at in designs.named.items():
        if name != "uniform":
            experiment = designs.points[at].experiment
            save(replace(experiment, name=given.name, data=given.data), out / name.replace(" ", "-"))
    body = {"experiment": given.tables(), "device": designs.points[designs.chosen].experiment.board.device,
            "bounds": asdict(found), "dense": models.dense, "metric": models.metric, "ended": models.ended,
            "decisions": [asdict(each) for each in models.decisions], "trainings": len(models.decisions) + 1,
            "designs": list(designs.rows), "chosen": designs.chosen, "runners_up": list(designs.runners_up),
            "uniform": designs.uniform, "failed": designs.failed, "repeated": list(repeated),
            "fair": {"rows": list(fair.rows), "verdicts": list(fair.verdicts), "wrong": fair.wrong}}
    artifact.write_json(out / "explore.json", KIND, VERSION, body)
    return body


def _decisions(found: Bounds, models: Models) -> Table:
    """Phase I for a terminal."""
    table = Table("rule", "block size", "cell", "", "why", title_justify="left", title_style="bold", box=SIMPLE_HEAD,
                  title=f"Phase I: k from {found.low} ({found.why[0]}) to {found.high} ({found.why[1]})")
    for each in models.decisions:
        table.add_row(str(each.step), each.block_size, each.cell, "kept" if each.kept else "left", each.why,
                      style="green" if each.kept else None)
    if models.ended:
        table.caption = f"It ended early: {models.ended}"
    return table


def _table(models: Models, designs: Designs) -> Table:
    """Phase II for a terminal: the design that was chosen, its runners-up and the uniform one."""
    table = Table(title=f"Phase II: {len(designs.rows)} designs", title_justify="left", title_style="bold",
                  box=SIMPLE_HEAD)
    for heading in ("", "k", "w", "a", "held out", "cycles", "multipliers", "weight bits"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for words, at in designs.named.items():
        row = designs.rows[at]
        table.add_row(words, row["block_size"], str(row["weight_bits"]), str(row["activation_bits"]),
                      shown(models.metric, row["quantized"]), f"{row['cycles_per_step']:,g}", f"{row['multipliers']:,}",
                      f"{row['weight_memory_bits']:,}", style="green" if words == "chosen" else None)
    return table
