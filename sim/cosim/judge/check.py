"""Judges what the harness recorded: the rules of the stream first, then every word against the golden model."""
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim.job import Job, Outcome, Played, Recording
from circulant.sim.cosim.judge.restarts import uneven
from circulant.sim.cosim.manifest import Port
from circulant.sim.cosim.stimuli import Run

__all__ = ["Comparison", "Mismatch", "SimulationError", "broken_rule", "compare", "differing", "judged",
           "require_stream_rules"]

# What the harness stops at, as sentences about the output port.
FAULTS = {
    "withdrawn": "{port}_tvalid must stay set until {port}_tready, but it was withdrawn in cycle {cycle}",
    "changed": "{port}_tdata and {port}_tlast must not change while a beat waits for {port}_tready, but they did in "
               "cycle {cycle}",
    "reset": "{port}_tvalid must be clear during reset, but it was set in cycle {cycle}",
    "deaf": "The configuration port must answer within {patience} cycles, but it had not by cycle {cycle}",
    "held": "{source}_tready must be clear while the design is held, but a beat was taken in cycle {cycle}",
    "ready": "{source}_tready must be 0 or 1 after reset, but it was unknown in cycle {cycle}",
    "valid": "{port}_tvalid must be 0 or 1 after reset, but it was unknown in cycle {cycle}",
    "beat": "{port}_tdata and {port}_tlast of a beat must be 0 or 1 in every bit, but one was unknown in cycle {cycle}",
    "flags": "malformed must be set from a misplaced {source}_tlast to the next reset, overflow and uncorrected must "
             "be clear, but that was not so in cycle {cycle}",
    "surplus": "No output beat may come after those of the last sequence, but one did in cycle {cycle}",
    "stuck": "A beat must move at least every {patience} cycles, but none had by cycle {cycle}",
}


class SimulationError(RuntimeError):
    """The circuit broke a rule of its streams; one sentence."""


