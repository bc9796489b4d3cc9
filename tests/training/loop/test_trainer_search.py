"""Trainings whose block sizes are learned: what comes of the search, and that it can be interrupted."""
import dataclasses

import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.data import load_data
from circulant.training.loop import trainer as module
from circulant.training.loop.runtime import ALONE
from circulant.training.loop.train import train
from circulant.training.models.models import ModelSettings
from circulant.training.settings.training import TrainingSettings

SETTINGS = TrainingSettings(method="search", dense_epochs=1, search_epochs=4, admm_epochs=1, retrain_epochs=1)
COSTS = {"gru": {1: 100, 4: 40, 8: 30, 16: 30}, "linear": {1: 9, 2: 8, 8: 2}}


class Stop(Exception):
    """Stands for whatever ends a process."""


def run(path=None, stop=None, resume=False, settings=SETTINGS, **options):
    data = load_data("digits")
    data = dataclasses.replace(data, train_x=data.train_x[:96], train_y=data.train_y[:96], test_x=data.test_x[:64],
                               test_y=data.test_y[:64])
    seen = []

    def progress(*call):
        seen.append(call[:2])
        if len(seen) == stop:
            raise Stop

    return train(data, settings, model=ModelSettings(hidden=16), progress=progress, checkpoint=path, resume=resume,
                 **{"block_size": 8, "costs": COSTS, **options})


@pytest.fixture(scope="module")
def searched():
    return run()


def sizes(trained):
    return {name.rpartition(".")[0]: k for name, k in trained.block_sizes.items()}


def test_it_ends_in_block_sizes_whose_cost_is_within_that_of_the_uniform_ones(searched):
    found = sizes(searched)
    assert sum(COSTS[module][k] for module, k in found.items()) <= COSTS["gru"][8] + COSTS["linear"][8]
    epochs = [entry for entry in searched.history if entry["phase"] == "search"]
    assert len(epochs) == 4 and epochs[-1]["expected_cost"] < epochs[0]["expected_cost"]
    assert set(epochs[0]["paths"]["gru"]) == {1, 4, 8, 16}


def test_the_network_is_the_one_that_its_table_gives(searched):
    """What follows the search starts from the dense baseline, so that the table alone can be trained again."""
    again = run(settings=dataclasses.replace(SETTINGS, method="admm"), block_size=sizes(searched), costs=None)
    assert again.scores == searched.scores
    state = again.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in searched.model.state_dict().items())


@pytest.mark.parametrize("stop", [2, 4, 5, 6])
def test_resumed_in_the_search_and_behind_it(tmp_path, searched, stop):
    with pytest.raises(Stop):
        run(tmp_path / "part.pt", stop=stop)
    whole = run(tmp_path / "part.pt", resume=True)
    assert whole.history == searched.history and whole.scores == searched.scores


def test_several_processes_are_refused():
    with pytest.raises(Refusal, match=r"training\.method = 'search' must run in one process, which samples the paths, "
                                      "not in 2; leave torchrun out"):
        module.Trainer(torch.nn.Linear(16, 16), None, task=None, settings=SETTINGS, phases=("search",), block_size=8,
                       team=ALONE._replace(size=2))
