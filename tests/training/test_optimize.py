"""Optimizers and the course of the learning rate."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.optimize import DECAYS, OPTIMIZERS, optimizer, schedule


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


def test_unknown_names():
    with pytest.raises(Refusal, match=r"^An optimizer must be one of 'adam', 'adamw', 'muon', 'sgd', not 'adm'; did"):
        optimizer("adm", nn.Linear(1, 1), 1.0, 0.0)
    with pytest.raises(Refusal, match=r"^A decay must be one of 'cosine', 'step', 'none', not 'cosin'; did you mean"):
        schedule(torch.optim.SGD([torch.zeros(1)], 1.0), "cosin", 1, 0)
