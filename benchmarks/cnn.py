"""Networks over images from torch to Verilator: accuracy of the integers, cycles of an image, how busy the array is."""
import time
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from circulant import training
from circulant.hw import generate
from circulant.hw.plan import layer_multiplications
from circulant.sim.cosim import verify
from circulant.training.constraint import initialise
from circulant.training.models import ModelSettings, build

__all__ = ["MODELS", "measure"]

MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "lenet5": ("mnist", {"conv2": 8, "fc1": 8, "fc2": 8}),
}
"""By model its data set, and the block sizes of what does not stay dense."""

CLOCK = 200e6
"""Of the figure images_per_s_at_200_mhz, which is computed from measured cycles."""


def _trained(model: nn.Module, data: training.Dataset, epochs: int, seed: int) -> nn.Module:
    """A short training of first columns, enough for real weights."""
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.from_numpy(data.train_x).float(), torch.from_numpy(data.train_y).long()
    optimizer = torch.optim.Adam(model.parameters())
    steps = epochs * (len(x) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, max(1, steps))
    for _ in range(epochs):
        for index in torch.randperm(len(x), generator=generator).split(64)[:len(x) // 64]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[index]), y[index]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def measure(*, model: str, multipliers: int, images: int, epochs: int, calibration: int, weights: str | None,
            seed: int) -> dict[str, Any]:
    """The figures of a network over images.

    Parameters:
        images: of the test split that are played through the Verilog.
        calibration: images that the formats are fitted to.
        weights: a file with the state of the model, instead of ``epochs`` of training.
    """
    name, blocks = MODELS[model]
    data = training.load_data(name)
    network = initialise(build(ModelSettings(model), data.train_x.shape[1:], int(data.train_y.max()) + 1, seed=seed),
                         blocks)
    if weights is None:
        _trained(network, data, epochs, seed)
    else:
        network.load_state_dict(torch.load(Path(weights)))
    network.eval()
    golden = training.export(network, data.train_x[:calibration], name=model)
    start = time.perf_counter()
    accuracy = float(np.mean(golden.run(data.test_x).integers.argmax(1) == data.test_y))
    seconds_golden = time.perf_counter() - start
    start = time.perf_counter()
    design = generate(golden, multipliers=multipliers)
    seconds_generate = time.perf_counter() - start
    with TemporaryDirectory() as folder:
        verified = verify(design.write(Path(folder) / model), golden.vectors(data.test_x[:images]), stalls=False)
    cycles = verified.cycles_per_sequence
    slowest = max(zip(golden.layers, design.plans, strict=True), key=lambda pair: pair[1].cycles)
    floor = layer_multiplications(slowest[0]) / max(1, slowest[1].multipliers)
    figures = {
        "accuracy": accuracy, "cycles_per_image": cycles, "multipliers": design.multipliers,
        "utilisation": floor / cycles, "images": verified.sequences, "mismatches": verified.mismatches,
        "verilog_lines": design.verilog.count("\n"), "seconds_generate": seconds_generate,
        "seconds_build": verified.seconds_build,
        "images_per_s_simulated": verified.cycles / cycles / verified.seconds_simulate,
        "images_per_s_at_200_mhz": CLOCK / cycles, "latency_cycles": verified.latency_cycles,
        "memory_bits": design.memory_bits, "seconds_golden_test_split": seconds_golden,
        "pixels": prod(data.test_x.shape[2:]), "slowest_layer": slowest[0].name,
    }
    return {"benchmark": f"{model} on {name}", **figures,
            "table": {key.replace("_", " "): f"{value:.6g}" if isinstance(value, float) else str(value)
                      for key, value in figures.items()}}
