"""Steps and samples on one axis: layers of each vector work on the sequences instead."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training import inspect, reference
from tests.modules import Net


def merged(m, x):
    out = m.rnn(x.transpose(0, 1))[0]
    t, n, size = out.shape
    return m.fc(torch.relu(m.up(out.reshape(t * n, size)))).view(t, n, -1).transpose(0, 1)


def first(m, x):
    n, t, size = x.shape
    return m.rnn(torch.tanh(m.into(x.view(-1, size))).unflatten(0, (n, t)).transpose(0, 1))[0].transpose(0, 1)


@pytest.mark.parametrize("run", [merged, first])
@pytest.mark.parametrize("steps", [5, 2])
def test_what_is_taken_apart_again_is_never_merged(run, steps):
    model = Net(run, rnn=nn.GRU(3, 4), up=nn.Linear(4, 6), fc=nn.Linear(6, 2), into=nn.Linear(3, 3)).eval()
    x = torch.randn(6, steps, 3)
    assert [node.layer.kind for node in reference(model, x).nodes if node.layer.kind != "activation"] == (
        ["gru", "linear", "linear"] if run is merged else ["linear", "gru"])


@pytest.mark.parametrize("run", [lambda m, x: m.fc(m.rnn(x)[0].reshape(-1, 4)),
                                 lambda m, x: m.fc(m.rnn(x)[0].reshape(-1, 4)).view(x.shape[0], x.shape[1], 2).sum(1) +
                                 m.fc(m.rnn(x)[0].reshape(-1, 4))[:2]])
def test_what_stays_merged_is_refused(run):
    model = Net(run, rnn=nn.GRU(3, 4, batch_first=True), fc=nn.Linear(4, 2)).eval()
    with pytest.raises(Refusal, match=r"reshape\w* \(reshape: it must leave the batch an axis of its own, not turn"):
        inspect(model, torch.randn(2, 5, 3)).require()
