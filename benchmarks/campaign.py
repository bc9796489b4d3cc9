"""Trainings of rows of docs/results.md, as many at a time as the machine takes; those of benchmarks/campaign.toml in
order of worth.

`python -m benchmarks.campaign` needs no more packages than a training does.
"""
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import click

from benchmarks import records
from benchmarks.experiments import FOLDER, Row, campaign, rows
from benchmarks.records import KEPT
from circulant.exits import interruptible
from circulant.sim import child

__all__ = ["Job", "command", "missing", "plan", "run", "side_by_side", "train"]

GRACE = 60.0
"""Seconds that a training has to leave a checkpoint when the time is up."""

POLL = 0.2
"""Seconds between two looks at the trainings."""


@dataclass(frozen=True)
class Job:
    """One training.

    Parameters:
        parent: the training from whose weights it starts; None for none, or one that is done.
        why: what it is to find out.
    """

    row: Row
    seed: int
    parent: "Job | None" = None
    why: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.row.experiment} {self.row.label}, seed {self.seed}"


def plan(file: Path | None = None, below: Path = FOLDER, kept: Path = KEPT) -> list[Job]:
    """The trainings of a campaign that are still to do, those of most worth first.

    Parameters:
        file: of the rows; None for benchmarks/campaign.toml.
    """
    entries = campaign(file) if file else campaign()
    return missing([(entry.row, seed, entry.why) for entry in entries for seed in entry.seeds], below, kept)


def missing(wanted: Sequence[tuple[Row, int, str]], below: Path = FOLDER, kept: Path = KEPT) -> list[Job]:
    """The trainings that are still to do, each behind the one that it starts from.

    A training is done when its record is kept; one of which only the record is left is trained anew where another one
    starts from its weights.

    Parameters:
        wanted: rows, seeds, and what each is to find out.
    """
    jobs: dict[tuple[str, str, int], Job] = {}

    def add(row: Row, seed: int, why: str) -> Job:
        at = row.experiment, row.label, seed
        if at not in jobs:
            parent = None
            if row.base and not (below / row.experiment / f"{row.base}-s{seed}" / "model.pt").exists():
                # A row of a file of the caller's is known by no other.
                known = chain((each for each, *_ in wanted if each.experiment == row.experiment), rows(row.experiment))
                base = next(each for each in known if each.label == row.base)
                parent = add(base, seed, f"{row.label} starts from it")
            jobs[at] = Job(row, seed, parent, why)
        return jobs[at]

    for row, seed, why in wanted:
        if records.record(row, seed, below, kept) is None:
            add(row, seed, why)
    return list(jobs.values())


def side_by_side(gpu: bool) -> int:
    """How many trainings a machine takes at a time. A step of a recurrent layer is a few small kernels, so that a GPU
    has room for as many as there are cores to feed it, less one; without it each has a core."""
    cores = len(os.sched_getaffinity(0))
    return max(1, cores - 1 if gpu else cores)


def run(jobs: Sequence[Job], *, at_once: int, minutes: float = 0, below: Path = FOLDER, kept: Path = KEPT,
        note: Callable[[str], None] = lambda text: None) -> tuple[list[Job], list[Job]]:
    """Train, keep the record of each training as it ends, and leave a checkpoint of what the time did not allow.

    Parameters:
        at_once: trainings at a time; each has a thread.
        minutes: after which no training goes on; 0 for no limit. An interruption ends trainings so, too, and the death
            of this process kills them (`circulant.sim.child`).
        note: told what begins and ends.

    Returns:
        Those that are finished; and those that failed, with all that would have started from these.
    """
    waiting, under_way = list(jobs), dict[subprocess.Popen[str], tuple[Job, float, ExitStack]]()
    done, failed = list[Job](), list[Job]()

    def see(process: "subprocess.Popen[str]") -> None:
        """Keep what a training that ended has left."""
        job, began, held = under_way.pop(process)
        held.close()
        if process.returncode:
            failed.append(job)
            note(f"{job}: failed, see {_log(job, below)}")
            return
        done.append(job)
        records.keep(job.row, job.seed, below, kept)
        note(f"{job}: {_score(job, below, kept)}, {time.monotonic() - began:.0f} s")

    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    with ExitStack() as whole:
        try:
            while (waiting or under_way) and time.monotonic() < end:
                for process in [process for process in under_way if process.poll() is not None]:
                    see(process)
                for job in [job for job in waiting if job.parent in failed]:
                    waiting.remove(job)
                    failed.append(job)
                    note(f"{job}: left out, as {job.parent} failed")
                ready = [job for job in waiting if job.parent is None or job.parent in done]
                for job in ready[:at_once - len(under_way)]:
                    waiting.remove(job)
                    held = whole.enter_context(ExitStack())
                    under_way[_start(job, below, held)] = job, time.monotonic(), held
                    note(f"{job}: begins")
                time.sleep(POLL)
        finally:
            for process in under_way:
                process.send_signal(signal.SIGINT)
            for process, (job, _, held) in list(under_way.items()):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE)
                if process.returncode == 0:
                    see(process)
                    continue
                held.close()  # Kills what is left of it.
                note(f"{job}: stopped, goes on with the next call")
    return done, failed


