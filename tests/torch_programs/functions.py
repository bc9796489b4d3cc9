"""Programs with functions, as modules and in words."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.torch_programs.program import SIGNAL, VECTOR, linear, program


def _function(make: Callable[[], nn.Module], name: str) -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        return self.b(self.f(self.a(x)))
    forward.__name__ = name
    program(VECTOR, a=linear(12, 8), f=make, b=linear())(forward)


for _class in (nn.SiLU, nn.GELU, nn.ELU, nn.SELU, nn.CELU, nn.PReLU, nn.Softplus, nn.Softsign, nn.Hardswish, nn.Mish):
    _function(_class, _class.__name__.lower())


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3), f=lambda: nn.PReLU(8), head=linear())
def prelu_for_each_channel(self: Any, x: Tensor) -> Any:
    self.f.weight.data = torch.arange(8) / 10.
    return self.head(self.f(self.conv(x)).mean(-1))


@program(VECTOR, a=linear(12, 8), b=linear())
def silu_in_words(self: Any, x: Tensor) -> Any:
    x = self.a(x)
    return self.b(x * torch.sigmoid(x))


@program(SIGNAL, conv=lambda: nn.Conv1d(4, 8, 3), head=linear())
def hardswish_in_words(self: Any, x: Tensor) -> Any:
    x = self.conv(x)
    return self.head((x * F.relu6(x + 3) / 6).mean(-1))
