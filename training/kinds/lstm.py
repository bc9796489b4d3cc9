"""LSTMs, with peepholes and projections."""
from typing import Any

from torch import nn

from circulant.sim.kinds.lstm import FloatLstm
from circulant.training.blocks.matrices import Matrix
from circulant.training.kinds.cell import Fields, RecurrentKind, first_columns, register
from circulant.training.models.cells import PeepholeLstm
from circulant.training.neutral.streams import as_numpy

__all__: list[str] = []


def _layer(name: str, module: Any, suffix: str, fields: Fields) -> FloatLstm:
    hidden, outputs = module.hidden_size, module.proj_size or module.hidden_size
    if module.proj_size:
        fields["projection"] = first_columns(Matrix(module, f"weight_hr{suffix}", 1, outputs, hidden))[0]
    if isinstance(module, PeepholeLstm):
        fields["peephole"] = as_numpy(getattr(module, f"peephole{suffix}"))
    return FloatLstm(name, outputs=outputs, hard=getattr(module, "hard", False), **fields)


register(RecurrentKind(
    "lstm", (nn.LSTM, PeepholeLstm), _layer, order=(0, 2, 3, 1), functions=["Sigmoid", "Tanh", "Tanh"],
    module_of=lambda node: PeepholeLstm if any(node.inputs[7:8]) else nn.LSTM))  # i, o, f, c are i, f, c, o here
