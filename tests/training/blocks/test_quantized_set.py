import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrize

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.passes.bases import matrices as golden_matrices
from circulant.sim.passes.bounds import distances, roundings
from circulant.sim.passes.products import spectra
from circulant.sim.quantize.quantize import grids, quantize
from circulant.sim.real import float_model as sim_reference
from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress
from circulant.training.blocks.fixed import integers, quantized
from circulant.training.blocks.matrices import matrices
from circulant.training.blocks.quantized_set import (
    QuantizedSet,
    constrain_to_quantized,
    flipped,
    golden_paths,
    nearest_quantized,
    settled,
)
from circulant.training.conversion import reference
from circulant.training.models.models import ModelSettings, build
from circulant.training.models.scans import DiagonalRecurrence, MinGru
from tests.modules import Net
from tests.sim.definitions import repeatable

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4))
SEEDS = st.integers(0, 2 ** 32)


@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_projection_is_the_nearest_member_of_the_joint_set(k):
    """No neighbour on the grid, a step away in any coordinate of the spectrum, is nearer, where blocks are whole."""
    torch.manual_seed(0)
    grid = QuantizedSet(2 * k, k, k, grid=WeightGrid(Format(5, 1)))
    dense = torch.randn(2 * k, k, dtype=torch.float64) * 3
    first = nearest_quantized(grid.right_inverse(dense), grid.grid)
    assert torch.allclose(grid.project(dense), super(QuantizedSet, grid).forward(first))
    best = (dense - super(QuantizedSet, grid).forward(first)).norm()
    found = spectra(first.numpy())
    assert np.allclose(found * 2, np.round(found * 2), atol=1e-9), "every number of the spectrum is on the grid"
    half = torch.fft.rfft(first)
    for index in np.ndindex(*half.shape):
        for step in (0.5, -0.5, *((0.5j, -0.5j) if 0 < index[-1] < k / 2 else ())):
            other = half.clone()
            other[index] += step
            neighbour = torch.fft.irfft(other, n=k) if k > 1 else other.real
            assert (dense - super(QuantizedSet, grid).forward(neighbour)).norm() >= best - 1e-9


@pytest.fixture(params=["gru", "lstm", "bidirectional", "two", "scans"])
def trained(request):
    if request.param == "scans":
        torch.manual_seed(1)
        model = Net(lambda m, x: m.head(m.rms(m.diagonal(m.norm(m.cell(x)))).mean(1)), cell=MinGru(6, 8),
                    norm=nn.LayerNorm(8), diagonal=DiagonalRecurrence(8), rms=nn.RMSNorm(8), head=nn.Linear(8, 3))
        return compress(model, {"cell": 4})
    options = {"gru": {}, "lstm": {"kind": "lstm", "projection": 6, "peephole": True}, "bidirectional": {
        "bidirectional": True}, "two": {"layers": 2, "kind": "reset_gru"}}[request.param]
    model = build(ModelSettings(**{"kind": "gru", "hidden": 8, **options}), (5, 6), 3, seed=1)
    return compress(model, {name: 4 for name, _ in model.named_children() if name != "head"})


