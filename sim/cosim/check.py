"""Judges what the harness recorded: the rules of the stream first, then every word against the golden model."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim.job import Job, Outcome, Recording
from circulant.sim.cosim.manifest import Port
from circulant.sim.cosim.plan import Run

__all__ = ["Comparison", "Figures", "Mismatch", "SimulationError", "compare", "measure", "require_stream_rules"]

# What the harness stops at, as sentences about the output port.
FAULTS = {
    "withdrawn": "{port}_tvalid must stay set until {port}_tready, but it was withdrawn in cycle {cycle}",
    "changed": "{port}_tdata and {port}_tlast must not change while a beat waits for {port}_tready, but they did in "
               "cycle {cycle}",
    "reset": "{port}_tvalid must be clear during reset, but it was set in cycle {cycle}",
    "deaf": "The configuration port must answer within {patience} cycles, but it had not by cycle {cycle}",
    "ready": "{source}_tready must be 0 or 1 after reset, but it was unknown in cycle {cycle}",
    "valid": "{port}_tvalid must be 0 or 1 after reset, but it was unknown in cycle {cycle}",
    "beat": "{port}_tdata and {port}_tlast of a beat must be 0 or 1 in every bit, but one was unknown in cycle {cycle}",
    "surplus": "No output beat may come after those of the last sequence, but one did in cycle {cycle}",
    "stuck": "A beat must move at least every {patience} cycles, but none had by cycle {cycle}",
}


class SimulationError(RuntimeError):
    """The circuit broke a rule of its streams, or the simulator failed; one sentence."""


@dataclass(frozen=True)
class Mismatch:
    """An output word that differs from the golden model; sequence, step and word count from 0.

    Parameters:
        step: of the output vector; that of a whole sequence belongs to its last step.
        run: in which of the runs the circuit gave it.
    """

    sequence: int
    step: int
    word: int
    expected: int
    got: int
    run: str

    def __str__(self) -> str:
        return (f"sequence {self.sequence}, step {self.step}, word {self.word}: expected {self.expected}, "
                f"got {self.got} ({self.run})")


@dataclass(frozen=True)
class Comparison:
    """Output words of all runs against the golden model.

    Parameters:
        words: how many were compared.
        mismatches: how many of them differ.
        first: the first of these.
    """

    words: int
    mismatches: int
    first: Mismatch | None


@dataclass(frozen=True)
class Figures:
    """Cycles between handshakes.

    Parameters:
        step: median between the acceptance of the last beats of successive steps, sequences back to back, the first
            interval of a sequence left out where there are others; for single vectors, of successive vectors. Of
            interleaved streams, from a step to the next one of the same stream, divided by the streams. It is the pace
            of the first layer, as long as what lies between the layers takes what it gives.
        sequence: mean between the last output beats of successive sequences, back to back, in the second half of them:
            the pace of the slowest layer.
        latency: median from the acceptance of the last input beat to the last output beat, the circuit empty before.
    """

    step: float
    sequence: float
    latency: float


def compare(runs: Sequence[Run], outcome: Outcome, port: Port, expected: NDArray[np.int64], steps: int,
            streams: int = 1) -> Comparison:
    """Compare the outputs (N, vectors, elements) of all sequences that came, in the order of the runs.

    A run that broke off is compared as far as it came.
    """
    words = mismatches = 0
    first = None
    vectors = expected.shape[1]
    for run, recording in zip(runs, outcome.recordings, strict=False):
        if run.silent:
            continue
        golden = expected[list(run.sequences)].reshape(-1, port.elements)
        got = _vectors(recording, port)[: len(golden), : port.elements]
        wrong = np.argwhere(got != golden[: len(got)])
        words += got.size
        mismatches += len(wrong)
        if first is None and len(wrong):
            vector, word = (int(i) for i in wrong[0])
            group, vector_of = run.sequences[vector // vectors], steps - vectors + vector % vectors
            first = Mismatch(group * streams + vector_of % streams, vector_of // streams, word,
                             int(golden[vector, word]), int(got[vector, word]), run.name)
    return Comparison(words, mismatches, first)


def require_stream_rules(job: Job, outcome: Outcome, port: Port, expected: NDArray[np.int64]) -> None:
    """See that the circuit kept the rules of its output stream.

    Raises:
        SimulationError: with the first rule that it broke; words that were wrong until then are counted.
    """
    broken = broken_rule(job, outcome, port)
    if broken is None:
        return
    sentence, index = broken
    until = compare(job.runs[: index + 1], outcome, port, expected, job.input_vectors, job.streams)
    if until.first is not None:
        sentence += f"; of the {until.words} words that came {until.mismatches} differ, first {until.first}"
    raise SimulationError(sentence)


def broken_rule(job: Job, outcome: Outcome, port: Port) -> tuple[str, int] | None:
    """The first rule of AXI4-Stream that the circuit broke: a sentence that names the sequence, and the run; or None.

    That it gives exactly the beats that it should is one of them.
    """
    for index, (run, recording) in enumerate(zip(job.runs, outcome.recordings, strict=False)):
        sentence = _misplaced_last(run, recording, job, port) or _padding(run, recording, job, port) \
            or _surplus(run, recording, job)
        if sentence:
            return f"{sentence} ({run.name})", index
    if outcome.fault is not None:
        kind, index, cycle = outcome.fault
        run = job.runs[index]
        sentence = FAULTS[kind].format(port=job.output, source=job.input, cycle=cycle, patience=job.patience)
        if index < len(outcome.recordings):
            sentence += _whereabouts(run, outcome.recordings[index], job)
        elif run.interrupted:
            sentence += f", before or during the reset that cuts off sequence {run.interrupted[0]}"
        return f"{sentence} ({run.name})", index
    return None


def measure(job: Job, outcome: Outcome) -> Figures:
    """The figures of complete recordings, of which the first is back to back and the third of isolated sequences."""
    steps, output_beats = job.input_vectors, job.output_beats

    def ends(i: int) -> NDArray[np.int64]:
        accepted = outcome.recordings[i].accepted
        return accepted.reshape(len(job.runs[i].sequences), steps, -1)[:, :, -1]  # (sequences, steps)

    vectors = ends(0)
    sequence_ends = vectors[:, -1]
    latency = float(np.median(outcome.recordings[2].cycles[output_beats - 1 :: output_beats] - ends(2)[:, -1]))
    done = outcome.recordings[0].cycles.reshape(len(sequence_ends), -1)[:, -1]
    late = np.diff(done)[(len(done) - 1) // 2:]
    sequence = float(late.mean()) / job.streams if late.size else latency
    turn = job.streams
    intervals = vectors[:, turn:] - vectors[:, :-turn] if steps > turn else np.diff(sequence_ends)[None]
    if intervals.shape[1] > turn:
        intervals = intervals[:, turn:]
    return Figures(float(np.median(intervals)) / turn if intervals.size else latency, sequence, latency)


def _vectors(recording: Recording, port: Port) -> NDArray[np.int64]:
    """Whole vectors, padding included (vectors, beats * elements_per_beat)."""
    whole = len(recording.data) // port.beats
    return port.unpack(recording.data[: whole * port.beats].reshape(whole, port.beats, port.beat_bytes))


def _misplaced_last(run: Run, recording: Recording, job: Job, port: Port) -> str:
    last = recording.last[: job.due(run)]
    due = np.resize(job.last_beats(job.output_beats, job.output_vectors), len(last)) & run.ends
    wrong = np.flatnonzero(last != due)
    if not len(wrong):
        return ""
    sequence, beat = divmod(int(wrong[0]), job.output_beats)
    return (f"{port.prefix}_tlast must be set on the last of the {job.output_beats} output beats of a sequence and on "
            f"no other, but sequence {run.sequences[sequence]} has it {'set' if last[wrong[0]] else 'clear'} on beat "
            f"{beat}")


def _padding(run: Run, recording: Recording, job: Job, port: Port) -> str:
    vectors = _vectors(recording, port)[: len(run.sequences) * job.output_vectors]
    wrong = np.argwhere(vectors[:, port.elements :])
    if not len(wrong):
        return ""
    vector, element = (int(i) for i in wrong[0])
    sequence = run.sequences[vector // job.output_vectors]
    return (f"The last beat of a vector must be filled up with zeros, but sequence {sequence} has "
            f"{vectors[vector, port.elements + element]} in element {port.elements + element}")


def _surplus(run: Run, recording: Recording, job: Job) -> str:
    surplus = len(recording.data) - job.due(run)
    return f"No output beat may come after those of the last sequence, but {surplus} more came" if surplus > 0 else ""


def _whereabouts(run: Run, recording: Recording, job: Job) -> str:
    sequence, beat = divmod(len(recording.data), job.output_beats)
    taken = f"{len(recording.accepted)} of {len(run.sequences) * job.beats.shape[1]} input beats were taken"
    if sequence >= len(run.sequences):
        return f", after the outputs of the last sequence; {taken}"
    return f": output beat {beat} of sequence {run.sequences[sequence]} is missing; {taken}"
