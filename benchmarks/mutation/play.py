"""The checker on a mutant: what `circulant simulate` plays and judges, with the mutant chosen, the quick part first."""
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim.build import build
from circulant.sim.cosim.job import Job, Outcome, Played
from circulant.sim.cosim.judge import check, pace, restarts
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import disturbed, drive, driven, job_of, simulate, write_beats
from circulant.sim.cosim.state_exchange import Session
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import joined, planned, swift
from circulant.sim.refusal import ToolError
from circulant.sim.vectors import Vectors

__all__ = ["Checker", "Images", "Verdict"]

Images = Mapping[str, str]
"""Texts of memory images by their names."""

PATIENCE = 3000
"""Cycles without a beat after which a mutant counts as stuck, and as many more as a sequence takes."""

JUDGES = tuple(Path(str(each.__file__)) for each in (check, pace, restarts))
"""Files that judge a mutant: one that has survived a run is played it again where they have changed."""

HARNESS = tuple(Path(str(check.__file__)).parents[1] / name for name in ("harness.py", "config.py"))
"""Files of the harness, which plays its runs."""

STALLS = (1, 2, 4)
"""Seeds of stalls at random; of the last one the output is taken only once it is seen."""


@dataclass(frozen=True)
class Verdict:
    """How a mutant fared.

    Parameters:
        caught: what found it: "drawn", "back-to-back", "reset", "full", "misplaced", "stalled", "pace", "many",
            "weights", "exchanged", "disturbed", or nothing: "".
        why: the rule or the first word.
        survived: what was played, by keys of `Checker`; known where nothing caught it.
        stimuli: the hash of what it was played with.
    """

    caught: str
    why: str = ""
    survived: tuple[str, ...] = ()
    stimuli: str = ""


@dataclass(frozen=True)
class _Play:
    """A run of the simulator's own program.

    Parameters:
        name: what it is reported as.
        folder: its input is there.
        played: what must come out; None where only the pace counts.
        images: of another network, where the run is of one.
        key: a hash of all this.
    """

    name: str
    folder: Path
    job: Job
    played: Played | None
    images: Images
    key: str