@pytest.mark.parametrize("scale", ["matrix", "row"])
def test_what_was_trained_is_what_the_golden_model_stores(scale, trained):
    x = np.random.default_rng(0).normal(size=(20, 5, 6)).astype(np.float32)
    first = reference(trained, x)
    network = quantize(first, x, weight_bits=5, weight_scale=scale)
    forms = grids(network)
    assert any(grid.row_shifts for grid in forms.values()) == (scale == "row")
    paths = golden_paths(trained, network)
    assert sorted(paths.values()) == sorted(forms)
    with torch.no_grad():
        tuned = constrain_to_quantized(trained, {name: forms[path] for name, path in paths.items()})
        for parameter in tuned.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.05)
        with parametrize.cached():
            inside = tuned(torch.from_numpy(x))
        kept = settled(tuned)
        assert torch.allclose(kept(torch.from_numpy(x)), inside, atol=1e-5), "the grid computes what is kept"
    after = quantize(reference(kept, x), x, weight_bits=5, weight_scale=scale, grids=forms)
    assert grids(after) == forms
    stored = {path: _stored(layer, path) for layer in after.layers for path in golden_matrices(layer)}
    vectors = [name for name in paths if paths[name] not in stored]
    assert len(vectors) == len([layer for layer in after.layers if layer.kind in ("norm", "decay")])
    for name in vectors:
        layer = next(layer for layer in after.layers if paths[name].startswith(f"{layer.name}."))
        module, tensor = kept.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
        assert not torch.equal(getattr(module, tensor), trained.get_parameter(name))
        if layer.kind == "norm":
            wanted = getattr(module, tensor) * (1 if layer.centred else math.sqrt(layer.inputs))
            assert np.allclose(layer.factor.real(layer.gain), wanted.detach().numpy(), atol=1e-6)
        else:
            assert np.allclose(layer.factor.real(layer.factors), module.factors.detach().numpy(), atol=1e-6)
    for name, path in paths.items():
        if name in vectors:
            continue
        matrix = matrices(tuned)[name]
        first = matrix.module.parametrizations[matrix.tensor].original.detach().double().numpy()
        trained_on = forms[path].quantize(spectra(first).reshape(stored[path].shape))
        assert np.array_equal(stored[path], trained_on), path


def _stored(layer, path):
    """The integers of a golden matrix; a GRU keeps that of the candidate apart."""
    layers = layer.directions.values() if layer.kind == "bidirectional" else [layer]
    one, role = next(each for each in layers if path.startswith(f"{each.name}.")), path.rpartition(".")[2]
    roles = {"input_product": [role, "candidate_input"], "recurrent_product": [role, "candidate_recurrent"]}
    parts = [one.products[part] for part in roles.get(role, [role]) if part in one.products]
    assert all(part.weight == parts[0].weight for part in parts)
    return np.concatenate([part.weights for part in parts])


def test_a_normalisation_is_refused():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    network = quantize(sim_reference.Model.chain("m", 4, False, (FloatLinear(
        "linear_0", 4, 4, np.ones((4, 4, 1)), np.zeros(4)),)), np.ones((2, 4)))
    with pytest.raises(Refusal, match=r"^A model must have no batch normalisation"):
        golden_paths(model, network)
    assert golden_paths(nn.Sequential(nn.Linear(4, 4)), network) == {"0.weight": "linear_0.product"}
    with pytest.raises(Refusal, match=r"linear_0\.product does not"):
        golden_paths(nn.Sequential(nn.ReLU()), network)


def on_a_grid(k, p, q, width, loud, seed, dtype=torch.float64):
    """A matrix on the grid and its first columns, a few of whose spectra saturate; the format is near to them."""
    first = torch.from_numpy(np.random.default_rng(seed).normal(0, 1, (1, p, q, k))).to(dtype)
    peak = float(np.abs(spectra(first.double().numpy())).max())
    form = Format(width, width - 1 - int(np.ceil(np.log2(peak))) + loud)
    shifts = tuple(range(p)) if seed % 2 else ()
    return QuantizedSet(p * k, q * k, k, grid=WeightGrid(form, shifts)), first


@repeatable(80)
@given(st.sampled_from([1, 2, 4, 8, 16, 32, 64]), SIZES, st.integers(2, 18), st.integers(0, 2), SEEDS,
       st.sampled_from([torch.float32, torch.float64]))
def test_torch_trains_the_integers_that_numpy_stores(k, size, width, loud, seed, dtype):
    """Before and after training, also when the weights went through float32."""
    grid, first = on_a_grid(k, *size, width, loud, seed, dtype)
    wanted = grid.grid.quantize(spectra(first.double().numpy()))
    with torch.no_grad():
        kept = grid.settled(first)
    assert kept.dtype == dtype
    assert np.array_equal(grid.grid.quantize(spectra(kept.double().numpy())), wanted)
    assert np.allclose(spectra(kept.double().numpy()), grid.grid.real(wanted), rtol=0,
                       atol=grid.grid.form.step * 2 ** width * k * torch.finfo(dtype).eps)


