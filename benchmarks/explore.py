"""The exploration: points a second of the cost model and its errors, overhead of a point, trainings, what was found."""
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.drawn_logic import FAMILY, Candidate, experiment, read
from benchmarks.synthesis import occupied
from circulant.experiment import load
from circulant.explore.bounds import SIZES
from circulant.hw.cost_table import Candidates, CostTable
from circulant.hw.plan.families import FAMILIES
from circulant.hw.plan.plan import plan
from circulant.hw.resources import inventory
from circulant.run.untrained import untrained
from circulant.sim import artifact
from circulant.sim.golden.network import Network
from circulant.sweep.cluster import Task, compute, connected
from circulant.sweep.processes import Processes, side_by_side
from circulant.training.settings import CompressionSettings

__all__ = ["RECORD", "errors", "measure"]

RECORD = Path("docs/measured/explore-fsdd-gru.json")
"""The record that `circulant explore fsdd-gru --accuracy-loss 0.5 --device LFE5U-25F` wrote."""

POINTS = 200_000
CHECKED = 12
TASKS = 300
BLOCKS, WEIGHTS, ACTIVATIONS = (2, 4, 8, 16), (4, 8, 12), (8, 12, 16)


def measure() -> dict[str, Any]:
    """All figures by the names that ``--json`` prints.

    Raises:
        ClickException: when there is no record of the exploration.
    """
    if not RECORD.is_file():
        raise click.ClickException(f"The record of an exploration must be there, but {RECORD} is not; make it by "
                                   "`circulant explore fsdd-gru --accuracy-loss 0.5 --device LFE5U-25F`, and copy "
                                   "its explore.json")
    points, cycles = _model()
    found = artifact.read_json(RECORD, "circulant-exploration", 1)
    low, high = found["bounds"]["low"], found["bounds"]["high"]
    chosen = found["designs"][found["chosen"]]
    groups = len(_block_sizes(found))
    off = errors()
    return {"model_points_per_s": points, "overhead_ms": {"local": _local(), "dask": _dask()},
            "model_error": {"cycles": cycles, **{name: float(np.abs(each).max()) for name, each in off.items()}},
            "model_errors": {name: {"designs": len(each), "rms": float(np.sqrt(np.mean(each ** 2))),
                                    "worst": float(each[np.abs(each).argmax()])} for name, each in off.items()},
            "trainings": {"phase1": found["trainings"], "grid": sum(low <= k <= high for k in SIZES) ** groups + 1},
            "searched": {"cycles": chosen["cycles_per_step"], "accuracy": chosen["quantized"]}}


def _block_sizes(found: dict[str, Any]) -> list[str]:
    """The matrices that phase I gives sizes of their own."""
    return max((each["block_size"].split() for each in found["decisions"]), key=len)


def _model() -> tuple[float, float]:
    """Points a second of candidates that were not drawn before, and the greatest error of their cycles against the
    planner; what layers cost was computed for others."""
    base = load("digits-gru")

    def network(k: int | dict[str, int], weights: int, activations: int) -> Network:
        return untrained(replace(base, compression=CompressionSettings(k), quantization=replace(
            base.quantization, weight_bits=weights, activation_bits=activations)))

    start = time.process_time()
    table = CostTable(network, BLOCKS, family=FAMILY)
    table.cost(_drawn(POINTS, 0))
    print(f"filled in {time.process_time() - start:.1f} s: {len(table.entries):,} costs of layers", file=sys.stderr)
    given = _drawn(POINTS, 1)
    start = time.process_time()
    costs = table.cost(given)
    speed = POINTS / (time.process_time() - start)
    worst = 0.0
    for at in range(CHECKED):
        made = network({name: int(sizes[at]) for name, sizes in given.block_size.items()}, int(given.weight_bits[at]),
                       int(given.activation_bits[at]))
        exact = plan(made, int(given.multipliers[at]))[0].cycles  # The classifier works once a sequence.
        worst = max(worst, abs(costs.cycles[at] / exact - 1))
    return speed, worst


def _drawn(count: int, seed: int) -> Candidates:
    rng = np.random.default_rng(seed)
    return Candidates({name: rng.choice(BLOCKS, count) for name in ("gru", "linear")},
                      weight_bits=rng.choice(WEIGHTS, count), activation_bits=rng.choice(ACTIVATIONS, count),
                      multipliers=rng.integers(16, 97, count))


def errors() -> dict[str, NDArray[np.float64]]:
    """The relative errors of DSP blocks and block RAMs against the planner, and of look-up tables and flip-flops
    against Yosys, of each measured candidate that was held out."""
    off: dict[str, list[float]] = {name: [] for name in ("dsp", "bram", "lut", "ff")}
    for row in read()["held_out"]:
        candidate = Candidate(**row["candidate"])

        def uniform(k: int, weights: int, activations: int, candidate: Candidate = candidate) -> Network:
            return untrained(experiment(replace(candidate, recurrent=k, linear=k, weight_bits=weights,
                                                activation_bits=activations)), saturated=False)

        table = CostTable(uniform, sorted({candidate.recurrent, candidate.linear}), family=FAMILY, profile=FAMILY)
        costs = table.cost(Candidates(
            {candidate.kind: np.array([candidate.recurrent]), "linear": np.array([candidate.linear])},
            weight_bits=np.array([candidate.weight_bits]), activation_bits=np.array([candidate.activation_bits]),
            multipliers=np.array([candidate.multipliers])))
        network = untrained(experiment(candidate), saturated=False)
        demand = FAMILIES[FAMILY].demand(inventory(network, plan(network, candidate.multipliers), profile=FAMILY))
        truth = row["found"]
        for name, mine, its in (("dsp", costs.dsps[0], demand.dsps), ("bram", costs.block_rams[0], demand.block_rams),
                                ("lut", costs.luts[0], occupied(FAMILY, truth)),
                                ("ff", costs.flip_flops[0], truth["flip_flops"])):
            off[name].append(float(mine / its - 1) if its else float(mine > 0))
    return {name: np.array(each) for name, each in off.items()}


def _nothing(*given: Any) -> int:
    return 0


def _local() -> float:
    """Milliseconds that a task takes beside its work, in two processes that are there already."""
    start = time.perf_counter()
    tasks = [partial(_nothing, number) for number in range(TASKS)]
    with Processes(2) as processes:
        ends = [time.perf_counter() for _ in side_by_side(tasks, processes)]
    return 1000 * (ends[-1] - max(start, ends[TASKS // 10])) / (TASKS - TASKS // 10)


def _dask() -> float:
    """The same of a scheduler and two workers on this machine."""
    with _cluster() as address:
        tasks = {str(number): Task(partial(_nothing, number)) for number in range(TASKS)}
        ends = [time.perf_counter() for _ in compute(address, tasks)]
        return 1000 * (ends[-1] - ends[TASKS // 10]) / (TASKS - TASKS // 10)


@contextmanager
def _cluster() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
        file, running = Path(folder) / "scheduler.json", []

        def start(*arguments: str) -> None:
            running.append(subprocess.Popen([sys.executable, "-m", "dask", *arguments], stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))

        try:
            start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
            while not file.exists():
                time.sleep(0.1)
            time.sleep(0.5)
            address = json.loads(file.read_text("utf-8"))["address"]
            for number in range(2):
                start("worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory",
                      str(Path(folder) / f"worker{number}"))
            from distributed import Client

            with Client(address, timeout=60, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=120)
            with connected(address):
                yield address
        finally:
            for process in running:
                process.kill()
                process.wait()
