"""Which layer, weight or sample a value that is not finite comes from."""
import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress
from circulant.training.data import Dataset
from circulant.training.loop.loop import fit
from circulant.training.loop.nonfinite import find_nonfinite_source
from circulant.training.task.batches import Part


class Root(nn.Module):
    """Is not finite where its input is negative."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sqrt()


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gru = nn.GRU(4, 8, batch_first=True)
        self.head = nn.Sequential(nn.Linear(8, 8), Root(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(x)[0][:, -1])


def data() -> Dataset:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 3, 4)).astype(np.float32), np.arange(24) % 2
    return Dataset("noise", x[:16], y[:16], x[16:], y[16:], classes=2)


def place(model: nn.Module, samples: Dataset) -> str:
    batch = Part(samples, "train", torch.device("cpu")).take(torch.arange(3, 8))
    return find_nonfinite_source(model, batch, lambda: model(batch.x))


def test_the_first_layer_in_order_of_computation():
    model = Reader()
    assert place(model, data()) == "the output of layer 'head.1' (Root)"
    model.head[1] = nn.Identity()
    assert place(model, data()) == "the loss itself"


def test_a_layer_that_returns_several_tensors():
    class Pair(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
            return x, [x / 0]

    class First(nn.Module):
        def forward(self, pair: tuple[torch.Tensor, list[torch.Tensor]]) -> torch.Tensor:
            return pair[0]

    model = Reader()
    model.head = nn.Sequential(nn.Linear(8, 2), Pair(), First())
    assert place(model, data()) == "the output of layer 'head.1' (Pair)"


def test_a_weight():
    model = compress(Reader(), 4)
    with torch.no_grad():
        model.gru.parametrizations.weight_hh_l0.original[0, 0, 0, 0] = float("inf")
    assert place(model, data()) == "the weights gru.parametrizations.weight_hh_l0.original"


def test_a_sample():
    samples = data()
    samples.train_x[5, 1, 2] = np.nan  # after the data set was checked
    assert place(Reader(), samples) == "sample 5 of the data"


def test_the_hooks_are_removed():
    model = Reader()
    place(model, data())
    assert not any(module._forward_hooks for module in model.modules())


def test_fit_names_batch_and_layer():
    message = r"^The loss must be finite, but is nan in epoch 1, batch 1, first in the output of layer 'head\.1'"
    with pytest.raises(Refusal, match=message):
        fit(Reader(), data(), epochs=1, lr=0.1, batch=8)


def test_a_weight_that_only_the_last_batch_spoils():
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))

    def spoil() -> None:
        model[1].bias.grad.fill_(float("nan"))

    with pytest.raises(Refusal, match=r"^Weights must be finite, but 1\.bias is not after epoch 1; choose"):
        fit(model, data(), epochs=2, lr=0.1, batch=16, add_gradient=spoil)
