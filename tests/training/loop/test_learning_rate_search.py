"""Short trainings at several rates: what each starts from, what is measured, what becomes of one too large."""
import dataclasses

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from circulant.sim.refusal import Refusal
from circulant.training import data as datasets
from circulant.training.blocks.constraint import initialise
from circulant.training.loop.learning_rate_search import find_rate, try_rates
from circulant.training.loop.train import train
from circulant.training.models.models import ModelSettings, build
from circulant.training.settings.training import TrainingSettings

MODEL = ModelSettings(hidden=8, layers=2, dropout=0.5)
DIRECT = TrainingSettings(method="direct", dense_epochs=1, direct_epochs=50, seed=3)


@pytest.fixture(scope="module")
def data() -> datasets.Dataset:
    return datasets.load_data("digits", subset=200, held_out=40)


def test_each_rate_is_a_short_training_of_its_own(data):
    both = try_rates(data, DIRECT, (0.001, 0.02), model=MODEL, block_size=4, epochs=2)
    assert [each.rate for each in both] == [0.001, 0.02]
    assert try_rates(data, DIRECT, (0.02,), model=MODEL, block_size=4, epochs=2) == both[1:]
    alone = train(data, dataclasses.replace(DIRECT, direct_epochs=2, learning_rate=0.02), model=MODEL, block_size=4,
                  dense=train(data, DIRECT, model=MODEL, block_size=4).dense)
    with torch.no_grad():
        outputs = alone.model.eval()(torch.from_numpy(data.test_x))
    assert both[1].loss == pytest.approx(cross_entropy(outputs, torch.from_numpy(data.test_y).long()).item(), rel=1e-5)
    assert both[1].score == alone.scores["circulant"]


def test_a_search_of_block_sizes_is_refused(data):
    with pytest.raises(Refusal, match="'admm' or 'direct', not with 'search'"):
        try_rates(data, dataclasses.replace(DIRECT, method="search"), (0.001,), model=MODEL, block_size=4)


def test_the_dense_baseline_is_trained_once_and_where_it_is_needed(data):
    seen = []

    def phases(settings, **options):
        seen.clear()
        try_rates(data, settings, (0.01, 0.02), model=MODEL, block_size=4, epochs=1,
                  progress=lambda phase, *rest: seen.append(phase), **options)
        return seen

    assert phases(DIRECT) == ["dense", "direct", "direct"]
    assert phases(dataclasses.replace(DIRECT, start="projected")) == ["direct", "direct"]
    assert phases(dataclasses.replace(DIRECT, start="projected", distillation=0.5)) == ["dense", "direct", "direct"]
    assert phases(DIRECT, dense=train(data, DIRECT, model=MODEL).dense) == ["direct", "direct"]
    admm = dataclasses.replace(DIRECT, method="admm", distillation=0.5)
    assert phases(admm) == ["dense", "dense"], "the rate of ADMM is that of the baseline that it starts from"


def test_a_rate_at_which_the_loss_is_lost_has_none(data):
    wild = dataclasses.replace(DIRECT, optimizer="sgd", weight_decay=10.0, batch_size=4)
    good, lost = try_rates(data, wild, (0.01, 10.0), model=MODEL, block_size=4, epochs=2)
    assert good.loss is not None and good.score is not None
    assert (lost.rate, lost.loss, lost.score) == (10.0, None, None)


def test_what_is_wrong_with_an_experiment_is_refused(data):
    with pytest.raises(Refusal, match="must have a dense baseline"):
        try_rates(data, dataclasses.replace(DIRECT, start="dense", dense_epochs=0), (0.01,), model=MODEL)
    with pytest.raises(Refusal, match="Block size must be a power of two"):
        try_rates(data, DIRECT, (0.01,), model=MODEL, block_size=3)


def test_a_model_of_ones_own_finds_its_rate(data):
    torch.manual_seed(0)
    model = build(MODEL, data.shape, data.classes)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = find_rate(model, data, rates=(1e-6, 0.01), epochs=2)
    assert found.best == 0.01 and [each.rate for each in found.tried] == [1e-6, 0.01]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert find_rate(model, (data.train_x, data.train_y), rates=(1e-6, 0.01), epochs=2).tried == found.tried
    other = dataclasses.replace(data, test_x=data.test_x + 9)
    assert find_rate(model, other, rates=(1e-6, 0.01), epochs=2) == found, "the test set is not looked at"
    assert find_rate(initialise(model, 4), data, rates=(0.01,), epochs=1).tried[0].loss != found.tried[1].loss


def test_data_of_which_nothing_can_be_held_out_and_rates_that_are_all_too_large(data):
    model = build(MODEL, data.shape, data.classes)
    loader = DataLoader(TensorDataset(torch.from_numpy(data.train_x), torch.from_numpy(data.train_y)), 16)
    with pytest.raises(Refusal, match=r"^find_rate must hold samples out, .* not of a DataLoader; give those$"):
        find_rate(model, loader)
    with pytest.raises(Refusal, match=r"keep the loss finite, but none from 1 to 2 does; give lower rates$"):
        find_rate(model, data, rates=(1.0, 2.0), loss=lambda outputs, targets: outputs.sum() * float("nan"))
