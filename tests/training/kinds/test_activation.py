"""Functions of single values and softmaxes: modules and functions, what becomes of them, and what is refused."""
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.training.capture import capture, inspect
from circulant.training.kinds.linear import Linear
from circulant.training.neutral.graph import Input
from circulant.training.neutral.lowering import lower
from tests.training.capture.test_trace import Net, check

CALLS = [
    (nn.Sigmoid(), ("sigmoid", ())), (nn.Tanh(), ("tanh", ())), (nn.Hardsigmoid(), ("hard_sigmoid", ())),
    (nn.Hardtanh(), ("hard_tanh", ())), (nn.Hardtanh(-2, 0.5), ("clip", (-2.0, 0.5))),
    (nn.ReLU6(), ("clip", (0.0, 6.0))),
    (nn.SiLU(), ("silu", ())), (F.gelu, ("gelu", ())), (nn.GELU("tanh"), ("gelu_tanh", ())),
    (nn.ELU(0.5), ("elu", (0.5,))), (F.selu, ("selu", ())), (nn.CELU(2.0), ("celu", (2.0,))),
    (nn.Softplus(2.0), ("softplus", (2.0, 20.0))), (F.softsign, ("softsign", ())), (F.hardswish, ("hard_swish", ())),
    (nn.Mish(), ("mish", ())), (nn.PReLU(init=0.3), ("leaky_relu", (0.30000001192092896,))),
    (nn.LeakyReLU(0.2), ("leaky_relu", (0.2,))), (torch.sigmoid, ("sigmoid", ())), (torch.tanh, ("tanh", ())),
    (F.leaky_relu, ("leaky_relu", (0.01,))), (F.relu6, ("clip", (0.0, 6.0))), (F.hardtanh, ("hard_tanh", ())),
    (F.hardsigmoid, ("hard_sigmoid", ())), (lambda x: x.tanh(), ("tanh", ())),
    (lambda x: torch.clamp(x, -0.3, 0.4), ("clip", (-0.3, 0.4))), (lambda x: x.clamp(min=0), ("relu", ()))]


@pytest.mark.parametrize(("function", "wanted"), CALLS, ids=lambda part: str(part)[:20])
def test_functions_become_layers(function, wanted):
    modules = {"f": function} if isinstance(function, nn.Module) else {}
    model = Net(lambda m, x: m.b(m.f(x) if modules else function(x)), b=nn.Linear(12, 2), **modules)
    graph, report = check(model, torch.randn(3, 12))
    assert report.exportable, str(report)
    layer = lower(graph).model("net").layers[0]
    assert (layer.kind, layer.function, layer.parameters) == ("activation", *wanted)


@pytest.mark.parametrize("function", [lambda x: x.clamp(max=0.5), lambda x: torch.clamp(x, -0.25)])
def test_a_clip_of_one_end_is_scales_and_a_relu(function):
    graph, report = check(Net(lambda m, x: m.b(function(x)), b=nn.Linear(12, 2)), torch.randn(3, 12))
    assert report.exportable, str(report)
    assert [layer.kind for layer in lower(graph).model("net").layers] == ["scale", "scale", "linear"]


def test_between_convolutions_and_steps():
    images = nn.Sequential(nn.Conv2d(2, 4, 3), nn.LeakyReLU(), nn.AdaptiveAvgPool2d((2, 3)), nn.Tanh(), nn.Flatten(),
                           nn.Linear(24, 2))
    graph, report = check(images, torch.randn(3, 2, 6, 8))
    assert report.exportable, str(report)
    assert [layer.kind for layer in lower(graph).model("net").layers] == [
        "conv", "activation", "pool", "activation", "flatten", "linear"]
    steps = Net(lambda m, x: F.hardtanh(m.fc(m.rnn(x)[0]))[:, -1], rnn=nn.GRU(8, 4, batch_first=True),
                fc=nn.Linear(4, 2))
    graph, report = check(steps, torch.randn(3, 5, 8))
    assert report.exportable, str(report)
    assert [(layer.kind, getattr(layer, "returns", "")) for layer in lower(graph).model("net").layers] == [
        ("gru", "last"), ("linear", ""), ("activation", "")]


@pytest.mark.parametrize(("last", "dropped"), [(nn.Softmax(-1), "softmax"), (nn.LogSoftmax(1), "log_softmax")])
def test_a_last_softmax_is_dropped(last, dropped):
    graph, report = capture(nn.Sequential(nn.Linear(8, 4), last), torch.zeros(2, 8))
    assert (graph.outputs[0].dropped, [type(node) for node in graph.nodes]) == (dropped, [Input, Linear])
    assert [(entry.status, entry.note) for entry in report][1] == (
        "skipped", "dropped: the greatest output stays the greatest")


def test_a_softmax_elsewhere_says_its_way_out():
    model = nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1), nn.Linear(4, 2))
    report = inspect(model, torch.zeros(2, 8))
    assert report.ok
    assert not report.exportable
    assert "leave it out, or let it be the last node, where it is dropped" in str(report)
    assert "it must go over the features on the last axis, not dim=0; give it dim=-1, or take a mean over time" in str(
        inspect(nn.Sequential(nn.Linear(8, 4), nn.Softmax(0)), torch.zeros(2, 8)))


@pytest.mark.parametrize(("function", "note"), [
    (nn.LeakyReLU(2.0), "The slope of a leaky ReLU must be from 0 to 1, not 2.0; choose another one"),
    (nn.LayerNorm((5, 8)), "it must normalise the features, the last axis alone; give it their number"),
    (nn.Softmin(-1), "the layer is not supported; use Linear,"),
    (nn.ELU(-1.0), "Parameters of elu must be greater than 0, not (-1.0,); choose others")])
def test_what_is_refused(function, note):
    modules = {"f": function} if isinstance(function, nn.Module) else {}
    model = Net(lambda m, x: m.b(m.f(x) if modules else function(x)), b=nn.Linear(8, 2), **modules)
    assert note in str(inspect(model, torch.zeros(2, 8)))


@pytest.mark.parametrize(("shape", "view", "wanted"), [
    ((3, 1, 7, 8), (-1, 7, 8), (1, 7, 8)), ((3, 56), (-1, 7, 8), (56,)), ((3, 7, 8), (-1, 7, 8), ())])
def test_samples_become_sequences(shape, view, wanted):
    """As in torch's example mnist_rnn."""
    model = Net(lambda m, x: m.fc(m.rnn(x.reshape(view))[0][:, -1, :]), rnn=nn.LSTM(8, 4, batch_first=True),
                fc=nn.Linear(4, 2))
    graph, report = check(model, torch.randn(shape))
    assert report.exportable, str(report)
    made = lower(graph).model("net")
    assert (made.shape, made.flow.size, made.sequence) == (wanted, 8, True)
