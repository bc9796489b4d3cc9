import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.passes.bases import matrices
from circulant.sim.passes.bitwidths import RULES, Widths
from circulant.sim.passes.formats import Peaks, fit_least, fit_rows
from circulant.sim.passes.products import spectra
from circulant.sim.quantize.quantize import calibrate, grids, quantize
from circulant.sim.refusal import Refusal
from tests.sim import samples

MODEL = samples.model(9, 14, 5, k=(4, 4, 2))


def test_the_longer_name_wins():
    bits = Widths(weight_bits=11, tensors={"gru.recurrent_product.weight_bits": 7, "gru.weight_bits": 8,
                                           "gru.state_bits": 10})
    assert [bits.of(path).weight_bits for path in ("last", "gru", "gru.input_product", "gru.recurrent_product")] == [
        11, 8, 8, 7]
    assert (bits.of("gru").state, bits.of("grub").state) == (10, 16)


def test_what_is_not_given_follows_from_the_activations():
    bits = Widths(activation_bits=12)
    assert (bits.input, bits.output, bits.state, bits.cell, bits.spectrum, bits.product) == (12, 12, 12, 12, 13, 20)


@pytest.mark.parametrize(("fields", "message"), [
    ({"state_bits": 3}, r"^state_bits must be from 4 to 24, not 3;"),
    ({"weight_bits": 33}, r"^weight_bits must be from 2 to 18, not 33;"),
    ({"output_clip": 9}, r"^output_clip must be from 0 to 8, not 9;"),
    ({"segments": 2}, r"^The segments of an activation must be a number from 3 to 1024, or 0"),
    ({"tensors": {"gru.weight_bits": 1}}, r"^gru\.weight_bits must be from 2 to 18, not 1;"),
    ({"tensors": {"gru.weigth_bits": 8}}, r"^A width must be named LAYER\.FIELD .*, not 'gru\.weigth_bits'"),
    ({"tensors": {"weight_bits": 8}}, r"^A width must be named LAYER\.FIELD .*, not 'weight_bits'"),
])
def test_wrong_widths(fields, message):
    with pytest.raises(Refusal, match=message):
        Widths(**fields)


@pytest.mark.parametrize("name", RULES)
def test_nothing_is_wider_than_32_bits(name):
    assert RULES[name][1] <= 32
    for given in ({name: 33}, {"tensors": {f"gru.{name}": 33}}):
        with pytest.raises(Refusal, match=rf"^\S*{name} must be from \d+ to \d+, not 33; choose a width in that "):
            Widths(**given)


def test_a_network_has_the_widths_of_its_names():
    x = samples.data(MODEL)
    network = quantize(MODEL, calibrate(MODEL, x), tensors={
        "gru.weight_bits": 9, "gru.recurrent_product.weight_bits": 7, "gru.output_bits": 13, "last.output_bits": 11,
        "last.spectrum_bits": 12, "gru.state_bits": 10, "last.twiddle_bits": 5}, input_bits=8)
    gru, last = network.layers
    assert {path: product.weight.width for path, product in matrices(gru).items()} == {
        "gru.input_product": 9, "gru.recurrent_product": 7}
    assert gru.products["candidate_recurrent"].weight.width == 7
    assert (gru.input_format.width, gru.pre_format.width, gru.output_format) == (8, 13, Format(10, 9))
    assert (last.product.spectrum.width, last.product.twiddle_bits, last.output_format.width) == (12, 5, 11)
    assert np.array_equal(network.run(x).integers, network.run(x, trace=True).integers)


@pytest.mark.parametrize("path", ["grus", "gru.candidate_input", "gru.product"])
def test_a_width_of_nothing(path):
    with pytest.raises(Refusal, match=rf"not to '{path}'.*there are gru, gru\.input_product, gru\.recurrent_product, "
                                      r"last, last\.product"):
        quantize(MODEL, samples.data(MODEL), tensors={f"{path}.weight_bits": 8})


def test_clipped_formats_have_the_bits_behind_the_point():
    x = samples.data(MODEL)
    plain, clipped = (quantize(MODEL, x, product_bits=12, tensors={"gru.product_clip": clip}).layers[0].gates.parts[0]
                      for clip in (0, 2))
    assert clipped.product == Format(12, plain.product.frac + 2)


