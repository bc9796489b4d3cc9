"""Vectors that are repeated for all steps, or multiplied by all of them, in all words for it; what is neither."""
import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training import export
from circulant.training.conversion import reference
from tests.modules import Net

REPEATED = {
    "expand": lambda h, y: h.unsqueeze(1).expand(-1, y.shape[1], -1),
    "repeat": lambda h, y: h.unsqueeze(1).repeat(1, y.size(1), 1),
    "repeat_interleave": lambda h, y: h.unsqueeze(1).repeat_interleave(y.shape[1], dim=1),
    "expand_as": lambda h, y: h[:, None].expand_as(y),
    "stack": lambda h, y: torch.stack([h] * y.shape[1], 1),
    "last of a sequence": lambda h, y: y[:, -1:].expand(-1, y.shape[1], -1),
    "time first": lambda h, y: h.expand(y.shape[1], -1, -1).transpose(0, 1),
}


def kinds(model, *x):
    """The kinds of layers of a golden network, which is compared with torch."""
    sample = x if len(x) > 1 else x[0]
    network, exact = export(model.eval(), sample), reference(model, sample)
    named = {each.name: part.numpy() for each, part in zip(exact.inputs, x, strict=True)}
    given = named if len(x) > 1 else x[0].numpy()
    with torch.no_grad():
        assert np.abs(exact.run(given) - model(*x).numpy()).max() < 1e-5
    return [layer.kind for layer in network.layers]


@pytest.mark.parametrize("name", REPEATED)
def test_a_vector_stands_at_each_step(name):
    def run(m, x):
        y, (h, _) = m.encoder(x)
        return m.out(m.decoder(REPEATED[name](h[-1], y))[0])

    torch.manual_seed(0)
    lstms = {"encoder": nn.LSTM(5, 6, batch_first=True), "decoder": nn.LSTM(6, 4, batch_first=True)}
    assert kinds(Net(run, out=nn.Linear(4, 5), **lstms), torch.randn(8, 9, 5)) == ["lstm", "repeat", "lstm", "linear"]


GATES = {
    "view": lambda x, g: x * g.view(g.shape[0], -1, 1, 1),
    "none": lambda x, g: g[:, :, None, None] * x,
    "expand_as": lambda x, g: x * g.unsqueeze(-1).unsqueeze(-1).expand_as(x),
}


@pytest.mark.parametrize("name", GATES)
def test_an_image_is_gated(name):
    def run(m, x):
        x = m.conv(x)
        return m.last(GATES[name](x, torch.sigmoid(m.gate(x.mean((2, 3)))))).flatten(1)

    torch.manual_seed(0)
    model = Net(run, conv=nn.Conv2d(1, 4, 3), gate=nn.Linear(4, 4), last=nn.Conv2d(4, 3, 2))
    assert kinds(model, torch.randn(8, 1, 7, 6)) == [
        "conv", "pool", "flatten", "linear", "activation", "gate", "conv", "flatten"]


def test_gates_made_by_convolutions_are_vectors():
    model = Net(lambda m, x: m.last(x * torch.sigmoid(m.gate(x.mean((2, 3), keepdim=True)))).flatten(1),
                gate=nn.Conv2d(3, 3, 1), last=nn.Conv2d(3, 2, 2))
    assert kinds(model, torch.randn(8, 3, 5, 4)) == ["pool", "conv", "activation", "flatten", "gate", "conv", "flatten"]


class Given(nn.ModuleDict):
    """A GRU of steps that are multiplied by gates of another input."""

    def forward(self, x, y):
        return self["rnn"](x * torch.sigmoid(self["gate"](y)).unsqueeze(1))[0]


def test_steps_are_gated_by_what_all_of_them_make_but_not_by_another_input():
    """The latter passes beside each step, for which nothing waits."""
    gated = Net(lambda m, x: m.rnn(x * torch.sigmoid(m.gate(x.mean(1, keepdim=True))))[0], gate=nn.Linear(5, 5),
                rnn=nn.GRU(5, 4, batch_first=True))
    assert kinds(gated, torch.randn(8, 9, 5)) == ["over_time", "linear", "activation", "gate", "gru"]
    model = Given({"gate": nn.Linear(3, 5), "rnn": nn.GRU(5, 4, batch_first=True)}).eval()
    assert kinds(model, torch.randn(8, 9, 5), torch.randn(8, 3)) == ["linear", "activation", "repeat", "product", "gru"]


def test_an_image_beside_a_vector_is_flattened_by_no_matrix():
    model = Net(lambda m, x: m.out(torch.cat((m.conv(x).squeeze(-1), m.fc(x.flatten(1))), 1)),
                conv=nn.Conv1d(3, 150, 4), fc=nn.Linear(12, 5), out=nn.Linear(155, 2))
    assert kinds(model, torch.randn(8, 3, 4)) == ["conv", "flatten", "linear", "flatten", "concat", "linear"]


def test_steps_that_no_sequence_has_are_refused():
    model = Net(lambda m, x: m.decoder(m.encoder(x)[0][:, -1:].repeat(1, 4, 1))[0],
                encoder=nn.GRU(5, 6, batch_first=True), decoder=nn.GRU(6, 3, batch_first=True))
    with pytest.raises(Refusal, match=r"^The golden model must have a layer for everything that is exported, but has "
                                      r"none for repeat \(repeat: part of encoder; it repeats a vector for 4 steps, "
                                      r"which no sequence that it is made of has; repeat it for x.shape\[1\]\)"):
        export(model.eval(), torch.randn(8, 9, 5))


def chunked(y):
    a, b = y.chunk(2, 1)
    return torch.tanh(a) * torch.sigmoid(b)


GATED = {
    "chunk": chunked,
    "range": lambda y: torch.tanh(y[:, :8]) * torch.sigmoid(y[:, 8:]),
    "glu": lambda y: nn.functional.glu(y, dim=1),
}


@pytest.mark.parametrize("steps", [8, 9])
@pytest.mark.parametrize("name", GATED)
def test_a_wavenet_splits_its_channels(name, steps):
    """The residual block of van den Oord et al. 2016 with channels first; its first matrix is over images."""
    def run(m, x):
        x, skips = m.first(x), 0
        for conv, both in ((m.one, m.both), (m.two, m.last)):
            rest, skip = torch.split(both(GATED[name](conv(x)[:, :, :x.size(2)])), 8, 1)
            x, skips = x + rest, skips + skip
        return m.out(torch.relu(skips)).transpose(1, 2)

    torch.manual_seed(0)
    model = Net(run, first=nn.Conv1d(3, 8, 1), one=nn.Conv1d(8, 16, 2, padding=1), both=nn.Conv1d(8, 16, 1),
                two=nn.Conv1d(8, 16, 2, padding=2, dilation=2), last=nn.Conv1d(8, 16, 1), out=nn.Conv1d(8, 5, 1))
    found = kinds(model, torch.randn(6, 3, steps))
    assert found.count("taps") == 2 and found.count("slice") == 7


def test_an_output_whose_features_come_first_is_refused():
    model = Net(lambda m, x: m.out(m.conv(x)[:, :, :-2]), conv=nn.Conv1d(3, 8, 3, padding=2), out=nn.Conv1d(8, 8, 1))
    with pytest.raises(Refusal, match=r"out \(Conv1d: dense; it gives the features first, but a circuit one step after "
                                      r"the other; return \(N, steps, features\)\)"):
        export(model.eval(), torch.randn(6, 3, 8))
