"""Chooses, of many drawn samples, few that together reach as many points of the golden model as all of them."""
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Integers
from circulant.sim.error.ranges import worst_cases
from circulant.sim.exercise.draw import GRADED, Samples, candidates, sample_shape
from circulant.sim.exercise.points import KINDS, Coverage, Points, reached
from circulant.sim.golden.expected import expected
from circulant.sim.golden.network import Network
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Lengths
from circulant.sim.vectors import Vectors

__all__ = ["STEPS", "Exercise", "exercise"]

STEPS = 12
"""Steps of a drawn sequence: a cell state reaches its limits within them."""

POOL = 256
"""Candidates at the most."""

VALUES = 2 ** 23
"""Values of all tensors of all candidates at the most, and `AT_ONCE` of them together: time and memory are bounded."""

AT_ONCE = 2 ** 21

OPENINGS = 4096
"""First steps at the most among which those that hit ends of segments are searched."""

MISSED = 20
"""Points not reached that are named."""


@dataclass(frozen=True)
class Exercise:
    """Drawn samples as test vectors.

    Parameters:
        coverage: of these samples.
        reachable: of all candidates that they were chosen from.
        candidates: how many these were.
    """

    vectors: Vectors
    coverage: Coverage
    reachable: Coverage
    candidates: int


@public
def exercise(network: Network, count: int, *, steps: int = STEPS, seed: int = 0) -> Exercise:
    """Samples that exercise a network's circuit: each next one reaches most of the points that are still missed.

    Parameters:
        count: of the samples.
        steps: of a sequence; without a meaning for vectors and images. Every second sequence of several
            steps is cut to fewer: what a circuit keeps for the steps under way in turn, it has then at any place, and
            first and last steps meet.

    Raises:
        Refusal: when no sample is asked for, or the sequences have no steps.
    """
    if count < 1 or steps < 1:
        raise Refusal(f"At least one sample of at least one step must be drawn, not {count} of {steps}; leave the "
                      "exercise out instead")
    size = _values(network, steps)
    pool = candidates(network, max(count, min(POOL, VALUES // size)), steps=steps, seed=seed)
    if network.sequence:
        _open(network, pool, seed)
    points, drawn = _reached(network, pool), len(pool[network.leading.name])
    chosen = _chosen(_matrix(points, drawn), count)
    inputs, lengths = {name: values[chosen] for name, values in pool.items()}, None
    if network.sequence:
        order, lengths = _cut(len(chosen), steps, seed)
        inputs = {name: values[order] for name, values in inputs.items()}
    for each in network.inputs:
        _end(inputs[each.name], lengths if each.flow.sequence else None, seed)
    reaches = _reached(network, inputs, lengths)
    return Exercise(expected(network, inputs, lengths), _coverage(reaches), _coverage(points), drawn)


def _cut(count: int, steps: int, seed: int) -> tuple[NDArray[np.intp], Lengths]:
    """An order of the samples in which every second one is cut, and their lengths; those that reach most are whole."""
    whole = -(-count // 2)
    order = np.arange(count)
    order[::2], order[1::2] = np.arange(whole), np.arange(whole, count)
    lengths = np.full(count, steps)
    lengths[1::2] = np.random.default_rng(seed).integers(1, max(2, steps), count - whole)
    return order, lengths


def _end(inputs: Integers, lengths: Lengths | None, seed: int) -> None:
    """Let the quarter of the samples that reach fewest points end with zeros, from the middle on or before; of
    sequences the last vectors of cut ones. Where a vector takes several beats, those of zeros may be left out."""
    rng = np.random.default_rng(seed)
    for n in range(0 if lengths is None else 1, len(inputs), 1 if lengths is None else 2)[::-1][:len(inputs) // 4]:
        values = inputs[n].reshape(-1) if lengths is None else inputs[n, lengths[n] - 1]
        values[rng.integers(1, 1 + max(1, len(values) // 2)):] = 0


def _values(network: Network, steps: int) -> int:
    """Values of all tensors of one sample."""
    zeros = {each.name: np.zeros((1, *sample_shape(each.flow, steps)), np.int64) for each in network.inputs}
    return sum(tensor.integers.size for tensor in network.traced(zeros).values())


def _reached(network: Network, pool: Samples, lengths: Lengths | None = None) -> Points:
    """The points that each candidate reaches, some of them computed at a time; of those with lengths any order."""
    first = pool[network.leading.name]
    steps = first.shape[1] if network.sequence else 1
    worst, size = worst_cases(network, steps), _values(network, steps)
    every = np.full(len(first), steps) if lengths is None else lengths
    parts = []
    for length in np.unique(every):
        places = np.flatnonzero(every == length)
        for some in np.array_split(places, min(len(places), -(-len(places) * size // AT_ONCE))):
            given = {each.name: pool[each.name][some, :length] if each.flow.sequence else pool[each.name][some]
                     for each in network.inputs}
            parts.append(reached(network, network.traced(given), worst))
    return {point: np.concatenate([part[point] for part in parts]) for point in parts[0]}


def _matrix(points: Points, count: int) -> NDArray[np.bool_]:
    """(count, points)"""
    return np.stack(list(points.values()), axis=1) if points else np.zeros((count, 0), bool)


def _open(network: Network, pool: Samples, seed: int) -> None:
    """Give half of the sequences first steps that hit ends of segments: from the zero state these are single
    arguments, which are found among many first steps alone."""
    size = _values(network, 1)
    first = candidates(network, max(1, min(OPENINGS, VALUES // size)), steps=1, seed=seed + 1,
                       kinds=GRADED)
    points = {point: values for point, values in _reached(network, first).items() if point[0] == "boundary"}
    if points:
        count = len(pool[network.leading.name])
        best = _chosen(_matrix(points, len(first[network.leading.name])), count // 2)
        for each in network.inputs:
            if each.flow.sequence:
                pool[each.name][::2][:len(best), 0] = first[each.name][best, 0]


def _chosen(points: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
    """Rows of ``points`` (N, points): greedily those that reach most of what is missed; each point again, once all that
    can be are reached."""
    left, chosen, missed = np.ones(len(points), bool), [], np.ones(points.shape[1], bool)
    for _ in range(min(count, len(points))):
        gains = np.where(left, (points & missed).sum(axis=1), -1)
        if gains.max() == 0:
            missed[:] = True
            gains = np.where(left, (points & missed).sum(axis=1), -1)
        best = int(np.argmax(gains))
        chosen.append(best)
        left[best] = False
        missed &= ~points[best]
    return np.array(chosen)


def _coverage(points: Points) -> Coverage:
    hit = {point: bool(values.any()) for point, values in points.items()}
    return Coverage({kind: sum(on for (each, _), on in hit.items() if each == kind) for kind in KINDS},
                    {kind: sum(each == kind for each, _ in hit) for kind in KINDS},
                    tuple(f"{kind} {name}" for (kind, name), on in hit.items() if not on)[:MISSED])
