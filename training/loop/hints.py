"""Hints: what the layers inside a teacher give at each step or pixel, for those of another model to learn from."""
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init
from torch.utils.hooks import RemovableHandle

from circulant.sim.refusal import Refusal
from circulant.training.models.cells import Recurrent

__all__ = ["Hints", "layers"]

RATE = 1e-3
"""Adam's, for the maps."""


class Hints:
    """The distance of what a teacher's layers give from a linear map of what a student's give.

    FitNets (Romero et al., ICLR 2015, section 2.2). The outputs are a few directions of the last layer; hints speak of
    all, and of every layer, so that a sentence says more of how the teacher hears. The layers are the recurrent ones of
    ours, or else the convolutions. Each has a map, of channels at each pixel, which starts at zero, is trained along
    with the student, and is not part of it.

    Parameters:
        student, teacher: models with the same such layers. They are observed until `close`.

    Members:
        maps, optimizer: of the layers in their order, and what trains them.

    Raises:
        Refusal: when they have no such layer.
    """

    def __init__(self, student: nn.Module, teacher: nn.Module) -> None:
        self._layers = layers(student), layers(teacher)
        sizes = [size for layer in self._layers[0] for size in _sizes(layer)]
        self.maps = nn.ModuleList(skip_init(nn.Linear, size, size) for size in sizes)
        self.maps.to(next(student.parameters()).device)
        for parameter in self.maps.parameters():
            nn.init.zeros_(parameter)
        self.optimizer = torch.optim.Adam(self.maps.parameters(), RATE)
        self._heard: tuple[list[list[Tensor]], ...] = tuple([[] for _ in of] for of in self._layers)
        self._hooks: list[RemovableHandle] = []
        for of, all_heard in zip(self._layers, self._heard, strict=True):
            for layer, heard in zip(of, all_heard, strict=True):
                if isinstance(layer, Recurrent):
                    layer.tap = _listener(layer, heard, always=of is self._layers[1])
                else:
                    self._hooks.append(layer.register_forward_hook(_watcher(layer, heard,
                                                                            always=of is self._layers[1])))

    def distance(self, lengths: Tensor | None) -> Tensor:
        """Squared, in parts of the teacher's square, at the valid steps heard last; the mean over the layers.

        Raises:
            Refusal: when a model called one of its layers twice, or not at all.
        """
        for layer, heard in zip(self._layers[0], self._heard[0], strict=True):
            if len(heard) != (count := len(_sizes(layer))):
                raise Refusal("training.hints must have layers that the model calls once each, but one was called "
                              f"{len(heard) // count} times; choose 0")
        parts = []
        for layer, mine, theirs in zip(self.maps, *(chain.from_iterable(of) for of in self._heard), strict=True):
            valid = torch.ones(theirs.shape[:2], device=theirs.device)
            if lengths is not None and isinstance(self._layers[0][0], Recurrent):
                valid = (torch.arange(len(theirs), device=theirs.device)[:, None] < lengths.to(theirs.device)).float()
            off, whole = (each.float() * valid[..., None] for each in (layer(mine) - theirs, theirs))
            parts.append(off.square().sum() / whole.square().sum().clamp(min=1e-30))
        self._forget()
        return torch.stack(parts).mean()

    def close(self) -> None:
        """Listen no longer."""
        for layer in (*self._layers[0], *self._layers[1]):
            if isinstance(layer, Recurrent):
                layer.tap = None
        for hook in self._hooks:
            hook.remove()
        self._forget()

    def _forget(self) -> None:
        for heard in chain.from_iterable(self._heard):
            heard.clear()


def layers(model: nn.Module) -> Sequence[Recurrent | nn.Conv2d]:
    """The layers of a model that can be observed: the recurrent ones, or where there are none the convolutions.

    Raises:
        Refusal: when there are neither.
    """
    found = [module for module in model.modules() if isinstance(module, Recurrent)]
    if found:
        return found
    if convolutions := [module for module in model.modules() if isinstance(module, nn.Conv2d)]:
        return convolutions
    raise Refusal("training.hints must have recurrent layers of our own (a 'reset_gru', or an 'lstm' with peepholes), "
                  "or convolutions, to learn from, but the model has none; choose 0")


def _sizes(layer: Recurrent | nn.Conv2d) -> list[int]:
    """Features of each part of a layer that is heard."""
    if isinstance(layer, nn.Conv2d):
        return [layer.out_channels]
    return [layer.output_size * (1 + layer.bidirectional)] * layer.num_layers


def _listener(layer: Recurrent, heard: list[Any], *, always: bool) -> Callable[[Tensor], None]:
    """Discard what an evaluation between two epochs recorded."""
    return lambda steps: heard.append(steps) if always or layer.training else None


def _watcher(layer: nn.Module, heard: list[Any], *, always: bool) -> Callable[[nn.Module, Any, Tensor], None]:
    """As `_listener`, of a convolution's pixels (N, H · W, channels); a copy of the layer is not heard."""
    def watch(module: nn.Module, given: Any, output: Tensor) -> None:
        if module is layer and (always or layer.training):
            heard.append(output.flatten(2).transpose(1, 2))

    return watch
