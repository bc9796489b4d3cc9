"""Steps of recurrent cells that are called once: their states come in and go out as values, which a host keeps."""
from typing import Any

import torch
from torch import Tensor

from circulant.training.kinds.activation import Function
from circulant.training.kinds.elementwise import Pair
from circulant.training.kinds.linear import dense
from circulant.training.neutral import Call, Unsupported, Value

__all__ = ["LOOPED", "CellStep"]

LOOPED = ("it must go through all steps from the first on, from a state of zeros, and with the state that the step "
          "before gave, or take one step, with a state that depends on an input; use the layer of torch, or a loop "
          "that does no more")
"""Why a cell is refused."""


class CellStep:
    """Nodes of the step of a cell, each called after its part; the last one has none.

    Members:
        x, state: input, and h or (h, c).

    Raises:
        Unsupported: when it takes anything else.
    """

    def __init__(self, call: Call) -> None:
        self.x, states = call.tensor, call.bind("hx")["hx"] if len(call.args) + len(call.kwargs) > 1 else None
        self.state: list[Any] = list(states) if isinstance(states, tuple | list) else [states]
        if not all(isinstance(each, Value) and each.rank == 2 and not each.batch for each in (self.x, *self.state)):
            raise Unsupported(LOOPED)
        self._call, self.module, self.size = call, call.module, call.module.hidden_size

    def both(self, part: str, end: int | None = None) -> Value:
        """The product of rows up to an end with input and state, side by side."""
        x, h = self.x, self.state[0]
        assert x.places is not None
        beside = Value(torch.cat((x.places, h.places)), 0, (*x.path, *h.path))
        (w_x, b_x), (w_h, b_h) = self._tensors("ih"), self._tensors("hh")
        return dense(self._call, beside, torch.cat((w_x, w_h), 1)[:end], (b_x + b_h)[:end], part=part)

    def rest(self, part: str, side: str, start: int) -> Value:
        """The product of rows from a start on with the input ("ih") or the state ("hh")."""
        weight, bias = self._tensors(side)
        return dense(self._call, self.x if side == "ih" else self.state[0], weight[start:], bias[start:], part=part)

    def parts(self, gates: Value, names: str) -> list[Value]:
        """The gates of a product, by names of a letter."""
        assert gates.places is not None
        return [Value(each, 0, (f"{gates.node}.{name}",)) for name, each in zip(
            names, gates.places.chunk(len(names)), strict=True)]

    def function(self, part: str, source: Value, function: str) -> Value:
        """A function of a value."""
        return self._call.emit(Function, (source,), 0, part=part, shape=(None, self.size), function=function)

    def pair(self, part: str, make: type[Pair], one: Value, other: Value) -> Value:
        """A function of two values."""
        return self._call.emit(make, (one, other), 0, part=part, shape=(None, self.size))

    def _tensors(self, side: str) -> tuple[Tensor, Tensor]:
        weight = getattr(self.module, f"weight_{side}").detach()
        bias = getattr(self.module, f"bias_{side}").detach() if self.module.bias else weight.new_zeros(len(weight))
        return weight, bias
