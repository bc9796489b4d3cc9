"""Learned block sizes: the gates' gradient by its definition, the bound, the choice, state, refusals."""
import itertools

import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import BlockCirculant, compress
from circulant.training.blocks.paths import Paths, cheapest, numbers


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


def step(paths, model, seed=0):
    """A backward pass through the sampled paths, and the update of α."""
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(seed))
    with torch.nn.utils.parametrize.cached():
        loss = model(x).square().mean()
    loss.backward()
    paths.update()
    return float(loss.detach())


def test_numbers_are_those_of_first_columns():
    assert numbers(network()) == {"0": {1: 256, 2: 128, 4: 64, 8: 32, 16: 16},
                                  "2": {1: 64, 2: 32, 4: 16, 8: 16, 16: 16}}


def test_a_sampled_path_is_the_projection_of_the_weight():
    model = network()
    weight = model[0].weight.detach().clone()
    paths = Paths(model, 4)
    for at, k in enumerate(paths.costs["0"]):
        paths._settle({"0": at, "2": 0})
        expected = BlockCirculant(16, 16, k).project(weight)
        assert torch.allclose(model[0].weight, expected), k
    paths.remove()
    assert torch.equal(model[0].weight, weight) and type(model[0]) is nn.Linear


def test_the_gradient_of_a_gate_is_the_slope_of_the_loss_along_its_path():
    """∂L/∂g_j of Σ_j g_j Π_j(W) by finite differences in float64; α moves by Σ_j ∂L/∂g_j · p_j (δ_ij - p_i)."""
    model = network().double()
    weight = model[0].weight.detach().clone()
    x = torch.randn(8, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    paths = Paths(model, {"0": 4}, batches=0)
    paths._settle({"0": 2})
    model(x).square().mean().backward()
    sets = [BlockCirculant(16, 16, k) for k in paths.costs["0"]]
    slopes = []
    plain = network().double()
    for each in sets:
        losses = []
        for gate in (-1e-5, 1e-5):
            with torch.no_grad():
                plain[0].weight.copy_(sets[2].project(weight) + gate * each.project(weight))
                losses.append(float(plain(x).square().mean()))
        slopes.append((losses[1] - losses[0]) / 2e-5)
    alpha = paths._alpha["0"]
    gradient, = torch.autograd.grad(paths._gates(), alpha)
    p = torch.full((5,), 0.2, dtype=torch.float64)
    slopes = torch.tensor(slopes, dtype=torch.float64)
    assert torch.allclose(gradient, p * (slopes - p @ slopes), rtol=1e-4, atol=1e-9)


def test_the_expected_cost_comes_down_to_its_bound():
    model = network()
    paths = Paths(model, 8, batches=150, seed=1)
    assert paths.bound == 32 + 16
    before = float(paths.expected().detach())
    for seed in range(150):
        step(paths, model, seed)
        model.zero_grad()
    after = float(paths.expected().detach())
    assert before > 2 * paths.bound and after < 1.2 * paths.bound
    assert sum(paths.costs[module][k] for module, k in paths.table.items()) <= paths.bound
    assert all(sum(each.values()) == pytest.approx(1) for each in paths.probabilities().values())


def test_every_path_is_as_likely_before_the_weights_are_warm():
    model = network()
    paths = Paths(model, 8, batches=40)
    for seed in range(10):
        step(paths, model, seed)
    assert all(p == pytest.approx(1 / len(each)) for each in paths.probabilities().values() for p in each.values())
    step(paths, model)
    assert any(p != pytest.approx(1 / len(each)) for each in paths.probabilities().values() for p in each.values())


def test_costs_as_data_choose_what_they_make_cheap():
    costs = {"0": {1: 100, 4: 10, 16: 10}, "2": {1: 5, 4: 9}}
    paths = Paths(network(), 4, costs=costs, share=0.8)
    assert paths.costs == costs and paths.bound == pytest.approx(0.8 * 19)
    assert paths.table["2"] == 1, "no other choice is within the bound"


def test_the_table_is_the_best_of_all_choices_within_the_bound():
    generator = torch.Generator().manual_seed(3)
    draw = lambda: {k: float(torch.rand((), generator=generator)) for k in (1, 2, 4, 8)}  # noqa: E731
    costs, worth = {n: draw() for n in "abc"}, {n: draw() for n in "abc"}
    every = [dict(zip("abc", choice, strict=True)) for choice in itertools.product((1, 2, 4, 8), repeat=3)]
    for bound in (0.9, 1.5, 2.5):
        legal = [each for each in every if sum(costs[n][k] for n, k in each.items()) <= bound]
        best = max(legal, key=lambda each: sum(worth[n][k] for n, k in each.items()))
        assert cheapest(costs, worth, bound) == best


def test_state():
    """A search that goes on from its state takes the steps of one that was never stopped."""
    models = [network(), network()]
    one = Paths(models[0], 4, batches=8)
    for seed in range(4):
        step(one, models[0], seed)
    two = Paths(models[1], 4, batches=8)
    two.load_state_dict(one.state_dict())
    for seed in range(4, 8):
        assert step(one, models[0], seed) == step(two, models[1], seed)
    assert one.probabilities() == two.probabilities()


@pytest.mark.parametrize(("arguments", "words"), [
    ({"share": 0.01}, "A search must have a limit that some block sizes keep, but all cost at least 32, and the limit "
                      "is 1; raise training.search_share"),
    ({"costs": {"0": {4: 1}}}, "A search must know the cost of the block size that sets its bound, but there is none "
                               "for 2 with k = 4"),
])
def test_what_is_refused(arguments, words):
    with pytest.raises(Refusal, match=words):
        Paths(network(), 4, **arguments)


def test_a_parametrized_weight_is_refused():
    with pytest.raises(Refusal, match=r"0\.weight: a search must start from a dense weight"):
        Paths(compress(network(), {"0": 4}), {"0": 4})
