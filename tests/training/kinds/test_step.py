"""Cells that are called once, with a state that comes in and goes out."""
import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.error.error_bound import error_bound
from circulant.sim.refusal import Refusal
from circulant.training import export, inspect, reference
from tests.modules import Net


class Step(nn.Module):
    """A step of a cell, and what becomes of its state."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x, *state):
        new = self.cell(x, state if isinstance(self.cell, nn.LSTMCell) else state[0])
        return (torch.relu(new[0]), *new) if isinstance(new, tuple) else (torch.relu(new), new)


CELLS = {"lstm": lambda: nn.LSTMCell(3, 5), "gru": lambda: nn.GRUCell(3, 5), "rnn": lambda: nn.RNNCell(3, 5),
         "rectified": lambda: nn.RNNCell(3, 5, nonlinearity="relu", bias=False),
         "without a bias": lambda: nn.GRUCell(3, 5, bias=False)}


@pytest.mark.parametrize("name", CELLS)
def test_a_step_is_that_of_torch_and_its_integers_are_within_the_bound(name):
    torch.manual_seed(0)
    model = Step(CELLS[name]()).eval()
    x = tuple(torch.randn(20, size) for size in ((3, 5, 5) if name == "lstm" else (3, 5)))
    exact, network = reference(model, x), export(model, x)  # The former is compared with torch.
    assert [each.name for each in exact.inputs] == ["x", *(f"state_{n}" for n in range(len(x) - 1))]
    given = dict(zip((each.name for each in exact.inputs), x, strict=True))
    golden, wanted, bound = network.run(given), exact.run(given), error_bound(network, exact, given)
    assert len(golden) == len(x)
    for output in network.outputs:
        assert (np.abs(golden[output].real - wanted[output]) <= bound[output] + 1e-9).all()
        assert bound[output].max() < 0.05
    rectified, state = network.outputs[:2]
    assert not np.array_equal(golden[rectified].real, golden[state].real) or name == "rectified"


def test_a_cell_without_a_state_is_refused():
    with pytest.raises(Refusal, match=r"cell \(GRUCell: it must go through all steps from the first on, "):
        inspect(Net(lambda m, x: m.cell(x), cell=nn.GRUCell(3, 5)), torch.randn(2, 3)).require()


def test_a_mean_over_an_axis_of_one_element_changes_nothing():
    mean = Net(lambda m, x: m.fc(x.unsqueeze(1).mean(1).unsqueeze(2).amax(2, keepdim=True).squeeze(2)),
               fc=nn.Linear(3, 4))
    assert [node.layer.kind for node in reference(mean, torch.randn(4, 3)).nodes] == ["linear"]
