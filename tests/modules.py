"""Torch modules for tests."""
from torch import nn


class Net(nn.Module):
    """A model whose forward method is given as a function of itself and its input."""

    def __init__(self, run, **modules):
        super().__init__()
        self.run = run
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x):
        return self.run(self, x)
