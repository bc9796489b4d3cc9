"""Milliseconds of a training step of each recurrent layer: dense, and with block-circulant weights."""
import time
import warnings
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training import PeepholeLstm, ResetBeforeGru, compress

__all__ = ["measure"]

SIZES = ((8, 64, 0, 32, 8), (64, 128, 0, 32, 50), (160, 1024, 512, 8, 30))
"""Inputs, hidden units, projection of an LSTM, sequences of a batch, steps: digits, keywords, speech (ESE)."""

BLOCK_SIZE = 8
REPEATS = 7


def measure(overrides: tuple[str, ...]) -> dict[str, Any]:
    """The best of some repeats of forward and backward, one thread.

    Raises:
        Refusal: when keys are overridden, of which this has none.
    """
    if overrides:
        raise Refusal("The benchmark 'cells' has no keys and must be run without --set, not with "
                      f"{', '.join(overrides)}; leave --set out")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
    table = {}
    for inputs, hidden, projection, n, steps in SIZES:
        kinds: tuple[type[nn.Module], ...] = (nn.LSTM, PeepholeLstm, nn.GRU, ResetBeforeGru)
        for kind in kinds:
            options = {"proj_size": projection} if projection and kind in (nn.LSTM, PeepholeLstm) else {}
            torch.manual_seed(0)
            model, x = kind(inputs, hidden, batch_first=True, **options), torch.randn(n, steps, inputs)
            size = f"{hidden}{f'/{projection}' if options else ''}, batch {n}, {steps} steps"
            table[f"{kind.__name__} {size}"] = (f"{_milliseconds(model, x):.1f} ms dense, "
                                                f"{_milliseconds(compress(model, BLOCK_SIZE), x):.1f} ms k = "
                                                f"{BLOCK_SIZE}")
    return {"benchmark": "cells", "table": table, "torch": torch.__version__, "threads": 1}


def _milliseconds(model: nn.Module, x: torch.Tensor) -> float:
    best = float("inf")
    for _ in range(REPEATS + 1):
        model.zero_grad()
        start = time.perf_counter()
        with parametrize.cached():
            model(x)[0].square().mean().backward()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best
