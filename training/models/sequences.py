"""Models over sequences: a class for each, an output for each step, and a spotter of keywords in spectrograms."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from circulant.sim.refusal import Refusal, nearest
from circulant.training.models.cells import PeepholeLstm, Recurrent, ResetBeforeGru

__all__ = ["CELLS", "KeywordCrnn", "SequenceClassifier", "SequenceLabeller", "recurrent"]

CELLS: dict[str, Callable[..., nn.Module]] = {"gru": nn.GRU, "lstm": nn.LSTM, "reset_gru": ResetBeforeGru}
"""Recurrent layers by name; an "lstm" with peepholes is a `PeepholeLstm`."""


def recurrent(cell: str, inputs: int, hidden: int, *, layers: int = 1, projection: int = 0, peephole: bool = False,
              bidirectional: bool = False, dropout: float = 0.0) -> nn.Module:
    """A recurrent layer over (N, T, inputs) to (N, T, outputs), outputs being those of all directions.

    ``dropout`` acts between layers.

    Raises:
        Refusal: when the cell is unknown, cannot have what is asked for, or the projection is not below ``hidden``.
    """
    if cell not in CELLS:
        raise Refusal(f"A cell must be one of {', '.join(map(repr, CELLS))}, not {cell!r}{nearest(cell, CELLS)}")
    if cell != "lstm" and (projection or peephole):
        raise Refusal(f"Peepholes and a projection must be asked of an 'lstm', not of a {cell!r}; leave them out")
    if projection >= hidden:
        raise Refusal(f"A projection must be below the {hidden} hidden units, not {projection}; choose 0 for none")
    kind: Callable[..., nn.Module] = PeepholeLstm if peephole else CELLS[cell]
    return kind(inputs, hidden, num_layers=layers, batch_first=True, bidirectional=bidirectional,
                dropout=dropout if layers > 1 else 0.0, **({"proj_size": projection} if projection else {}))


class _Sequences(nn.Module):
    """A recurrent layer under the name of its cell, and a Linear from what it gives.

    ``front``: outputs of a Linear before it, at each step; 0 for none.
    """

    def __init__(self, inputs: int, hidden: int, classes: int, *, cell: str = "gru", layers: int = 1,
                 projection: int = 0, peephole: bool = False, bidirectional: bool = False,
                 dropout: float = 0.0, front: int = 0) -> None:
        super().__init__()
        self.front = nn.Linear(inputs, front) if front else None
        self.cell, self.bidirectional = cell, bidirectional
        self.add_module(cell, recurrent(cell, front or inputs, hidden, layers=layers, projection=projection,
                                        peephole=peephole, bidirectional=bidirectional, dropout=dropout))
        self.linear = nn.Linear((projection or hidden) * (1 + bidirectional), classes)

    def _steps(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (N, T, …) of the recurrent layer, and its last outputs h_n (layers · directions, N, …)."""
        steps, state = self.get_submodule(self.cell)(x if self.front is None else self.front(x))
        return steps, state[0] if self.cell == "lstm" else state

    def _labelled(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Outputs (N, T, …) of the recurrent layer, those of valid steps being what they are without padding."""
        layer, x = self.get_submodule(self.cell), x if self.front is None else self.front(x)
        if isinstance(layer, Recurrent):
            steps: Tensor = layer(x, lengths=lengths)[0]
            return steps
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]


class SequenceClassifier(_Sequences):
    """A recurrent layer over (N, T, inputs), its last step, and a Linear to (N, classes).

    With two directions, each gives the step at which it ends.

    Members:
        gru: the recurrent layer, under the name of the cell.
        linear: the Linear to the classes.
    """

    def forward(self, x: Tensor) -> Tensor:
        steps, last = self._steps(x)  # (N, T, outputs)
        end = torch.cat((last[-2], last[-1]), -1) if self.bidirectional else steps[:, -1]
        logits: Tensor = self.linear(end)
        return logits


class SequenceLabeller(_Sequences):
    """A recurrent layer over (N, T, inputs) and a Linear to (N, T, classes), for connectionist temporal classification.

    With ``lengths`` (N,) the outputs of valid steps are those of sequences without padding, in both directions.

    Members:
        lstm: the recurrent layer, under the name of the cell.
        linear: the Linear to the classes.
    """

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        if lengths is None or not self.bidirectional:  # In one direction padding comes too late to matter.
            steps = self._steps(x)[0]
        else:
            steps = self._labelled(x, lengths)
        logits: Tensor = self.linear(steps)
        return logits


class KeywordCrnn(nn.Module):
    """A convolution over a spectrogram (N, T, bands), recurrent layers, and their last step to (N, classes).

    After Arik et al. 2017, smaller: 5 × 5 windows at every second step and band, batch normalisation, then the channels
    of all bands of a step are what the recurrent layer takes.

    Members:
        conv, norm: the convolution to ``width`` channels.
        classifier: the `SequenceClassifier` behind it.
    """

    def __init__(self, bands: int, hidden: int, classes: int, *, width: int = 16, **options: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, width, 5, stride=2, padding=2, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.classifier = SequenceClassifier(width * ((bands + 1) // 2), hidden, classes, **options)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.relu(self.norm(self.conv(x.unsqueeze(1))))  # (N, width, T / 2, bands / 2)
        steps = maps.permute(0, 2, 3, 1).flatten(2)  # channels innermost: a block is of one band
        logits: Tensor = self.classifier(steps)
        return logits
