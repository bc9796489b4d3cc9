"""The figures of recordings that an ideal circuit would give, with a queue before it, and a first step that waits for
nothing."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.sim.cosim.job import Job, Outcome, Recording
from circulant.sim.cosim.judge.pace import contiguous, measure, pace
from circulant.sim.cosim.stimuli import looped, make

FIRST, STEP, LATE, QUEUE = 7, 11, 40, 2
"""Cycles of the first step of a sequence, of another one, from the last step to the output; vectors that may wait."""


def played(lengths: list[int], streams: int, beats: int = 1, queue: int = QUEUE) -> tuple[Job, Outcome]:
    """A job of sequences of these steps, and what comes of its runs; a step is done in its own time for each stream."""
    steps = tuple(streams * length for length in lengths)
    runs = (*make(len(steps), False, max(steps), int(np.argmax(steps)))[:3], looped(steps, False))
    job = Job("clk", reset="rst", input="s", output="m", input_beats=beats, output_beats=1, output_bytes=8, steps=steps,
              results=(streams,) * len(steps), patience=1000, streams=streams, runs=runs,
              beats=np.zeros((0, 8), np.uint8))
    recordings = []
    for run in runs:
        now, done, taken, came = 0, [], [], []
        for i in run.sequences:
            for vector in range(steps[i]):
                sent = came[-1] + 1 if run.closed and came and not vector else 0
                taken.append(max(now, sent, done[len(taken) - queue] if len(taken) >= queue else 0))
                now = max(now, taken[-1]) + (FIRST if vector < streams else STEP)
                done.append(now)
            came += [done[-1] + LATE - n for n in reversed(range(streams))]
            if run.isolated:
                now += 1000
        accepted = np.repeat(taken, beats) - np.tile(np.arange(beats)[::-1], len(taken))
        data, last = np.zeros((len(came), 8), np.uint8), np.ones(len(came), bool)
        recordings.append(Recording(accepted, np.array(came), data, last))
    return job, Outcome(tuple(recordings), None, 0)


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("lengths", [[9], [8, 8], [1], [1, 1], [2, 2, 2], [1, 2, 4], [3, 12, 1, 2], [6] * 30,
                                     [1] * 20 + [7]])
def test_figures_of_few_short_and_mixed_sequences(lengths: list[int], streams: int) -> None:
    figures = measure(*played(lengths, streams))
    counted = lengths if len(lengths) < 8 else lengths[8:]
    assert figures.steps == pytest.approx(np.mean(counted))
    if len(counted) == len(lengths) or len(set(counted)) == 1:
        assert figures.sequence == pytest.approx(FIRST + STEP * (np.mean(counted) - 1)), "not its latency"


@pytest.mark.parametrize("beats", [1, 3])
@pytest.mark.parametrize(("lengths", "seen"), [
    ([9], True), ([6], True), ([8, 8], True), ([3, 12, 1, 2], True), ([12] + [1] * 40, True), ([6] * 30, True),
    ([5] * 30, False), ([1], False), ([2, 4, 1], False)])
@pytest.mark.parametrize("streams", [1, 3])
def test_the_pace_of_steps_is_seen_in_long_sequences_alone(lengths: list[int], seen: bool, streams: int,
                                                           beats: int) -> None:
    assert pace(*played(lengths, streams, beats)) == (STEP if seen else None)


@pytest.mark.parametrize("queue", [2, 5])
def test_the_pace_is_seen_in_sequences_of_as_many_steps_as_are_asked_for(queue: int) -> None:
    """A layer takes vectors ahead: the first steps of a short sequence are done when its last vectors are taken."""
    assert pace(*played([11] * 10, 1, queue=queue), least=12) is None
    assert pace(*played([11, 12], 1, queue=queue), least=12) == STEP


def test_the_pace_of_steps_that_are_long_and_short_by_turns_is_their_mean() -> None:
    """Seven steps of which two are longer, as of a stack whose layers share an array; one of ten, as before a full
    queue; and one step that differs."""
    job, outcome = played([48], 1)
    count = len(outcome.recordings[0].accepted)
    for cycles, cost in (([10, 10, 17, 10, 10, 10, 24], 13.0), ([10] * 9 + [20], 11.0), ([10] * 50 + [9], 10.0)):
        recording = replace(outcome.recordings[0], accepted=np.cumsum(np.resize(cycles, count)))
        assert pace(job, replace(outcome, recordings=[recording, *outcome.recordings[1:]])) == cost


def test_the_latency_is_that_of_the_longest() -> None:
    job, outcome = played([2, 9, 3], 1)
    assert job.runs[2].sequences[0] == 1
    assert measure(job, outcome).spaced == outcome.recordings[2].cycles[0] - outcome.recordings[2].accepted[8]


def test_the_latency_in_a_closed_loop_is_the_greatest_of_the_later_samples() -> None:
    job, _ = played([3], 1)
    run = job.runs[-1]
    assert run.closed and run.sequences == (0,) * 6
    late = np.array([5, 90, 5, 20, 30, 25])
    accepted = np.arange(18) + 100
    recording = Recording(accepted, accepted[2::3] + late, np.zeros((6, 8), np.uint8), np.ones(6, bool))
    assert contiguous(replace(job, runs=(run,)), Outcome((recording,), None, 0)) == 30
    stepwise = replace(job, runs=(run,), stepwise=True, results=job.steps)
    recording = replace(recording, cycles=accepted + np.resize(late, 18))
    assert contiguous(stepwise, Outcome((recording,), None, 0)) == 90
