"""A campaign of faults on a quantized run: draws at bit error rates, single faults, and the same under Verilator.

Each draw is a line of a file, so that the same command goes on where one was interrupted.
"""
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circulant.experiment import load
from circulant.progress import Show, silent
from circulant.run.integrity import network_of, vectors_of
from circulant.run.kept import data_of
from circulant.run.run_folder import Run, require
from circulant.run.sizing import budget, levels
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from circulant.sweep.processes import Processes, side_by_side

__all__ = ["PLAYED", "Draw", "Flipped", "Plan", "Scored", "Simulated", "campaign", "flipped", "played"]

CHUNK = 16
"""Draws of a task."""

SETTLED = 8
"""Cycles from the start of a simulation before which no register is flipped: its reset."""

PLAYED = 16
"""Test samples that each run under Verilator plays."""


@dataclass(frozen=True)
class Plan:
    """The faults that a campaign draws.

    Parameters:
        memories: names or parts of names; empty for all weights.
        kind: one of `circulant.sim.golden.faults.KINDS`.
        rates, draws: bit error rates, and the draws at each.
        singles: draws of one fault.
        seed: of the first draw; the n-th has n more.
        protection: of the memories, see `circulant.sim.golden.faults.draw`.
    """

    memories: tuple[str, ...] = ()
    kind: str = "flip"
    rates: tuple[float, ...] = ()
    draws: int = 0
    singles: int = 0
    seed: int = 0
    protection: str = "none"

    def drawn(self) -> "list[Draw]":
        """All draws: no fault, single ones, then rate by rate."""
        each = partial(Draw, self.memories, self.kind, protection=self.protection)
        return [each(0.0, self.seed), *(each(None, self.seed + n) for n in range(self.singles)),
                *(each(rate, self.seed + n) for rate in self.rates for n in range(self.draws))]


class Draw(NamedTuple):
    """A draw: at a bit error rate, or of a single fault."""

    memories: tuple[str, ...]
    kind: str
    rate: float | None
    seed: int
    protection: str = "none"

    def faults(self, network: Network) -> tuple[Any, ...]:
        return network.draw_faults(rate=self.rate, count=1 if self.rate is None else None, seed=self.seed,
                                   memories=self.memories or None, kind=self.kind, protection=self.protection)


class Scored(NamedTuple):
    """A draw, and what it does to the test set.

    Members:
        faults: how many; of protected memories those that are left.
        score: the metric.
        wrong: the share of samples with another output in any bit.
        where: of a single fault its memory, word and bit.
    """

    draw: Draw
    faults: int
    score: float
    wrong: float
    where: tuple[str, int, int] | None


@lru_cache(maxsize=1)
def _opened(folder: Path) -> tuple[Network, Vectors, Any]:
    """Network, vectors and data of a run folder."""
    run = Run(folder, load(folder))
    quantized, trained = require(run, "quantize"), require(run, "train")
    return network_of(run, quantized), vectors_of(run, quantized), data_of(run, trained, silent)


def _scored(folder: Path, draws: Sequence[Draw]) -> list[Scored]:
    from circulant.training.scoring import score

    network, vectors, data = _opened(folder)
    found = []
    for draw in draws:
        faults = draw.faults(network)
        other = network.with_faults(faults)
        outputs = other.run_integers(vectors.inputs, vectors.lengths)
        wrong = (outputs != vectors.outputs).reshape(len(outputs), -1).any(1).mean()
        value = score(other, Vectors(vectors.inputs, outputs, other.hash, vectors.lengths), data)
        where = None if draw.rate is not None or not faults else (faults[0].memory, faults[0].word, faults[0].bit)
        found.append(Scored(draw, len(faults), float(value), float(wrong), where))
    return found


def campaign(run: Run, plan: Plan, out: Path, *, jobs: int = 1, show: Show = silent) -> list[Scored]:
    """All draws of a plan, in its order; those of earlier calls are read from ``out``.

    Raises:
        Refusal: when the run is not quantized or has several inputs or outputs, a rate or a memory is none.
    """
    network, _, _ = _opened(run.folder)
    if network.many:
        raise Refusal(f"A campaign needs a network with one input and one output, but {network.name!r} has more; give "
                      "its faults to Network.with_faults")
    draws = plan.drawn()
    for draw in {each.rate: each for each in draws}.values():
        draw.faults(network)  # What cannot be is said before any work.
    known = {each.draw: each for each in _read(out, network.hash)}
    due = [draw for draw in dict.fromkeys(draws) if draw not in known]
    tasks = [partial(_scored, run.folder, due[at:at + CHUNK]) for at in range(0, len(due), CHUNK)]
    done = len(draws) - len(due)
    show("drawing faults", done, len(draws))
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists() and not out.read_bytes().endswith(b"\n"):  # A line that was cut.
        out.write_bytes(out.read_bytes() + b"\n")
    with Processes(jobs) as processes:
        for _, result in side_by_side(tasks, processes):
            if isinstance(result, dict):
                raise Refusal(f"A process of the campaign ended: {result['reason']}; give fewer --jobs")
            with out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps([network.hash, *each]) + "\n" for each in result)
            known |= {each.draw: each for each in result}
            done += len(result)
            show("drawing faults", done, len(draws))
    return [known[draw] for draw in draws]


