"""Whether a circuit begins anew after each reset: the same sequence then moves in the same cycles."""
import numpy as np

from circulant.sim.cosim.job import Job, Recording
from circulant.sim.cosim.stimuli import Run

__all__ = ["uneven"]

FIRST = 4
"""Cycles of the reset before the first sequence: RESET_CYCLES of ``drive.cpp``."""


def uneven(run: Run, recording: Recording, job: Job) -> str:
    """The first beat of a sequence that moves earlier or later, counted from the end of the reset before it, than after
    the first of the resets of `Run.moments`: a sentence; empty where there is none, or where the run broke off.

    What a reset leaves over may change no word and yet hold up the next sequence.
    """
    count = len(run.moments)
    sent = sum(len(beats) for beats, _ in job.frames(run)) if count else 0
    if not count or len(recording.accepted) != sent or len(recording.cycles) != job.due(run):
        return ""
    moved = {("input", job.input): recording.accepted.reshape(count, -1),
             ("output", job.output): recording.cycles.reshape(count, -1)}
    every = [cycles for each in recording.ports() for cycles in (each.accepted, each.cycles) if len(cycles)]
    before = np.max([cycles.reshape(count, -1)[:-1, -1] for cycles in every], axis=0)
    ends = np.array([FIRST, *before]) + np.array(run.moments).sum(axis=1)
    for (what, port), cycles in moved.items():
        since = cycles - ends[:, None]
        differing = np.argwhere(since != since[0])
        if len(differing):
            n, beat = (int(i) for i in differing[0])
            return (f"A sequence must move in the same cycles after every reset, but {what} beat {beat} of {port} "
                    f"moved {since[n, beat]} cycles after a reset that cut off a sequence after {run.moments[n][0]} "
                    f"cycles, and {since[0, beat]} after one that did after {run.moments[0][0]}")
    return ""
