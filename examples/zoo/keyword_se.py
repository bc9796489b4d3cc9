"""A keyword spotter with SiLU and squeeze and excitation: convolutions over a spectrogram, each with gates for its
channels.

Run it with `python examples/zoo/keyword_se.py [FOLDER]`; weights are random. The gates of an image are known when all
of it has been seen; until then it waits in the circuit, whose manifest says how many words that takes ("waiting").
"""
import sys

import torch
from torch import Tensor, nn

import circulant


class Excitation(nn.Module):
    """Hu et al., "Squeeze-and-excitation networks", 2018."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(channels, squeezed), nn.SiLU(), nn.Linear(squeezed, channels),
                                    nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        gates = self.layers(x.mean((2, 3)))
        return x * gates[:, :, None, None]


def block(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU(),
            Excitation(outputs, outputs // 4 or 1)]


def model(small: bool = False) -> nn.Module:
    """A front of 10 x 4 as DS-CNN has it, then blocks of 3 x 3 (Zhang et al., "Hello edge", 2017)."""
    first, width, kernel = (2, 4, 3) if small else (16, 32, (10, 4))
    front = [nn.Conv2d(1, first, kernel, 2, 1 if small else (5, 1), bias=False), nn.BatchNorm2d(first), nn.SiLU()]
    return nn.Sequential(*front, *block(first, width, 1), *block(width, width, 2), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(width, 12)).eval()


def samples(count: int, small: bool = False) -> Tensor:
    """Spectrograms (count, 1, 49 frames, 10 coefficients)."""
    return torch.randn(count, 1, 9, 6) if small else torch.randn(count, 1, 49, 10)


def main(folder: str = "runs/keyword_se") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(16)
    print(circulant.inspect(net, x))
    network = circulant.export(circulant.compress(net, 4), x, name="keyword_se")
    circulant.generate(network, multipliers=256).write(folder)
    check = circulant.verify(folder, network.vectors(x[:2]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per spectrogram")


if __name__ == "__main__":
    main(*sys.argv[1:2])