def _read(path: Path, sha: str) -> Iterator[Scored]:
    """The draws of a file that are of a network; a line that was cut is none."""
    with suppress(FileNotFoundError):
        for line in path.read_text("utf-8").splitlines():
            with suppress(ValueError, TypeError):
                network, (memories, kind, rate, seed, *protection), faults, score, wrong, where = json.loads(line)
                if network == sha:
                    yield Scored(Draw(tuple(memories), kind, rate, seed, *protection), faults, score, wrong,
                                 where and tuple(where))


class Simulated(NamedTuple):
    """Runs under Verilator.

    Parameters:
        runs, equal: with faults that golden has too, and those of which every word is golden's.
        ends: of runs with one wrong bit in what golden does not follow, programs and tables, how many ended how.
        other_bits: how many such bits there are.
        detected: of all runs, those in which protected memories said that a word was wrong.
    """

    runs: int
    equal: int
    ends: dict[str, int]
    other_bits: int
    detected: int


class Flipped(NamedTuple):
    """Runs under Verilator in each of which a bit of a register is flipped once.

    Parameters:
        bits: of all registers.
        ends: how many ended how.
        units: the same by the unit that the register is in.
        control_bits, control: bits and ends of registers that are control, in any unit; see `FlipFlop.control`.
    """

    runs: int
    bits: int
    ends: dict[str, int]
    units: dict[str, dict[str, int]]
    control_bits: int
    control: dict[str, int]


def flipped(run: Run, count: int, seed: int = 0, show: Show = silent) -> Flipped:
    """The circuit of a run with ``count`` flips of registers, bits and cycles drawn uniformly.

    Raises:
        Refusal: when the run has no design.
        ToolError: as `circulant.sim.cosim.verify`.
    """
    from circulant.sim.cosim.faulty import ENDS, FaultBench
    from circulant.sim.cosim.flip_flops import flip_flops

    bench = FaultBench.of(run.one_chip(), _test_samples(run)[1], registers=True,
                          progress=lambda stage, done, total: show("compiling Verilog", 0, 0))
    cycles = bench.play({}).cycles
    (verilog, *_), top = bench.manifest.verilog, bench.manifest.top
    found = flip_flops(verilog, top)
    weights, rng = np.array([each.bits for each in found]), np.random.default_rng(seed)
    units: dict[str, dict[str, int]] = {}
    control = dict.fromkeys(ENDS, 0)
    for n in range(count):
        show("flipping registers", n, count)
        each = found[int(rng.choice(len(found), p=weights / weights.sum()))]
        end = bench.play({}, flip=(each.path, int(rng.integers(each.bits)), int(rng.integers(SETTLED, cycles)))).end
        units.setdefault(each.unit, dict.fromkeys(ENDS, 0))[end] += 1
        control[end] += each.control
    show("flipping registers", count, count)
    ends = {end: sum(each[end] for each in units.values()) for end in ENDS}
    return Flipped(count, int(weights.sum()), ends, dict(sorted(units.items())), control=control,
                   control_bits=sum(each.bits for each in found if each.control))


def _test_samples(run: Run) -> tuple[Network, Vectors]:
    """The network that became a design, and the samples that each run plays."""
    require(run, "generate")
    network, vectors, _ = _opened(run.folder)
    if run.experiment.hardware.argmax:
        network, vectors = network.with_argmax(), network.with_argmax().chosen(vectors)
    return network, vectors.first(PLAYED)


def played(run: Run, plan: Plan, count: int, others: int, show: Show = silent) -> Simulated:
    """The circuit of a run with the faults of ``count`` draws, single ones and those at each rate in turn, beside
    golden with the same, or with what decoders of protected memories leave of them; and
    with one wrong bit each in ``others`` bits of images that golden does not follow.

    Raises:
        Refusal: when the run has no design, or as `circulant.hw.faults.sites`.
        ToolError: as `circulant.sim.cosim.verify`.
    """
    from circulant.hw.faults import Place, sites_of
    from circulant.sim.cosim.faulty import ENDS, FaultBench

    network, few = _test_samples(run)
    sites = sites_of(run.one_chip(), network, multipliers=budget(run.experiment, network),
                     streams=run.experiment.hardware.streams, levels=levels(run.experiment))
    bench = FaultBench.of(run.one_chip(), few,
                          progress=lambda stage, done, total: show("compiling Verilog", 0, 0))
    rates, equal, detected, total = (None, *plan.rates), 0, 0, count + others
    for n in range(count):
        show("simulating", n, total)
        draw = Draw(plan.memories, plan.kind, rates[n % len(rates)], plan.seed + n)
        faults = draw.faults(network)
        texts = sites.faulted(faults)
        left = sites.remaining(texts) if sites.codes else faults
        found = bench.play(texts, network.with_faults(left).run_integers(few.inputs, few.lengths))
        equal += not found.differing
        detected += found.said
    free = [Place(image, int(word), int(bit)) for image, found in sites.numbers.items()
            for word, bit in np.argwhere(found == 0) if not image.split("_weights")[1:]]
    ends = dict.fromkeys(ENDS, 0)
    chosen = np.random.default_rng(plan.seed).choice(len(free), min(others, len(free)), replace=False)
    for n, at in enumerate(chosen.tolist()):
        show("simulating", count + n, total)
        found = bench.play(sites.flipped([free[at]]))
        ends[found.end] += 1
        detected += found.said
    show("simulating", total, total)
    return Simulated(count, equal, ends, len(free), detected)
