"""The residual network of MLPerf Tiny's image classification in its shapes: three stacks of 16, 32 and 64 channels.

Run it with `python examples/zoo/resnet8.py [FOLDER]`; weights are random.
"""
import sys

import torch
from torch import Tensor, nn

import circulant


class Stack(nn.Module):
    """Two convolutions beside a shortcut, which is a convolution of kernel 1 where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet8(nn.Module):
    """https://github.com/mlcommons/tiny, benchmark/training/image_classification"""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.stacks = nn.Sequential(Stack(16, 16, 1), Stack(16, 32, 2), Stack(32, 64, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dense = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.stacks(torch.relu(self.norm(self.conv(x))))
        return torch.softmax(self.dense(self.pool(y).flatten(1)), dim=-1)


def model() -> nn.Module:
    return ResNet8().eval()


def samples(count: int) -> Tensor:
    """Images (count, 3, 32, 32)."""
    return torch.randn(count, 3, 32, 32)


def main(folder: str = "runs/resnet8") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(16)
    net = circulant.compress(net, {name: 8 for name, part in net.named_modules() if name.startswith("stacks")
                                   and isinstance(part, nn.Conv2d)})
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="resnet8")
    circulant.generate(network, multipliers=256).write(folder)
    check = circulant.verify(folder, network.vectors(x[:2]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per image")


if __name__ == "__main__":
    main(*sys.argv[1:2])
