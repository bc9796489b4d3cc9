"""Cells that are called once, for the step at hand: their states come in and go out as values, which a host keeps."""
from typing import Any

import torch
from torch import Tensor, nn

from circulant.training.kinds.activation import Function
from circulant.training.kinds.add import Add
from circulant.training.kinds.difference import Subtract
from circulant.training.kinds.elementwise import Pair
from circulant.training.kinds.linear import dense
from circulant.training.kinds.product import Multiply
from circulant.training.neutral import Call, Unsupported, Value

__all__ = ["LOOPED", "cell"]

LOOPED = ("it must go through all steps from the first on, from a state of zeros, and with the state that the step "
          "before gave, or take one step, with a state that depends on an input; use the layer of torch, or a loop "
          "that does no more")
"""Why a cell is refused."""


def cell(call: Call) -> Any:
    """An LSTMCell, a GRUCell or an RNNCell as products with its input and its state, and functions of these."""
    x, states = call.tensor, call.bind("hx")["hx"] if len(call.args) + len(call.kwargs) > 1 else None
    state: list[Any] = list(states) if isinstance(states, tuple | list) else [states]
    if x.rank != 2 or not all(isinstance(each, Value) and each.rank == 2 and not each.batch for each in (x, *state)):
        raise Unsupported(LOOPED)
    step = _Step(call)
    if isinstance(call.module, nn.LSTMCell):
        return step.lstm(x, *state)
    return step.gru(x, *state) if isinstance(call.module, nn.GRUCell) else step.rnn(x, *state)


class _Step:
    """Nodes of a step, each called after its part; the last one has none."""

    def __init__(self, call: Call) -> None:
        self._call, self._module, self._size = call, call.module, call.module.hidden_size
        zeros = call.module.weight_ih.new_zeros(len(call.module.weight_ih))
        self._of_x: Tensor = call.module.bias_ih.detach() if call.module.bias else zeros
        self._of_h: Tensor = call.module.bias_hh.detach() if call.module.bias else zeros

    def lstm(self, x: Value, h: Value, c: Value) -> list[Value]:
        i, f, g, o = self._parts(self._both("gates", x, h, slice(None)), "ifgo")
        i, f, o = (self._function(name, gate, "sigmoid") for name, gate in (("i", i), ("f", f), ("o", o)))
        kept = self._pair("kept", Multiply, f, c)
        cells = self._pair("c", Add, kept, self._pair("new", Multiply, i, self._function("g", g, "tanh")))
        return [self._pair("", Multiply, o, self._function("tanh", cells, "tanh")), cells]

    def gru(self, x: Value, h: Value) -> Value:
        """n + z (h - n)."""
        size, w_x, w_h = self._size, self._module.weight_ih.detach(), self._module.weight_hh.detach()
        r, z = (self._function(name, gate, "sigmoid") for name, gate in zip("rz", self._parts(
            self._both("gates", x, h, slice(2 * size)), "rz"), strict=True))
        rest = slice(2 * size, None)
        of_h = self._pair("reset", Multiply, r, dense(self._call, h, w_h[rest], self._of_h[rest], part="state"))
        n = self._function("n", self._pair("sum", Add, dense(self._call, x, w_x[rest], self._of_x[rest],
                                                               part="input"), of_h),
                           "tanh")
        return self._pair("", Add, n, self._pair("kept", Multiply, z, self._pair("difference", Subtract, h, n)))

    def rnn(self, x: Value, h: Value) -> Value:
        return self._function("", self._both("sum", x, h, slice(None)), self._module.nonlinearity)

    def _both(self, part: str, x: Value, h: Value, rows: slice) -> Value:
        """The product of rows with x and h, side by side."""
        assert x.places is not None and h.places is not None
        beside = Value(torch.cat((x.places, h.places)), 0, (*x.path, *h.path))
        weight = torch.cat((self._module.weight_ih.detach(), self._module.weight_hh.detach()), 1)
        return dense(self._call, beside, weight[rows], (self._of_x + self._of_h)[rows], part=part)

    def _parts(self, gates: Value, names: str) -> list[Value]:
        assert gates.places is not None
        return [Value(each, 0, (f"{gates.node}.{name}",)) for name, each in zip(
            names, gates.places.chunk(len(names)), strict=True)]

    def _function(self, part: str, source: Value, function: str) -> Value:
        return self._call.emit(Function, (source,), 0, part=part, shape=(None, self._size), function=function)

    def _pair(self, part: str, make: type[Pair], one: Value, other: Value) -> Value:
        return self._call.emit(make, (one, other), 0, part=part, shape=(None, self._size))
