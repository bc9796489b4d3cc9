"""Encoder and decoder of Silero's voice activity detector in their shapes, with states that the host keeps.

Run it with `python examples/zoo/silero.py [FOLDER]`; weights are random. A call takes the magnitudes of four frames and
the state of the LSTM cell, and gives the probability of speech and the next state: three inputs, three outputs. Silero
stacks h and c to one tensor, and computes the magnitudes in front.
"""
import sys

import torch
from torch import Tensor, nn

import circulant


def encoder(bins: int, width: int) -> nn.Sequential:
    """Four convolutions over time, which halve the frames twice."""
    half = width // 2
    return nn.Sequential(nn.Conv1d(bins, width, 3, padding=1), nn.ReLU(),
                         nn.Conv1d(width, half, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv1d(half, half, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv1d(half, width, 3, padding=1), nn.ReLU())


class Silero(nn.Module):
    """https://github.com/snakers4/silero-vad, version 5, at 16 kHz."""

    def __init__(self, bins: int = 129, width: int = 128) -> None:
        super().__init__()
        self.encoder = encoder(bins, width)
        self.rnn = nn.LSTMCell(width, width)
        self.decoder = nn.Sequential(nn.Dropout(0.1), nn.ReLU(), nn.Conv1d(width, 1, 1), nn.Sigmoid())

    def forward(self, magnitudes: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.encoder(magnitudes).squeeze(-1)
        h, c = self.rnn(x, (h, c))
        return self.decoder(h.unsqueeze(-1)).squeeze(1).mean(1, keepdim=True), h, c


def model(small: bool = False) -> nn.Module:
    return (Silero(6, 8) if small else Silero()).eval()


def samples(count: int, small: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Magnitudes (count, 129, 4), states h and c (count, 128)."""
    bins, width = (6, 8) if small else (129, 128)
    h = torch.rand(count, width) * 2 - 1
    return torch.randn(count, bins, 4).abs(), h, torch.randn(count, width)


def main(folder: str = "runs/silero") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(32)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="silero")
    circulant.generate(network, multipliers=256).write(folder)
    given = dict(zip((each.name for each in network.inputs), x, strict=True))
    check = circulant.verify(folder, network.vectors({name: each[:4] for name, each in given.items()}))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per call")


if __name__ == "__main__":
    main(*sys.argv[1:2])
