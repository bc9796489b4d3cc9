"""The models that every generator is given, in plain torch, and clocks. Imported in the environments of the peers, too.

All weights are multiples of 1/64, and all inputs multiples of 1/32 below 2 in magnitude, so that a generator whose
formats hold them adds no error before its own roundings.
"""
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

STEPS = 8


class Recurrent(nn.Module):
    """A recurrent layer over a sequence; the last hidden state is the output."""

    def __init__(self, cell: type[nn.Module] = nn.LSTM) -> None:
        super().__init__()
        self.rnn = cell(16, 32, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0][:, -1]


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))


def _cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 10))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "perceptron": (_perceptron, (16,), "Linear 16 → 64, ReLU, Linear → 10"),
    "lstm": (Recurrent, (STEPS, 16), f"LSTM 16 → 32 over {STEPS} steps, last state"),
    "cnn": (_cnn, (1, 12, 12), "Conv2d 1 → 4 (3 × 3), ReLU, MaxPool2d(2), Linear 100 → 10"),
}
"""How each is made, the shape of a sample, and its words."""


def model(name: str) -> nn.Module:
    """A model with its seeded weights on the grid."""
    torch.manual_seed(3)
    made = MODELS[name][0]().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.copy_(torch.round(weight * 64) / 64)
    return made


def samples(name: str, count: int) -> np.ndarray:
    """Inputs (count, …) in float32, on their grid."""
    return (np.random.default_rng(4).integers(-63, 64, (count, *MODELS[name][1])) / 32).astype(np.float32)


def exact(name: str, x: np.ndarray) -> np.ndarray:
    """The outputs of torch in double precision."""
    with torch.no_grad():
        return model(name).double()(torch.from_numpy(x).double()).numpy()


def seconds() -> float:
    """CPU seconds of this process and of the programs that it ran."""
    return sum(os.times()[:4])


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the CPU seconds that it took."""
    start = seconds()
    return run(), seconds() - start


def rate(run: Callable[[], Any], count: int) -> float:
    """Samples per CPU second over at least half a second, after one run that is not counted."""
    run()
    start, runs = seconds(), 0
    while seconds() - start < 0.5:
        run()
        runs += 1
    return runs * count / (seconds() - start)


def error(outputs: np.ndarray, wanted: np.ndarray) -> float:
    """The greatest difference, as a share of the greatest output."""
    return float(np.abs(outputs.reshape(wanted.shape) - wanted).max() / np.abs(wanted).max())


def so_far(found: dict[str, Any]) -> None:
    """Print the figures that are known before a step that may exceed its time."""
    print("\n" + json.dumps(found), flush=True)


def main(measure: Callable[[str, Path], dict[str, Any]]) -> None:
    """Measure the model that the command line names in the folder that it names; the last line printed is JSON."""
    _, name, folder = sys.argv
    try:
        found = measure(name, Path(folder))
    except Exception as reason:  # The reason is the finding.
        found = {"reason": f"{type(reason).__name__}: {' '.join(str(reason).split())[:200]}"}
    print("\n" + json.dumps(found))