@repeatable(100)
@given(st.sampled_from([1, 2, 4]), SIZES, st.integers(2, 14), st.integers(0, 1), st.integers(2, 14),
       st.integers(-3, 14), st.integers(3, 24), st.integers(-8, 14), SEEDS)
# A sum of exactly a half.
@example(k=4, size=(2, 2), width=2, loud=1, x_width=2, x_frac=0, y_width=3, y_frac=1, seed=2)
def test_a_product_of_small_blocks_is_the_golden_one(k, size, width, loud, x_width, x_frac, y_width, y_frac, seed):
    """Their transforms only add, so that torch in float64 gives the golden integers, halves and saturation among them.
    """
    (p, q), input, output = size, Format(x_width, x_frac), Format(y_width, y_frac)
    grid, first = on_a_grid(k, p, q, width=width, loud=loud, seed=seed)
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
    """Their twiddle factors are rounded in the golden model: the integers differ as far as `sim.passes.bounds` says."""
    (p, q), input = size, Format(x_width, x_frac)
    grid, first = on_a_grid(k, p, q, width=width, loud=loud, seed=seed)
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
    weights = grid.grid.quantize(spectra(first[0].double().numpy()))
    k, q = grid.block_size, weights.shape[1]
    spectrum = Format(input.width + int(np.log2(k)) + 1, input.frac)
    sums = Format(min(44, spectrum.width + grid.grid.form.width + q.bit_length() + 1), input.frac + grid.grid.form.frac)
    made = Product(weights, bias=np.zeros(grid.rows, np.int64), weight=grid.grid.form, input=input, spectrum=spectrum,
                   product=sums, output=output, twiddle_bits=twiddle, row_shifts=grid.grid.row_shifts)
    assert made.reach <= sums.hi, "no sum saturates"
    return made


def test_flipped_bits_are_those_of_the_circuit_s_words():
    torch.manual_seed(0)
    form, numbers = Format(6, 5), torch.arange(-32, 32).repeat(2000)
    found = flipped(numbers, form, 0.05)
    assert found.min() >= form.lo and found.max() <= form.hi
    differ = (numbers & 63) ^ (found & 63)
    rates = [((differ >> bit) & 1).double().mean().item() for bit in range(6)]
    assert np.allclose(rates, 0.05, atol=0.004), "each bit, the sign too, is as likely"
    assert flipped(numbers, form, 0.0) is numbers
    assert torch.equal(flipped(numbers, form, 1.0), -1 - numbers), "all bits"


def test_noise_is_in_training_alone_and_the_gradient_passes_it():
    torch.manual_seed(0)
    grid = QuantizedSet(8, 8, 4, grid=WeightGrid(Format(8, 6)), noise=0.1)
    first = torch.randn(grid.shape, requires_grad=True)
    one, other = grid(first), grid(first)
    assert not torch.equal(one, other), "each pass has faults of its own"
    grid(first).sum().backward()
    assert torch.allclose(first.grad, torch.full_like(first, 4.0)), "the gradient is that of the first columns"
    grid.eval()
    assert torch.equal(grid(first), grid(first))
    clean = QuantizedSet(8, 8, 4, grid=grid.grid)
    assert torch.equal(grid(first), clean(first))


def test_what_is_settled_has_no_noise():
    model = compress(nn.Sequential(nn.Linear(8, 8)), 4)
    form = {"0.weight": WeightGrid(Format(8, 7))}
    noisy = constrain_to_quantized(model, form, noise=0.3).train()
    clean = constrain_to_quantized(model, form)
    assert torch.equal(settled(noisy)[0].weight, settled(clean)[0].weight)
