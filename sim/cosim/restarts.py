"""Whether a circuit begins anew after each reset: the same sequence then moves in the same cycles."""
import numpy as np

from circulant.sim.cosim.job import Job, Recording
from circulant.sim.cosim.stimuli import Run

__all__ = ["uneven"]


def uneven(run: Run, recording: Recording, job: Job) -> str:
    """The first beat of a sequence after a reset that moves earlier or later, counted from the first beat of that
    sequence, than after the first reset: a sentence; empty where there is none.

    What a reset leaves over may change no word and yet hold up the next sequence.
    """
    count = len(run.moments)
    if not count or len(recording.accepted) % count or len(recording.cycles) % count:  # It has broken off.
        return ""
    accepted = recording.accepted.reshape(count, -1)
    for what, port, cycles in (("input", job.input, accepted),
                               ("output", job.output, recording.cycles.reshape(count, -1))):
        since = cycles - accepted[:, :1]
        differing = np.argwhere(since != since[0])
        if len(differing):
            n, beat = (int(i) for i in differing[0])
            return (f"A sequence must move in the same cycles after every reset, but {what} beat {beat} of {port} "
                    f"moved {since[n, beat]} cycles after the first input beat where it was reset after "
                    f"{run.moments[n][0]} cycles, and {since[0, beat]} where it was after {run.moments[0][0]}")
    return ""
