"""Training on integers against the golden model: block-circulant products and their spectra, over random formats."""
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim import reference
from circulant.sim.bounds import distances, roundings
from circulant.sim.circulant import Product
from circulant.sim.fixed import Format
from circulant.training.fixed import integers, quantized
from circulant.training.grid import Grid
from tests.sim.definitions import repeatable

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4))
SEEDS = st.integers(0, 2 ** 32)


def trained(k, p, q, width, loud, seed, dtype=torch.float64):
    """A matrix on the grid and its first columns, a few of whose spectra saturate; the format is near to them."""
    first = torch.from_numpy(np.random.default_rng(seed).normal(0, 1, (1, p, q, k))).to(dtype)
    peak = float(np.abs(reference.spectra(first.double().numpy())).max())
    form = Format(width, width - 1 - int(np.ceil(np.log2(peak))) + loud)
    return Grid(p * k, q * k, k, form=form), first


@repeatable(80)
@given(st.sampled_from([1, 2, 4, 8, 16, 32, 64]), SIZES, st.integers(2, 18), st.integers(0, 2), SEEDS,
       st.sampled_from([torch.float32, torch.float64]))
def test_torch_trains_the_integers_that_numpy_stores(k, size, width, loud, seed, dtype):
    """Before and after training, also when the weights went through float32."""
    grid, first = trained(k, *size, width, loud, seed, dtype)
    wanted = grid.form.quantize(reference.spectra(first.double().numpy()))
    with torch.no_grad():
        kept = grid.settled(first)
    assert kept.dtype == dtype
    assert np.array_equal(grid.form.quantize(reference.spectra(kept.double().numpy())), wanted)
    assert np.allclose(reference.spectra(kept.double().numpy()), grid.form.real(wanted), rtol=0,
                       atol=grid.form.step * 2 ** width * k * torch.finfo(dtype).eps)


@repeatable(100)
@given(st.sampled_from([1, 2, 4]), SIZES, st.integers(2, 14), st.integers(0, 1), st.integers(2, 14),
       st.integers(-3, 14), st.integers(3, 24), st.integers(-8, 14), SEEDS)
def test_a_product_of_small_blocks_is_the_golden_one(k, size, width, loud, x_width, x_frac, y_width, y_frac, seed):
    """Their transforms only add, so that torch in float64 gives the golden integers, halves and saturation among them.
    """
    (p, q), input, output = size, Format(x_width, x_frac), Format(y_width, y_frac)
    grid, first = trained(k, p, q, width, loud, seed)
    golden = product(grid, first, input, output)
    rng = np.random.default_rng(seed + 1)
    x = torch.from_numpy(rng.normal(0, 0.5, (5, q * k)) * input.hi * input.step)
    bias = torch.from_numpy(rng.normal(0, 0.5, p * k) * output.hi * output.step)
    golden.bias[:] = integers(bias, output).numpy()
    with torch.no_grad():
        rows = integers(quantized(x, input) @ grid(first).T, Format(62, y_frac)) + integers(bias, output)
    assert np.array_equal(golden(input.quantize(x.numpy())), rows.clamp(output.lo, output.hi).numpy())


@repeatable(40)
@given(st.sampled_from([8, 16, 32, 64]), SIZES, st.integers(2, 14), st.integers(0, 1), st.integers(2, 14),
       st.integers(-3, 14), st.integers(0, 12), st.integers(6, 16), SEEDS)
def test_a_product_of_great_blocks_is_as_near_as_is_derived(k, size, width, loud, x_width, x_frac, y_frac, twiddle,
                                                          seed):
    """Their twiddle factors are rounded in the golden model: the integers differ by no more than `sim.bounds` says."""
    (p, q), input = size, Format(x_width, x_frac)
    grid, first = trained(k, p, q, width, loud, seed)
    golden = product(grid, first, input, Format(40, y_frac), twiddle)
    x = input.quantize(np.random.default_rng(seed + 1).normal(0, 0.5, (5, q * k)) * input.hi * input.step)
    with torch.no_grad():
        kept = grid.settled(first)
        rows = torch.from_numpy(input.real(x)) @ grid(first).T
    error = np.abs(golden.output.real(golden(x)) - rows.numpy())
    allowed = roundings(golden) + np.abs(distances(golden, kept[0].numpy())) @ np.abs(input.real(x)).T.max(1)
    assert (error <= allowed * (1 + 1e-9)).all(), f"{(error - allowed).max()} beyond the bound"


def product(grid, first, input, output, twiddle=16):
    """The golden product of what is trained, nothing of which is rounded but in the transforms and at the end."""
    weights = grid.form.quantize(reference.spectra(first[0].double().numpy()))
    k, q = grid.block_size, weights.shape[1]
    spectrum = Format(input.width + int(np.log2(k)) + 1, input.frac)
    sums = Format(min(44, spectrum.width + grid.form.width + q.bit_length() + 1), input.frac + grid.form.frac)
    made = Product(weights, np.zeros(grid.rows, np.int64), grid.form, input, spectrum, sums, output, twiddle)
    assert made.reach <= sums.hi, "no sum saturates"
    return made