class Checker:
    """A design with all its mutants in one simulator.

    Parameters:
        manifest: of the design as it is.
        verilog: with the mutants, see `benchmarks.mutation.mutants.schemata`.
        vectors, drawn: played as `circulant.sim.cosim.verify` plays them.
        many: samples of data that are played back to back alone.
        others: designs of other networks that have the same Verilog, and samples of each.
        session: where there is a configuration port, what is played there, and the sequences between.

    Raises:
        AssertionError: when the circuit without a mutant is not right.
    """

    def __init__(self, manifest: Manifest, verilog: str, vectors: Vectors, drawn: Vectors, *,
                 many: Vectors | None = None, others: Sequence[tuple[Manifest, Vectors]] = (),
                 session: Callable[[int], tuple[Session, NDArray[np.int64]]] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="circulant-mutation-"))
        path = self._folder / "mutants.v"
        path.write_text(verilog)
        self._manifest = replace(manifest, verilog=(path,))
        self._tools = find()
        self._built = build(self._manifest, self._tools)
        self._played, self._runs, extra = planned(self._manifest, vectors, drawn)
        job = job_of(self._manifest, self._runs, self._played, None)
        whole = drive(self._manifest, self._tools, self._built.folder, replace(job, runs=self._runs[:1]), _silent)
        self._patience = PATIENCE + 4 * (whole.cycles // len(self._runs[0].sequences))
        self._job = replace(job, patience=self._patience)
        every = extra[-1].sequences
        self._quick = [self._prepared(name, run, self._job, self._played, {}) for name, run in (
            ("drawn", extra[-1]), ("back-to-back", self._runs[0]), ("closed loop", self._runs[1]), ("reset", extra[-3]),
            ("full", extra[-2]), ("reset", extra[-4]),
            *(("misplaced", run) for run in extra if run.misplaced and not run.moments),
            *(("stalled", Run(f"stalled, seed {seed}", every, seed=seed)) for seed in STALLS))]
        if (one := joined(self._manifest, self._played)) is not None and not manifest.over_images:
            run = Run("pace", (0, 0))
            job = job_of(self._manifest, (run,), one, self._patience)
            self._quick.append(self._prepared("pace", run, job, None, {}))
        if many is not None:
            played, (run, *_), _ = planned(self._manifest, many, None)
            job = job_of(self._manifest, (run,), played, self._patience)
            self._quick.append(self._prepared("many", replace(run, name="many"), job, played, {}))
        self._others = []
        for n, (other, samples) in enumerate(others):
            images = {path.name: path.read_text() for path in other.images}
            played, (run, *_), _ = planned(other, samples, None)
            job = job_of(self._manifest, (run,), played, self._patience)
            self._others.append(self._prepared("weights", replace(run, name=f"weights {n}"), job, played, images))
        self._exchanged = [] if session is None else self._session(*session(self._patience))
        scripts = [script for _, job, _, _ in self._exchanged for script in job.scripts]
        judged = [path.read_bytes() for path in (*JUDGES, *HARNESS)]
        self._exchange_key = _key(*scripts, *(job.beats for _, job, _, _ in self._exchanged), *judged)
        self._slow = replace(self._job, runs=self._runs[2:-swift(extra)])
        self._slow_key = _key(self._slow.beats, repr(self._slow.runs).encode(), *judged)
        assert not self.verdict(0).caught, "the circuit itself must be right"

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def verdict(self, mutant: int, images: Images | None = None, before: Verdict | None = None) -> Verdict:
        """
        Parameters:
            mutant: its number; 0 for none.
            images: texts that take the place of memory images.
            before: how it fared earlier: what it has survived is not played again.
        """
        before = before or Verdict("")
        survived = [*before.survived]
        plays = [(play, images or {}) for play in self._quick] + [
            (play, play.images) for play in self._others if not images]
        for play, contents in plays:
            if play.key in survived:
                continue
            if why := self._drive(play, mutant, contents):
                return Verdict(play.name, why)
            survived.append(play.key)
        if not images and self._exchanged and self._exchange_key not in survived:
            if why := self._exchange(mutant):
                return Verdict("exchanged", why)
            survived.append(self._exchange_key)
        if self._slow_key in survived:
            return Verdict("", "", tuple(survived))
        manifest = self._manifest if not images else self._other_images(images)
        try:
            outcome = simulate(manifest, self._tools, self._built.folder, self._slow, _silent,
                               plusargs=(f"+mutant={mutant}",))
        except ToolError as error:
            return Verdict("disturbed", str(error))
        if why := self._wrong(self._slow, outcome, self._played):
            return Verdict("disturbed", why)
        if why := pace.slower(None, None, (pace.latency(self._slow, outcome), manifest.latency_spaced)):
            return Verdict("pace", why)
        return Verdict("", "", (*survived, self._slow_key))

    def _session(self, session: Session, inputs: NDArray[np.int64]) -> list[tuple[Session, Job, Played, list[Any]]]:
        return [(session, *each) for each in session.jobs(inputs, None)]

    def _exchange(self, mutant: int) -> str:
        """The first fault while networks and states are exchanged; empty where there is none."""
        for session, job, played, states in self._exchanged:
            try:
                outcome = simulate(self._manifest, self._tools, self._built.folder, job, _silent,
                                   plusargs=(f"+mutant={mutant}",))
            except ToolError as error:
                return str(error)
            if why := self._wrong(job, outcome, played):
                return why
            if any((got != golden).any() for got, golden in session.read(outcome, states)):
                return "a state differs"
        return ""

    def _prepared(self, name: str, run: Run, job: Job, played: Played | None, images: Images) -> _Play:
        folder = self._folder / run.name
        folder.mkdir()
        job = replace(job, runs=(run,))
        write_beats(folder, job)
        key = _key(*(path.read_bytes() for path in (*JUDGES, *sorted(folder.glob("*.bin")))),
                   repr(disturbed(job, run)).encode(),
                   *(text.encode() for text in images.values()))
        return _Play(name, folder, job, played, images=images, key=key)

    def _drive(self, play: _Play, mutant: int, images: Images) -> str:
        """The first fault; empty where there is none."""
        job, folder, (run,) = play.job, play.folder, play.job.runs
        for path in self._manifest.images:
            (folder / path.name).write_text(images.get(path.name) or path.read_text())
        numbers = (job.beats.shape[-1], job.output_bytes, len(run.sequences), job.due(run), job.patience)
        subprocess.run([str(self._built.folder / self._manifest.top), "--drive", *map(str, numbers),
                        f"+mutant={mutant}", *disturbed(job, run)], cwd=folder, check=True, capture_output=True,
                       timeout=600)
        return self._wrong(job, driven(folder, job), play.played)

    def _wrong(self, job: Job, outcome: Outcome, played: Played | None) -> str:
        if broken := check.broken_rule(job, outcome, self._manifest.output):
            return broken[0]
        if played is None:
            return pace.slower(pace.pace(job, outcome), self._manifest.planned_step)
        first = check.compare(job, outcome, self._manifest.output, played).first
        return "" if first is None else str(first)

    def _other_images(self, images: Images) -> Manifest:
        folder = self._folder / "images"
        folder.mkdir(exist_ok=True)
        paths = []
        for path in self._manifest.images:
            (folder / path.name).write_text(images.get(path.name) or path.read_text())
            paths.append(folder / path.name)
        return replace(self._manifest, images=tuple(paths))


def _key(*parts: bytes | NDArray[Any]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return whole.hexdigest()[:12]


def _silent(stage: str, done: int, total: int) -> None:
    """No progress is shown."""
