"""A speech recogniser as deepspeech.pytorch builds it: convolutions over a spectrogram, an LSTM over its columns.

Run it with `python examples/zoo/deepspeech.py [FOLDER]`; weights are random. Time is the last axis of the spectrogram:
the circuit takes it column by column, so that each step leaves with its last pixel. Steps and samples, which the model
merges for its classifier, stay apart.
"""
import sys

import torch
from torch import Tensor, nn

import circulant


class DeepSpeech(nn.Module):
    """https://github.com/SeanNaren/deepspeech.pytorch, with an LSTM in one direction."""

    def __init__(self, bins: int = 40, channels: int = 8, hidden: int = 64, labels: int = 29) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, channels, kernel_size=(9, 5), stride=(2, 2), padding=(4, 2)), nn.BatchNorm2d(channels),
            nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(channels, channels, kernel_size=(5, 3), stride=(2, 1), padding=(2, 1)), nn.BatchNorm2d(channels),
            nn.Hardtanh(0, 20, inplace=True))
        self.rnn = nn.LSTM(channels * bins // 4, hidden)
        self.fc = nn.Linear(hidden, labels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        n, c, bins, steps = x.size()
        x = x.view(n, c * bins, steps)
        x = x.transpose(1, 2).transpose(0, 1).contiguous()  # (T, N, c · bins)
        x, _ = self.rnn(x)
        t, n = x.size(0), x.size(1)
        x = self.fc(x.view(t * n, -1)).view(t, n, -1)
        return x.transpose(0, 1)  # (N, T, labels)


def model(small: bool = False) -> nn.Module:
    return (DeepSpeech(8, 2, 6, 5) if small else DeepSpeech()).eval()


def samples(count: int, small: bool = False) -> Tensor:
    """Spectrograms (count, 1, 40 bins, 60 frames)."""
    return torch.randn(count, 1, 8, 14) if small else torch.randn(count, 1, 40, 60)


def main(folder: str = "runs/deepspeech") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(16)
    net = circulant.compress(net, {"rnn": 8})
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="deepspeech")
    circulant.generate(network, multipliers=128).write(folder)
    check = circulant.verify(folder, network.vectors(x[:2]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per spectrogram")


if __name__ == "__main__":
    main(*sys.argv[1:2])
