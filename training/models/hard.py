"""The loops over the steps of recurrent layers with Hardsigmoid, Hardtanh or ReLU, derived by autograd."""
import torch
from torch import Tensor
from torch.nn.functional import hardsigmoid, hardtanh, linear

__all__ = ["gru_steps", "lstm_steps"]


def lstm_steps(driven: Tensor, y: Tensor, c: Tensor, weight: Tensor, projection: Tensor | None,
               peephole: Tensor | None) -> tuple[Tensor, Tensor]:
    """Outputs (T, N, outputs) and the last cell, from what `training.models.steps.LstmSteps` takes."""
    ys, nothing = [], torch.zeros((), dtype=driven.dtype, device=driven.device)
    seen = (nothing, nothing, nothing) if peephole is None else peephole.unbind(0)
    for each in driven:
        i, f, g, o = (each + linear(y, weight)).chunk(4, -1)
        c = hardsigmoid(f + seen[1] * c) * c + hardsigmoid(i + seen[0] * c) * hardtanh(g)
        y = hardsigmoid(o + seen[2] * c) * hardtanh(c)
        y = y if projection is None else linear(y, projection)
        ys.append(y)
    return torch.stack(ys), c


def gru_steps(driven: Tensor, h: Tensor, weight: Tensor, *, hard: bool, nonlinearity: str) -> Tensor:
    """States (T, N, hidden), from what `training.models.steps.GruSteps` takes.

    Parameters:
        hard, nonlinearity: as of `training.models.cells.ResetBeforeGru`.
    """
    states, hidden = [], h.shape[-1]
    squash = hardsigmoid if hard else torch.sigmoid
    bend = {"tanh": hardtanh if hard else torch.tanh, "relu": torch.relu, "identity": torch.clone}[nonlinearity]
    for each in driven:
        rz = squash(each[:, :2 * hidden] + linear(h, weight[:2 * hidden]))
        r, z = rz.chunk(2, -1)
        n = bend(each[:, 2 * hidden:] + linear(r * h, weight[2 * hidden:]))
        h = n + z * (h - n)
        states.append(h)
    return torch.stack(states)
