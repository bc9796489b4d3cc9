"""Twelve designs with random weights, of all sizes and kinds of layers that benchmarks measure."""
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from benchmarks.rnn import layer
from circulant import training
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.training import assign
from circulant.training.blocks.constraint import initialise
from circulant.training.models.models import ModelSettings, build

__all__ = ["DESIGNS", "Shape", "network", "of_shape"]

LSTM = {"cell": "lstm", "inputs": 153, "hidden": 1024, "projection": 512}
GRU = {"cell": "gru", "inputs": 153, "hidden": 1024, "projection": 0}


@dataclass(frozen=True)
class Shape:
    """A network by its shape, and the hardware that it gets.

    Parameters:
        sample: shape of a sample.
        model: fields of `ModelSettings`; or, with ``cell``, the arguments of `benchmarks.rnn.layer`.
        block: block size, or one for each matrix.
        options: of `circulant.generate`.
    """

    sample: tuple[int, ...]
    model: dict[str, Any]
    block: int | dict[str, int] = 8
    options: dict[str, Any] = field(default_factory=lambda: {"multipliers": 64})


DESIGNS = {
    "digits-gru": Shape((8, 8), {"kind": "gru", "hidden": 64}),
    "fsdd-gru": Shape((80, 32), {"kind": "gru", "hidden": 64}),
    "fsdd-lstm": Shape((80, 32), {"kind": "lstm", "hidden": 64}),
    "lstm-k16": Shape((16, 153), LSTM, 16, {"multipliers": 2760}),
    "lstm-k8": Shape((16, 153), LSTM, 8, {"multipliers": 2760}),
    "gru-1024": Shape((16, 153), GRU, 16, {"multipliers": 2760}),
    "lenet5": Shape((1, 28, 28), {"kind": "lenet5"}, {"conv2": 8, "fc1": 8, "fc2": 8}, {"multipliers": 342}),
    "resnet8": Shape((3, 32, 32), {"kind": "resnet8", "dense": ("first", "last")}, 8, {"multipliers": 342}),
    "crnn": Shape((80, 32), {"kind": "crnn", "hidden": 64, "dense": ("first", "last")}, 8, {"multipliers": 342}),
    "bidirectional": Shape((20, 16), {"kind": "lstm", "hidden": 32, "bidirectional": True}),
    "reloadable": Shape((20, 16), {"kind": "gru", "hidden": 32}, 8, {"multipliers": 64, "reloadable": True}),
    "interleaved": Shape((20, 16), {"kind": "lstm", "hidden": 32, "projection": 16}, 4,
                         {"multipliers": 64, "streams": 3}),
}


def network(name: str) -> Network:
    """The golden network of a design: random weights, and formats fitted to random data, both seeded."""
    return of_shape(name, DESIGNS[name])


def of_shape(name: str, shape: Shape) -> Network:
    """The same of any shape."""
    rng = np.random.default_rng(3)
    data = rng.normal(0, 0.5, (16, *shape.sample))
    if "cell" in shape.model:
        block = shape.block
        assert isinstance(block, int)
        return quantize(Model.chain(name, shape.sample[-1], True, (layer(**shape.model, block=block),)), data)
    settings = ModelSettings(**shape.model)
    model = build(settings, shape.sample, 10, seed=0)
    model = initialise(model, assign(model, shape.block, settings.dense)).eval()
    with torch.no_grad():
        return quantize(training.reference(model, data.astype(np.float32), name=name), data)
