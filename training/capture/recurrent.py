"""From a recurrent module to layers of the reference."""
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.rnn import FloatRnn
from circulant.sim.real.float_model import Bidirectional, Stage
from circulant.training.blocks.matrices import Matrix, constraint_of
from circulant.training.models.cells import LinearRnn, PeepholeLstm, Recurrent, ResetBeforeGru

__all__ = ["as_numpy", "level"]


def level(name: str, module: Any, level: int, returns: str) -> Stage:
    """One layer of a recurrent module, in one direction or both."""
    suffix = f"_l{level}"
    if not module.bidirectional:
        return _direction(name, module, level, suffix, returns)
    return Bidirectional(name, _direction(f"{name}.forward", module, level, suffix, returns),
                         _direction(f"{name}.backward", module, level, f"{suffix}_reverse", returns))


def _direction(name: str, module: Any, level: int, suffix: str, returns: str) -> FloatGru | FloatLstm | FloatRnn:
    hidden, outputs = module.hidden_size, getattr(module, "proj_size", 0) or module.hidden_size
    inputs = outputs * (1 + module.bidirectional) if level else module.input_size
    gates = _gates(module)
    fields: dict[str, Any] = {"inputs": inputs, "hidden": hidden, "returns": returns,
                              "hard": getattr(module, "hard", False)}
    for side, columns in (("ih", inputs), ("hh", outputs)):
        fields[f"weight_{side}"] = _first_columns(Matrix(module, f"weight_{side}{suffix}", gates, hidden, columns))
        fields[f"bias_{side}"] = np.zeros((gates, hidden))
    for side in (("ih", "hh") if module.bias else ()):
        ours = isinstance(module, Recurrent)  # with one bias
        if not ours or side == "ih":
            bias = getattr(module, f"bias{suffix}" if ours else f"bias_{side}{suffix}")
            fields[f"bias_{side}"] = as_numpy(bias).reshape(gates, hidden)
    if gates == 1:
        del fields["hard"]
        return FloatRnn(name, nonlinearity=module.nonlinearity, **fields)
    if gates == 3:
        fields["nonlinearity"] = getattr(module, "nonlinearity", "tanh")
        return FloatGru(name, reset="before" if isinstance(module, ResetBeforeGru) else "after", **fields)
    if module.proj_size:
        fields["projection"] = _first_columns(Matrix(module, f"weight_hr{suffix}", 1, outputs, hidden))[0]
    if isinstance(module, PeepholeLstm):
        fields["peephole"] = as_numpy(getattr(module, f"peephole{suffix}"))
    return FloatLstm(name, outputs=outputs, **fields)


def _gates(module: nn.Module) -> int:
    return 1 if isinstance(module, nn.RNN | LinearRnn) else 3 if isinstance(module, nn.GRU | ResetBeforeGru) else 4


def _first_columns(matrix: Matrix) -> NDArray[np.float64]:
    """First columns (groups, p, q, k) of a weight; k = 1 where it is dense."""
    if constraint_of(matrix):
        return as_numpy(matrix.first)
    return as_numpy(matrix.weight).reshape(matrix.groups, matrix.rows, matrix.columns, 1)


def as_numpy(tensor: Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())
