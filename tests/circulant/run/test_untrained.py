"""An untrained network has the layers, and so the costs, of the trained one."""
import numpy as np
import pytest
import torch

from circulant import training
from circulant.experiment import load
from circulant.hw.planner import plan
from circulant.run.untrained import untrained
from circulant.sim.quantize.quantize import calibrate, quantize


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(70, 3, 16, 16)).astype(np.float32), np.arange(70) % 10
    return training.Dataset("noise", x, y, test_x=x[:8], test_y=y[:8], classes=10)


@pytest.mark.parametrize("name", ["cifar10-cnn", "cifar10-resnet8"])
def test_batch_normalisations_cost_what_they_cost_after_a_training(name, images):
    """A training makes the factors of a block's channels differ; then they are a layer, with multipliers of its own."""
    experiment = load(name)
    made = untrained(experiment, images)

    model = training.ModelSettings(**experiment.tables()["model"])
    built = training.build(model, images.shape, images.classes)
    torch.manual_seed(0)
    for module in built.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.3, 2)
            module.running_var.uniform_(0.1, 3)
    compressed = training.compress(built, training.assign(built, experiment.compression.block_size, model.dense))
    reference = training.reference(compressed, images.train_x[:2], name=name)
    trained = quantize(reference, calibrate(reference, images.train_x[:64]))
    assert [layer.kind for layer in made.layers] == [layer.kind for layer in trained.layers]
    costs = [[(each.multipliers, each.cycles) for each in plan(network, 342)] for network in (made, trained)]
    assert costs[0] == costs[1]
