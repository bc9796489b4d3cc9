"""An LSTM autoencoder that finds anomalies in sensor data: an encoder's last state, repeated for a decoder.

Run it with `python examples/zoo/lstm_autoencoder.py [FOLDER]`; weights are random. The circuit counts the steps of a
sequence, of any length, and repeats its code as often when the last one has come.
"""
import sys

import torch
from torch import Tensor, nn

import circulant


class Autoencoder(nn.Module):
    """Malhotra et al., "LSTM-based encoder-decoder for multi-sensor anomaly detection", 2016, in the form of Keras'
    examples: the decoder takes the code at each step."""

    def __init__(self, sensors: int = 8, hidden: int = 64, code: int = 32) -> None:
        super().__init__()
        self.encoder = nn.LSTM(sensors, hidden, batch_first=True)
        self.bottleneck = nn.LSTM(hidden, code, batch_first=True)
        self.decoder = nn.LSTM(code, hidden, batch_first=True)
        self.output = nn.Linear(hidden, sensors)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.encoder(x)
        _, (code, _) = self.bottleneck(y)
        code = code[-1].unsqueeze(1).repeat(1, x.shape[1], 1)  # (N, T, code)
        y, _ = self.decoder(code)
        return self.output(y)


def model(small: bool = False) -> nn.Module:
    return (Autoencoder(3, 4, 2) if small else Autoencoder()).eval()


def samples(count: int, small: bool = False) -> Tensor:
    """Readings (count, 30 steps, 8 sensors)."""
    return torch.randn(count, 7, 3) if small else torch.randn(count, 30, 8)


def main(folder: str = "runs/lstm_autoencoder") -> None:
    torch.manual_seed(0)
    net, x = circulant.compress(model(), 8), samples(32)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="lstm_autoencoder")
    circulant.generate(network, multipliers=96).write(folder)
    check = circulant.verify(folder, network.vectors(x[:4]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per sequence")


if __name__ == "__main__":
    main(*sys.argv[1:2])
