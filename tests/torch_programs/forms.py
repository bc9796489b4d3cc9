"""Programs of other forms: several inputs and outputs, layers called twice, reversed steps, sizes that are read."""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.torch_programs.program import IMAGE, SEQUENCE, SIGNAL, VECTOR, gru, linear, program


@program(VECTOR, a=linear(12, 8), b=linear(), c=linear(8, 2))
def two_heads(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.a(x))
    return {"class": self.b(x), "value": self.c(x)}


@program(VECTOR, (4,), a=linear(12, 8), b=linear(4, 8), head=linear())
def two_inputs(self: Any, x: Tensor, y: Tensor) -> Any:
    return self.head(torch.relu(self.a(x)) + torch.relu(self.b(y)))


@program(SEQUENCE, rnn=gru(), head=linear())
def dict_of_one(self: Any, x: Tensor) -> Any:
    return {"logits": self.head(self.rnn(x)[0][:, -1])}


@program(SEQUENCE, rnn=gru(), head=linear())
def tuple_of_one(self: Any, x: Tensor) -> Any:
    assert x.dim() == 3 and x.size(2) == 6, "features"
    return (self.head(self.rnn(x)[0]),)


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3), head=linear())
def pooled_by_shape(self: Any, x: Tensor) -> Any:
    x = torch.relu(self.conv(x))
    return self.head(F.avg_pool1d(x, x.shape[-1]).permute(0, 2, 1)).squeeze(1)


@program(VECTOR, a=linear(12, 12), b=linear(12))
def called_twice(self: Any, x: Tensor) -> Any:
    return self.b(torch.tanh(self.a(torch.tanh(self.a(x)))))


@program(SEQUENCE, rnn=gru(), head=linear())
def reversed_in_time(self: Any, x: Tensor) -> Any:
    return self.head(torch.flip(self.rnn(torch.flip(x, [1]))[0], [1]))


@program(SEQUENCE, rnn=gru(), head=linear())
def reversed_last(self: Any, x: Tensor) -> Any:
    return self.head(self.rnn(x.flip(1))[0][:, -1])


@program(SEQUENCE, a=gru(), b=gru(), head=linear(16))
def both_directions_in_words(self: Any, x: Tensor) -> Any:
    back = self.b(x.flip(dims=(1,)))[0].flip(dims=(1,))
    return self.head(torch.cat((self.a(x)[0], back), -1))


@program(VECTOR, a=linear(12, 8), b=linear(8, 1))
def one_number(self: Any, x: Tensor) -> Any:
    return self.b(torch.relu(self.a(x))).squeeze(-1)


@program(IMAGE, conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def kept_axes(self: Any, x: Tensor) -> Any:
    return self.head(self.conv(x).relu().mean((2, 3), keepdim=True).flatten(1))


@program(IMAGE, norm=lambda: nn.BatchNorm2d(2), conv=lambda: nn.Conv2d(2, 4, 3), head=linear(4))
def batch_norm_first(self: Any, x: Tensor) -> Any:
    return self.head(self.conv(self.norm(x)).relu().amax((2, 3)))
