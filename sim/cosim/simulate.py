"""Runs the harness, or the simulator's own program: a job goes in, what was recorded comes out."""
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim import worker
from circulant.sim.cosim.job import Job, Outcome, Played, Recording, Side
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import Toolchain
from circulant.sim.files import temporaries
from circulant.sim.files.writing import naming
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Progress", "disturbed", "drive", "driven", "job_of", "simulate", "write_beats"]

Progress = Callable[[str, int, int], None]
SEED = 1
RANDOM = "+verilator+rand+reset+2"
PLUSARGS = (f"+verilator+seed+{SEED}", RANDOM)
HARNESS = "circulant.sim.cosim.harness"
LOG = "simulation.log"
SECONDS = 3600.0
"""For which a simulation may go on without the outputs of another sequence."""

PATIENCE = 100_000
"""Cycles without a beat after which a circuit counts as stuck: more than a step at few multipliers."""


def job_of(manifest: Manifest, runs: tuple[Run, ...], played: Played, patience: int | None,
           scripts: tuple[NDArray[np.int64], ...] = ()) -> Job:
    """The job of playing sequences.

    Parameters:
        patience: None chooses. Where a sequence goes in as a whole before anything comes out, as in layers of both
            directions, that is twice the time which all layers need for it, one after the other.
    """
    steps, results = (tuple(map(len, vectors)) for vectors in (played.inputs, played.outputs))
    if patience is None:
        patience = PATIENCE + 2 * manifest.gathered * max(steps)
    taken, given = manifest.input, manifest.output

    def vectors(sequences: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
        return tuple(map(len, sequences))

    return Job(manifest.clock, reset=manifest.reset, input=taken.prefix, output=given.prefix, input_beats=taken.beats,
               output_beats=given.beats, output_bytes=given.beat_bytes,
               steps=steps, results=results, patience=patience, streams=manifest.streams, runs=runs,
               beats=taken.pack(np.concatenate(played.inputs)).reshape(-1, taken.beat_bytes), config=manifest.config,
               scripts=scripts, over_images=manifest.over_images, stepwise=manifest.stepwise,
               latency=manifest.latency_spaced or 0,
               more_inputs=tuple(Side(port.prefix, port.beats, port.beat_bytes, vectors(values),
                                      port.pack(np.concatenate(values)).reshape(-1, port.beat_bytes))
                                 for port, values in zip(manifest.more_inputs, played.more_inputs, strict=True)),
               more_outputs=tuple(Side(port.prefix, port.beats, port.beat_bytes, vectors(values))
                                  for port, values in zip(manifest.more_outputs, played.more_outputs, strict=True)))


def simulate(manifest: Manifest, toolchain: Toolchain, simulator: Path, job: Job, tell: Progress, *,
             waves: bool = False, plusargs: tuple[str, ...] = (),
             look: Callable[[Path], None] = lambda folder: None) -> Outcome:
    """Run the harness in a temporary folder with copies of the images, which are read under their bare names.

    Parameters:
        waves: write ``dump.fst`` there, with a simulator that can.
        plusargs: for the circuit, more of them.
        look: called with the folder when all is recorded.
    """
    def run(folder: Path, *, environment: Mapping[str, str], **options: Any) -> None:
        worker.run([str(simulator / manifest.top), *(["--trace"] if waves else []), *PLUSARGS, *plusargs],
                   "The simulator under cocotb", folder=folder,
                   environment={**environment, **toolchain.test(HARNESS, manifest.top, seed=SEED)}, **options)

    def load(folder: Path) -> Outcome:
        look(folder)
        return Outcome.load(folder)

    return _played(run, save=job.save, load=load, manifest=manifest, toolchain=toolchain, tell=tell,
                   total=sum(len(each.sequences) for each in job.runs))


def drive(manifest: Manifest, toolchain: Toolchain, simulator: Path, job: Job, tell: Progress, *,
          waves: bool = False, plusargs: tuple[str, ...] = (),
          look: Callable[[Path], None] = lambda folder: None) -> Outcome:
    """The same for a job of one run after a reset, undisturbed or with stalls at random, by the simulator's own
    program: see ``drive.cpp``, which takes more ``plusargs``.

    Many times as fast as the harness, and held to it by the tests.
    """
    (run,) = job.runs
    numbers = (_listed(each.beats.shape[-1] for each in job.sources), _listed(each.output_bytes for each in job.sinks),
               len(run.sequences), _listed(each.due(run) for each in job.sinks), job.patience)

    def start(folder: Path, **options: Any) -> None:
        worker.run([str(simulator / manifest.top), "--drive", *map(str, numbers), *disturbed(job, run),
                         *(["+waves"] if waves else []), *plusargs], "The simulator", folder=folder, **options)

    def save(folder: Path) -> None:
        write_beats(folder, job)

    def load(folder: Path) -> Outcome:
        look(folder)
        return driven(folder, job)

    return _played(start, save=save, load=load, manifest=manifest, toolchain=toolchain, tell=tell,
                   total=len(run.sequences))


def disturbed(job: Job, run: Run) -> list[str]:
    """The arguments that tell the simulator's own program of a run's stalls or closed loop, and a seed of its own for
    what registers hold before they are set."""
    sample, result = ("", "") if not run.closed else (
        _listed(each.sample(run)[0] for each in job.sources), _listed(each.sample(run)[1] for each in job.sinks))
    return [f"+verilator+seed+{SEED + crc32(run.name.encode()) % 10**9}", RANDOM,
            *(f"+{name}={value}" for name, value in (
                ("stalls", run.seed), ("full", run.full), ("misplaced", int(run.misplaced)),
                ("sample", sample), ("result", result)) if value)]


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _file(name: str, port: int) -> str:
    """The name of a file of a port; ``placed`` of ``drive.cpp``."""
    return f"{name}_{port}.bin" if port else f"{name}.bin"


def write_beats(folder: Path, job: Job) -> None:
    """The input of the simulator's own program for a job of one run."""
    (run,) = job.runs
    for port, source in enumerate(job.sources):
        each = replace(run, misplaced=run.misplaced and not port)
        with (folder / _file("beats", port)).open("wb") as file:
            for beats, last in islice(source.frames(each), 1 if run.moments else None):
                file.write(np.column_stack([beats, last.astype(np.uint8)]).tobytes())
    if run.moments:
        (folder / "moments.bin").write_bytes(np.array(run.moments, "<i8").tobytes())


def driven(folder: Path, job: Job) -> Outcome:
    """The record that the simulator's own program has left.

    Raises:
        Refusal: when it has not come to its end.
    """
    try:
        cycles, seconds, *fault = (folder / "driven").read_text().split()
    except FileNotFoundError:
        raise Refusal("The record of a simulation must be there") from None
    accepted = [np.fromfile(folder / _file("accepted", n), "<i8") for n in range(len(job.sources))]
    beats = [np.dtype([("cycle", "<i8"), ("last", "<i8"), ("data", np.uint8, (sink.output_bytes,))])
             for sink in job.sinks]
    taken = [np.fromfile(folder / _file("taken", n), each) for n, each in enumerate(beats)]
    recording = Recording.of(accepted, [
        (each["cycle"].copy(), each["data"].copy(), each["last"] != 0) for each in taken])
    return Outcome((recording,), (" ".join(fault), 0, int(cycles)) if fault else None, int(cycles), float(seconds))


def _played(start: Callable[..., None], save: Callable[[Path], None], load: Callable[[Path], Outcome],
            manifest: Manifest, toolchain: Toolchain, tell: Progress, total: int) -> Outcome:
    """The outcome of a program in a temporary folder with copies of the images.

    Parameters:
        start: the program in a folder, with the options of `worker.run`.
        save, load: write its input to the folder, and read what it has recorded there.
        total: sequences.
    """
    with temporaries.folder() as folder, naming(folder):
        for image in manifest.images:
            shutil.copyfile(image, folder / image.name)
        save(folder)
        count = folder / "progress"

        def poll() -> str:
            text = ""
            with suppress(FileNotFoundError, ValueError):
                text = count.read_text()
                tell("simulate", int(text), total)
            return text

        log = folder / LOG
        tell("simulate", 0, total)
        start(folder, log=log, environment=toolchain.environment(), poll=poll,
              step=f"simulating {', '.join(map(str, manifest.verilog))}", seconds=SECONDS)
        kept = manifest.folder / LOG
        try:
            outcome = load(folder)
        except Refusal:
            shutil.copyfile(log, kept)
            raise ToolError(f"The simulator must run to its end, but it did not ({worker.complaint(log)}); "
                            f"see {kept}, and generate the design again") from None
        kept.unlink(missing_ok=True)
    tell("simulate", total, total)
    return outcome
