"""The cycles of a layer with an array of its own, as the cost model plays them."""
from itertools import islice

from circulant.hw.array.plans import Sharing
from circulant.hw.plan.shared.cost import period, taken_steps

SETTLED, TURNS = 2, 4
"""Turns of sequences that are played before those that count, and those."""


def alone(layer, program, streams=1):
    return Sharing((layer,), program.shape, ((1, 1, 1),), streams=streams, own=program)


def step_cycles(layer, program, elements, *, streams=1):
    """Cycles from step to step, the mean over those that repeat."""
    return period([alone(layer, program, streams)], [elements])[0]


def sequence_cycles(layer, program, elements, *, steps, streams=1):
    """Cycles from sequence to sequence of ``steps`` each, or from turn to turn of them, one behind the other; the mean
    of those of sequences that have several numbers of steps and follow each other again and again."""
    lengths = [steps] if isinstance(steps, int) else list(steps)
    each = sum(lengths) * streams
    ends = [step for length in lengths for step in [False] * ((length - 1) * streams) + [True] * streams]
    lasts = {step for step in range((SETTLED + TURNS + 1) * each) if ends[step % each]}
    taken = [cycle for cycle, _ in islice(taken_steps([alone(layer, program, streams)], [elements], lasts),
                                          (SETTLED + TURNS) * each + 1)]
    return (taken[(SETTLED + TURNS) * each] - taken[SETTLED * each]) / (TURNS * len(lengths))
