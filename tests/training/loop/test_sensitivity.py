import re

import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress
from circulant.training.blocks.matrices import constraint_of, matrices
from circulant.training.blocks.quantized_set import constrain_to_quantized, nearest_quantized
from circulant.training.loop.finetune import finetune
from circulant.training.loop.sensitivity import Sensitivity
from circulant.training.models.cells import ResetBeforeGru

SMALL = 1e-4

X = np.random.default_rng(3).uniform(-1, 1, (12, 3, 4)).astype(np.float32)


def constrained(model, k, shifts=()):
    """A model on a grid, in float64."""
    made = compress(model, k)
    return constrain_to_quantized(made, {name: WeightGrid(Format(6, 3), shifts) for name in matrices(made)}).double()


def by_hand(model, x):
    """Squares of the slopes of all outputs with respect to each stored number, times those of an error of one bit."""
    total, true = 0.0, model(x)[0]
    for matrix in matrices(model).values():
        known, first = constraint_of(matrix), matrix.first.detach()
        k, settled, shifts = first.shape[-1], known.settled, known.grid.row_shifts
        half = torch.fft.rfft(nearest_quantized(first, known.grid))
        for index in np.ndindex(*half.shape):
            for step in (SMALL, SMALL * 1j) if 0 < index[-1] < k / 2 else (SMALL,):
                bins = half.clone()
                bins[index] += step
                step_of = known.grid.form.step * 2.0 ** -(shifts[index[1]] if shifts else 0)
                known.settled = lambda first, bins=bins, k=k: torch.fft.irfft(bins, n=k)
                slope = (model(x)[0] - true) / SMALL
                total += float(slope.detach().square().sum()) * step_of ** 2 * (4 ** 6 - 1) / 3
        known.settled = settled
    return total


@pytest.mark.parametrize(("k", "shifts"), [(1, ()), (2, ()), (4, (0, 2)), (8, ())])
def test_it_is_what_wrong_bits_do_to_first_order(k, shifts):
    torch.manual_seed(0)
    model, x = constrained(nn.GRU(8, 8, batch_first=True), k, shifts), torch.randn(2, 2, 8).double()
    sensitivity = Sensitivity(model, 1e-3)
    drawn = np.array([float(sensitivity(model(x)[0]).detach()) for _ in range(100)])
    assert abs(drawn.mean() - 1e-3 * by_hand(model, x)) < 4 * drawn.std() / 100 ** 0.5


def test_training_with_it_makes_the_outputs_less_sensitive():
    torch.manual_seed(1)
    model, x = constrained(nn.GRU(8, 8, batch_first=True), 4), torch.randn(8, 2, 8).double()
    sensitivity, true = Sensitivity(model, 1e-3), model(x)[0].detach()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)

    def mean():
        return np.mean([float(sensitivity(model(x)[0]).detach()) for _ in range(20)])

    before = mean()
    for _ in range(40):
        optimizer.zero_grad()
        outputs = model(x)[0]
        ((outputs - true).square().sum() + sensitivity(outputs)).backward()
        optimizer.step()
    assert mean() < 0.7 * before


def test_the_outputs_of_one_linear_layer_are_as_sensitive_whatever_its_weights():
    model = constrained(nn.Linear(4, 4), 4)
    sensitivity, x = Sensitivity(model, 0.1), torch.randn(2, 4).double()
    torch.manual_seed(2)
    one = sensitivity(model(x))
    matrices(model)["weight"].first.data += 1.0
    torch.manual_seed(2)
    assert sensitivity(model(x)).item() == one.item() > 0


def test_a_layer_that_cannot_be_differentiated_twice_is_refused():
    class Labeller(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.linear = ResetBeforeGru(4, 4, batch_first=True), nn.Linear(4, 3)

        def forward(self, x):
            return self.linear(self.gru(x)[0][:, -1])

    model = Labeller()
    data = circulant.Dataset("mine", X, np.arange(12) % 3, X, np.arange(12) % 3, classes=3)
    forms = {name: WeightGrid(Format(6, 3)) for name in matrices(model)}
    with pytest.raises(Refusal, match=re.escape("A fine-tuning with a penalty on sensitivity needs layers that can be "
                       "differentiated twice, but one cannot (trying to differentiate twice a function that was marked "
                       "with @once_differentiable); use layers of torch, or leave quantization.finetune_sensitivity "
                       "out")):
        finetune(model, data, forms, epochs=1, sensitivity=0.1)
