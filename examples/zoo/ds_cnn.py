"""The depthwise separable network of MLPerf Tiny's keyword spotting in its shapes, blocks of 8 in its 1 × 1 parts.

Run it with `python examples/zoo/ds_cnn.py [FOLDER]`; weights are random.
"""
import sys
from collections import OrderedDict

import torch
from torch import Tensor, nn

import circulant


def normed(conv: nn.Conv2d) -> nn.Sequential:
    return nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(conv.out_channels), relu=nn.ReLU()))


class DsCnn(nn.Module):
    """https://github.com/mlcommons/tiny, benchmark/training/keyword_spotting

    Padding is alike on both sides; Keras has 4 lines above the spectrogram and 5 below it.
    """

    def __init__(self, channels: int = 64, blocks: int = 4) -> None:
        super().__init__()
        self.first = normed(nn.Conv2d(1, channels, (10, 4), stride=2, padding=(5, 1)))
        self.separable = nn.Sequential(*(nn.Sequential(OrderedDict(
            depthwise=normed(nn.Conv2d(channels, channels, 3, padding=1, groups=channels)),
            pointwise=normed(nn.Conv2d(channels, channels, 1)))) for _ in range(blocks)))
        self.pool, self.dense = nn.AdaptiveAvgPool2d(1), nn.Linear(channels, 12)

    def forward(self, x: Tensor) -> Tensor:
        y = self.pool(self.separable(self.first(x))).flatten(1)
        return torch.softmax(self.dense(y), dim=-1)


def model(*, small: bool = False) -> nn.Module:
    net = (DsCnn(16, 2) if small else DsCnn()).eval()
    return circulant.compress(net, {name: 8 for name in circulant.training.block_sizes(net) if "pointwise" in name})


def samples(count: int, *, small: bool = False) -> Tensor:
    """Spectrograms (count, 1, 49, 10) of 49 steps and 10 coefficients."""
    return torch.randn(count, 1, *((13, 6) if small else (49, 10)))


def main(folder: str = "runs/ds_cnn") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(16)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="ds_cnn", weight_bits=10, activation_bits=12)
    circulant.generate(network, multipliers=342).write(folder)
    check = circulant.verify(folder, network.vectors(x[:4]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per image")


if __name__ == "__main__":
    main(*sys.argv[1:2])
