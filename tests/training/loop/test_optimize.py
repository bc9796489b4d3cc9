"""Optimizers and the course of the learning rate."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress, matrices
from circulant.training.loop.optimize import DECAYS, OPTIMIZERS, optimizer, schedule


def rates(decay: str, steps: int, warmup: int) -> list[float]:
    chosen = optimizer("sgd", nn.Linear(1, 1), 1.0, 0.0)
    course = schedule(chosen, decay, steps, warmup)
    found = []
    for _ in range(steps):
        found.append(chosen.param_groups[0]["lr"])
        chosen.step()
        course.step()
    return found


def test_decays():
    assert rates("none", 4, 0) == [1.0] * 4
    assert rates("cosine", 4, 0) == pytest.approx([1.0, 0.8536, 0.5, 0.1464], abs=1e-4)
    assert rates("step", 6, 0) == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    for name, decay in DECAYS.items():
        assert decay(0.0) == 1.0, name


def test_warm_up():
    assert rates("none", 6, 4) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_optimizers_descend(name):
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    for layer in model:
        nn.init.eye_(layer.weight)
        nn.init.ones_(layer.bias)
    chosen = optimizer(name, model, 0.05, 0.0)
    for _ in range(60):
        chosen.zero_grad()
        sum(weight.square().sum() for weight in model.parameters()).backward()
        chosen.step()
    assert max(float(weight.detach().abs().max()) for weight in model.parameters()) < 0.5


def test_weight_decay_of_adamw_is_apart_from_the_gradient():
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    model.weight.grad = torch.zeros(1, 1)
    optimizer("adamw", model, 0.1, 0.5).step()
    assert float(model.weight.detach()) == pytest.approx(1 - 0.1 * 0.5)


def layers() -> nn.Module:
    """Matrices with k = 4 and 1024 inputs, k = 16 and 9 · 32 inputs, k = 1 and 64 inputs; biases."""
    model = nn.Sequential(nn.Linear(1024, 64), nn.Conv2d(32, 32, 3), nn.Linear(64, 5))
    return compress(model, {"0": 4, "1": 16})


@pytest.mark.parametrize(("scaling", "factors"), [
    ("none", (1, 1, 1)), ("block", (2, 4, 1)), ("block-inputs", (2 * 256 / 1024, 4 * 256 / 288, 256 / 64))])
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_rates_fit_the_structure_of_each_matrix(name, scaling, factors):
    model = layers()
    chosen = optimizer(name, model, 0.5, 0.25, scaling)
    course = schedule(chosen, "cosine", 2, 0)
    rates = {id(parameter): group["lr"] for group in chosen.param_groups for parameter in group["params"]}
    found = [rates[id(matrix.first if k > 1 else matrix.weight)] for matrix, k in zip(
        matrices(model).values(), (4, 16, 1), strict=True)]
    assert found == pytest.approx([0.5 * factor for factor in factors])
    assert {rates[id(module.bias)] for module in model} == {0.5}, "what is no matrix has the rate itself"
    assert len(rates) == len(list(model.parameters())) and all(
        group["weight_decay"] == 0.25 for group in chosen.param_groups)
    before = [group["lr"] for group in chosen.param_groups]
    chosen.step()
    course.step()
    assert [group["lr"] for group in chosen.param_groups] == pytest.approx([0.5 * rate for rate in before])


def test_one_rate_is_one_group():
    dense = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    assert len(optimizer("adam", layers(), 0.1, 0.0).param_groups) == 1
    assert len(optimizer("adam", dense, 0.1, 0.0, "block").param_groups) == 1, "a dense model has no blocks"


def test_unknown_names():
    with pytest.raises(Refusal, match=r"^An optimizer must be one of 'adam', 'adamw', 'muon', 'sgd', not 'adm'; did"):
        optimizer("adm", nn.Linear(1, 1), 1.0, 0.0)
    with pytest.raises(Refusal, match=r"^A decay must be one of 'cosine', 'step', 'none', not 'cosin'; did you mean"):
        schedule(torch.optim.SGD([torch.zeros(1)], 1.0), "cosin", 1, 0)
