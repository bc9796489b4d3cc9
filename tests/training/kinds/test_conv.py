"""Causal convolutions and normalisations: what becomes of them, that it computes the same, and what is refused."""
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.hw import generate
from circulant.hw.c import Emulator
from circulant.sim.cosim import icarus
from circulant.sim.error.error_bound import error_bound
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.training import export
from circulant.training.blocks.constraint import compress
from circulant.training.capture import capture
from circulant.training.neutral.lowering import judged, lower
from tests.modules import Net
from tests.training.capture.test_trace import check


class Temporal(nn.Module):
    """Two blocks of a temporal convolutional network over (N, T, 3), and a normalisation of its steps."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(3, 8, 3), nn.Conv1d(8, 8, 2, dilation=4)
        self.pad, self.norm, self.out = nn.ConstantPad1d((4, 0), 0.0), nn.LayerNorm(8), nn.Linear(8, 4)
        nn.init.normal_(self.norm.weight)

    def forward(self, x):
        x = x.transpose(1, 2)
        y = torch.relu(self.second(self.pad(F.relu(self.first(F.pad(x, (2, 0)))))))
        return self.out(self.norm(y.transpose(1, 2)))


@pytest.mark.parametrize("k", [1, 4])
def test_causal_convolutions_are_taps_and_a_linear_layer(k):
    torch.manual_seed(k)
    model = compress(Temporal(), {"second": k, "out": k})
    graph, _ = check(model, torch.randn(4, 7, 3))
    assert not judged(graph).problems
    made = lower(graph).model("net")
    assert [layer.kind for layer in made.layers] == ["taps", "linear", "taps", "linear", "norm", "linear"]
    assert made.flow.sequence and made.shape == ()
    x = np.random.default_rng(0).normal(0, 1, (5, 11, 3))  # Another length than that of the sample.
    wanted = model(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(made.run(x), wanted, atol=1e-9)
    assert np.abs(quantize(made, x).run(x).real - wanted).max() < 0.02


def test_a_causal_depthwise_convolution_is_taps_times_factors_summed_up(tmp_path):
    torch.manual_seed(0)
    model = Net(lambda m, x: m.out(torch.relu(m.conv(F.pad(x.transpose(1, 2), (4, 0)))).transpose(1, 2)),
                conv=nn.Conv1d(4, 4, 3, dilation=2, groups=4), out=nn.Linear(4, 2)).eval()
    network, x = export(model, torch.randn(8, 7, 4)), torch.randn(3, 11, 4)
    assert [layer.kind for layer in network.layers] == ["taps", "scale", "slice", "slice", "slice", "add", "linear"]
    assert np.abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 2e-3
    generate(network, multipliers=24).write(tmp_path)
    assert icarus.run(tmp_path, network.vectors(x.numpy())).mismatches == 0


def test_channels_first_become_steps():
    model = Net(lambda m, x: m.rnn(m.norm(m.conv(F.pad(x, (2, 0))).transpose(1, 2)))[0], conv=nn.Conv1d(3, 4, 3),
                norm=nn.RMSNorm(4, 1e-5), rnn=nn.GRU(4, 2, batch_first=True))
    graph, _ = check(model, torch.randn(4, 3, 7))
    assert [layer.kind for layer in lower(graph).model("net").layers] == ["taps", "linear", "norm", "gru"]


@pytest.mark.parametrize(("steps", "stride", "dilation", "groups"), [
    (9, 2, 1, 1), (8, 3, 2, 1), (7, 4, 1, 1), (10, 2, 2, 8)])
def test_a_causal_convolution_with_a_stride_is_one_over_images(steps, stride, dilation, groups, tmp_path):
    """Every stride-th output, from the first step on, for sequences of one length."""
    torch.manual_seed(steps)
    conv = nn.Conv1d(8, 8, 3, stride=stride, dilation=dilation, groups=groups)
    net = Net(lambda m, x: m.out(torch.relu(m.conv(F.pad(x, (2 * dilation, 0)))).flatten(1)), conv=conv,
              out=nn.Linear(8 * -(-steps // stride), 2))
    model = net if groups > 1 else compress(net, {"conv": 4})
    x = torch.randn(5, 8, steps)
    network = export(model.eval(), x)
    assert [layer.kind for layer in network.layers] == ["conv" if groups == 1 else "depthwise", "flatten", "linear"]
    assert np.abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 5e-3
    vectors = network.vectors(x.numpy())
    assert np.array_equal(Emulator(network).run_integers(vectors.inputs), vectors.outputs)
    if stride == 2:
        generate(network, multipliers=24).write(tmp_path)
        assert icarus.run(tmp_path, vectors).mismatches == 0
    check(model, x)


@pytest.mark.parametrize(("options", "kinds"), [
    ({"groups": 6, "padding": 1, "stride": (2, 1)}, ["conv", "depthwise", "conv"]),
    ({"groups": 6, "dilation": 2, "padding": "same", "bias": False}, ["conv", "depthwise", "conv"]),
    ({"groups": 3, "dilation": (1, 2)}, ["conv", "conv", "conv"]), ({"dilation": 2}, ["conv", "conv", "conv"])])
@pytest.mark.parametrize("rank", [1, 2])
def test_groups_and_gaps_of_convolutions(rank, options, kinds, tmp_path):
    torch.manual_seed(0)
    made, shape = (nn.Conv2d, (4, 2, 9, 8)) if rank == 2 else (nn.Conv1d, (4, 2, 11))
    if rank == 1:
        options = {name: each[0] if isinstance(each, tuple) else each for name, each in options.items()}
    norm = (nn.BatchNorm2d if rank == 2 else nn.BatchNorm1d)(6)
    norm.running_var.uniform_(0.5, 2)
    norm.running_mean.normal_()
    net = nn.Sequential(OrderedDict(one=made(2, 6, 1), two=made(6, 6, 3, **options), norm=norm, relu=nn.ReLU(),
                                    three=made(6, 4, 1)))
    graph, report = check(net, torch.randn(shape))
    assert "folded" in str(report) and ("between its 3 groups" in str(report)) == (options.get("groups") == 3)
    exact = lower(graph).model("net")
    assert [layer.kind for layer in exact.layers][:3] == kinds
    x = torch.randn(shape).double()
    wanted = net(x).detach().numpy().reshape(len(x), -1)
    assert np.allclose(exact.run(x.numpy()).reshape(len(x), -1), wanted, atol=1e-9)
    golden = quantize(exact, x.numpy())
    assert (np.abs(golden.run(x.numpy()).real.reshape(len(x), -1) - wanted)
            <= error_bound(golden, exact, x.numpy()).reshape(len(x), -1) + 1e-9).all()
    golden.save(tmp_path)
    assert np.array_equal(Network.load(tmp_path).run(x.numpy()).real, golden.run(x.numpy()).real)


@pytest.mark.parametrize(("steps", "modules", "text"), [
    (lambda m, x: m.conv(F.pad(x, (3, 0))), {"conv": nn.Conv1d(3, 4, 3)},
     "it must have as many zeros in front of it as it reaches back, 2, not 3; pad by that"),
    (lambda m, x: m.conv(F.pad(x, (2, 0))), {"conv": nn.Conv1d(3, 4, 3, padding=1)},
     "a causal Conv1d must have no padding but the zeros in front of it; set its own to 0"),
    (lambda m, x: m.conv(F.pad(x, (1, 1))), {"conv": nn.Conv1d(3, 4, 3)}, "only zeros in front of the steps of"),
    (lambda m, x: m.conv(F.pad(m.rnn(m.norm(x))[0].transpose(1, 2), (2, 0))),
     {"conv": nn.Conv1d(4, 8, 3, stride=2), "norm": nn.LayerNorm(7), "rnn": nn.GRU(7, 4, batch_first=True)},
     "a causal Conv1d with a stride takes whole sequences, and cannot stand behind rnn, which gives one step after the "
     "other; put it in front of norm, or give it a stride of 1"),
    (lambda m, x: torch.relu(F.pad(x, (1, 0))), {}, "zeros in front of steps need a Conv1d behind them"),
    (lambda m, x: F.interpolate(x, scale_factor=2), {}, "there is no unit that gives more steps or pixels than come"),
    (lambda m, x: m.up(x), {"up": nn.Upsample(scale_factor=2)}, "make them by a Linear and a view"),
    (lambda m, x: m.attention(x, x, x)[0], {"attention": nn.MultiheadAttention(7, 1)},
     "attention has products of two streams of a whole sequence, for which there is no unit; use a GRU, a causal")])
def test_refusals(steps, modules, text):
    graph, report = capture(Net(steps, **modules).eval(), torch.randn(4, 3, 7))
    assert graph is None and text in str(report).replace("\n", " ")
