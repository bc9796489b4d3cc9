"""How fast a circuit is, from what was recorded: cycles of a step, of a sequence, and until its output."""
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim.job import Job, Outcome
from circulant.sim.cosim.judge.check import SimulationError
from circulant.sim.cosim.stimuli import PLAYED, Run

__all__ = ["LONG", "Figures", "contiguous", "latency", "measure", "pace", "repeated", "require_planned", "slower"]

LONG = 6
"""Steps from which a sequence shows the pace of its steps."""


@dataclass(frozen=True)
class Figures:
    """Cycles between handshakes, back to back but for the latency.

    Parameters:
        sequence: mean from the last output beat of a sequence to that of the next one, over the later ones (`_later`):
            the pace of the slowest layer, once all that lies between the layers is full. Of interleaved streams, from
            one turn of them to the next, divided by the streams. No latency, also of a single sequence, which is
            played several times.
        steps: mean steps of the sequences that ``sequence`` is measured on; 1 of single vectors and images.
        spaced: the latency of a sample that comes into an idle circuit: from the acceptance of the last input beat of a
            longest sequence to its last output beat, the vector sent when all work of those before is done; the
            median of several ones.
        contiguous: that of samples in a closed loop, where a sample is a step with a result of its own, or a whole
            sequence or image: its first beat is offered in the cycle behind the last beat of the result before, and
            the others at once. The greatest of the later ones.
    """

    sequence: float
    steps: float
    spaced: float
    contiguous: float


def measure(job: Job, outcome: Outcome) -> Figures:
    """The figures of complete recordings, of which the first is back to back, one of isolated sequences, and one a
    closed loop."""
    run, recording = job.runs[0], outcome.recordings[0]
    done = recording.cycles[job.given(run.sequences) - 1]
    later = _later(job, run)
    steps = np.array([job.steps[i] for i in run.sequences[-later:]]) / job.streams
    return Figures(float(done[-1] - done[-1 - later]) / later / job.streams, float(steps.mean()),
                   latency(job, outcome), contiguous(job, outcome))


def contiguous(job: Job, outcome: Outcome) -> float:
    """The latency in a closed loop, see `Figures`."""
    closed = next(n for n, run in enumerate(job.runs) if run.closed)
    taken, given = job.sample(job.runs[closed])
    recording = outcome.recordings[closed]
    waits = recording.cycles[given - 1::given] - recording.accepted[taken - 1::taken]
    return float(waits[len(waits) // 2:].max())


def latency(job: Job, outcome: Outcome) -> float:
    """Median cycles from the acceptance of the last input beat of a longest sequence to its last output beat, in the
    run of isolated sequences."""
    isolated = next(n for n, run in enumerate(job.runs) if run.isolated)
    alone, recording = job.runs[isolated].sequences, outcome.recordings[isolated]
    lengths = np.array([job.steps[i] for i in alone])
    waits = recording.cycles[job.given(alone) - 1] - recording.accepted[job.sent(alone) - 1]
    return float(np.median(waits[lengths == lengths.max()]))


def pace(job: Job, outcome: Outcome, *, least: int = LONG) -> float | None:
    """Median cycles from a step to the next one of the same sequence, of the first run, which is back to back; where
    steps are long and short by turns that repeat, their mean over such a turn.

    It is seen where vectors are taken, in the second half of each sequence of ``least`` steps or more: there the queue
    before the first layer is full, and no step is the first one of its sequence, which waits for no state. A layer may
    take vectors ahead of the step that it works on: in the second half of a short sequence its first steps are done.
    So it is the pace of the first layer, as long as what lies between the layers takes what it gives, whatever the
    lengths. Of interleaved streams, from a step to the next one of the same stream, divided by the streams. None where
    no sequence is long.
    """
    run, turn = job.runs[0], job.streams
    ends = job.sent(run.sequences)
    long = [n for n, i in enumerate(run.sequences) if job.steps[i] >= least * turn]
    found = []
    for n in [n for n in long if n >= len(run.sequences) - _later(job, run)] or long[-1:]:
        vectors = job.steps[run.sequences[n]]
        taken = outcome.recordings[0].accepted[ends[n] - vectors * job.input_beats:ends[n]]
        taken = taken[job.input_beats - 1::job.input_beats]
        found.append((taken[turn:] - taken[:-turn])[(vectors // turn // 2 - 1) * turn:])
    turns = [_turn(each) for each in found]
    if any(len(each) > 1 for each in turns) and all(len(each) for each in turns):
        return float(np.mean([each.mean() for each in turns])) / turn
    return float(np.median(np.concatenate(found))) / turn if found else None


def repeated(job: Job, outcome: Outcome, steps: int) -> float:
    """Mean cycles from step to step of the last ``steps`` of the only sequence."""
    taken = outcome.recordings[0].accepted[job.input_beats - 1::job.input_beats]
    return float(taken[-1] - taken[-1 - steps]) / steps


def slower(step: float | None, planned: float | None, *latencies: tuple[float, int | None]) -> str:
    """A sentence where a step, or an output, takes longer than the plan says; empty where it does not.

    Parameters:
        planned: cycles of a step; None where there is no plan of it.
        latencies: (cycles, planned) of samples that come into an idle circuit, and of those in a closed loop.
    """
    if step is not None and planned is not None and step > planned:
        return f"A step must take at most {planned:g} cycles by its plan, but it takes {step:g}"
    for where, (latency, most) in zip(("into an idle circuit", "in a closed loop"), latencies, strict=False):
        if most is not None and latency > most:
            return (f"The result of a sample that comes {where} must be there {most} cycles after its last beat by its "
                    f"plan, but it takes {latency:g}")
    return ""


def require_planned(step: float | None, planned: float | None, *latencies: tuple[float, int | None]) -> None:
    """Check that steps and outputs take no longer than the plan says, see `slower`.

    Raises:
        SimulationError: when they do.
    """
    if sentence := slower(step, planned, *latencies):
        raise SimulationError(sentence)


def _turn(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last turn of steps of which all repeat the turn before; where the first ones do not, as a queue fills, of
    which the last ones do, `LONG` at the least. None where they do not either. The longer look comes first: steps that
    a full queue holds back once in a while are equal in between."""
    turns = range(1, len(steps) // 2 + 1)
    for turn in turns:
        if (steps[turn:] == steps[:-turn]).all():
            return steps[-turn:]
    for turn in turns:
        count = max(turn, LONG)
        if len(steps) >= count + turn and (steps[-count:] == steps[-count - turn:-turn]).all():
            return steps[-turn:]
    return steps[:0]


def _later(job: Job, run: Run) -> int:
    """How many of the sequences of a run that is back to back, the last ones, show their pace: half of them, or where
    they are played several times half of these times, so that each of them counts alike; of many with different lengths
    all but a few, as halves may differ."""
    count = len(set(run.sequences))
    times = len(run.sequences) // count
    if times > 1:
        return count * (times // 2)
    return count - min((count + 1) // 2, PLAYED) if len({job.steps[i] for i in run.sequences}) > 1 else count // 2
