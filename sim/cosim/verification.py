"""Plays test vectors through the generated Verilog and compares every output word with the golden model."""
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim import stimuli
from circulant.sim.cosim.build import build
from circulant.sim.cosim.job import Played
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.judge.check import Mismatch
from circulant.sim.cosim.judge.pace import LONG, measure, pace, repeated, require_planned
from circulant.sim.cosim.manifest import Manifest, Port, Repeats
from circulant.sim.cosim.simulate import Progress, drive, job_of, simulate
from circulant.sim.cosim.toolchain import find
from circulant.sim.document import Document
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["Progress", "Verification", "fitted", "joined", "planned", "played_of", "span", "swift", "verify"]


SHOWN = 1 << 17
"""Cycles at the most that are played to see what layers which share arrays repeat."""


@dataclass(frozen=True)
class Verification:
    """The result of `verify`.

    Parameters:
        sequences, words: of the vectors, each once.
        words_compared: of all runs; stalled and interrupted ones repeat some sequences.
        mismatches: how many of these differ from the golden model.
        first: the first that does.
        cycles_per_step: from step to step of a sequence that goes on, see `circulant.sim.cosim.judge.pace.pace`;
            sequences that are too short to show it are joined for that to one. Of single vectors and images that of a
            sequence.
        cycles_per_sequence, steps_per_sequence, latency_spaced, latency_contiguous: see
            `circulant.sim.cosim.judge.pace.Figures`.
        cycles: all that were simulated.
        seconds_build: about 0 when the simulator was in the cache.
        sequences_per_s: of those that were played back to back.
        drawn: sequences that were played besides the vectors, to exercise the circuit.

    Sequences are played at their lengths; what vectors hold beyond these is neither sent nor compared.
    """

    sequences: int
    words: int
    words_compared: int
    mismatches: int
    first: Mismatch | None
    simulator: str
    cycles_per_step: float
    cycles_per_sequence: float
    steps_per_sequence: float
    latency_spaced: float
    latency_contiguous: float
    cycles: int
    seconds_build: float
    seconds_simulate: float
    sequences_per_s: float
    drawn: int = 0

    def as_json(self) -> Document:
        return asdict(self)


