"""A digital predistorter as OpenDPD trains them: a small GRU over baseband samples, an output at every step.

Run it with `python examples/zoo/dpd_gru.py [FOLDER]`; weights are random. In: I, Q,
amplitude and its cube; out: I and Q.
"""
import sys

import torch
from torch import Tensor, nn

import circulant


class Predistorter(nn.Module):
    """Wu et al., "OpenDPD: an open-source end-to-end learning & benchmarking framework", 2024: a GRU of few units."""

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, hidden, batch_first=True)
        self.fc_out = nn.Linear(hidden, 2)

    def forward(self, features: Tensor) -> Tensor:
        states, _ = self.rnn(features)
        return self.fc_out(states)  # (N, T, 2)


def model() -> nn.Module:
    return Predistorter().eval()


def samples(count: int) -> Tensor:
    """Features (count, 50 steps, 4) of a signal with a band of its own."""
    iq = torch.randn(count, 50, 2).cumsum(1)
    iq = iq / iq.abs().amax((1, 2), keepdim=True)
    amplitude = iq.norm(dim=-1, keepdim=True)
    return torch.cat((iq, amplitude, amplitude ** 3), -1)


def main(folder: str = "runs/dpd-gru") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(64)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="dpd_gru")
    circulant.generate(network, multipliers=16).write(folder)
    check = circulant.verify(folder, network.vectors(x[:16]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per sample")


if __name__ == "__main__":
    main(*sys.argv[1:2])