def test_weights_lose_the_least_in_squares():
    values = np.concatenate([np.random.default_rng(0).normal(size=2000), [9.0]])
    form = fit_least(values, 4)
    errors = {frac: np.square(Format(4, frac).real(Format(4, frac).quantize(values)) - values).sum()
              for frac in range(-4, 8)}
    assert form.frac == min(errors, key=errors.get), "one outlier may saturate"
    assert fit_least(values, 16).frac == 11, "with many bits nothing saturates"


@pytest.mark.parametrize("reset", ["after", "before"])
def test_weights_that_are_on_a_grid_stay_on_it(reset):
    model = samples.model(9, 14, 5, k=(4, 4, 2), reset=reset)
    x = samples.data(model)
    grids = {name: WeightGrid(Format(*form)) for name, form in (
        ("gru.input_product", (6, 5)), ("gru.recurrent_product", (8, 3)), ("last.product", (5, 1)))}
    network = quantize(model, x, grids=grids)
    assert {path: product.grid for layer in network.layers for path, product in matrices(layer).items()} == grids


def test_tensors_that_are_never_exercised():
    x = samples.data(MODEL)
    assert Peaks(MODEL, {MODEL.entry.name: x}).never == []
    assert "input" in calibrate(MODEL, 0 * x).never
    first = calibrate(MODEL, x[:, :1]).never
    assert "gru.recurrent_product.spectrum" in first, "a single step never multiplies by a state"


def test_block_rows_have_the_binary_points_in_which_they_lose_least():
    """Rows apart by powers of two take the shifts; a row of zeros takes none."""
    row = np.random.default_rng(0).normal(0, 1, (1, 3, 4))
    spectra = np.concatenate([row, row / 8, row / 2, 0 * row])
    (grid,) = fit_rows([(spectra, WeightGrid(fit_least(spectra, 4)))])
    assert grid.row_shifts == (0, 3, 1, 0)
    assert np.array_equal(grid.quantize(spectra)[0], grid.quantize(spectra)[1])
    coarse, (first, second) = WeightGrid(fit_least(spectra, 4)), fit_rows(
        [(spectra, WeightGrid(fit_least(spectra, 4))), (spectra[:, :1], WeightGrid(fit_least(spectra, 6)))])
    assert first.row_shifts == second.row_shifts, "rows that are added up have one shift"
    lost = [np.square(each.real(each.quantize(spectra)) - spectra).sum() for each in (coarse, grid)]
    assert lost[1] < 0.6 * lost[0]


def test_a_network_takes_a_scale_for_each_row():
    """Its weights are nearer; both matrices of a GRU have the shifts of all its gates."""
    model, x = samples.model(9, 14, 5, k=(4, 4, 2)), np.random.default_rng(1).normal(0, 1, (30, 6, 9))
    model.layers[0].weight_ih[1] /= 8  # A gate with small weights, and its two matrices.
    model.layers[0].weight_hh[1] /= 8
    exact = {"gru.input_product": model.layers[0].weight_ih, "gru.recurrent_product": model.layers[0].weight_hh}
    lost = {}
    for scale in ("matrix", "row"):
        network = quantize(model, x, weight_bits=4, weight_scale=scale)
        found = grids(network)
        lost[scale] = sum(np.square(found[path].real(found[path].quantize(seen)) - seen).sum() for path, seen in (
            (path, spectra(weight).reshape(-1, *weight.shape[-2:])) for path, weight in exact.items()))
    x_shifts, h_shifts = (found[path].row_shifts for path in exact)
    assert x_shifts == h_shifts and len(x_shifts) == 3 * 4
    assert min(x_shifts[4:8]) > max(x_shifts[:4] + x_shifts[8:]), "the small gate is finer"
    assert lost["row"] < lost["matrix"]


def test_another_scale_is_refused():
    with pytest.raises(Refusal, match=r"^weight_scale must be matrix or row, not 'rows'; did you mean 'row'\?$"):
        Widths(weight_scale="rows")
