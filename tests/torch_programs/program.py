"""Torch models in other words: a program is a forward method, the layers that it has, and the shapes of its inputs."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["IMAGE", "PROGRAMS", "SEQUENCE", "SIGNAL", "VECTOR", "Program", "gru", "linear", "lstm", "program"]

SEQUENCE, VECTOR, SIGNAL, IMAGE = (7, 6), (12,), (4, 16), (2, 8, 8)

SAMPLES = 6


@dataclass(frozen=True)
class Program:
    """A model in other words.

    Parameters:
        forward: of the model, which it takes first; its layers are attributes.
        layers: by name, made anew for each model.
        shapes: of the inputs, without the batch.
    """

    forward: Callable[..., Any]
    layers: Callable[[], dict[str, nn.Module]]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        return self.forward.__name__

    def model(self, seed: int = 0) -> nn.Module:
        """The model with random weights."""
        torch.manual_seed(seed)
        made = type(self.name, (nn.Module,), {"forward": self.forward})()
        for name, layer in self.layers().items():
            made.register_module(name, layer)
        for layer in made.modules():
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.running_mean = torch.randn(layer.num_features) / 4
                layer.running_var = torch.rand(layer.num_features) + 0.5
        return made.eval()

    def sample(self, seed: int = 1) -> Tensor | tuple[Tensor, ...]:
        """Inputs of several samples."""
        made = torch.Generator().manual_seed(seed)
        found = tuple(torch.randn(SAMPLES, *shape, generator=made) for shape in self.shapes)
        return found[0] if len(found) == 1 else found


PROGRAMS: list[Program] = []
"""All of them, in the order of issue and section: states, moves, arithmetic, functions, shapes of programs."""


def program(*shapes: tuple[int, ...], **layers: Callable[[], nn.Module]) -> Callable[[Callable[..., Any]], Any]:
    """Add a program, whose layers are given as functions that make them."""
    def added(forward: Callable[..., Any]) -> Any:
        PROGRAMS.append(Program(forward, lambda: {name: make() for name, make in layers.items()}, shapes))
        return forward
    return added


def lstm(**more: Any) -> Callable[[], nn.Module]:
    return lambda: nn.LSTM(6, 8, **{"batch_first": True, **more})


def gru(**more: Any) -> Callable[[], nn.Module]:
    return lambda: nn.GRU(6, 8, **{"batch_first": True, **more})


def linear(columns: int = 8, rows: int = 3) -> Callable[[], nn.Module]:
    return lambda: nn.Linear(columns, rows)