@public
def verify(folder: str | Path, vectors: Vectors | str | Path, *, stalls: bool = True, drawn: Vectors | None = None,
           progress: Progress | None = None, patience: int | None = None) -> Verification:
    """Simulate the design in ``folder`` with Verilator and compare every output word.

    All sequences are played back to back by the simulator's own program, and one in a closed loop; then, under cocotb,
    some once more; some alone; with ``stalls`` some with idle input and a hesitant output; and some after a reset that
    cuts off others. Drawn ones are played stalled, after resets of 1, 2 and 4 cycles at random moments and in nearly
    every cycle of a short sequence, against an output that waits until all queues are full, with a misplaced tlast, and
    back to back.
    Nothing is written but the cache, and a log next to the design when compiling or simulating fails.

    Parameters:
        folder: with ``manifest.json``, Verilog and memory images.
        vectors: inputs (N, T, elements) or (N, elements), and the outputs of the network the design was made from; with
            the lengths of the sequences where they have different ones.
        drawn: more of them, such as `circulant.sim.exercise.exercise` chooses; in a mismatch they count on from those.
        progress: called with "build" or "simulate", how much is done, and of how much (of sequences).
        patience: cycles without a beat after which the circuit counts as stuck; None chooses.

    Raises:
        Refusal: when files are missing, damaged, of another version, or do not belong together, or a tool is missing.
        SimulationError: when the circuit breaks a rule of its streams, begins otherwise after another reset, or takes
            longer than planned, for a step or until its outputs are there.
        ToolError: when Verilator, the compiler or the simulator fails, or exceeds its time.
    """
    manifest = Manifest.load(folder)
    if not isinstance(vectors, Vectors):
        vectors = Vectors.load(vectors)
    played, runs, extra = planned(manifest, vectors, drawn, stalls)
    toolchain = find()
    tell = progress or (lambda stage, done, total: None)
    tell("build", 0, 1)
    built = build(manifest, toolchain, poll=lambda: tell("build", 0, 1))
    tell("build", 1, 1)

    job = job_of(manifest, runs, played, patience)
    total = sum(len(run.sequences) for run in runs)
    start = time.monotonic()
    first = drive(manifest, toolchain, built.folder, replace(job, runs=runs[:1]),
                  lambda stage, done, _: tell(stage, done, total))
    outcome, slow = first, slice(2, len(runs) - swift(extra))
    for play, part in ((drive, slice(1, 2)), (simulate, slow),
                       *((drive, slice(n, n + 1)) for n in range(slow.stop, len(runs)))):
        if outcome.fault is None:
            before = sum(len(run.sequences) for run in runs[:part.start])
            outcome = outcome.then(play(manifest, toolchain, built.folder, replace(job, runs=runs[part]),
                                        partial(_shift, tell, before, total)))
    seconds = time.monotonic() - start

    comparison = check.judged(job, outcome, manifest.outputs, played)
    figures, step, cycles, repeats = measure(job, outcome), None, outcome.cycles, _repeats(manifest)
    if vectors.inputs.ndim == 3 and not manifest.over_images:
        step = None if repeats else pace(job, outcome, least=2 * LONG)
        if step is None and (one := joined(manifest, planned(manifest, vectors, None)[0])) is not None:
            times = -(-(repeats.after + repeats.steps) // len(one.inputs[0])) if repeats else 2
            job = job_of(manifest, (stimuli.Run("joined", (0,) * times),), one, patience)
            outcome = drive(manifest, toolchain, built.folder, job, lambda stage, done, total: None)
            for n, (sink, port) in enumerate(zip(job.sinks, manifest.outputs, strict=True)):
                check.require_stream_rules(sink, outcome.given(n), port)
            step = repeated(job, outcome, repeats.steps) if repeats else pace(job, outcome)
            cycles += outcome.cycles
    if not comparison.mismatches:
        require_planned(step, repeats.cycles if repeats else manifest.planned_step,
                        (figures.spaced, manifest.latency_spaced), (figures.contiguous, manifest.latency_contiguous))
    steps = int(vectors.steps.sum())
    words = (steps if manifest.per_step else len(vectors) * manifest.vectors) * manifest.output.elements
    words += sum((steps if port.per_step else len(vectors) * port.vectors) * port.elements
                 for port in manifest.more_outputs)
    return Verification(len(vectors), words=words, words_compared=comparison.words, mismatches=comparison.mismatches,
                        first=comparison.first,
                        simulator=toolchain.simulator, cycles_per_step=figures.sequence if step is None else step,
                        cycles_per_sequence=figures.sequence,
                        steps_per_sequence=1 if manifest.over_images else figures.steps,
                        latency_spaced=figures.spaced, latency_contiguous=figures.contiguous, cycles=cycles,
                        seconds_build=built.seconds, seconds_simulate=seconds,
                        sequences_per_s=len(runs[0].sequences) * manifest.streams / first.seconds,
                        drawn=0 if drawn is None else len(drawn))


def _shift(tell: Progress, before: int, total: int, stage: str, done: int, _: int) -> None:
    tell(stage, before + done, total)


def swift(drawn: Sequence[stimuli.Run]) -> int:
    """How many of the runs of drawn samples, the last ones, the simulator's own program plays."""
    return sum(run.driven for run in drawn) + bool(drawn)


def planned(manifest: Manifest, vectors: Vectors, drawn: Vectors | None, stalls: bool = True
            ) -> tuple[Played, tuple[stimuli.Run, ...], tuple[stimuli.Run, ...]]:
    """All that `verify` plays, its runs, of which the second one is the closed loop, and those among them, the last
    ones, that are of drawn samples.

    Raises:
        Refusal: when the vectors do not belong to the design.
    """
    played = played_of(manifest, vectors)
    lengths = list(map(len, played.inputs))
    runs = stimuli.make(len(played), stalls, 1 if manifest.over_images else max(lengths), int(np.argmax(lengths)),
                        sum(lengths) // manifest.streams)
    runs = runs[0], stimuli.looped(lengths, manifest.stepwise, manifest.streams), *runs[1:]
    if drawn is None:
        return played, runs, ()
    more = played_of(manifest, drawn)
    vectors_of = [1] * len(more) if manifest.over_images else list(map(len, more.inputs))
    unsaid = _unsaid(manifest, more)
    longest, short = max(vectors_of), _short(vectors_of, manifest.streams, unsaid)
    extra = stimuli.exercised(len(played), len(more), longest, manifest.cycles * longest, short=short,
                              span=span(manifest, vectors_of[short]), misplaced=unsaid)
    return played.then(replace(more, members=more.members + len(vectors))), runs + extra, extra


def span(manifest: Manifest, vectors: int) -> int:
    """Cycles from the first beat of so many vectors, or of an image, until all of it is out, about: while an image
    comes, the layers over images are at work one behind the other, and those over vectors begin when these end."""
    if manifest.over_images:
        return 2 * manifest.cycles + manifest.vectors_of_image
    return round(1.5 * manifest.cycles * vectors) + (manifest.latency_spaced or 0)


def _repeats(manifest: Manifest) -> Repeats | None:
    """The steps that layers which share arrays repeat, where that shows within `SHOWN` cycles."""
    found = manifest.repeats
    return found if found and found.cycles * (found.after + found.steps) <= SHOWN else None


def _short(vectors: Sequence[int], streams: int, unsaid: Sequence[int]) -> int:
    """The place of the shortest sequence that has a step with another one behind it, where there is one; of
    several one that is in ``unsaid``, see `_unsaid`."""
    return min(range(len(vectors)), key=lambda n: (vectors[n] < 2 * streams, n not in unsaid, vectors[n]))


def _unsaid(manifest: Manifest, drawn: Played) -> list[int]:
    """The places of sequences that end with beats of zeros, and are the same without them."""
    job = job_of(manifest, (), drawn, 0)
    return [n for n in range(len(drawn)) if len(next(job.frames(stimuli.Run("", (n,), misplaced=True)))[0])
            < len(job.offered(n)[0])]


def joined(manifest: Manifest, played: Played) -> Played | None:
    """One sequence of the vectors of several, which is long enough to show the pace of its steps; its outputs, of which
    only the number is right, are not to be compared; of as many steps as the design takes, where what it repeats
    depends on them. None where the design takes none so long."""
    steps = min(2 * LONG, manifest.max_steps or 2 * LONG)
    if repeats := _repeats(manifest):
        steps = manifest.max_steps or -(-(repeats.after + repeats.steps) // manifest.streams)
    elif steps < LONG:
        return None
    count = steps * manifest.streams
    vectors = np.resize(np.concatenate(played.inputs), (count, manifest.input.elements))
    outputs = np.zeros((count if manifest.per_step else manifest.streams, manifest.output.elements), np.int64)

    def more(port: Port, values: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], ...]:
        wanted = count if port.per_step else manifest.streams * port.vectors
        return (np.resize(np.concatenate(values), (wanted, port.elements)),)

    return Played((vectors,), (outputs,), played.members[:1], *(
        tuple(more(port, values) for port, values in zip(ports, given, strict=True)) for ports, given in (
            (manifest.more_inputs, played.more_inputs), (manifest.more_outputs, played.more_outputs))))


def played_of(manifest: Manifest, vectors: Vectors) -> Played:
    """The sequences of vectors, on all ports of a design.

    Raises:
        Refusal: when they do not fit.
    """
    inputs, outputs = fitted(manifest, vectors)
    return Played.of(inputs, outputs, vectors.lengths, streams=manifest.streams, **{
        f"more_{what}": [_further(manifest, what, port, getattr(vectors, f"more_{what}"), shape=inputs.shape)
                         for port in getattr(manifest, f"more_{what}")] for what in ("inputs", "outputs")})


def _further(manifest: Manifest, what: str, port: Port, given: Mapping[str, NDArray[np.int64]], *,
             shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Vectors (N, vectors, elements) of a further port.

    Parameters:
        shape: of the vectors of the first input.
    """
    count, vectors = shape[0], shape[1] if port.per_step else port.vectors
    found = given[port.name].shape if port.name in given else None
    if found is None or given[port.name].size != count * vectors * port.elements or found[0] != count:
        raise Refusal(f"The {what} {port.name!r} must be {count} times {vectors} vectors of {port.elements} elements "
                      f"for {manifest.folder / 'manifest.json'}, not {found}; make them again with Network.vectors")
    return np.asarray(given[port.name], np.int64).reshape(count, vectors, port.elements)


def fitted(manifest: Manifest, vectors: Vectors) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Inputs (N, T, elements) and outputs (N, 1, T or rows of an image, elements), which fit the ports."""
    where = manifest.folder / "manifest.json"
    if vectors.network != manifest.network:
        raise Refusal(f"The vectors must be those of the network that {where} was made from "
                      f"({manifest.network[:12]}…), not of {vectors.network[:12]}…; quantize and generate again")
    inputs = np.asarray(vectors.inputs, np.int64)
    if manifest.input.pixels > 1 and inputs.ndim == 3 and not inputs[0].size % manifest.input.elements:
        inputs = inputs.reshape(len(inputs), -1, manifest.input.elements)
    if inputs.ndim not in (2, 3) or not inputs.size or inputs.shape[-1] != manifest.input.elements:
        raise Refusal(f"Input vectors must be of {manifest.input.elements} elements for {where}, not of shape "
                      f"{inputs.shape}; make them again with Network.vectors")
    inputs = inputs.reshape(len(inputs), -1, manifest.input.elements)
    count, steps, _ = inputs.shape
    longest = int(vectors.steps.max()) if vectors.lengths is not None else steps
    if manifest.max_steps is not None and longest > manifest.max_steps:
        raise Refusal(f"Sequences must have at most {manifest.max_steps} steps for {where}, which cuts longer ones, "
                      f"not {longest}; generate the design again with hardware.max_steps={longest}")
    outputs = np.asarray(vectors.outputs, np.int64)
    size = (steps if manifest.per_step else manifest.vectors) * manifest.output.elements
    if outputs.shape[-1] != manifest.output.elements or outputs.size != count * size:
        raise Refusal(f"Output vectors must be of {manifest.output.elements} elements for each "
                      f"{'step' if manifest.per_step else 'sequence'} by {where}, not of shape {outputs.shape}; make "
                      "them again with Network.vectors")
    limit = 1 << (manifest.input.width - 1)
    if inputs.min() < -limit or inputs.max() >= limit:
        raise Refusal(f"Inputs must be integers of {manifest.input.width} bits for {where}, not from {inputs.min()} to "
                      f"{inputs.max()}; make them again with Network.vectors")
    return inputs, outputs.reshape(count, -1, manifest.output.elements)
