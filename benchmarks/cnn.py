"""Networks over images from torch to Verilator: accuracy of the integers, cycles of an image, how busy the array is."""
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from circulant import training
from circulant.experiment import load
from circulant.hw import generate
from circulant.hw.planner import repeats
from circulant.run.run_folder import Run, require
from circulant.run.steps import network_of, vectors_of
from circulant.sim.cosim import verify
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.vectors import Vectors
from circulant.training import assign
from circulant.training.blocks.constraint import initialise
from circulant.training.models.models import build
from circulant.training.settings import DataSettings, ModelSettings

__all__ = ["MODELS", "Case", "measure"]

@dataclass(frozen=True)
class Case:
    """A training for when no run folder is given: its model, its data, and its block sizes."""

    settings: ModelSettings
    data: DataSettings
    blocks: int | dict[str, int]


MODELS = {
    "lenet5": Case(ModelSettings("lenet5"), DataSettings("mnist"), {"conv2": 8, "fc1": 8, "fc2": 8}),
    "mnist-mlp": Case(ModelSettings("mlp", widths=(1024, 512), dense=("last",)), DataSettings("mnist", layout="flat"),
                      16),
    **{name: Case(ModelSettings(kind, dense=("first", "last")), DataSettings("cifar10", normalise="train"), 8)
       for name, kind in (("cifar10", "cnn"), ("vgg", "vgg"), ("resnet8", "resnet8"))},
    "crnn": Case(ModelSettings("crnn", hidden=64, dense=("first", "last")), DataSettings("fsdd", steps=80), 8),
}

CLOCK = 200e6
"""Clock in Hz of the figure images_per_s_at_200_mhz, which is computed from measured cycles."""


def _trained(model: nn.Module, data: training.Dataset, epochs: int, subset: int, seed: int) -> nn.Module:
    """A short training of first columns on some samples, enough for real weights."""
    generator = torch.Generator().manual_seed(seed)
    chosen = _some(len(data.train_x), subset, seed)
    x, y = (torch.from_numpy(values[chosen]) for values in (data.train_x, data.train_y))
    x, y = x.float(), y.long()
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


def _some(count: int, size: int, seed: int) -> np.ndarray:
    """The places of ``size`` samples drawn, as data sets may lie class by class; of all where it is 0."""
    return np.random.default_rng(seed).permutation(count)[:size] if size else np.arange(count)


def _made(case: Case, model: str, epochs: int, subset: int, calibration: int, weights: str | None, tested: int,
          seed: int) -> tuple[Network, Vectors, np.ndarray]:
    """A golden network after a short training, its test vectors, and the classes of these."""
    data, settings = training.load_data(**asdict(case.data)), case.settings
    network = build(settings, data.train_x.shape[1:], int(data.train_y.max()) + 1, seed=seed)
    network = initialise(network, assign(network, case.blocks, settings.dense))
    if weights is None:
        _trained(network, data, epochs, subset, seed)
    else:
        network.load_state_dict(torch.load(Path(weights), weights_only=True))
    golden = training.export(network.eval(), data.train_x[_some(len(data.train_x), calibration, seed)], name=model)
    judged = _some(len(data.test_x), tested, seed)
    return golden, golden.vectors(data.test_x[judged]), data.test_y[judged]


def _of_run(folder: Path) -> tuple[Network, Vectors, np.ndarray]:
    """The same of a run folder whose model is trained and quantized."""
    run = Run(folder, load(folder))
    quantized = require(run, "quantize")
    data = training.load_data(**run.experiment.tables()["data"])
    return network_of(run, quantized), vectors_of(run, quantized), data.test_y


def measure(*, model: str, run: str | None, multipliers: int, images: int, epochs: int, subset: int, calibration: int,
            weights: str | None, tested: int, seed: int) -> Document:
    """The figures of a network over images.

    Parameters:
        run: folder of a run that is trained and quantized, in place of a short training of ``model``.
        images: of the test split that are played through the Verilog.
        subset: training samples of ``epochs``; 0 for all.
        tested: test samples that the accuracy is measured on, at least ``images``; 0 for all.
        calibration: images that the formats are fitted to.
        weights: a file with the state of the model, instead of ``epochs`` of training.

    Raises:
        Refusal: when the run folder is not of a quantized run, or the budget is too small.
    """
    start = time.perf_counter()
    golden, vectors, classes = _of_run(Path(run)) if run else _made(
        MODELS[model], model, epochs=epochs, subset=subset, calibration=calibration, weights=weights,
        tested=tested and max(tested, images), seed=seed)
    accuracy = float(np.mean(vectors.outputs.reshape(len(classes), -1).argmax(1) == classes))
    seconds_golden = time.perf_counter() - start
    start = time.perf_counter()
    design = generate(golden, multipliers=multipliers)
    seconds_generate = time.perf_counter() - start
    played = Vectors(vectors.inputs[:images], vectors.outputs[:images], vectors.network)
    with TemporaryDirectory() as folder:
        verified = verify(design.write(Path(folder) / model), played, stalls=False)
    cycles, times = verified.cycles_per_sequence, repeats(golden)
    slowest = max(range(len(times)), key=lambda n: design.plans[n].cycles * times[n])
    planned = design.plans[slowest].cycles * times[slowest]
    floor = design.manifest["layers"][slowest]["floor"]
    figures = {
        "accuracy": accuracy, "cycles_per_image": cycles, "multipliers": design.multipliers,
        "utilisation": floor / cycles, "images": verified.sequences, "mismatches": verified.mismatches,
        "verilog_lines": design.verilog.count("\n"), "seconds_generate": seconds_generate,
        "seconds_build": verified.seconds_build,
        "images_per_s_simulated": verified.sequences_per_s,
        "images_per_s_at_200_mhz": CLOCK / cycles, "cycles_planned": planned,
        "latency_spaced": verified.latency_spaced,
        "latency_contiguous": verified.latency_contiguous, "memory_bits": design.memory_bits,
        "seconds_training_and_golden": seconds_golden, "slowest_layer": golden.stages[slowest].name,
    }
    trained = f"run folder of {golden.name}" if run else "weights that were given" if weights else (
        f"{epochs} epoch{'s' if epochs != 1 else ''} on {subset or 'all'} training samples")
    return {"benchmark": f"{golden.name} in {multipliers} multipliers", "model": golden.name, "budget": multipliers,
            "trained": trained, "tested": len(classes), **figures,
            "table": {key.replace("_", " "): f"{value:.6g}" if isinstance(value, float) else str(value)
                      for key, value in figures.items()}}
