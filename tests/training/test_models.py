"""Models by name: shapes, seeded initial weights, refusals."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.models import MODELS, ModelSettings, SequenceClassifier, build


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("layers", [1, 2])
def test_build(kind, layers):
    model = build(ModelSettings(kind, hidden=16, layers=layers), inputs=8, classes=10)
    assert model(torch.zeros(3, 5, 8)).shape == (3, 10)


def test_classifier_takes_the_last_step():
    torch.manual_seed(0)
    model = SequenceClassifier(4, 8, 3)
    x = torch.rand(2, 5, 4)
    steps, _ = model.gru(x)
    assert torch.equal(model(x), model.linear(steps[:, 4]))
    assert type(model.gru) is nn.GRU


def test_the_seed_chooses_the_weights_and_nothing_else():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = (build(ModelSettings(), 8, 10, seed=seed).gru.weight_hh_l0 for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.rand(3), wanted), "the global random state must stay as it was"


@pytest.mark.parametrize(("settings", "message"), [
    ({"kind": "gruu"}, r"^A model must be one of 'gru', not 'gruu'; did you mean 'gru'\?$"),
    ({"hidden": 0}, r"^Field 'hidden' of a model must be a positive integer, not 0"),
    ({"layers": 1.5}, r"^Field 'layers' of a model must be a positive integer, not 1\.5"),
])
def test_settings_wrong(settings, message):
    with pytest.raises(Refusal, match=message):
        ModelSettings(**settings)


def test_unknown_cell():
    with pytest.raises(Refusal, match=r"^A cell must be one of 'gru', not 'elman'$"):
        SequenceClassifier(8, 8, 2, cell="elman")
