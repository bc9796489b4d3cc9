import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith import fft
from circulant.sim.arith.circulant import Product, dense
from circulant.sim.arith.fixed import Format, fit
from circulant.sim.passes import bounds
from circulant.sim.passes.bounds import _matrix, bins, matrix
from circulant.sim.passes.products import spectra
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.sim import samples
from tests.sim.definitions import block_circulant, repeatable

SIZES = (1, 2, 4, 8, 16, 32, 64)
WIDTHS = {  # weight, input, spectrum, product, output, twiddle
    "default": (12, 16, 17, 24, 16, 16),
    "narrow": (4, 8, 9, 16, 8, 8),
    "wide": (18, 24, 26, 34, 24, 20),
    "coarse twiddles": (12, 16, 17, 24, 16, 4),
    "coarse spectra": (12, 16, 12, 24, 16, 16),
    "coarse sums": (18, 16, 26, 16, 24, 16),
    "coarse results": (18, 16, 26, 38, 8, 16),
    "exact spectra": (18, 10, 26, 38, 24, 16),
}


def product_error(product, weight):
    """The greatest |product(x) − (W x + b)|, in real values, over every x that saturates nothing."""
    distance = np.abs(bounds.distances(product, weight)).sum(1) * -product.input.lo * product.input.step
    return float((distance + bounds.roundings(product)).max())


def make(p, q, k, widths, seed, exact=0):
    """A product that no x saturates, with its weights and bias in float64; ``exact`` fraction bits more than needed."""
    rng = np.random.default_rng(seed)
    weight_bits, input_bits, spectrum_bits, product_bits, output_bits, twiddle_bits = widths
    w, b = rng.normal(0, 0.3, (p, q, k)), rng.normal(0, 0.5, p * k)
    packed = spectra(w)
    weight, input_ = fit(np.abs(packed).max(), weight_bits), Format(input_bits, input_bits - 1)
    spectrum = Format(spectrum_bits, min(fit(k, spectrum_bits).frac, input_.frac + exact))
    product = fit(2 * k * np.abs(packed).sum(1).max(), product_bits)
    product = Format(product_bits, min(product.frac, spectrum.frac + weight.frac + exact))
    output = fit(2 * np.abs(dense(w)).sum(1).max() + np.abs(b).max(), output_bits)
    return Product(weight.quantize(packed), bias=output.quantize(b), weight=weight, input=input_, spectrum=spectrum,
                   product=product, output=output, twiddle_bits=twiddle_bits), w, b


def errors(product, w, b, x):
    """|golden − mathematics| of each value."""
    return np.abs(product.output.real(product(x)) - (product.input.real(x) @ block_circulant(w).T + b))


