import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from circulant.sim.arith import batch_layout, circulant
from circulant.sim.arith.circulant import Product, dense, multiplications, pack, pad, project
from circulant.sim.arith.fixed import Format
from circulant.sim.refusal import Refusal
from tests import independent
from tests.sim import definitions
from tests.sim.definitions import block_circulant, repeatable
from tests.sim.samples import product as make

SIZES = (1, 2, 4, 8, 16, 32, 64)


# The algebra in float64.

@pytest.mark.parametrize(("shape", "size", "expected"), [
    ((3,), 3, (3,)), ((3,), 5, (5,)), ((2, 3), 4, (2, 4)), ((0, 3), 4, (0, 4))])
def test_pad(shape, size, expected):
    x = np.ones(shape, np.int64)
    y = pad(x, size)
    assert (y.shape, y.dtype) == (expected, np.int64)
    assert (y[..., :shape[-1]] == 1).all()
    assert (y[..., shape[-1]:] == 0).all()


@pytest.mark.parametrize("k", SIZES)
def test_dense_is_the_definition(k):
    blocks = np.random.default_rng(k).normal(size=(2, 3, k))
    np.testing.assert_array_equal(dense(blocks), block_circulant(blocks))


def test_dense_by_hand():
    assert dense([[[1, 2, 3, 4]]]).tolist() == [[1, 4, 3, 2], [2, 1, 4, 3], [3, 2, 1, 4], [4, 3, 2, 1]]


@pytest.mark.parametrize("k", SIZES)
def test_dense_product_is_a_product_of_spectra(k):
    rng = np.random.default_rng(k)
    w, x = rng.normal(size=(2, 3, k)), rng.normal(size=(3, k))
    spectra = (np.fft.fft(w) * np.fft.fft(x)).sum(1)
    np.testing.assert_allclose(dense(w) @ x.reshape(-1), np.fft.ifft(spectra).real.reshape(-1), rtol=0, atol=1e-12 * k)


@pytest.mark.parametrize("k", SIZES)
def test_pack(k):
    x = np.random.default_rng(k).normal(size=(5, k))
    np.testing.assert_allclose(pack(np.fft.rfft(x), k), definitions.exact(x), rtol=0, atol=1e-12 * k)


