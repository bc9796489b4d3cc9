"""RNNoise's noise suppression in its shapes: 42 features of a frame, GRUs of 24, 48 and 96 units, 22 gains per frame.

Run it with `python examples/zoo/rnnoise.py [FOLDER]`; weights are random. RNNoise's GRUs are of the older form, which
resets before the matrix, and the candidate of the second one is rectified. Each takes the features and what comes
before it side by side, so that branches cross. RNNoise's second output, whether somebody speaks, is left out.
"""
import sys

import torch
from torch import Tensor, nn

import circulant
from circulant.training import ResetBeforeGru


class Suppressor(nn.Module):
    """Valin, "A hybrid DSP/deep learning approach to real-time full-band speech enhancement", 2018."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(42, 24)
        self.vad = ResetBeforeGru(24, 24, batch_first=True)
        self.noise = ResetBeforeGru(24 + 24 + 42, 48, batch_first=True, nonlinearity="relu")
        self.denoise = ResetBeforeGru(24 + 48 + 42, 96, batch_first=True)
        self.gains = nn.Linear(96, 22)

    def forward(self, features: Tensor) -> Tensor:
        frames = torch.tanh(self.dense(features))
        vad, _ = self.vad(frames)
        noise, _ = self.noise(torch.cat((frames, vad, features), -1))
        denoised, _ = self.denoise(torch.cat((vad, noise, features), -1))
        return torch.sigmoid(self.gains(denoised))  # (N, T, 22)


def model() -> nn.Module:
    return Suppressor().eval()


def samples(count: int) -> Tensor:
    """Features (count, 20 frames, 42)."""
    return torch.randn(count, 20, 42)


def main(folder: str = "runs/rnnoise") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(32)
    net = circulant.compress(net, {"noise": 8, "denoise": 8})
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="rnnoise")
    circulant.generate(network, multipliers=96).write(folder)
    check = circulant.verify(folder, network.vectors(x[:4]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per frame")


if __name__ == "__main__":
    main(*sys.argv[1:2])
