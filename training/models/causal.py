"""Models over sequences without a matrix in a recurrence, causal convolutions or scans: labellers, and classifiers by a
mean over time."""
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from circulant.training.models.scans import ComplexRecurrence, MinGru

__all__ = ["BODIES", "StepsClassifier", "StepsLabeller"]


class _Causal(nn.Module):
    """A block of a temporal convolutional network (Bai et al. 2018, arXiv 1803.01271) without dropout and weight norm.

    Two causal convolutions of kernel 3 with ReLUs, to whose result the input is added, through a 1 × 1 convolution
    where the channels differ; a ReLU. Channels come first.
    """

    def __init__(self, inputs: int, channels: int, dilation: int) -> None:
        super().__init__()
        self.reach = 2 * dilation
        self.first = nn.Conv1d(inputs, channels, 3, dilation=dilation)
        self.second = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.shortcut = nn.Conv1d(inputs, channels, 1) if inputs != channels else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(pad(x, (self.reach, 0))))
        return torch.relu(torch.relu(self.second(pad(y, (self.reach, 0)))) + self.shortcut(x))


class _Tcn(nn.Module):
    """Blocks of dilations 1, 2, 4, …: (N, T, inputs) to (N, T, channels)."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(_Causal(*pair, 1 << n) for n, pair in enumerate(pairwise(sizes))))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.blocks(x.transpose(1, 2)).transpose(1, 2)
        return y


def _min_gru(sizes: list[int]) -> nn.Module:
    return nn.Sequential(*(MinGru(*pair) for pair in pairwise(sizes)))


def _lru(sizes: list[int]) -> nn.Module:
    """Diagonal complex recurrences (arXiv 2303.06349), a matrix before each, one with a ReLU behind it."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(inputs, size), ComplexRecurrence(size), nn.Linear(size, size),
                                         nn.ReLU()) for inputs, size in pairwise(sizes)))


BODIES = {"tcn": _Tcn, "min_gru": _min_gru, "lru": _lru}
"""Makers of (N, T, inputs) to (N, T, size) by kind, from the inputs and the size of each layer."""


class StepsLabeller(nn.Module):
    """Layers over (N, T, inputs) and a Linear to (N, T, classes), for connectionist temporal classification.

    Steps see none after them, so that padding behind a sequence changes nothing.

    Members:
        front: a Linear before the layers, of as many outputs; an Identity for 0.
        body: the layers.
        linear: the Linear to the classes.
    """

    def __init__(self, kind: str, inputs: int, hidden: int, classes: int, layers: int, *, front: int = 0) -> None:
        super().__init__()
        self.front: nn.Module = nn.Linear(inputs, front) if front else nn.Identity()
        self.body, self.linear = BODIES[kind]([front or inputs, *[hidden] * layers]), nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.body(self.front(x)))
        return logits


class StepsClassifier(StepsLabeller):
    """Layers over (N, T, inputs), the mean of their steps, and a Linear to (N, classes); members of `StepsLabeller`."""

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.body(self.front(x)).mean(1))
        return logits
