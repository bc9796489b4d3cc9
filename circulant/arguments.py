"""Arguments of a command line: which run is meant, and the size of its design. The frame of every command of a run."""
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from circulant.boards.device import devices
from circulant.completion import device_names, experiments
from circulant.experiment import DEFAULT, FILE, load, project, shipped
from circulant.progress import Bars
from circulant.run.run_folder import CHECKPOINT, Run
from circulant.sim.refusal import Refusal

__all__ = ["JSON", "STEPS", "Number", "find", "say", "step"]

RUNS = Path("runs")

STEPS = ("train", "quantize", "generate", "simulate", "reload", "report")
"""Commands that go on with what the ones before them left in a run folder."""


class Number(click.FloatRange):
    """A number of a range, which NaN and infinity are not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return found if math.isfinite(found) else self.fail(f"{value} is not a finite number.", param, ctx)


def step(short: str, doc: str, *examples: str, trains: bool = False, sized: bool = False,
         otherwise: Callable[..., int | None] = lambda source, **own: None
         ) -> Callable[[Callable[..., int]], click.Command]:
    """A command ``[EXPERIMENT] [--out DIR] [--set key=value …] [--json]`` whose function gets the run, the progress
    bars and ``as_json``.

    Options of its own are added above it and given by their names; one that trains also gets ``resume``, and one that
    is ``sized`` takes --multipliers and --device, which are keys of the experiment. What ``otherwise`` makes of the
    name and the options, if that is not None, is done in place of a run.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        name = function.__name__
        resume = click.option("--resume", is_flag=True, help="Continue the interrupted training of this run.")

        @click.command(name, short_help=short, help="\n  ".join([f"{doc}\n\n\b\nExample:", *examples]),
                     epilog=f"EXPERIMENT is a shipped experiment ({', '.join(shipped())}), a .toml file or a run "
                            f"folder. docs/experiment.md describes all its keys.")
        @click.argument("experiment", required=False, shell_complete=experiments)
        @click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
                      help=f"Run folder.  [default: {RUNS}/NAME, or EXPERIMENT if it is a run folder]")
        @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
                      help="Change a key of the experiment, for instance hardware.multipliers=32; may be repeated.")
        def command(experiment: str | None, out: Path | None, overrides: tuple[str, ...], **own: Any) -> int:
            if (code := otherwise(experiment, **own)) is not None:
                return code
            if sized:
                overrides += size(overrides, own.pop("multipliers"), own.pop("part"), own.get("target", "verilog"))
                overrides += ("hardware.argmax=true",) if own.pop("argmax") else ()
            run = find(name, experiment, out, overrides, resume=own.get("resume", False))
            with Bars(Console(stderr=True)) as bars:
                return function(run, bars, **own)

        for option in [JSON, *([resume] if trains else []), *(SIZE if sized else [])]:
            command = option(command)
        return command

    return decorate


JSON = click.option("--json", "as_json", is_flag=True, help="Print the results as JSON, and nothing else to standard "
                    "output.")


JOBS = click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True,
                    help="Number of processes that train and evaluate in parallel.")
CLUSTER = click.option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers train and evaluate, for "
                       "instance tcp://HOST:8786; see docs/scaling.md.")


def workers(jobs: int, cluster: str | None) -> int | str:
    """Where work is done: so many processes, or a cluster.

    Raises:
        Refusal: when both are given.
    """
    if cluster is not None and jobs > 1:
        raise Refusal(f"Work must be done by processes of this machine or by a cluster, not by --jobs {jobs} and "
                      f"--cluster {cluster}; leave one out")
    return jobs if cluster is None else cluster


def say(results: Mapping[str, Any], as_json: bool, *words: str) -> None:
    """Results on standard output, for machines or in words."""
    for line in [json.dumps(results, indent=1, ensure_ascii=False, default=str)] if as_json else words:
        click.echo(line)


SIZE = [
    click.option("--device", "part", metavar="NAME", shell_complete=device_names,
                 help=f"FPGA that the design must fit: {', '.join(devices())}. Without --multipliers, the design may "
                      "use all of its multipliers."),
    click.option("--multipliers", type=int, metavar="N",
                 help="Number of real multipliers that the design may use. The schedule is chosen for the fewest "
                      "cycles."),
    click.option("--argmax", is_flag=True, help="Return the class (the index of the largest output) instead of the "
                 "outputs."),
]


def size(overrides: tuple[str, ...], multipliers: int | None, part: str | None, target: str) -> tuple[str, ...]:
    """Settings of --multipliers and --device, as ``key=value``.

    Raises:
        Refusal: when --set says it too, or nothing is built from multipliers.
    """
    if part is not None:
        part = {name.lower(): name for name in devices()}.get(part.lower(), part)
    given = {"hardware.multipliers": ("--multipliers", multipliers), "board.device": ("--device", part)}
    said = {override.partition("=")[0].strip() for override in overrides}
    for key, (option, value) in given.items():
        if value is not None and target != "verilog":
            raise Refusal(f"{option} must be left out with --target {target}, which has no multipliers")
        if value is not None and key in said:
            raise Refusal(f"{option} and --set {key} must not both be given, as they say the same; leave one out")
    if part is not None and multipliers is None and "hardware.multipliers" not in said:
        given["hardware.multipliers"] = ("", 0)
    return tuple(f"{key}={value}" for key, (_, value) in given.items() if value is not None)


def find(command: str, source: str | None, out: Path | None, overrides: tuple[str, ...], resume: bool = False) -> Run:
    """The run that a command line means.

    A step after the first goes on with the experiment that the folder keeps, unless a file is named. So does any
    command that is given a folder and no EXPERIMENT. What resumes a training goes on with that of the checkpoint.

    Raises:
        Refusal: as `circulant.experiment.load`; when the run folder of a shipped experiment keeps another one.
    """
    named = source
    if source is not None and (file := project(source)) is not None:
        source = str(file)
    if out is None and source is not None and source not in shipped() and Path(source).is_dir():
        out = Path(source)
    kept = out or RUNS / (source or DEFAULT)
    continues = command in STEPS[1:] or (source is None and out is not None)
    unfinished = kept / CHECKPOINT
    if resume and (source is None or source in shipped() or Path(source) == kept) and (unfinished / FILE).exists():
        return Run(kept, load(unfinished, overrides))
    if resume and source is None and (kept / FILE).exists():  # It is finished: with its own experiment.
        return Run(kept, load(kept, overrides))
    if continues and (source is None or source in shipped()) and (kept / FILE).exists():
        experiment = load(kept, overrides)
        if source is not None and experiment.name != source:
            raise Refusal(f"{kept} must keep the experiment {source} to go on with it, but it keeps {experiment.name}; "
                          f"give {kept} instead of the name, or another --out")
        return Run(kept, experiment)
    experiment = load(source or DEFAULT, overrides)
    return Run(out or RUNS / experiment.name, experiment, named or "")
