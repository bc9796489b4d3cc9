"""Values that the spectra of a matrix can take: integers of a format, with a binary point for each block row."""
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.refusal import Refusal

__all__ = ["MOST_SHIFT", "WeightGrid", "check_row_shifts"]

MOST_SHIFT = 15
"""The greatest shift of a block row."""


@dataclass(frozen=True)
class WeightGrid:
    """Integers w of a format, which stand for w · 2^-(frac + s) in a block row with the shift s.

    Parameters:
        row_shifts: s of each block row; empty where all are 0.
    """

    form: Format
    row_shifts: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.form}{' with row shifts' if self.row_shifts else ''}"

    @property
    def step(self) -> Reals:
        """The value of one unit in the last place, of every row (p, 1, 1) or (1, 1, 1)."""
        return np.ldexp(self.form.step, -np.array(self.row_shifts or (0,)))[:, None, None]

    @property
    def spread(self) -> int:
        """The greatest shift."""
        return max(self.row_shifts, default=0)

    @property
    def row_scales(self) -> tuple[int, ...]:
        """Bits by which each row is to be shifted to the left so that all have `spread`; empty where all are 0."""
        return tuple(self.spread - shift for shift in self.row_shifts)

    def quantize(self, spectra: ArrayLike) -> Integers:
        """The nearest integers of spectra (p, q, k), saturated."""
        return self.form.quantize(self._scaled(np.asarray(spectra, np.float64), 1))

    def real(self, integers: ArrayLike) -> Reals:
        """The values that integers (p, q, k) stand for."""
        return self._scaled(self.form.real(integers), -1)

    def finer(self, bits: int) -> "WeightGrid":
        """The same with so many more fraction bits in every row."""
        return WeightGrid(Format(self.form.width, self.form.frac + bits), self.row_shifts)

    def rows(self, rows: slice) -> "WeightGrid":
        """The grid of some of the block rows."""
        return WeightGrid(self.form, self.row_shifts[rows])

    def _scaled(self, values: Reals, sign: int) -> Reals:
        if not self.row_shifts:
            return values
        return np.asarray(np.ldexp(values, sign * np.array(self.row_shifts)[:, None, None]))


def check_row_shifts(row_shifts: tuple[int, ...], rows: int) -> tuple[int, ...]:
    """The shifts of so many block rows, empty where all are 0.

    Raises:
        Refusal: when they are not one for each row, or out of range.
    """
    if row_shifts and len(row_shifts) != rows:
        raise Refusal(f"row_shifts must have one number for each of the {rows} block rows, not {len(row_shifts)}; "
                      "quantize again")
    if row_shifts and not 0 <= min(row_shifts) <= max(row_shifts) <= MOST_SHIFT:
        raise Refusal(f"row_shifts must be from 0 to {MOST_SHIFT}, not from {min(row_shifts)} to {max(row_shifts)}; "
                      "quantize again")
    return row_shifts if any(row_shifts) else ()