@dataclass(frozen=True)
class Mismatch:
    """An output word that differs from the golden model; sequence, step and word count from 0.

    Parameters:
        step: of the output vector; that of a whole sequence belongs to its last step.
        run: in which of the runs the circuit gave it.
        output: of the network, where there are several.
    """

    sequence: int
    step: int
    word: int
    expected: int
    got: int
    run: str
    output: str = ""

    def __str__(self) -> str:
        where = f"output {self.output}, " if self.output else ""
        return (f"{where}sequence {self.sequence}, step {self.step}, word {self.word}: expected {self.expected}, "
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


def compare(job: Job, outcome: Outcome, port: Port, played: Played, runs: int | None = None) -> Comparison:
    """Compare the outputs of all sequences that came, in the order of the runs, or of the first so many of these.

    A run that broke off is compared as far as it came.
    """
    words = mismatches = 0
    first = None
    for run, recording in zip(job.runs[:runs], outcome.recordings, strict=False):
        if run.silent:
            continue
        golden = np.concatenate([played.outputs[i] for i in run.sequences])
        got = _vectors(recording, port)[: len(golden), : port.elements]
        wrong = np.argwhere(got != golden[: len(got)])
        words += got.size
        mismatches += len(wrong)
        if first is None and len(wrong):
            vector, word = (int(i) for i in wrong[0])
            first = Mismatch(*_place(job, run, vector, played), word, int(golden[vector, word]),
                             int(got[vector, word]), run.name, port.name)
    return Comparison(words, mismatches, first)


def judged(job: Job, outcome: Outcome, ports: Sequence[Port], played: Played) -> Comparison:
    """The comparison of all outputs of a circuit that kept the rules of its streams.

    Raises:
        SimulationError: as `require_stream_rules`, at the first output that broke one.
    """
    fault, blamed = outcome.fault, 0
    sinks = list(job.sinks)
    if fault is not None:
        kind, _, place = fault[0].partition(" ")
        fault, blamed = (kind, *fault[1:]), int(place or 0)
        if kind == "ready":  # The place is that of an input.
            sinks[0], blamed = replace(sinks[0], input=job.sources[blamed].input), 0
        elif kind == "stuck":
            blamed = _waiting(job, outcome)
    every = [(sink, replace(outcome.given(n), fault=fault if n == blamed else None), port, played.given(n))
             for n, (sink, port) in enumerate(zip(sinks, ports, strict=True))]
    for each in every:
        require_stream_rules(*each)
    found = [compare(*each) for each in every]
    return Comparison(sum(each.words for each in found), sum(each.mismatches for each in found),
                      next((each.first for each in found if each.first), None))


def differing(job: Job, run: Run, recording: Recording, port: Port, *, played: Played, sequence: int
              ) -> tuple[int, int] | None:
    """The cycles in which a run accepts the first beat of a sequence and gives its last output, the first time that
    some of these differ; None where none do."""
    starts = np.cumsum([0, *(len(beats) for beats, _ in job.frames(run))])
    given, results, golden = job.given(run.sequences), job.results[sequence], played.outputs[sequence]
    got = _vectors(recording, port)[:, :port.elements]
    for n in np.flatnonzero(np.array(run.sequences) == sequence).tolist():
        first = int(given[n]) // job.output_beats - results
        some = got[first:first + results]
        if (some != golden[:len(some)]).any():
            last = min(int(given[n]), len(recording.cycles)) - 1
            return int(recording.accepted[starts[n]]), int(recording.cycles[last])
    return None


def _place(job: Job, run: Run, vector: int, played: Played) -> tuple[int, int]:
    """Sequence of the data, and step, of an output vector of a run."""
    ends = job.given(run.sequences) // job.output_beats
    at = int(np.searchsorted(ends, vector, side="right"))
    one = run.sequences[at]
    input_vector = vector - int(ends[at]) + job.steps[one]  # The vectors that come belong to the last that went in.
    return int(played.members[one, input_vector % job.streams]), input_vector // job.streams


def _waiting(job: Job, outcome: Outcome) -> int:
    """The first output whose beats have not all come when a run broke off."""
    at = len(outcome.recordings) - 1
    if at < 0 or outcome.fault is None or outcome.fault[1] != at:
        return 0
    return next((n for n, sink in enumerate(job.sinks)
                 if len(outcome.given(n).recordings[at].cycles) < sink.due(job.runs[at])), 0)


def require_stream_rules(job: Job, outcome: Outcome, port: Port, played: Played | None = None) -> None:
    """Check that the circuit kept the rules of its output stream.

    Raises:
        SimulationError: with the first rule that it broke; words of ``played`` that were wrong until then are counted.
    """
    broken = broken_rule(job, outcome, port)
    if broken is None:
        return
    sentence, index = broken
    if played is None:
        raise SimulationError(sentence)
    until = compare(job, outcome, port, played, index + 1)
    if until.first is not None:
        sentence += f"; of the {until.words} words that came {until.mismatches} differ, first {until.first}"
    raise SimulationError(sentence)


def broken_rule(job: Job, outcome: Outcome, port: Port) -> tuple[str, int] | None:
    """The first rule that the circuit broke: a sentence that names the sequence, and the run; or None.

    That it gives exactly the beats that it should is one of them, and that it does so in the same cycles after each
    reset.
    """
    for index, (run, recording) in enumerate(zip(job.runs, outcome.recordings, strict=False)):
        sentence = _misplaced_last(run, recording, job, port) or _padding(run, recording, job, port) \
            or _surplus(run, recording, job) or uneven(run, recording, job)
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


def _vectors(recording: Recording, port: Port) -> NDArray[np.int64]:
    """Whole vectors, padding included (vectors, beats * elements_per_beat)."""
    whole = len(recording.data) // port.beats
    return port.unpack(recording.data[: whole * port.beats].reshape(whole, port.beats, port.beat_bytes))


def _misplaced_last(run: Run, recording: Recording, job: Job, port: Port) -> str:
    if run.silent:
        return ""
    last = recording.last[: job.due(run)]
    due = np.concatenate([job.last_beats(job.results[i], job.output_beats) for i in run.sequences]) & run.ends
    wrong = np.flatnonzero(last != due[: len(last)])
    if not len(wrong):
        return ""
    sequence, beat = _beat(run, int(wrong[0]), job)
    beats, has = job.results[sequence] * job.output_beats, "set" if last[wrong[0]] else "clear"
    return (f"{port.prefix}_tlast must be set on the last of the {beats} output beats of a sequence and on no other, "
            f"but sequence {sequence} has it {has} on beat {beat}")


def _beat(run: Run, beat: int, job: Job) -> tuple[int, int]:
    """The sequence that an output beat of a run belongs to, and its number in it."""
    ends = job.given(run.sequences)
    at = int(np.searchsorted(ends, beat, side="right"))
    sequence = run.sequences[at]
    return sequence, beat - int(ends[at]) + job.results[sequence] * job.output_beats


def _padding(run: Run, recording: Recording, job: Job, port: Port) -> str:
    vectors = _vectors(recording, port)[: job.due(run) // job.output_beats]
    wrong = np.argwhere(vectors[:, port.elements :])
    if not len(wrong):
        return ""
    vector, element = (int(i) for i in wrong[0])
    sequence, _ = _beat(run, vector * job.output_beats, job)
    return (f"The last beat of a vector must be filled up with zeros, but sequence {sequence} has "
            f"{vectors[vector, port.elements + element]} in element {port.elements + element}")


def _surplus(run: Run, recording: Recording, job: Job) -> str:
    surplus = len(recording.data) - job.due(run)
    return f"No output beat may come after those of the last sequence, but {surplus} more came" if surplus > 0 else ""


def _whereabouts(run: Run, recording: Recording, job: Job) -> str:
    taken = f"{len(recording.accepted)} of {sum(len(beats) for beats, _ in job.frames(run))} input beats were taken"
    if len(recording.data) >= job.due(run):
        return f", after the outputs of the last sequence; {taken}"
    sequence, beat = _beat(run, len(recording.data), job)
    return f": output beat {beat} of sequence {sequence} is missing; {taken}"
