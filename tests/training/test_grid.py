import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.sim import reference as sim_reference
from circulant.sim.fixed import Format
from circulant.sim.quantize import matrices as golden_matrices
from circulant.sim.quantize import quantize
from circulant.sim.refusal import Refusal
from circulant.training.constraint import compress
from circulant.training.export import reference
from circulant.training.fixed import integers
from circulant.training.grid import Grid, golden_paths, gridded, on_grid, settled
from circulant.training.matrices import matrices
from circulant.training.models import ModelSettings, build


@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_projection_is_the_nearest_member_of_the_joint_set(k):
    """No neighbour on the grid, a step away in any coordinate of the spectrum, is nearer, where blocks are whole."""
    torch.manual_seed(0)
    grid = Grid(2 * k, k, k, form=Format(5, 1))
    dense = torch.randn(2 * k, k, dtype=torch.float64) * 3
    first = on_grid(grid.right_inverse(dense), grid.form)
    assert torch.allclose(grid.project(dense), super(Grid, grid).forward(first))
    best = (dense - super(Grid, grid).forward(first)).norm()
    spectra = sim_reference.spectra(first.numpy())
    assert np.allclose(spectra * 2, np.round(spectra * 2), atol=1e-9), "every number of the spectrum is on the grid"
    half = torch.fft.rfft(first)
    for index in np.ndindex(*half.shape):
        for step in (0.5, -0.5, *((0.5j, -0.5j) if 0 < index[-1] < k / 2 else ())):
            other = half.clone()
            other[index] += step
            neighbour = torch.fft.irfft(other, n=k) if k > 1 else other.real
            assert (dense - super(Grid, grid).forward(neighbour)).norm() >= best - 1e-9


@pytest.fixture(params=["gru", "lstm", "bidirectional", "two"])
def trained(request):
    options = {"gru": {}, "lstm": {"kind": "lstm", "projection": 6, "peephole": True}, "bidirectional": {
        "bidirectional": True}, "two": {"layers": 2, "kind": "reset_gru"}}[request.param]
    model = build(ModelSettings(**{"kind": "gru", "hidden": 8, **options}), (5, 6), 3, seed=1)
    return compress(model, {name: 4 for name, _ in model.named_children() if name != "head"})


def test_what_was_trained_is_what_the_golden_model_stores(trained):
    x = np.random.default_rng(0).normal(size=(20, 5, 6)).astype(np.float32)
    first = reference(trained, x)
    network = quantize(first, x, weight_bits=5)
    forms = {path: each.weight for layer in network.layers for path, each in golden_matrices(layer).items()}
    paths = golden_paths(trained, network)
    assert sorted(paths.values()) == sorted(forms)
    with torch.no_grad():
        tuned = gridded(trained, {name: forms[path] for name, path in paths.items()})
        for parameter in tuned.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.05)
        with parametrize.cached():
            inside = tuned(torch.from_numpy(x))
        kept = settled(tuned)
        assert torch.allclose(kept(torch.from_numpy(x)), inside, atol=1e-5), "the grid computes what is kept"
    after = quantize(reference(kept, x), x, weight_bits=5, grids=forms)
    stored = {path: _stored(layer, path) for layer in after.layers for path in golden_matrices(layer)}
    for name, path in paths.items():
        matrix = matrices(tuned)[name]
        first = matrix.module.parametrizations[matrix.tensor].original.detach().double().numpy()
        trained_on = integers(torch.from_numpy(sim_reference.spectra(first)), forms[path]).numpy()
        assert np.array_equal(stored[path], trained_on.reshape(stored[path].shape)), path


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
    network = quantize(sim_reference.Model("m", 4, False, (sim_reference.Linear(
        "linear_0", 4, 4, np.ones((4, 4, 1)), np.zeros(4)),)), np.ones((2, 4)))
    with pytest.raises(Refusal, match=r"^A model must have no batch normalisation"):
        golden_paths(model, network)
    assert golden_paths(nn.Sequential(nn.Linear(4, 4)), network) == {"0.weight": "linear_0.product"}
    with pytest.raises(Refusal, match=r"linear_0\.product does not"):
        golden_paths(nn.Sequential(nn.ReLU()), network)
