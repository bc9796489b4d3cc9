"""GRUs, with the reset gate in front of the matrix or behind it."""
from typing import Any

from torch import nn

from circulant.sim.kinds.gru import FloatGru
from circulant.training.kinds.cell import Fields, RecurrentKind, register
from circulant.training.models.cells import ResetBeforeGru

__all__: list[str] = []


def _layer(name: str, module: Any, suffix: str, fields: Fields) -> FloatGru:
    return FloatGru(name, reset="before" if isinstance(module, ResetBeforeGru) else "after", hard=getattr(
        module, "hard", False), nonlinearity=getattr(module, "nonlinearity", "tanh"), **fields)


register(RecurrentKind(
    "gru", (nn.GRU, ResetBeforeGru), _layer, order=(1, 0, 2), functions=["Sigmoid", "Tanh"],  # z, r, n are r, z, n here
    module_of=lambda node: nn.GRU if node.attributes.get("linear_before_reset", 0) else ResetBeforeGru,
    rectified=(ResetBeforeGru,)))
