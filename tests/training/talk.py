"""Two processes, of which the second is three times as slow; started by test_communication.py under torchrun."""
import json
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from circulant.training.data import Dataset
from circulant.training.loop.communication import COMMUNICATIONS
from circulant.training.loop.loop import Fit
from circulant.training.loop.runtime import process_group
from circulant.training.loop.train import train_direct

PAUSE = 0.05
"""Seconds that a step of the first process takes longer than its computation."""

SLOWER = 3

SLOWED = ("allreduce", "local")

BATCH, EPOCHS = 48, 6


def clouds() -> Dataset:
    """Four classes of points that overlap hardly at all, so that every good network has about the same score."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 480 + 4000)
    centres = 2.0 * np.linalg.qr(rng.standard_normal((32, 4)))[0].T
    x = (centres[y] + 0.45 * rng.standard_normal((len(y), 32))).astype(np.float32)
    return Dataset("clouds", x[:480], y[:480], x[480:], y[480:], classes=4)


def run(path: Path) -> None:
    """Train in every way, and write scores and bytes of each, and the seconds of the epochs of two of them."""
    found: dict[str, Any] = {}
    step, epoch = Fit._step, Fit.run_epoch
    with process_group() as team:
        def slowed(self: Fit, *given: Any) -> float:
            if way in SLOWED:
                time.sleep(PAUSE * (SLOWER if team.rank else 1))
            return step(self, *given)

        def timed(self: Fit, **given: Any) -> Any:
            began = time.perf_counter()
            done = epoch(self, **given)
            seconds.append(time.perf_counter() - began)
            return done

        with patch.object(Fit, "_step", slowed), patch.object(Fit, "run_epoch", timed):
            for way in sorted(COMMUNICATIONS, key=SLOWED.__contains__):
                torch.manual_seed(1)
                model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
                history, seconds = list[Any](), list[float]()
                # Dense first, so that there are matrices whose gradients PowerSGD can send as thin ones.
                trained = train_direct(model, clouds(), block_size={"2": 8}, epochs=EPOCHS, dense_epochs=1, lr=0.01,
                                       batch=BATCH, communication=way, evaluate_epochs=EPOCHS,
                                       on_epoch=lambda *call, into=history: into.append(call))
                found[way] = {"seconds": sum(seconds), "score": trained.score, "bytes": {
                    phase: [call[3]["sent"] for call in history if call[0] == phase] for phase in ("dense", "direct")}}
                state = torch.cat([value.flatten().float() for value in trained.model.state_dict().values()])
                assert len({tuple(each.tolist()) for each in team.gather(state)}) == 1, "all have the same weights"
        if team.leads:
            path.write_text(json.dumps(found))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
