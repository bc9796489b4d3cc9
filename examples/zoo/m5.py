"""M5 of torchaudio's tutorial on speech commands as it stands there: four convolutions over the samples of a second.

Run it with `python examples/zoo/m5.py [FOLDER]`; weights are random. The last pooling is as long as what comes to it.
"""
import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import circulant


class M5(nn.Module):
    """https://pytorch.org/audio tutorial "Speech Command Classification with torchaudio"; Dai et al., 2016."""

    def __init__(self, n_input: int = 1, n_output: int = 35, stride: int = 16, n_channel: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(n_input, n_channel, kernel_size=80, stride=stride)
        self.bn1 = nn.BatchNorm1d(n_channel)
        self.pool1 = nn.MaxPool1d(4)
        self.conv2 = nn.Conv1d(n_channel, n_channel, kernel_size=3)
        self.bn2 = nn.BatchNorm1d(n_channel)
        self.pool2 = nn.MaxPool1d(4)
        self.conv3 = nn.Conv1d(n_channel, 2 * n_channel, kernel_size=3)
        self.bn3 = nn.BatchNorm1d(2 * n_channel)
        self.pool3 = nn.MaxPool1d(4)
        self.conv4 = nn.Conv1d(2 * n_channel, 2 * n_channel, kernel_size=3)
        self.bn4 = nn.BatchNorm1d(2 * n_channel)
        self.pool4 = nn.MaxPool1d(4)
        self.fc1 = nn.Linear(2 * n_channel, n_output)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        x = F.relu(self.bn1(x))
        x = self.pool1(x)
        x = self.conv2(x)
        x = F.relu(self.bn2(x))
        x = self.pool2(x)
        x = self.conv3(x)
        x = F.relu(self.bn3(x))
        x = self.pool3(x)
        x = self.conv4(x)
        x = F.relu(self.bn4(x))
        x = self.pool4(x)
        x = F.avg_pool1d(x, x.shape[-1])
        x = x.permute(0, 2, 1)
        x = self.fc1(x)
        return F.log_softmax(x, dim=2)


def model(small: bool = False) -> nn.Module:
    return (M5(n_output=5, stride=4, n_channel=2) if small else M5()).eval()


def samples(count: int, small: bool = False) -> Tensor:
    """A second of sound at 8 kHz, (count, 1, 8000)."""
    return torch.randn(count, 1, 1800 if small else 8000)


def main(folder: str = "runs/m5") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(16)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="m5")
    circulant.generate(network, multipliers=64).write(folder)
    check = circulant.verify(folder, network.vectors(x[:2]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per second of sound")


if __name__ == "__main__":
    main(*sys.argv[1:2])
