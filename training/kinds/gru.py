"""GRUs, with the reset gate in front of the matrix or behind it."""
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from circulant.sim.arith.fixed import Reals
from circulant.sim.kinds.gru import FloatGru
from circulant.training.blocks.approximate import (
    forward,
    gates_of,
    integers_of,
    over_steps,
    product_of,
    rows_of,
    through,
)
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


@forward.register(nn.GRU)
def _(module: Any, layer: Any, x: Tensor | PackedSequence, state: Tensor | None = None) -> tuple[Any, Tensor]:
    size = module.hidden_size
    b_x, b_h = (getattr(module, f"bias_{each}_l0")[2 * size:] if module.bias else None for each in ("ih", "hh"))

    def made(of_x: Reals, of_h: Reals) -> Callable[..., tuple[Tensor, ...]]:
        gates = gates_of(layer, of_x, of_h, module, 2)
        count = len(gates.weights)
        new, kept = (product_of(rule, first[count:], [bias]) for rule, first, bias in (
            (layer.candidate, of_x, b_x), (layer.candidate_recurrent, of_h, b_h)))

        def step(x: Tensor, driven: Tensor, recurrent: Tensor, h: Tensor) -> tuple[Tensor, ...]:
            given = integers_of(gates.parts[0], x), integers_of(gates.parts[1], h)
            both = (driven + recurrent)[:, :2 * size]
            r, z = through(both, rows_of(gates, size, *given, gates=2)).sigmoid().chunk(2, 1)
            before = through(driven[:, 2 * size:], rows_of(new, size, given[0]))
            n = (before + r * through(recurrent[:, 2 * size:], rows_of(kept, size, given[1]))).tanh()
            return (n + z * (h - n),)

        return step

    y, states = over_steps(module, x, None if state is None else [state], made)
    return y, states[0]


register(RecurrentKind(
    "gru", (nn.GRU, ResetBeforeGru), _layer, cell=nn.GRUCell, step=_step, order=(1, 0, 2), functions=[
        "Sigmoid", "Tanh"],  # z, r, n are r, z, n here
    module_of=lambda node: nn.GRU if node.attributes.get("linear_before_reset", 0) else ResetBeforeGru,
    rectified=(ResetBeforeGru,)))
