"""A sequence takes the same cycles after every reset, or a sentence says where it does not."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.sim.cosim.job import Job, Recording
from circulant.sim.cosim.judge.restarts import FIRST, uneven
from circulant.sim.cosim.stimuli import Run

JOB = Job("clk", reset="rst", input="s", output="m", input_beats=1, output_beats=1, output_bytes=8, steps=(2,),
          results=(1,), patience=1000, streams=1, runs=(), beats=np.zeros((2, 8), np.uint8))
RUN = Run("after resets", (0, 0, 0), moments=((5, 1), (17, 1), (30, 2)))


def recording(change=()):
    """Two input beats 1 and 5 cycles after the end of each reset, an output beat 10 cycles after it; ``change`` is a
    sequence, a beat, and how much later it and what follows move."""
    accepted, cycles, now = [], [], FIRST
    for n, (moment, pulse) in enumerate(RUN.moments):
        beats = np.array([1, 5, 10]) + now + moment + pulse
        if change and change[0] == n:
            beats[change[1]:] += change[2]
        accepted, cycles, now = [*accepted, *beats[:2]], [*cycles, beats[2]], beats[2]
    return Recording(np.array(accepted), np.array(cycles), np.zeros((3, 8), np.uint8), np.ones(3, bool))


def test_the_same_cycles_whatever_was_before():
    assert uneven(RUN, recording(), JOB) == ""


@pytest.mark.parametrize(("change", "what", "moment", "first"), [
    ((1, 2, 3), "output beat 0 of m moved 13 cycles", 17, 10),
    ((2, 1, -1), "input beat 1 of s moved 4 cycles", 30, 5),
    ((1, 0, 40), "input beat 0 of s moved 41 cycles", 17, 1),
])
def test_a_beat_that_moves_in_another_cycle_is_named(change, what, moment, first):
    assert uneven(RUN, recording(change), JOB) == (
        f"A sequence must move in the same cycles after every reset, but {what} after a reset that cut off a sequence "
        f"after {moment} cycles, and {first} after one that did after 5")


def test_nothing_is_said_of_a_run_without_resets_or_one_that_broke_off():
    late = recording((1, 2, 3))
    assert uneven(replace(RUN, moments=()), late, JOB) == ""
    half = replace(RUN, sequences=(0,) * 6, moments=RUN.moments * 2)
    assert uneven(half, late, JOB) == "", "as many beats as can be divided by the resets"


def test_every_frame_of_a_sweep_is_the_first_one_where_tlast_is_misplaced():
    """The simulator's program sends that one alone."""
    beats = np.zeros((4, 8), np.uint8)
    beats[0, 0] = 1
    job = replace(JOB, steps=(4,), beats=beats, over_images=True)
    alone = replace(RUN, misplaced=True)
    assert len({len(each) for each, _ in job.frames(alone)}) == 1
    assert len({len(each) for each, _ in job.frames(replace(alone, moments=()))}) == 2, "late and early by turns"
