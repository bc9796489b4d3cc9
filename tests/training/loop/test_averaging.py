"""Averages of weights: what is in them, batch normalisation, and that a training goes on with them."""
import dataclasses

import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress
from circulant.training.data import load_data
from circulant.training.loop.averaging import Average, average
from circulant.training.loop.loop import Fit, Recipe, evaluate
from circulant.training.loop.train import train
from circulant.training.models.models import ModelSettings
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.batches import Part
from circulant.training.task.task import task_of


def digits(**more):
    data = load_data("digits", **more)
    return dataclasses.replace(data, train_x=data.train_x[:128], train_y=data.train_y[:128], test_x=data.test_x[:64],
                               test_y=data.test_y[:64])


def walked(kind: str, steps: int) -> list[float]:
    """The average after each step of a weight that is 1, 2, 3, …"""
    model = nn.Linear(1, 1)
    made, seen = Average(kind, model, steps), []
    for step in range(1, steps + 1):
        nn.init.constant_(model.weight, step)
        made.step()
        seen.append(made.model.weight.item())
    return seen


def test_the_mean_is_that_of_the_last_quarter():
    assert walked("swa", 8) == [1, 2, 3, 4, 5, 6, 7, 7.5]


def test_the_moving_average_remembers_a_twentieth():
    seen, wanted = walked("ema", 40), 1.0
    for step, value in enumerate(seen, start=1):
        wanted += (step - wanted) / 2 if step > 1 else 0
        assert value == pytest.approx(wanted, rel=1e-5)


def test_first_columns_are_averaged():
    model = compress(nn.Sequential(nn.Linear(16, 16)), 8)
    made = Average("swa", model, 1)
    made.step()
    assert made.model[0].parametrizations.weight.original.shape == (1, 2, 2, 8)
    assert torch.equal(made.model[0].weight, model[0].weight)


def test_batch_normalisation_is_measured_with_the_averaged_weights():
    torch.manual_seed(0)
    data, model = digits(layout="image"), nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    made = Average("ema", model, 1)
    part = Part(data, "train", torch.device("cpu"))
    made.measure_batches(part.batches(64))
    x = torch.from_numpy(data.train_x)
    assert torch.allclose(made.model[1].running_mean, made.model[0](x).mean((0, 2, 3)), atol=1e-5)


def test_a_phase_is_measured_and_leaves_the_average():
    data = digits(layout="flat")
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    task = task_of(data)
    fit = Fit(model, data, task, Recipe(2, 0.01, averaging="ema"))
    metrics = [fit.run_epoch() for _ in range(2)][-1]
    assert fit.outcome is not model and not torch.equal(fit.outcome.weight, model.weight)
    assert metrics["accuracy"] == evaluate(fit.outcome, data, task=task)


class Stop(Exception):
    """Stands for whatever ends a process."""


@pytest.mark.parametrize("settings", [{"averaging": "ema"}, {"averaging": "swa"}, {"self_guided": 0.5},
                                      {"averaging": "ema", "self_guided": 1.0, "early_stopping": 9}])
def test_a_training_goes_on_as_if_it_had_not_been_stopped(tmp_path, settings):
    chosen = TrainingSettings(method="direct", dense_epochs=2, direct_epochs=4, **settings)

    def run(path=None, stop=None, resume=False):
        seen = []

        def progress(*call):
            seen.append(call)
            if len(seen) == stop:
                raise Stop

        return train(digits(), chosen, model=ModelSettings(hidden=16), checkpoint=path, resume=resume,
                     progress=progress)

    whole = run()
    assert not [name for name in whole.model.state_dict() if "twin" in name]
    for stop in (1, 4):
        with pytest.raises(Stop):
            run(tmp_path / "part.pt", stop=stop)
        again = run(tmp_path / "part.pt", resume=True)
        assert again.history == whole.history and again.scores == whole.scores
        assert all(torch.equal(value, whole.model.state_dict()[name])
                   for name, value in again.model.state_dict().items())
    plain = train(digits(), TrainingSettings(method="direct", dense_epochs=2, direct_epochs=4),
                  model=ModelSettings(hidden=16))
    assert plain.history[-1]["loss"] != whole.history[-1]["loss"] or plain.scores != whole.scores


def test_names():
    assert average("none", nn.Linear(1, 1), 3) is None
    with pytest.raises(Refusal, match=r"^An averaging must be one of 'none', 'ema', 'swa', not 'mean'"):
        average("mean", nn.Linear(1, 1), 3)
    with pytest.raises(Refusal, match=r"training\.self_guided must be 0 with 3 stages, not 0\.5: both lead from dense"):
        TrainingSettings(self_guided=0.5, stages=3)
