"""The models that an experiment names, built from plain torch modules."""
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from circulant.sim.refusal import Refusal, nearest

__all__ = ["MODELS", "ModelSettings", "SequenceClassifier", "build"]

CELLS: dict[str, Callable[..., nn.Module]] = {"gru": nn.GRU}


class SequenceClassifier(nn.Module):
    """A recurrent layer over (N, T, inputs), its last step, and a Linear to (N, classes).

    Members:
        gru: the recurrent layer, under the name of the cell.
        linear: the Linear from ``hidden`` to ``classes``.
    """

    def __init__(self, inputs: int, hidden: int, classes: int, *, cell: str = "gru", layers: int = 1) -> None:
        super().__init__()
        if cell not in CELLS:
            raise Refusal(f"A cell must be one of {', '.join(map(repr, CELLS))}, not {cell!r}{nearest(cell, CELLS)}")
        self.cell = cell
        self.add_module(cell, CELLS[cell](inputs, hidden, num_layers=layers, batch_first=True))
        self.linear = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        steps, _ = self.get_submodule(self.cell)(x)  # (N, T, hidden)
        logits: Tensor = self.linear(steps[:, -1])
        return logits


@dataclass(frozen=True)
class ModelSettings:
    """What an experiment says of its model.

    Raises:
        Refusal: when the kind is unknown or a number is not positive.
    """

    kind: str = "gru"
    hidden: int = 64
    layers: int = 1

    def __post_init__(self) -> None:
        if self.kind not in MODELS:
            raise Refusal(f"A model must be one of {', '.join(map(repr, MODELS))}, not {self.kind!r}"
                          f"{nearest(str(self.kind), MODELS)}")
        for name in ("hidden", "layers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Refusal(f"Field {name!r} of a model must be a positive integer, not {value!r}; choose 1 or more")


def build(settings: ModelSettings, inputs: int, classes: int, *, seed: int = 0) -> nn.Module:
    """The model of the settings, initialised from the seed; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[settings.kind](settings, inputs, classes)


def _gru(settings: ModelSettings, inputs: int, classes: int) -> nn.Module:
    return SequenceClassifier(inputs, settings.hidden, classes, cell="gru", layers=settings.layers)


MODELS: dict[str, Callable[[ModelSettings, int, int], nn.Module]] = {"gru": _gru}
"""Builders by kind: (settings, inputs, classes) to a model."""