@pytest.mark.parametrize("k", SIZES)
def test_projection_is_the_mean_of_each_wrapped_diagonal(k):
    w = np.random.default_rng(k).normal(size=(2 * k, 3 * k))
    expected = [[[np.mean([w[i * k + (r + b) % k, j * k + b] for b in range(k)]) for r in range(k)]
                 for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(project(w, k), expected, rtol=0, atol=1e-14)


def test_projection_by_hand():
    """No diagonal is represented by its last element, or by that divided by k, as in public code."""
    assert project([[1, 2], [3, 6]], 2).tolist() == [[[3.5, 2.5]]]
    assert project([[1, 0, 4, 0], [8, 2, 0, 0], [0, 8, 3, 0], [0, 0, 8, 10]], 4).tolist() == [[[4, 6, 1, 0]]]


@pytest.mark.parametrize("k", SIZES)
def test_projection_leaves_what_is_circulant(k):
    blocks = np.random.default_rng(k).normal(size=(3, 2, k))
    np.testing.assert_allclose(project(dense(blocks), k), blocks, rtol=0, atol=1e-14)


@pytest.mark.parametrize("k", SIZES)
def test_projection_is_the_diagonal_in_the_fourier_basis(k):
    """C = F⁻¹ diag(F W F⁻¹) F (E-RNN, section 4)."""
    w = np.random.default_rng(k).normal(size=(k, k))
    diagonal = np.diagonal(np.fft.fft(np.fft.ifft(w, axis=1), axis=0))
    np.testing.assert_allclose(project(w, k)[0, 0], np.fft.ifft(diagonal).real, rtol=0, atol=1e-14 * k)


shapes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from((1, 2, 4, 8, 16)), st.integers(0, 2 ** 32))


@repeatable(100)
@given(shapes)
def test_what_a_projection_drops_is_orthogonal_to_the_set(shape):
    m, n, k, seed = shape
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(m, n))
    blocks = project(w, k)
    assert blocks.shape == (-(-m // k), -(-n // k), k)
    rest = w - dense(blocks)[:m, :n]
    for _ in range(3):
        other = dense(rng.normal(size=blocks.shape))[:m, :n]
        assert abs((rest * other).sum()) < 1e-10
    np.testing.assert_allclose(project(dense(blocks)[:m, :n], k), blocks, rtol=0, atol=1e-12)


@repeatable(50)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from((1, 2, 4, 8)), st.integers(0, 2 ** 32))
def test_projection_of_ragged_edges_is_least_squares(m, n, k, seed):
    """The nearest matrix by numpy's least squares; first columns that the matrix does not show are zero."""
    w = np.random.default_rng(seed).normal(size=(m, n))
    p, q = -(-m // k), -(-n // k)
    units = np.eye(p * q * k).reshape(-1, p, q, k)
    basis = np.stack([dense(unit)[:m, :n].reshape(-1) for unit in units], axis=1)
    best = np.linalg.lstsq(basis, w.reshape(-1), rcond=None)[0]
    np.testing.assert_allclose(project(w, k).reshape(-1), best, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("k", "count"), [(1, 1), (2, 2), (4, 5), (8, 11), (16, 23), (32, 47), (64, 95)])
def test_multiplications(k, count):
    assert multiplications(k) == count


@pytest.mark.parametrize(("k", "blocks", "total"), [(8, 43008 + 8192, 563200), (16, 10752 + 2048, 294400)])
def test_multiplications_of_the_lstm_of_the_papers(k, blocks, total):
    assert blocks * multiplications(k) == total


def test_multiplications_of_a_product():
    assert make(p=3, q=2, k=8).multiplications == 3 * 2 * 11


# The product in integers.

def arguments(product, count=5, seed=0):
    """Random, extreme and constant vectors of the input format."""
    rng, lo, hi, n = np.random.default_rng(seed), product.input.lo, product.input.hi, product.columns
    return np.concatenate([rng.integers(lo, hi + 1, (count, n)), rng.choice([lo, hi], (count, n)),
                           np.full((1, n), lo), np.full((1, n), hi), np.zeros((1, n), np.int64)])


def plain(product, x):
    return [definitions.product(product, row) for row in x.tolist()]


@st.composite
def products(draw, widest, left):
    """Products of any legal formats, also such that saturate, or that shift by up to ``left`` bits to the left."""
    k, p, q = draw(st.sampled_from((1, 2, 4, 8, 16))), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    widths = st.integers(1, widest)
    weight, input_ = (draw(widths), draw(st.integers(-5, 30))), (draw(widths), draw(st.integers(-5, 30)))
    spectrum = (draw(widths), input_[1] + draw(st.integers(-10, left)))
    product = (draw(widths), spectrum[1] + weight[1] + draw(st.integers(-20, left)))
    output = (draw(widths), product[1] + draw(st.integers(-20, left)))
    fills = st.sampled_from(("random", "extreme", "least"))
    try:
        return make(p, q, k, weight=weight, input=input_, spectrum=spectrum, product=product, output=output,
                    twiddle_bits=draw(st.integers(4, 20)), weights=draw(fills), bias=draw(fills),
                    seed=draw(st.integers(0, 2 ** 32)))
    except Refusal:
        assume(False)


@repeatable(240)
@given(products(20, 4) | products(45, 30), st.integers(0, 2 ** 32))
def test_equals_the_plain_product_bit_for_bit_and_never_wraps(product, seed):
    """Of small formats, and of those so wide that many are refused."""
    x = arguments(product, 2, seed)
    assert product(x).tolist() == plain(product, x)


@pytest.mark.parametrize("k", SIZES)
def test_equals_the_plain_product_for_every_block_size(k):
    product = make(k=k, seed=k)
    x = arguments(product, 3)
    assert product(x).tolist() == plain(product, x)


@pytest.mark.parametrize(("formats", "sign"), [
    ({"spectrum": (8, 12)}, "spectrum"),
    ({"product": (8, 16), "spectrum": (20, 12)}, "product"),
    ({"output": (6, 10)}, "output"),
    ({"product": (24, 5), "output": (16, 12)}, "left shift"),
    ({"spectrum": (17, 17), "input": (8, 15), "product": (40, 30)}, "left shifts"),
])
def test_saturation_and_shifts_to_the_left(formats, sign):
    product = make(weights="extreme", bias="extreme", **formats)
    x = arguments(product)
    y = product(x)
    assert y.tolist() == plain(product, x)
    if sign == "output":
        assert {product.output.lo, product.output.hi} <= set(y.reshape(-1).tolist())


@pytest.mark.parametrize(("bias", "extreme"), [(127, 127), (-128, -128)])
def test_the_bias_is_added_before_saturation(bias, extreme):
    """An intermediate saturation would lose what the bias gives back."""
    form = Format(8, 0)
    product = Product(np.array([[[2]]]), bias=np.array([bias]), weight=Format(4, 0), input=form, spectrum=form,
                      product=Format(12, 0), output=form, twiddle_bits=16)
    assert product(np.array([100 if bias > 0 else -100])).tolist() == [extreme]
    assert product(np.array([-100 if bias > 0 else 100])).tolist() == [bias - 200 if bias > 0 else bias + 200]


def test_identity():
    """Block (1, 0, 0, 0) is the identity, (0, 1, 0, 0) turns by one place."""
    form, wide = Format(8, 0), Format(20, 0)
    for turn in range(4):
        spectrum = pack(np.fft.rfft(np.roll([1, 0, 0, 0], turn)), 4).astype(np.int64)
        product = Product(spectrum.reshape(1, 1, 4), bias=np.zeros(4, np.int64), weight=Format(4, 0), input=form,
                          spectrum=wide, product=wide, output=form, twiddle_bits=16)
        assert product(np.array([1, -2, 3, 100])).tolist() == np.roll([1, -2, 3, 100], turn).tolist()


@pytest.mark.parametrize("k", [1, 2, 4, 8])
@pytest.mark.parametrize("path", ["float64", "int64"])
def test_both_paths_of_the_sums_are_exact(k, path, monkeypatch):
    """Just below 2**53 every sum is exact in float64; above, where it would not be, integers take over."""
    q = 256 if path == "float64" else 1024
    formats = {"weight": (18, 0), "spectrum": (27, 0), "product": (30, -30), "output": (16, -40)}
    product = make(1, q, k, weights="extreme", bias="zero", seed=k, **formats)
    assert (product.reach < batch_layout.EXACT) == (path == "float64")
    rng = np.random.default_rng(k)
    lo, hi = product.spectrum.lo, product.spectrum.hi
    spectra = np.concatenate([rng.choice([lo, hi], (5, q, k)), rng.integers(lo, hi + 1, (5, q, k)),
                              np.where(product.weights[0] < 0, lo, hi)[None]])
    sums = product.accumulate(spectra)
    for row, total in zip(spectra.tolist(), sums[:, 0].tolist(), strict=True):
        products = (independent.multiplied(w, s, "exact")
                    for w, s in zip(product.weights[0].tolist(), row, strict=True))
        assert total == [sum(bins) for bins in zip(*products, strict=True)]
    monkeypatch.setattr(batch_layout, "EXACT", 0 if path == "float64" else 1 << 63)
    other = make(1, q, k, weights="extreme", bias="zero", seed=k, **formats)
    np.testing.assert_array_equal(other.accumulate(spectra[5:10]), sums[5:10])
    assert other._matrices[0].dtype != product._matrices[0].dtype


@repeatable(60)
@given(products(20, 4), st.integers(0, 2 ** 32))
def test_narrow_and_wide_integers_give_the_same(product, seed):
    """int32 and float64 where the formats allow it; int64 alone gives the same."""
    x, patch = arguments(product, 2, seed), pytest.MonkeyPatch()
    y = product(x)
    with patch.context() as patched:
        patched.setattr(batch_layout, "EXACT", 0)
        patched.setattr(batch_layout, "number", lambda bits: np.int64)
        np.testing.assert_array_equal(dataclasses.replace(product)(x), y)


@pytest.mark.parametrize(("shift", "exact"), [(-3, True), (0, True), (53, True), (54, False)])
def test_float64_rounds_only_where_half_a_step_fits_beside_the_sum(shift, exact):
    """2**52 - 1 and half of 2**53 are together below 2**53, with half of 2**54 they are not."""
    assert (circulant._rounding_reach(2 ** 52 - 1, shift) < batch_layout.EXACT) == exact


def test_the_guard_of_float64_is_needed():
    """Above 2**53 float64 does lose bits."""
    product = make(1, 2, 1, weight=(30, 0), spectrum=(30, 0), product=(40, -20), output=(16, -40), bias="zero")
    product.weights[:] = [[[2 ** 29 - 1], [1]]]
    total = (2 ** 29 - 1) ** 2 + 2 ** 29 - 2
    assert float(total) != total
    assert product.accumulate(np.array([[[2 ** 29 - 1], [2 ** 29 - 2]]])).tolist() == [[[total]]]
    assert product.reach >= batch_layout.EXACT


@pytest.mark.parametrize("weights", ["random", "extreme", "least"])
@pytest.mark.parametrize("k", SIZES)
def test_reach_bounds_the_sums(k, weights):
    product = make(k=k, weights=weights)
    lo, hi = product.spectrum.lo, product.spectrum.hi
    rng = np.random.default_rng(k)
    spectra = np.concatenate([rng.choice([lo, hi], (200, 3, k)), np.full((1, 3, k), lo)])
    most = int(np.abs(product.accumulate(spectra)).max())
    assert most <= product.reach
    if weights == "least":
        assert most == product.reach if k > 2 else most == product.reach // 2


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
def test_axes_and_padding(shape):
    product = make(k=4, q=2)
    x = np.random.default_rng(0).integers(-2 ** 15, 2 ** 15, (*shape, 6))
    y = product(x)
    assert (y.shape, y.dtype) == ((*shape, 8), np.int64)
    np.testing.assert_array_equal(y, product(pad(x, 8)))
    np.testing.assert_array_equal(y.reshape(-1, 8), [product(row) for row in x.reshape(-1, 6)])


@pytest.mark.parametrize("k", SIZES)
def test_sizes(k):
    product = make(3, 2, k)
    assert (product.block_size, product.rows, product.columns) == (k, 3 * k, 2 * k)


@pytest.mark.parametrize("k", [3, 128])
def test_init_wrong_block_size(k):
    with pytest.raises(Refusal, match=f"^Block size must be a power of two from 1 to 64, not {k}; choose one of "):
        make(k=k)


def test_init_wrong_bias_shape():
    product = make()
    with pytest.raises(Refusal, match=r"^The bias must have one value per row, \(8,\), not \(7,\); pad it with zeros$"):
        Product(product.weights, bias=product.bias[:7], weight=product.weight, input=product.input,
                spectrum=product.spectrum, product=product.product, output=product.output, twiddle_bits=16)


@pytest.mark.parametrize(("field", "value", "rule"), [
    ("weights", 2048, "12-bit format from -2048 to 2047, not from 0 to 2048"),
    ("weights", -2049, "12-bit format from -2048 to 2047, not from -2049 to 0"),
    ("bias", 2 ** 15, "16-bit format from -32768 to 32767, not from 0 to 32768"),
    ("bias", -2 ** 15 - 1, "16-bit format from -32768 to 32767, not from -32769 to 0"),
])
def test_init_out_of_format(field, value, rule):
    product = make(weights="zero", bias="zero")
    arrays = {"weights": product.weights, "bias": product.bias}
    arrays[field].flat[3] = value
    with pytest.raises(Refusal, match=f"^The {field} must lie in the {rule}; quantize them again$"):
        Product(**arrays, weight=product.weight, input=product.input, spectrum=product.spectrum,
                product=product.product, output=product.output, twiddle_bits=16)


@pytest.mark.parametrize("formats", [
    {"input": (45, 15)},
    {"input": (40, 0), "spectrum": (17, 30)},
    {"weight": (30, 0), "spectrum": (33, 12)},
    {"weight": (20, 50), "spectrum": (20, 60), "product": (24, 40)},
    {"weight": (20, 0), "spectrum": (20, 0), "product": (24, 30), "output": (16, 30)},
    {"product": (45, 16)},
    {"product": (40, 0), "output": (16, 30)},
    {"product": (24, 90), "weight": (12, 80)},
    {"output": (62, 10), "product": (24, 80), "weight": (12, 70)},
], ids=["forward", "spectrum to the left", "sums", "product to the right", "product to the left", "inverse",
        "output to the left", "output to the right", "bias"])
def test_init_too_wide(formats):
    with pytest.raises(Refusal) as refusal:
        make(**formats)
    defaults = {"input": (16, 15), "spectrum": (17, 12), "weight": (12, 11), "product": (24, 16), "output": (16, 10)}
    given = ", ".join(str(Format(*form)) for form in (defaults | formats).values())
    assert str(refusal.value) == (
        "The sums of a block-circulant product must fit into 63 bits, but with 16 twiddle bits and the formats "
        f"{given} they do not; choose narrower ones, or binary points nearer to each other")


@repeatable(60)
@given(products(12, 4), st.lists(st.integers(0, 15), min_size=2, max_size=2), st.integers(0, 2 ** 32))
def test_a_row_with_a_shift_is_the_row_alone_in_finer_formats(product, shifts, seed):
    k, p = product.block_size, len(product.weights)
    try:
        finer = dataclasses.replace(product, row_shifts=tuple(shifts[:p]))
        alone = [dataclasses.replace(
            product, weights=product.weights[i:i + 1], bias=product.bias[i * k:(i + 1) * k],
            weight=Format(product.weight.width, product.weight.frac + shift),
            product=Format(product.product.width, product.product.frac + shift)) for i, shift in enumerate(shifts[:p])]
    except Refusal:
        assume(False)
    x = arguments(finer, seed=seed)
    assert np.array_equal(finer(x), np.concatenate([row(x) for row in alone], axis=-1))


def test_parts_of_a_joint_product_have_the_same_row_shifts():
    first, second = make(p=2, q=1), make(p=2, q=2, bias="zero")
    with pytest.raises(Refusal, match="row shifts and multiplier of the first"):
        circulant.JointProduct((dataclasses.replace(first, row_shifts=(0, 1)), second))
