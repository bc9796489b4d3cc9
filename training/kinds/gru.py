"""GRUs, with the reset gate in front of the matrix or behind it."""
from typing import Any

from torch import nn

from circulant.sim.kinds.gru import FloatGru
from circulant.training.kinds.add import Add
from circulant.training.kinds.cell import Fields, RecurrentKind, register
from circulant.training.kinds.difference import Subtract
from circulant.training.kinds.product import Multiply
from circulant.training.kinds.step import CellStep
from circulant.training.models.cells import ResetBeforeGru
from circulant.training.neutral import Value


def _layer(name: str, module: Any, suffix: str, fields: Fields) -> FloatGru:
    return FloatGru(name, reset="before" if isinstance(module, ResetBeforeGru) else "after", hard=getattr(
        module, "hard", False), nonlinearity=getattr(module, "nonlinearity", "tanh"), **fields)


def _step(step: CellStep) -> Value:
    """n + z (h - n)."""
    first = 2 * step.size
    r, z = (step.function(name, gate, "sigmoid") for name, gate in zip("rz", step.parts(
        step.both("gates", first), "rz"), strict=True))
    of_h = step.pair("reset", Multiply, r, step.rest("state", "hh", first))
    n = step.function("n", step.pair("sum", Add, step.rest("input", "ih", first), of_h), "tanh")
    difference = step.pair("difference", Subtract, step.state[0], n)
    return step.pair("", Add, n, step.pair("kept", Multiply, z, difference))


register(RecurrentKind(
    "gru", (nn.GRU, ResetBeforeGru), _layer, cell=nn.GRUCell, step=_step, order=(1, 0, 2), functions=[
        "Sigmoid", "Tanh"],  # z, r, n are r, z, n here
    module_of=lambda node: nn.GRU if node.attributes.get("linear_before_reset", 0) else ResetBeforeGru,
    rectified=(ResetBeforeGru,)))
