"""LSTMs, with peepholes and projections."""
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from circulant.sim.arith.fixed import Reals
from circulant.sim.kinds.lstm import FloatLstm
from circulant.training.blocks.approximate import forward, gates_of, integers_of, over_steps, rows_of, through
from circulant.training.blocks.matrices import Matrix
from circulant.training.kinds.add import Add
from circulant.training.kinds.cell import Fields, RecurrentKind, first_columns, register
from circulant.training.kinds.product import Multiply
from circulant.training.kinds.step import CellStep
from circulant.training.models.cells import PeepholeLstm
from circulant.training.neutral import Value
from circulant.training.neutral.streams import as_numpy


def _layer(name: str, module: Any, suffix: str, fields: Fields) -> FloatLstm:
    hidden, outputs = module.hidden_size, module.proj_size or module.hidden_size
    if module.proj_size:
        fields["projection"] = first_columns(Matrix(module, f"weight_hr{suffix}", 1, outputs, hidden))[0]
    if isinstance(module, PeepholeLstm):
        fields["peephole"] = as_numpy(getattr(module, f"peephole{suffix}"))
    return FloatLstm(name, outputs=outputs, hard=getattr(module, "hard", False), **fields)


def _step(step: CellStep) -> list[Value]:
    i, f, g, o = step.parts(step.both("gates"), "ifgo")
    i, f, o = (step.function(name, gate, "sigmoid") for name, gate in (("i", i), ("f", f), ("o", o)))
    kept = step.pair("kept", Multiply, f, step.state[1])
    cells = step.pair("c", Add, kept, step.pair("new", Multiply, i, step.function("g", g, "tanh")))
    return [step.pair("", Multiply, o, step.function("tanh", cells, "tanh")), cells]


@forward.register(nn.LSTM)
def _(module: Any, layer: Any, x: Tensor | PackedSequence, state: tuple[Tensor, Tensor] | None = None
      ) -> tuple[Any, tuple[Tensor, Tensor]]:
    size = module.hidden_size

    def made(of_x: Reals, of_h: Reals) -> Callable[..., tuple[Tensor, ...]]:
        gates = gates_of(layer, of_x, of_h, module, 4)

        def step(x: Tensor, driven: Tensor, recurrent: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
            given = integers_of(gates.parts[0], x), integers_of(gates.parts[1], h)
            i, f, g, o = through(driven + recurrent, rows_of(gates, size, *given, gates=4)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            return o.sigmoid() * c.tanh(), c

        return step

    y, (h, c) = over_steps(module, x, state, made)
    return y, (h, c)


register(RecurrentKind(
    "lstm", (nn.LSTM, PeepholeLstm), _layer, cell=nn.LSTMCell, step=_step, order=(0, 2, 3, 1), functions=[
        "Sigmoid", "Tanh", "Tanh"],
    module_of=lambda node: PeepholeLstm if any(node.inputs[7:8]) else nn.LSTM))  # i, o, f, c are i, f, c, o here