def vectors(product, w, count, seed):
    """Adversaries: the signs along each row of the error's matrix; also deltas, waves, extremes, and random values."""
    rng, lo, hi, k = np.random.default_rng(seed), product.input.lo, product.input.hi, product.block_size
    off = matrix(product) - dense(w)
    n = product.columns
    t = np.arange(n)
    waves = [np.cos(2 * np.pi * f * t / k + phase) for f in range(k // 2 + 1) for phase in (0, 1)]
    return np.concatenate([
        np.where(off < 0, lo, hi), np.where(off < 0, hi, lo), np.eye(n, dtype=np.int64) * hi,
        np.rint(np.array(waves) * hi).astype(np.int64), rng.choice([lo, hi], (count, n)),
        rng.integers(lo, hi + 1, (count, n)), np.full((1, n), lo), np.full((1, n), hi), np.zeros((1, n), np.int64)])


@pytest.mark.parametrize("widths", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("k", SIZES)
def test_holds_and_is_not_loose(k, widths):
    product, w, b = make(2, 3, k, widths, k)
    bound, worst = product_error(product, w), errors(product, w, b, vectors(product, w, 500, k)).max()
    assert bound / 30 < worst <= bound


@pytest.mark.parametrize("k", [8, 64])
def test_holds_and_is_not_loose_for_many_blocks(k):
    product, w, b = make(1, 24, k, WIDTHS["coarse spectra"], k)
    bound, worst = product_error(product, w), errors(product, w, b, vectors(product, w, 100, k)).max()
    assert bound / 40 < worst <= bound  # That all roundings conspire gets rarer.


@repeatable(80)
@given(st.integers(1, 2), st.integers(1, 4), st.sampled_from(SIZES), st.integers(2, 18), st.integers(2, 20),
       st.integers(4, 26), st.integers(4, 34), st.integers(4, 24), st.integers(4, 20), st.integers(0, 3),
       st.integers(0, 2 ** 32))
def test_always_holds(p, q, k, weight, input_, spectrum, product, output, twiddle, exact, seed):
    try:
        made, w, b = make(p, q, k, widths=(weight, input_, spectrum, product, output, twiddle), seed=seed, exact=exact)
    except Refusal:
        return
    bound = product_error(made, w)
    assert errors(made, w, b, vectors(made, w, 20, seed)).max() <= bound * (1 + 1e-12) + 1e-12


@repeatable(20)
@given(st.sampled_from((8, 16)), st.sampled_from(list(WIDTHS.values())), st.integers(0, 2 ** 32))
def test_holds_for_a_stubborn_adversary(k, widths, seed):
    """Climbs uphill: changes values as long as the error grows."""
    product, w, b = make(1, 2, k, widths, seed)
    rng = np.random.default_rng(seed)
    x = vectors(product, w, 1, seed)
    x = x[errors(product, w, b, x).max(1).argmax()]
    worst = 0.0
    for _ in range(30):
        new = rng.integers(product.input.lo, product.input.hi + 1, (64, len(x)))
        tries = np.where(rng.random(new.shape) < 0.1, new, x)
        found = errors(product, w, b, tries).max(1)
        if found.max() > worst:
            worst, x = found.max(), tries[found.argmax()]
    assert worst <= product_error(product, w)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("k", [8, 16, 32, 64])
def test_roundings_of_the_transforms_alone(k, bits):
    """Against the same transforms of so large units that nothing is rounded."""
    x = np.random.default_rng(k).integers(-1000, 1000, (20000, k))
    scale, g = 1 << 4 * bits, bounds._gain(k, bits)

    def rounding(transform):
        return transform(x, bits) - x @ (transform(np.eye(k, dtype=object) * scale, bits) / scale).astype(np.float64)

    for worst, bound in ((np.abs(bins(rounding(fft.forward))).max(), bounds._forward_rounding(k, g)),
                         (np.abs(rounding(fft.inverse)).max(), bounds._inverse_rounding(k, g))):
        assert bound / 8 < worst <= bound


@pytest.mark.parametrize(("name", "step"), [("_forward_rounding", "input"), ("_inverse_rounding", "product")])
def test_roundings_of_the_transforms_are_part_of_it(name, step, monkeypatch):
    """They hide behind the other ones, too small to be seen in an example."""
    product, w, _ = make(1, 1, 16, WIDTHS["default"], 0)
    before = product_error(product, w)
    monkeypatch.setattr(bounds, name, lambda k, g: 1e6)
    assert product_error(product, w) > before + 1e5 / 16 * min(1.0, np.abs(w).sum()) * getattr(product, step).step


@pytest.mark.parametrize("k", SIZES)
def test_matrix_is_the_exact_one_where_nothing_is_rounded(k):
    """Spectra in float64 and many twiddle bits: the block-circulant matrix itself."""
    w = np.random.default_rng(k).normal(size=(2, 3, k))
    np.testing.assert_allclose(_matrix(np.fft.rfft(w), k, 40), block_circulant(w), rtol=0, atol=1e-11 * k)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_integers_that_are_exact_have_half_a_step_for_the_bias(k):
    weights = np.random.default_rng(k).integers(-8, 8, (2, 3, k)).astype(float)
    form = Format(20, 0)
    product = Product(spectra(weights).astype(np.int64), bias=np.zeros(2 * k, np.int64), weight=form, input=form,
                      spectrum=Format(24, 0),
                      product=Format(40, 0), output=Format(40, int(np.log2(k))), twiddle_bits=16)
    assert product_error(product, weights) == pytest.approx(0.5 * product.output.step, abs=1e-6)


@pytest.mark.parametrize("k", [1, 4, 16])
def test_grows_with_the_distance_of_the_weights(k):
    """A weight that is off by δ moves a result by up to δ·A."""
    product, w, _ = make(1, 1, k, WIDTHS["wide"], k)
    off = w.copy()
    off[0, 0, 0] += 0.25
    assert product_error(product, off) == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("k", [1, 4, 8, 32])
def test_holds_for_what_quantize_makes(k):
    """On calibration data, which saturates nothing, but for the rounding of the data itself."""
    model = samples.model(40, 64, 8, k=(k, 1, k), sequence=False)
    x = samples.data(model, count=200)
    network = quantize(model, x)
    layer, exact = network.layers[0], model.layers[0]
    integers = layer.input_format.quantize(x)
    golden = layer.output_format.real(layer(integers))
    assert np.abs(golden - exact(layer.input_format.real(integers))).max() <= product_error(layer.product, exact.weight)
