"""Runs the harness in the simulator: a job goes in, what was recorded comes out."""
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim import worker
from circulant.sim.cosim.check import SimulationError
from circulant.sim.cosim.job import Job, Outcome
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.plan import Run
from circulant.sim.cosim.toolchain import Toolchain
from circulant.sim.refusal import Refusal

__all__ = ["Progress", "interleaved", "job_of", "simulate"]

Progress = Callable[[str, int, int], None]
SEED = 1
LOG = "simulation.log"


def interleaved(vectors: NDArray[np.int64], streams: int) -> NDArray[np.int64]:
    """Sequences (N, T, elements) as groups (⌈N / streams⌉, T · streams, elements), a vector of each in turn; the first
    ones fill up the last group."""
    count, steps, elements = vectors.shape
    filled = vectors[np.arange(-(-count // streams) * streams) % count]
    return filled.reshape(-1, streams, steps, elements).swapaxes(1, 2).reshape(-1, steps * streams, elements)


def job_of(manifest: Manifest, runs: tuple[Run, ...], inputs: NDArray[np.int64], outputs: NDArray[np.int64],
           patience: int, scripts: tuple[NDArray[np.int64], ...] = ()) -> Job:
    """The job of playing sequences (N, vectors, elements), for outputs of that form."""
    port, sent = manifest.output, manifest.input.pack(inputs)
    return Job(manifest.clock, manifest.reset, manifest.input.prefix, port.prefix, outputs.shape[1] * port.beats,
               port.beat_bytes, inputs.shape[1], outputs.shape[1], patience, manifest.streams, runs,
               sent.reshape(len(inputs), -1, manifest.input.beat_bytes), manifest.config, scripts)


def simulate(manifest: Manifest, toolchain: Toolchain, simulator: Path, job: Job,
             tell: Progress) -> Outcome:
    """Run the harness in a temporary folder with copies of the images, which are read under their bare names."""
    total = sum(len(run.sequences) for run in job.runs)
    with tempfile.TemporaryDirectory(prefix="circulant-") as temporary:
        folder = Path(temporary)
        for image in manifest.images:
            shutil.copyfile(image, folder / image.name)
        job.save(folder)
        count = folder / "progress"

        def poll() -> None:
            with suppress(FileNotFoundError, ValueError):
                tell("simulate", int(count.read_text()), total)

        quiet = {"COCOTB_LOG_LEVEL": "WARNING", "COCOTB_ANSI_OUTPUT": "0", "COCOTB_REWRITE_ASSERTION_FILES": ""}
        specification = {
            "test_module": "circulant.sim.cosim.harness", "hdl_toplevel": manifest.top, "hdl_toplevel_lang": "verilog",
            "build_dir": str(simulator), "test_dir": str(folder), "results_xml": str(folder / "results.xml"),
            "seed": SEED, "plusargs": [f"+verilator+seed+{SEED}", "+verilator+rand+reset+2"], "extra_env": quiet}
        log = folder / LOG
        tell("simulate", 0, total)
        worker.run("test", specification, folder=folder, log=log, environment=toolchain.environment(), poll=poll)
        kept = manifest.folder / LOG
        try:
            outcome = Outcome.load(folder)
        except Refusal:
            shutil.copyfile(log, kept)
            raise SimulationError(f"The simulator must run to its end, but it did not ({worker.complaint(log)}); "
                                  f"see {kept}") from None
        kept.unlink(missing_ok=True)
    tell("simulate", total, total)
    return outcome
