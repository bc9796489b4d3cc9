"""Copies of parametrized models are whole and independent."""
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.blocks.constraint import block_sizes, compress
from circulant.training.models.models import ModelSettings, build


def independent(model, twin, x):
    """Two equal models, of which neither follows the other."""
    before = model(x).detach()
    assert torch.equal(twin(x), before)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2)
    with parametrize.cached():
        assert torch.equal(model(x), before), "the original must not follow the copy"
        assert not torch.allclose(twin(x), before), "the copy must not read the original's cached weights"


def test_clone_after_a_training_step_is_independent():
    small = compress(build(ModelSettings(hidden=16), 8, 10), 8)
    x = torch.rand(4, 5, 8)
    small(x).sum().backward()
    twin = clone(small)
    independent(small, twin, x)
    compress(twin, {"gru": 1, "linear": 1})
    assert block_sizes(twin)["linear.weight"] == 8, "dropping the constraint of a copy must not drop the original's"


@pytest.fixture(params=["gru", "lstm", "reset_gru", "mlp"])
def stepped(request):
    """A compressed model after a step of training, and an input of it."""
    shape = (16,) if request.param == "mlp" else (5, 8)
    model = compress(build(ModelSettings(kind=request.param, hidden=16), shape, 10), 8)
    x = torch.rand(4, *shape)
    with parametrize.cached():
        model(x).sum().backward()
    model(x)
    return model, x


def test_deepcopy_after_a_forward_pass_is_independent(stepped):
    model, x = stepped
    twin = deepcopy(model)
    assert block_sizes(twin) == block_sizes(model)
    independent(model, twin, x)
    assert torch.equal(deepcopy(deepcopy(twin))(x), twin(x)), "copies can be copied"


def test_an_averaged_model_follows(stepped):
    """Exponential moving averages (EMA) and SWA start from a deep copy."""
    model, x = stepped
    averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
    averaged.update_parameters(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    averaged.update_parameters(model)
    for mean, now in zip(averaged.module.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(mean, now - 0.5)
    assert not torch.allclose(averaged(x), model(x))


def test_an_optimizer_that_is_copied_along_trains_the_copy(stepped):
    model, x = stepped
    twin, optimizer = deepcopy((model, torch.optim.SGD(model.parameters(), lr=0.1)))
    before, mine = twin(x).detach(), model(x).detach()
    twin(x).square().sum().backward()
    optimizer.step()
    assert not torch.allclose(twin(x), before)
    assert torch.equal(model(x), mine)


def test_clone_keeps_other_parametrizations():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    x = torch.rand(2, 4)
    twin = clone(model)
    assert torch.equal(twin(x), model(x))
    assert set(twin.state_dict()) == set(model.state_dict())


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
def test_a_weight_that_a_hook_computes_is_refused():
    with pytest.raises(Refusal, match=r"^The tensors of a module must be parameters or buffers, but 0\.weight is "
                                      r"computed, as by .*; use that of torch\.nn\.utils\.parametrizations, or keep"):
        clone(nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(3, 3))))
