"""Coverage of a golden model: which of its segments, saturations and roundings some inputs reach.

A point is a place in the arithmetic that a circuit can have wrong by itself: a segment of an activation's table, the
first and the last argument of a segment, the least and the greatest value of a format, a rounding up, down, of a half,
or with a carry. Saturations and roundings count by the place of a value in its block, which has hardware of its own.
"""
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.fixed import Integers
from circulant.sim.arith.trace import Tensor
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import Trace, arguments

__all__ = ["KINDS", "Coverage", "Points", "reached"]

KINDS = ("segment", "boundary", "saturation", "rounding")

Points = dict[tuple[str, str], NDArray[np.bool_]]
"""By kind and name of a point, for each input (N,) whether it reaches it."""


@dataclass(frozen=True)
class Coverage:
    """Points of each kind: how many of them were reached, and how many there are.

    Parameters:
        missed: names of some points that were not reached, as "kind name".
    """

    reached: dict[str, int]
    points: dict[str, int]
    missed: tuple[str, ...] = ()

    def as_json(self) -> Document:
        return {"reached": self.reached, "points": self.points, "missed": list(self.missed)}

    def __str__(self) -> str:
        return ", ".join(f"{self.reached[kind]} of {count} {kind} points"
                         for kind, count in self.points.items() if count)


def reached(network: Network, trace: Trace, worst: Mapping[str, float]) -> Points:
    """The points that each input of a traced run reaches.

    Parameters:
        trace: of `Network.run` without lengths.
        worst: by tensor the greatest magnitude that inputs can cause: a limit beyond it is no point.
    """
    found: Points = {}
    for layer in network.layers:
        for name, table, values in arguments(layer, trace):
            _segments(found, name, table, values.reshape(len(values), -1))
    for name, tensor in trace.items():
        if name.endswith(".sums"):
            rounded = trace[f"{name.removesuffix('.sums')}.product"]
            _rounding(found, name.removesuffix(".sums"), tensor.integers, tensor.format.frac - rounded.format.frac)
        else:
            _limits(found, name, tensor, worst.get(name, np.inf), _block(trace, name))
    return found


def _segments(found: Points, name: str, table: Pwl, values: Integers) -> None:
    clipped = np.clip(values, -(1 << table.input_bits - 1), (1 << table.input_bits - 1) - 1)
    least, most = max(table.start[0], table.input.lo), table.input.hi
    for n, (first, last) in enumerate(table.ends.tolist()):
        if last < least or first > most:
            continue
        found["segment", f"{name}[{n}]"] = ((clipped >= first) & (clipped <= last)).any(axis=1)
        for end, place in (("first", first), ("last", last)):
            if least <= place <= most:
                found["boundary", f"{name}[{n}] {end}"] = (clipped == place).any(axis=1)


def _block(trace: Trace, name: str) -> int:
    """Block size of the tensor's layer; 1 where it has none."""
    layer = name.partition(".")[0]
    return next((tensor.integers.shape[-1] for each, tensor in trace.items()
                 if each.partition(".")[0] == layer and each.endswith(".spectrum")), 1)


def _limits(found: Points, name: str, tensor: Tensor, worst: float, k: int) -> None:
    form, values = tensor.format, tensor.integers
    if worst * 2.0 ** form.frac < form.hi:
        return
    for what, limit in (("low", form.lo), ("high", form.hi)):
        hits = (values == limit).reshape(len(values), -1, values.shape[-1]).any(axis=1)
        for j in range(min(k, hits.shape[1])):
            found["saturation", f"{name} {what} {j}"] = hits[:, j::k].any(axis=1)


def _rounding(found: Points, name: str, sums: Integers, shift: int) -> None:
    if not 0 < shift < 63:
        return
    kept, rest = sums >> shift, sums & (1 << shift) - 1
    half, up = 1 << shift - 1, rest >> shift - 1 == 1
    cases = {"up": up, "down": ~up, "half": rest == half, "carry": up & (kept & 3 == 3)}
    for what, hit in cases.items():
        seen = hit.reshape(len(hit), -1, hit.shape[-1]).any(axis=1)
        for j in range(seen.shape[1]):
            found["rounding", f"{name} {what} {j}"] = seen[:, j]
