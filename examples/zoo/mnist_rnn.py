"""The model of torch's example mnist_rnn as it stands there: an LSTM reads an image row by row, 28 → 64 → 32 → 10.

Run it with `python examples/zoo/mnist_rnn.py [FOLDER]`; weights are random. What comes in is reshaped to a
sequence, the normalisation behind the last step is a scale, and the logarithm of the softmax is dropped: the
class stays the same.
"""
import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import circulant


class Net(nn.Module):
    """https://github.com/pytorch/examples/tree/main/mnist_rnn"""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(input_size=28, hidden_size=64, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(64)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = images.reshape(-1, 28, 28)
        output, _ = self.rnn(rows)
        output = output[:, -1, :]
        output = self.batchnorm(output)
        output = self.dropout1(output)
        output = self.fc1(output)
        output = F.relu(output)
        output = self.dropout2(output)
        output = self.fc2(output)
        return F.log_softmax(output, dim=1)


def model() -> nn.Module:
    return Net().eval()


def samples(count: int) -> Tensor:
    """Images (count, 1, 28, 28)."""
    return torch.rand(count, 1, 28, 28)


def main(folder: str = "runs/mnist-rnn") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(64)
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="mnist_rnn")
    circulant.generate(network, multipliers=64).write(folder)
    check = circulant.verify(folder, network.vectors(x[:8]))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per row")


if __name__ == "__main__":
    main(*sys.argv[1:2])
