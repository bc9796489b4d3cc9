"""A CRNN for text in images as crnn.pytorch builds it: convolutions until the height is 1, LSTMs over the columns.

Run it with `python examples/zoo/crnn_ocr.py [FOLDER]`; weights are random, and the layers fewer. The circuit takes the
image column by column.
"""
import sys

import torch
from torch import Tensor, nn

import circulant


class BidirectionalLSTM(nn.Module):
    """https://github.com/meijieru/crnn.pytorch: both directions, and a Linear at every step of every sample."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.rnn = nn.LSTM(inputs, hidden, bidirectional=True)
        self.embedding = nn.Linear(hidden * 2, outputs)

    def forward(self, x: Tensor) -> Tensor:
        recurrent, _ = self.rnn(x)
        steps, n, width = recurrent.size()
        t_rec = recurrent.view(steps * n, width)
        output = self.embedding(t_rec)
        return output.view(steps, n, -1)


class CRNN(nn.Module):
    """Shi, Bai, Yao: "An end-to-end trainable neural network for image-based sequence recognition", 2015."""

    def __init__(self, width: int = 16, hidden: int = 32, classes: int = 37) -> None:
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, width, 3, 1, 1), nn.ReLU(True), nn.MaxPool2d(2, 2),
            nn.Conv2d(width, 2 * width, 3, 1, 1), nn.BatchNorm2d(2 * width), nn.ReLU(True),
            nn.MaxPool2d((2, 1), (2, 1)), nn.Conv2d(2 * width, 2 * width, 2, 1, 0), nn.ReLU(True))
        self.rnn = nn.Sequential(BidirectionalLSTM(2 * width, hidden, hidden),
                                 BidirectionalLSTM(hidden, hidden, classes))

    def forward(self, x: Tensor) -> Tensor:
        conv = self.cnn(x)
        _, _, h, _ = conv.size()
        assert h == 1, "the height of conv must be 1"
        conv = conv.squeeze(2)
        conv = conv.permute(2, 0, 1)  # (w, b, c)
        return self.rnn(conv).permute(1, 0, 2)


def model(small: bool = False) -> nn.Module:
    return (CRNN(2, 3, 5) if small else CRNN()).eval()


def samples(count: int, small: bool = False) -> Tensor:
    """Images (count, 1, 8, 64)."""
    return torch.rand(count, 1, 8, 12 if small else 64)


def main(folder: str = "runs/crnn-ocr") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(16)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="crnn_ocr")
    circulant.generate(network, multipliers=128).write(folder)
    check = circulant.verify(folder, network.vectors(x[:2]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per image")


if __name__ == "__main__":
    main(*sys.argv[1:2])
