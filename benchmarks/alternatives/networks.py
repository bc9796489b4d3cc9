"""Networks of the comparison, whose matrices have the structure of a row."""
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import conv2d, linear, max_pool2d, relu

from benchmarks.alternatives.data import BANDS, CLASSES, FRAME, PHONES, STACK
from benchmarks.alternatives.rows import Row
from benchmarks.alternatives.structures import Size, Structure
from circulant.training.models.cells import ResetBeforeGru

__all__ = ["FRONT", "INPUTS", "Cnn", "Compared", "Gru", "Labeller"]

INPUTS = STACK * BANDS
FRONT = 128


class Compared(nn.Module, ABC):
    """A network with some structured matrices, each used so often for a sample or for a step."""

    @abstractmethod
    def uses(self) -> list[tuple[Structure, int]]:
        """Its structured matrices, and how often each is multiplied."""

    @property
    def size(self) -> Size:
        """Bits of these weights, and multiplications of a sample or of a step."""
        sizes = [(matrix.size, times) for matrix, times in self.uses()]
        return Size(sum(each.bits for each, _ in sizes), sum(each.multiplications * n for each, n in sizes))


class Gru(Compared):
    """A GRU over steps of 80 ms and a dense classifier of its last state; its two matrices have a row's structure."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        scale = (3 * row.hidden) ** -0.5  # The deviation of torch's uniform numbers up to 1 / √hidden.
        self.hidden = row.hidden
        self.inputs, self.states = row.make(row.hidden, INPUTS, scale), row.make(row.hidden, row.hidden, scale)
        self.bias = nn.Parameter(torch.zeros(3 * row.hidden))
        self.head = nn.Linear(row.hidden, CLASSES)

    def uses(self) -> list[tuple[Structure, int]]:
        return [(self.inputs, 1), (self.states, 1)]

    def forward(self, x: Tensor) -> Tensor:
        driven, matrix = x @ self.inputs().T + self.bias, self.states().T
        h = x.new_zeros(len(x), self.hidden)
        for t in range(x.shape[1]):
            (r, z, n), (hr, hz, hn) = driven[:, t].chunk(3, 1), (h @ matrix).chunk(3, 1)
            z = torch.sigmoid(z + hz)
            h = torch.lerp(torch.tanh(n + torch.sigmoid(r + hr) * hn), h, z)
        logits: Tensor = self.head(h)
        return logits


class Cnn(Compared):
    """Three convolutions of 3 × 3, each with a pooling to half the size, a hidden layer and a classifier.

    The second and third convolution and the hidden layer have a row's structure; the first convolution and the
    classifier are dense. A matrix of a convolution has its columns by position of the kernel, then by channel.
    """

    def __init__(self, row: Row) -> None:
        super().__init__()
        w = row.hidden
        self.front, self.head = nn.Conv2d(1, w, 3, padding=1), nn.Linear(2 * w, 10)
        self.second, self.third = _driven(row, w, 9 * w), _driven(row, 2 * w, 9 * w)
        self.dense = _driven(row, 2 * w, 18 * w)
        self.biases = nn.ParameterList([torch.zeros(w), torch.zeros(2 * w), torch.zeros(2 * w)])

    def uses(self) -> list[tuple[Structure, int]]:
        return [(self.second, 14 * 14), (self.third, 7 * 7), (self.dense, 1)]

    def forward(self, x: Tensor) -> Tensor:
        x = max_pool2d(relu(self.front(x)), 2)
        for matrix, bias in ((self.second, self.biases[0]), (self.third, self.biases[1])):
            kernel = matrix().unflatten(1, (3, 3, -1)).permute(0, 3, 1, 2)
            x = max_pool2d(relu(conv2d(x, kernel, bias, padding=1)), 2)
        flat = x.permute(0, 2, 3, 1).flatten(1)
        logits: Tensor = self.head(relu(linear(flat, self.dense(), self.biases[2])))
        return logits


class Labeller(Compared):
    """A GRU of both directions over 128 features, for phones by CTC; its four matrices have a row's structure.

    The layer that makes the features and the outputs are dense.
    """

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.front = nn.Linear(FRAME, FRONT)
        self.gru = ResetBeforeGru(FRONT, row.hidden, batch_first=True, bidirectional=True)
        self.matrices = nn.ModuleDict({  # Their deviations are those of the layer's own (Glorot and Bengio 2010).
            f"{name}_l0{way}": row.make(row.hidden, columns, (2 / (row.hidden + columns)) ** 0.5)
            for way in ("", "_reverse") for name, columns in (("weight_ih", FRONT), ("weight_hh", row.hidden))})
        for name in self.matrices:
            self.gru.get_parameter(name).requires_grad_(False)
        self.head = nn.Linear(2 * row.hidden, PHONES)

    def uses(self) -> list[tuple[Structure, int]]:
        return [(matrix, 1) for matrix in self.matrices.values() if isinstance(matrix, Structure)]

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        weights = {name: matrix() for name, matrix in self.matrices.items()}
        steps = functional_call(self.gru, weights, (self.front(x),), {"lengths": lengths})[0]
        logits: Tensor = self.head(steps)
        return logits


def _driven(row: Row, rows: int, columns: int) -> Structure:
    """A matrix in front of a ReLU, of the deviation that keeps the size of what passes (He et al. 2015)."""
    return row.make(rows, columns, (2 / columns) ** 0.5, 1)
