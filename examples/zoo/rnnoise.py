"""RNNoise's noise suppression in its shapes: 42 features of a frame, GRUs of 24, 48 and 96 units, 22 gains per frame.

Run it with `python examples/zoo/rnnoise.py [FOLDER]`; weights are random. RNNoise's GRUs are of the older form, which
resets before the matrix, and the candidate of the second one is rectified. Each takes the features and what comes
before it side by side, so that branches cross. A second output says whether somebody speaks.
"""
import sys

import torch
from torch import Tensor, nn

import circulant
from circulant.training import ResetBeforeGru


class Suppressor(nn.Module):
    """Valin, "A hybrid DSP/deep learning approach to real-time full-band speech enhancement", 2018."""

    def __init__(self, features: int = 42, width: int = 24, bands: int = 22) -> None:
        super().__init__()
        self.dense = nn.Linear(features, width)
        self.vad = ResetBeforeGru(width, width, batch_first=True)
        self.speech = nn.Linear(width, 1)
        self.noise = ResetBeforeGru(2 * width + features, 2 * width, batch_first=True, nonlinearity="relu")
        self.denoise = ResetBeforeGru(3 * width + features, 4 * width, batch_first=True)
        self.gains = nn.Linear(4 * width, bands)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        frames = torch.tanh(self.dense(features))
        vad, _ = self.vad(frames)
        noise, _ = self.noise(torch.cat((frames, vad, features), -1))
        denoised, _ = self.denoise(torch.cat((vad, noise, features), -1))
        return torch.sigmoid(self.gains(denoised)), torch.sigmoid(self.speech(vad))  # (N, T, 22), (N, T, 1)


def model(small: bool = False) -> nn.Module:
    return (Suppressor(4, 2, 3) if small else Suppressor()).eval()


def samples(count: int, small: bool = False) -> Tensor:
    """Features (count, 20 frames, 42)."""
    return torch.randn(count, 5, 4) if small else torch.randn(count, 20, 42)


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
