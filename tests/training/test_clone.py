"""Copies of parametrized models are whole and independent."""
import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.training.clone import clone
from circulant.training.constraint import block_sizes, compress
from circulant.training.models import ModelSettings, build


def test_clone_after_a_training_step_is_independent():
    small = compress(build(ModelSettings(hidden=16), 8, 10), 8)
    x = torch.rand(4, 5, 8)
    small(x).sum().backward()
    before = small(x).detach()
    twin = clone(small)
    assert torch.equal(twin(x), before)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2)
    with parametrize.cached():
        assert torch.equal(small(x), before), "the original must not follow the copy"
        assert not torch.allclose(twin(x), before), "the copy must not read the original's cached weights"
    compress(twin, {"gru": 1, "linear": 1})
    assert block_sizes(twin)["linear.weight"] == 8, "dropping the constraint of a copy must not drop the original's"


def test_clone_keeps_other_parametrizations():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    x = torch.rand(2, 4)
    twin = clone(model)
    assert torch.equal(twin(x), model(x))
    assert set(twin.state_dict()) == set(model.state_dict())
