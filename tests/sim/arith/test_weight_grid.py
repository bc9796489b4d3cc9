import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.arith.weight_grid import WeightGrid, check_row_shifts
from circulant.sim.refusal import Refusal


def test_each_row_has_a_binary_point_of_its_own():
    grid = WeightGrid(Format(4, 1), (0, 2))
    spectra = np.array([[[0.5, 0.3]], [[0.5, 0.3]]])  # (p, q, k)
    assert grid.quantize(spectra).tolist() == [[[1, 1]], [[4, 2]]]
    assert grid.real(grid.quantize(spectra)).tolist() == [[[0.5, 0.5]], [[0.5, 0.25]]]
    assert grid.step.reshape(-1).tolist() == [0.5, 0.125]
    assert (grid.spread, grid.row_scales, str(grid)) == (2, (2, 0), "Format(width=4, frac=1) with row shifts")


def test_without_shifts_it_is_its_format():
    grid, spectra = WeightGrid(Format(4, 1)), np.array([[[0.5, -9.0]]])
    assert np.array_equal(grid.quantize(spectra), grid.form.quantize(spectra))
    assert (grid.spread, grid.row_scales, str(grid)) == (0, (), str(grid.form))


def test_rows_and_finer():
    grid = WeightGrid(Format(4, 1), (0, 2, 1))
    assert grid.rows(slice(1, 3)) == WeightGrid(Format(4, 1), (2, 1))
    assert grid.finer(-3) == WeightGrid(Format(4, -2), (0, 2, 1))


def test_shifts_that_do_nothing_are_left_out():
    assert check_row_shifts((0, 0), 2) == ()
    assert check_row_shifts((0, 3), 2) == (0, 3)


@pytest.mark.parametrize(("shifts", "said"), [
    ((1, 2), r"^row_shifts must have one number for each of the 3 block rows, not 2; quantize again$"),
    ((0, 16, 1), r"^row_shifts must be from 0 to 15, not from 0 to 16; quantize again$"),
    ((-1, 0, 1), r"^row_shifts must be from 0 to 15, not from -1 to 1; quantize again$")])
def test_wrong_shifts_are_refused(shifts, said):
    with pytest.raises(Refusal, match=said):
        check_row_shifts(shifts, 3)
