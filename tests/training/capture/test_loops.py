"""Cells that a forward method calls once a step become recurrent layers, with what is done with each step."""
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.sim.refusal import Refusal
from circulant.training.conversion import export, reference
from tests.modules import Net


def zeros(x):
    return x.new_zeros(len(x), 4)


def lstm(m, x, each=lambda x: x, then=lambda h: h):
    h = c = zeros(x)
    outputs = []
    for t in range(x.shape[1]):
        h, c = m.cell(each(x[:, t]), (h, c))
        outputs.append(then(h))
    return outputs


def stacked(m, x):
    """Two cells, one on the other, in one loop."""
    h, g, outputs = zeros(x), zeros(x), []
    for step in x.unbind(1):
        h = m.cell(step, h)
        g = m.other(h, g)
        outputs.append(g)
    return torch.stack(outputs, 1)


LOOPS = {
    "lstm": (lambda m, x: m.fc(lstm(m, x)[-1]), {"cell": nn.LSTMCell(3, 4)}, ["lstm", "linear"]),
    "all steps": (lambda m, x: m.fc(torch.stack(lstm(m, x), 1)), {"cell": nn.LSTMCell(3, 4, bias=False)}, [
        "lstm", "linear"]),
    "head in the loop": (lambda m, x: torch.stack(lstm(m, x, then=lambda h: torch.tanh(m.fc(h))), 1), {
        "cell": nn.LSTMCell(3, 4)}, ["lstm", "linear", "activation"]),
    "any activation in the loop": (lambda m, x: torch.stack(lstm(m, x, then=lambda h: F.elu(m.mish(m.fc(h)))), 1), {
        "cell": nn.LSTMCell(3, 4), "mish": nn.Mish()}, ["lstm", "linear", "activation", "activation"]),
    "layer in front in the loop": (lambda m, x: lstm(m, x, lambda x: F.relu(m.before(x)))[-1], {
        "cell": nn.LSTMCell(6, 4), "before": nn.Linear(3, 6)}, ["linear", "lstm"]),
    "two cells": (lambda m, x: m.fc(stacked(m, x)), {"cell": nn.GRUCell(3, 4), "other": nn.GRUCell(4, 4)}, [
        "gru", "gru", "linear"]),
    "rnn": (lambda m, x: m.fc(m.cell(x[:, 1], m.cell(x[:, 0]))), {
        "cell": nn.RNNCell(3, 4, nonlinearity="relu")}, None),
    "first steps": (lambda m, x: m.fc(lstm(m, x[:, :4])[-1]), {"cell": nn.LSTMCell(3, 4)}, None),
    "backward": (lambda m, x: m.fc(lstm(m, x.flip(1))[-1]), {"cell": nn.LSTMCell(3, 4)}, ["reverse", "lstm", "linear"]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_cell_in_a_loop_is_a_recurrent_layer(name):
    torch.manual_seed(3)
    run, modules, kinds = LOOPS[name]
    model, x = Net(run, fc=nn.Linear(4, 2), **modules).eval(), torch.randn(9, 6, 3)
    if kinds is None:  # A layer would need to take some of the steps alone.
        with pytest.raises(Refusal, match="indexing with"):
            export(model, x)
        return
    network, wanted = export(model, x, weight_bits=16), model(x).detach().numpy()
    assert [layer.kind for layer in network.layers] == kinds
    np.testing.assert_allclose(reference(model, x).run(x.numpy()), wanted, rtol=0, atol=1e-6)
    assert np.abs(network.run(x.numpy()).real - wanted).max() < 2e-3


def fed_back(m, x):
    """Each step takes what the one before gave."""
    h, y = zeros(x), x[:, 0]
    for _ in range(6):
        h = m.cell(y, h)
        y = m.back(h)
    return m.fc(h)


def changed(m, x):
    """The state changes between two steps."""
    h = zeros(x)
    for t in range(6):
        h = 0.5 * m.cell(x[:, t], h)
    return m.fc(h)


def begun(m, x):
    """The state is none that a layer begins with."""
    h = torch.ones(len(x), 4)
    for t in range(6):
        h = m.cell(x[:, t], h)
    return m.fc(h)


@pytest.mark.parametrize("run", [fed_back, changed, begun, lambda m, x: m.fc(m.cell(x[:, 0]))])
def test_loops_that_are_none_of_a_layer_are_refused(run):
    model = Net(run, cell=nn.GRUCell(3, 4), back=nn.Linear(4, 3), fc=nn.Linear(4, 2))
    with pytest.raises(Refusal, match=r"GRUCell: it must go through all steps from the first on, from a state "
                                      "of zeros, and with the state that the step before gave"):
        export(model, torch.randn(9, 6, 3))


def test_the_cells_of_an_lstm_are_no_output_of_a_layer():
    def run(m, x):
        h = c = zeros(x)
        for t in range(6):
            h, c = m.cell(x[:, t], (h, c))
        return m.fc(c)

    with pytest.raises(Refusal):
        export(Net(run, cell=nn.LSTMCell(3, 4), fc=nn.Linear(4, 2)), torch.randn(9, 6, 3))
