"""The autoencoder of MLPerf Tiny's anomaly detection in its shapes: 640 → 4 × 128 → 8 → 4 × 128 → 640.

Run it with `python examples/zoo/autoencoder.py [FOLDER]`; weights are random. Dense layers have blocks of 8,
and keep the normalisations behind them as scales.
"""
import itertools
import sys

import torch
from torch import Tensor, nn

import circulant

WIDTHS = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)


def model() -> nn.Module:
    """https://github.com/mlcommons/tiny, benchmark/training/anomaly_detection: each layer normalised and rectified."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(WIDTHS):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTHS[-1], WIDTHS[0])).eval()


def samples(count: int) -> Tensor:
    """Five frames of 128 mel bands each, (count, 640)."""
    return torch.randn(count, 640)


def main(folder: str = "runs/autoencoder") -> None:
    torch.manual_seed(0)
    net, x = circulant.compress(model(), 8), samples(64)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="autoencoder")
    circulant.generate(network, multipliers=128).write(folder)
    check = circulant.verify(folder, network.vectors(x[:8]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per vector")


if __name__ == "__main__":
    main(*sys.argv[1:2])
