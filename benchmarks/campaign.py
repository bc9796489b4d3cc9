"""A campaign: the trainings of benchmarks/campaign.toml in order of worth, as many at a time as the machine takes.

`python -m benchmarks.campaign` needs no more packages than a training does.
"""
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from benchmarks import records
from benchmarks.experiments import FOLDER, Row, campaign, rows
from benchmarks.records import KEPT
from circulant.exits import interruptible
from circulant.sim import child

__all__ = ["Job", "command", "pack", "plan", "run", "side_by_side"]

GRACE = 60.0
"""Seconds that a training has to leave a checkpoint when the time is up."""

POLL = 0.2
"""Seconds between two looks at the trainings."""

MPS = "nvidia-cuda-mps-control"


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
    """The trainings that are still to do, those of most worth first, and each behind the one that it starts from.

    A training is done when its record is kept; one of which only the record is left is trained anew where another one
    starts from its weights.

    Parameters:
        file: of the rows; None for benchmarks/campaign.toml.
    """
    jobs: dict[tuple[str, str, int], Job] = {}

    def add(row: Row, seed: int, why: str) -> Job:
        at = row.experiment, row.label, seed
        if at not in jobs:
            parent = None
            if row.base and not (below / row.experiment / f"{row.base}-s{seed}" / "model.pt").exists():
                base = next(each for each in known[row.experiment] if each.label == row.base)
                parent = add(base, seed, f"{row.label} starts from it")
            jobs[at] = Job(row, seed, parent, why)
        return jobs[at]

    entries = campaign(file) if file else campaign()
    known = {entry.row.experiment: list(rows(entry.row.experiment)) for entry in entries}
    for entry in entries:  # Those of a file of the caller's are known by no other.
        known[entry.row.experiment] = [entry.row, *(row for row in known[entry.row.experiment]
                                                    if row.label != entry.row.label)]
    for entry in entries:
        for seed in entry.seeds:
            if records.record(entry.row, seed, below, kept) is None:
                add(entry.row, seed, entry.why)
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


def pack(file: Path, done: Sequence[Job], below: Path = FOLDER, kept: Path = KEPT) -> None:
    """One archive of the records of a campaign, and of the weights of the best training of each experiment."""
    best: dict[str, tuple[float, Job]] = {}
    with tarfile.open(file, "w:gz") as archive:
        for job in done:
            archive.add(records.place(job.row, job.seed, kept), f"records/{job.row.experiment}/"
                        f"{job.row.label}-s{job.seed}.json")
            found = records.record(job.row, job.seed, below, kept) or {}
            rank = found[found["metric"]]["circulant"] * (1 if found["metric"] == "accuracy" else -1)
            if job.row.experiment not in best or rank > best[job.row.experiment][0]:
                best[job.row.experiment] = rank, job
        for _, job in best.values():
            archive.add(job.row.folder(job.seed, below) / "model.pt", f"best/{job.row.experiment}/{job.row.label}-s"
                        f"{job.seed}.pt")


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


@contextmanager
def _shared_gpu(gpu: bool) -> Iterator[bool]:
    """CUDA's multi-process service for the trainings of a campaign, where it is there; whether it is."""
    if not gpu or shutil.which(MPS) is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield "CUDA_MPS_PIPE_DIRECTORY" in os.environ
        return
    with tempfile.TemporaryDirectory() as folder:
        names = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        os.environ.update(names)
        begun = subprocess.run([MPS, "-d"], capture_output=True).returncode == 0
        if not begun:
            for name in names:
                del os.environ[name]
        try:
            yield begun
        finally:
            if begun:
                subprocess.run([MPS], input=b"quit\n", capture_output=True)
                for name in names:
                    del os.environ[name]


@click.command("campaign", epilog="Example: python -m benchmarks campaign --minutes 25 --write docs/results.md")
@click.option("--minutes", default=0.0, help="After which trainings leave a checkpoint for the next call.  [default: "
              "none]")
@click.option("--jobs", type=click.IntRange(1), help="Trainings at a time.  [default: as many as cores, with a GPU one "
              "less]")
@click.option("--file", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Of the rows.  [default: benchmarks/campaign.toml]")
@click.option("--runs", default=FOLDER, type=click.Path(path_type=Path), show_default=True, help="Run folders.")
@click.option("--kept", default=KEPT, type=click.Path(path_type=Path), show_default=True, help="Records.")
@click.option("--write", "into", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
              help="Replace the tables of this document, docs/results.md.")
@click.option("--pack", "archive", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Archive (.tar.gz) of the records, and of the best weights of each experiment.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and train nothing.")
def command(minutes: float, jobs: int | None, file: Path | None, runs: Path, kept: Path, into: Path | None,
            archive: Path | None, dry_run: bool) -> None:
    """Train the rows that are worth most, side by side; goes on where it stopped."""
    import torch

    gpu = torch.cuda.is_available()
    todo, at_once = plan(file, runs, kept), jobs or side_by_side(gpu)
    click.echo(f"{len(todo)} trainings, {at_once} at a time on "
               f"{torch.cuda.get_device_name() if gpu else f'{len(os.sched_getaffinity(0))} cores'}")
    if dry_run:
        for number, job in enumerate(todo, start=1):
            click.echo(f"{number:3} {job}{f', behind {job.parent.row.label}' if job.parent else ''}: {job.why}")
            if job.row not in (before.row for before in todo[:number - 1]):
                click.echo(f"    {' '.join(job.row.sets)}")
        return
    with interruptible(), _shared_gpu(gpu) as shared:
        if gpu:
            click.echo(f"CUDA's multi-process service: {'yes' if shared else 'not there'}")
        done, failed = run(todo, at_once=at_once, minutes=minutes, below=runs, kept=kept, note=click.echo)
    if archive is not None:
        pack(archive, done, runs, kept)
    if into is not None:
        from benchmarks import results  # It needs what reports need, which a machine for training may lack.

        results.write(into, results.collect(runs, kept=kept))
    click.echo(f"{len(done)} of {len(todo)} trainings are finished")
    if failed:
        raise click.ClickException(f"{', '.join(map(str, failed))} failed; the logs are beside their run folders")


if __name__ == "__main__":
    command(prog_name="python -m benchmarks.campaign")
