"""Errors of golden values on their way through the equations of a step: what `sim.error.error_bound` is made of."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith.activation import FUNCTIONS, Pwl
from circulant.sim.arith.circulant import Product, dense
from circulant.sim.arith.fixed import Reals
from circulant.sim.passes.bounds import distances, roundings

__all__ = ["PropagatedError", "Rows", "Step"]

STEEPEST = {"hard_sigmoid": 1 / 6, "hard_tanh": 1.0, "relu": 1.0, "identity": 1.0}
"""The slope of a hard function between its ends, and of a ReLU above zero."""

ENDS = {"hard_sigmoid": 3.0, "hard_tanh": 1.0, "relu": 0.0, "identity": np.inf}

BEND = {"sigmoid": 1 / (6 * 3 ** 0.5), "tanh": 4 / (3 * 3 ** 0.5)}
"""max |f″|"""

SLOPE: dict[str, Callable[[Reals], Reals]] = {"sigmoid": lambda y: y * (1 - y), "tanh": lambda y: 1 - y * y}
"""f′ by the value of f."""


@dataclass(frozen=True)
class PropagatedError:
    """Golden values (N, n), which err by ``slope`` (N, n, S) times the error of the states, ``shift`` and ±``rest``.

    Parameters:
        most: (N, n), no less than the whole error's magnitude.
    """

    value: Reals
    slope: Reals
    shift: Reals
    rest: Reals
    most: Reals

    def __add__(self, other: "PropagatedError") -> "PropagatedError":
        return PropagatedError(self.value + other.value, self.slope + other.slope, self.shift + other.shift,
                               self.rest + other.rest, self.most + other.most)

    def __sub__(self, other: "PropagatedError") -> "PropagatedError":
        return PropagatedError(self.value - other.value, self.slope - other.slope, self.shift - other.shift,
                               self.rest + other.rest, self.most + other.most)


@dataclass(frozen=True)
class Rows:
    """The first rows of a product or a joint one: of each part the matrix and its distance from golden's."""

    matrices: tuple[Reals, ...]
    distances: tuple[Reals, ...]
    rounding: Reals

    @classmethod
    def of(cls, rows: int, *parts: tuple[Product, Reals, int]) -> "Rows":
        """From products, first columns (p, q, k), and how many columns count."""
        return cls(tuple(dense(weight)[:rows, :columns] for _, weight, columns in parts),
                   tuple(distances(product, weight)[:rows, :columns] for product, weight, columns in parts),
                   roundings(*(product for product, _, _ in parts))[:rows])


class Step:
    """The equations of a step whose states (N, S) err by ``center`` ± ``reach``."""

    def __init__(self, center: Reals, reach: Reals) -> None:
        self._center, self._reach = center, reach

    def near(self, value: Reals, slope: Reals, shift: Reals, rest: Reals) -> PropagatedError:
        most = np.abs(np.einsum("nis,ns->ni", slope, self._center) + shift) + rest
        return PropagatedError(value, slope, shift, rest, most + np.einsum("nis,ns->ni", np.abs(slope), self._reach))

    def given(self, value: Reals, shift: Reals, rest: Reals) -> PropagatedError:
        """The value that comes from outside, with its error."""
        return self.near(value, np.zeros((*value.shape, self._reach.shape[-1])), shift, rest)

    def state(self, value: Reals, first: int) -> PropagatedError:
        """States from number ``first`` on."""
        count, states = value.shape[-1], self._reach.shape[-1]
        slope = np.broadcast_to(np.eye(states)[first:first + count], (len(value), count, states))
        return self.near(value, slope, np.zeros_like(value), np.zeros_like(value))

    def product(self, value: Reals, rows: "Rows", *vectors: PropagatedError) -> PropagatedError:
        """Golden rows (N, n) of the vectors of a product."""
        slope, shift = np.zeros((*value.shape, self._reach.shape[-1])), np.zeros_like(value)
        rest = np.tile(rows.rounding, (len(value), 1))
        for matrix, distance, x in zip(rows.matrices, rows.distances, vectors, strict=True):
            slope += matrix @ x.slope
            shift += x.shift @ matrix.T + x.value @ distance.T
            rest += x.rest @ np.abs(matrix).T
        return self.near(value, slope, shift, rest)

    def times(self, a: PropagatedError, b: PropagatedError, step: float) -> PropagatedError:
        """a·b, rounded to a step."""
        slope = a.value[..., None] * b.slope + b.value[..., None] * a.slope
        rest = np.abs(a.value) * b.rest + np.abs(b.value) * a.rest + a.most * b.most + step / 2
        return self.near(a.value * b.value, slope, a.value * b.shift + b.value * a.shift, rest)

    def bent(self, table: Pwl, argument: Reals, x: PropagatedError) -> PropagatedError:
        """The values of a table for golden arguments."""
        exact = table.exact(argument)
        value = table.output.real(table(table.input.quantize(argument)))
        if table.function in ENDS:
            away = np.abs(argument) - ENDS[table.function] if table.function != "relu" else -argument  # from the corner
            slope = np.where(away < 0, STEEPEST[table.function], 0.0)
            more = np.where(np.abs(away) <= x.most, STEEPEST[table.function] * x.most, 0.0)
        else:
            slope, more = SLOPE[table.function](exact), BEND[table.function] / 2 * x.most ** 2
        found = self.near(value, slope[..., None] * x.slope, slope * x.shift + value - exact, slope * x.rest + more)
        beyond = found.most > (widest := np.abs(value) + (1 if table.function in FUNCTIONS else np.inf))
        return PropagatedError(value, np.where(beyond[..., None], 0, found.slope), np.where(beyond, 0, found.shift),
                               np.where(beyond, widest, found.rest), np.where(beyond, widest, found.most))

    def renamed(self, value: Reals, x: PropagatedError) -> PropagatedError:
        """The same errors around the golden value itself, which is a rounded one."""
        return PropagatedError(value, x.slope, x.shift, x.rest, x.most)
