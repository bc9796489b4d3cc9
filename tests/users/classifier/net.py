"""A GRU over the axes of a gesture, and its class from the last step."""
from torch import nn


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 4)

    def forward(self, steps):
        return self.linear(self.gru(steps)[0][:, -1])