def _start(job: Job, below: Path, held: ExitStack) -> "subprocess.Popen[str]":
    log = _log(job, below)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as output:
        return held.enter_context(child.started(
            _command(job, below), step=f"the training of {job}", stdout=output, stderr=subprocess.STDOUT,
            environment={**os.environ, "OMP_NUM_THREADS": "1"}))


def _command(job: Job, below: Path) -> list[str]:
    resume = ["--resume"] if (job.row.folder(job.seed, below) / "checkpoint" / "training.pt").exists() else []
    return [sys.executable, "-m", "circulant", *job.row.arguments(job.seed, below), *resume]


def _log(job: Job, below: Path) -> Path:
    return job.row.folder(job.seed, below).with_suffix(".log")


def _score(job: Job, below: Path, kept: Path) -> str:
    found = records.record(job.row, job.seed, below, kept) or {}
    return f"{found['metric'].replace('_', ' ')} {100 * found[found['metric']]['circulant']:.2f} %"


@click.command("campaign", epilog="Example: python -m benchmarks campaign --minutes 25")
@click.option("--minutes", default=0.0, help="After which trainings leave a checkpoint for the next call.  [default: "
              "none]")
@click.option("--jobs", type=click.IntRange(1), help="Trainings at a time.  [default: as many as cores, with a GPU one "
              "less]")
@click.option("--file", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Of the rows.  [default: benchmarks/campaign.toml]")
@click.option("--runs", default=FOLDER, type=click.Path(path_type=Path), show_default=True, help="Run folders.")
@click.option("--kept", default=KEPT, type=click.Path(path_type=Path), show_default=True, help="Records.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and train nothing.")
def command(minutes: float, jobs: int | None, file: Path | None, runs: Path, kept: Path, dry_run: bool) -> None:
    """Train the rows that are worth most, side by side; goes on where it stopped."""
    todo = plan(file, runs, kept)
    for number, job in enumerate(todo if dry_run else (), start=1):
        click.echo(f"{number:3} {job}{f', behind {job.parent.row.label}' if job.parent else ''}: {job.why}")
        if job.row not in (before.row for before in todo[:number - 1]):
            click.echo(f"    {' '.join(job.row.sets)}")
    if not dry_run:
        train(todo, jobs, minutes=minutes, below=runs, kept=kept)


def train(todo: Sequence[Job], jobs: int | None = None, *, minutes: float = 0, below: Path = FOLDER, kept: Path = KEPT
          ) -> None:
    """The trainings, told on the terminal.

    Parameters:
        jobs: trainings at a time; None for `side_by_side`.

    Raises:
        click.ClickException: when one fails.
    """
    import torch

    gpu = torch.cuda.is_available()
    at_once = jobs or side_by_side(gpu)
    click.echo(f"{len(todo)} trainings, {at_once} at a time on "
               f"{torch.cuda.get_device_name() if gpu else f'{len(os.sched_getaffinity(0))} cores'}")
    with interruptible():
        done, failed = run(todo, at_once=at_once, minutes=minutes, below=below, kept=kept, note=click.echo)
    click.echo(f"{len(done)} of {len(todo)} trainings are finished")
    if failed:
        raise click.ClickException(f"{', '.join(map(str, failed))} failed; the logs are beside their run folders")


if __name__ == "__main__":
    command(prog_name="python -m benchmarks.campaign")
