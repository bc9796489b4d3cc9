"""A sequence takes the same cycles after every reset, or a sentence says where it does not."""
import numpy as np
import pytest

from circulant.sim.cosim.job import Job, Recording
from circulant.sim.cosim.restarts import uneven
from circulant.sim.cosim.stimuli import Run

JOB = Job("clk", reset="rst", input="s", output="m", input_beats=1, output_beats=1, output_bytes=8, steps=(2,),
          results=(1,), patience=1000, streams=1, runs=(), beats=np.zeros((2, 8), np.uint8))
RUN = Run("after resets", (0, 0, 0), moments=((5, 1), (17, 1), (30, 2)))


def recording(accepted, cycles):
    count = len(cycles)
    return Recording(np.array(accepted), np.array(cycles), np.zeros((count, 8), np.uint8), np.ones(count, bool))


def test_the_same_cycles_whatever_was_before():
    assert uneven(RUN, recording([10, 14, 110, 114, 317, 321], [19, 119, 326]), JOB) == ""


@pytest.mark.parametrize(("accepted", "cycles", "what"), [
    ([10, 14, 110, 114, 317, 321], [19, 120, 326], "output beat 0 of m moved 10 cycles"),
    ([10, 14, 110, 113, 317, 321], [19, 119, 326], "input beat 1 of s moved 3 cycles"),
])
def test_a_beat_that_moves_in_another_cycle_is_named(accepted, cycles, what):
    told = uneven(RUN, recording(accepted, cycles), JOB)
    assert told == (f"A sequence must move in the same cycles after every reset, but {what} after the first input beat "
                    f"where it was reset after 17 cycles, and {9 if 'output' in what else 4} where it was after 5")


def test_nothing_is_said_of_a_run_without_resets_or_one_that_broke_off():
    late = recording([10, 14, 110, 114, 317, 321], [19, 120, 326])
    assert uneven(Run("back-to-back", (0, 0, 0)), late, JOB) == ""
    assert uneven(RUN, recording([10, 14, 110, 114], [19, 120]), JOB) == ""
