"""A training that any number of processes gives the same weights, bit for bit; started by test_place.py."""
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from circulant.training.blocks.admm import Admm
from circulant.training.data import Dataset
from circulant.training.loop.runtime import process_group
from circulant.training.loop.train import train_admm


def signs(samples: int = 44) -> Dataset:
    """Inputs of -1, 0 and 1, whose products are exact."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-1, 2, (samples, 8)).astype(np.float32), rng.integers(0, 8, samples)
    return Dataset("signs", x[:36], y[:36], x[36:], y[36:], classes=8)


def distance(outputs: Tensor, classes: Tensor) -> Tensor:
    """Its gradient is a sign, so that the sum over a batch is exact in any order."""
    return (outputs - nn.functional.one_hot(classes, 8)).abs().sum(-1).mean()


def run(folder: Path, name: str) -> None:
    """Train with batches of 16, 16 and 4, and save everything that must agree."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.Linear(16, 8))
    model[1].requires_grad_(False)
    with torch.no_grad():
        model[1].weight.copy_(torch.eye(16)[:8] / 2)
    history: list[Any] = []
    states: list[Any] = []
    update = Admm.update

    def noted(self: Admm) -> Any:
        found = update(self)
        states.append(self.state_dict())
        return found

    with patch.object(Admm, "update", noted):
        small = train_admm(model, signs(), block_size={"0": 4}, epochs=4, retrain_epochs=2, batch=16, lr=0.01, rho=0.05,
                           distillation=0.0, loss=distance, on_epoch=lambda *call: history.append(call)).model
    aside = nn.Linear(2, 1)
    with process_group() as team:
        aside.weight.grad = torch.full((1, 2), 1.0 + team.rank)
        team.average(aside)
    threads = [(thread / "comm").read_text().strip() for thread in Path("/proc/self/task").glob("*")]
    torch.save({"threads": threads, "model": small.state_dict(), "admm": states, "history": history,
                "average": aside.weight.grad},
               folder / f"{name}.pt")


if __name__ == "__main__":
    import os

    run(Path(sys.argv[1]), f"rank{os.environ['RANK']}")
