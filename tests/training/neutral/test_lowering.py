"""Which nodes have a golden layer, and what the layers are called."""
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.sim.refusal import Refusal
from circulant.training import export
from circulant.training.capture import capture, inspect
from circulant.training.models.scans import MinGru
from circulant.training.neutral.lowering import judged, lower
from tests.training.capture.test_trace import Net, check


def test_a_name_begins_with_a_letter():
    graph, _ = capture(nn.Sequential(nn.Linear(8, 8)), torch.zeros(2, 8))
    assert [layer.name for layer in lower(graph).model("net").layers] == ["linear_0"]


def test_missing():
    model = nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1), nn.Linear(8, 2))
    graph, _ = capture(model, torch.zeros(2, 8))
    assert judged(graph).problems == {
        "1": "no golden layer within a network; leave it out, or let it be the last node, where it is dropped"}


def turned(first):
    """A convolution over time behind a transpose, and something in front of it."""
    return Net(lambda m, x: m.linear(m.conv(m.first(x).transpose(1, 2)).mean(2)), first=first, conv=nn.Conv1d(8, 6, 3),
               linear=nn.Linear(6, 3))


def summed(*branch):
    """A sum of both branches, one with what a test gives, and a softmax and a layer behind it."""
    return Net(lambda m, x: m.last(m.softmax(x + m.branch(x))), branch=nn.Sequential(*branch), softmax=nn.Softmax(-1),
               last=nn.Linear(8, 3))


def forked():
    """Three branches, which two sums join, and a softmax and a layer behind them."""
    return Net(lambda m, x: m.last(m.softmax(m.a(x) + m.b(x) + x)), a=nn.Linear(8, 8), b=nn.Linear(8, 8),
               softmax=nn.Softmax(-1), last=nn.Linear(8, 3))


@pytest.mark.parametrize("first", [nn.Identity(), nn.Linear(8, 8), nn.Softmax(-1), nn.BatchNorm1d(12),
                                   nn.Sequential(nn.Softmax(-1), nn.Linear(8, 8)), nn.ReLU()])
def test_a_verdict_is_of_the_node_itself(first):
    """The transpose has no layer, except of the input, whose data is read so; the convolution has one, whatever is in
    front of them."""
    verdicts = {entry.name: entry.status for entry in inspect(turned(first), torch.zeros(2, 12, 8))}
    assert {name: verdicts[name] for name in ("transpose", "conv", "mean", "linear")} == {
        "transpose": "folded" if isinstance(first, nn.Identity) else "captured",
        "conv": "converted", "mean": "converted", "linear": "converted"}


@pytest.mark.parametrize(("model", "wanted"), [
    (summed(nn.Linear(8, 8)), {"softmax"}),
    (summed(nn.Linear(8, 8), nn.Softmax(-1), nn.Linear(8, 8)), {"branch.1", "softmax"}),
    (nn.Sequential(nn.Softmax(-1), summed(nn.Linear(8, 8))), {"0", "1.softmax"}),
    (nn.Sequential(nn.Softmax(-1), summed(nn.Softmax(-1))), {"0", "1.branch.0", "1.softmax"}),
    (forked(), {"softmax"})], ids=["sum", "in it", "before it", "both", "forked"])
def test_every_node_without_a_layer_is_named_at_once(model, wanted):
    graph, report = capture(model.eval(), torch.zeros(2, 8))
    assert graph is not None, str(report)
    assert judged(graph).problems.keys() == wanted


@pytest.mark.parametrize(("shape", "modules", "wanted"), [
    ((2, 3, 4, 4), [nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()], {}),
    ((2, 3, 4, 4), [nn.Conv2d(3, 4, 3)], {}),
    ((2, 3, 4, 4), [nn.Conv2d(3, 4, 3), nn.Linear(2, 5)], {
        "0": "no golden layer for images behind it; flatten them"}),
    ((2, 3, 4, 4), [nn.Linear(4, 5), nn.Flatten()], {"0": "no golden layer"}),
    ((2, 8), [nn.Linear(8, 4), nn.BatchNorm1d(4)], {}), ((2, 5, 8), [nn.Linear(8, 4), nn.BatchNorm1d(5)], {
        "1": "no golden layer"})])
def test_what_is_missing_of_images_and_norms(shape, modules, wanted):
    graph, report = capture(nn.Sequential(*modules).eval(), torch.zeros(shape))
    assert graph is not None, str(report)
    assert judged(graph).problems == wanted


@pytest.mark.parametrize(("run", "kinds"), [
    (lambda x: x, ["scale"]), (lambda x: x.flatten(1), ["scale"]), (lambda x: F.softmax(x, -1), ["scale"]),
    (torch.sigmoid, ["activation"]), (lambda x: F.max_pool2d(x, 2), ["pool", "flatten"])])
def test_a_network_needs_no_layer_with_weights_and_gives_images_as_vectors(run, kinds):
    x = torch.randn(5, 3, 4, 4)
    network = export(Net(lambda m, x: run(x)), x)
    assert [layer.kind for layer in network.layers] == kinds
    wanted = x if run(x).min() >= 0 and abs(run(x).sum() - 5 * 12) < 1e-3 else run(x)  # a softmax is dropped
    assert abs(network.run(x.numpy()).real - wanted.flatten(1).numpy()).max() < 1e-3


MOVES = {
    "reversed": (lambda x: x.flip(1), (6,)), "picked": (lambda x: x[:, [0, 2, 2]], (6,)),
    "transposed": (lambda x: x.transpose(1, 2), (3, 4)), "twice": (lambda x: torch.cat((x, x), 1), (3,)),
    "repeated": (lambda x: x.repeat(1, 2, 1), (3, 4)), "expanded": (lambda x: x[:, :, None].expand(-1, -1, 3), (4,)),
    "padded": (lambda x: torch.cat((x, torch.full((len(x), 2), 0.5)), 1), (3,)),
    "steps": (lambda x: x[:, 1:], (5, 4)),
    "cropped": (lambda x: F.max_pool2d(x, 2)[:, :, 1:, 1:], (2, 6, 6)),
}


@pytest.mark.parametrize("name", MOVES)
def test_values_move_through_a_matrix_of_zeros_and_ones(name):
    run, shape = MOVES[name]
    x = torch.randn(9, *shape)
    model = Net(lambda m, x: run(x))
    network = export(model, x)
    assert abs(network.run(x.numpy()).real.reshape(9, -1) - run(x).flatten(1).numpy()).max() < 2e-3
    assert network.layers[-1].kind == "linear"
    notes = {entry.note for entry in inspect(model, x)} - {""}
    assert f"as a matrix of {network.layers[-1].outputs} x {network.layers[-1].inputs}" in notes


RANGES = {
    "slice": (lambda x: x[:, 1:4], (6,), ["slice"]),
    "split": (lambda x: x.split([2, 4], 1)[1], (6,), ["slice"]),
    "features of steps": (lambda x: x[:, :, 1:3], (5, 4), ["slice"]),
    "channels": (lambda x: F.max_pool2d(x, 2)[:, 1:3], (4, 6, 6), ["pool", "slice", "flatten"]),
    "channels of a signal": (lambda x: F.avg_pool1d(F.max_pool1d(x, 2).chunk(2, 1)[1], 2), (4, 8), [
        "pool", "slice", "pool", "flatten"]),
    "steps reversed": (lambda x: torch.tanh(x).flip(1), (5, 4), ["activation", "reverse"]),
    "a range beside all": (lambda x: torch.cat((torch.tanh(x), x[..., 1:3]), -1), (5, 4), [
        "activation", "slice", "concat"]),
    "steps beside themselves reversed": (lambda x: torch.cat((torch.tanh(x), x.flip(1)), -1), (5, 4), [
        "activation", "reverse", "concat"]),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_values_and_reversed_steps_have_layers_of_their_own(name):
    run, shape, kinds = RANGES[name]
    x = torch.randn(9, *shape)
    network = export(Net(lambda m, x: run(x)), x)
    assert [layer.kind for layer in network.layers] == kinds
    assert abs(network.run(x.numpy()).real.reshape(9, -1) - run(x).flatten(1).numpy()).max() < 2e-3


CHANNELS_FIRST = {
    "alone": lambda m, x: m.rnn(x.transpose(1, 2))[0],
    "behind a function": lambda m, x: m.rnn(torch.tanh(x).permute(0, 2, 1))[0],
    "two readers": lambda m, x: m.rnn(x.mT)[0] + m.fc(x.mT),
    "function behind it": lambda m, x: m.fc(torch.tanh(x.mT)),
}


@pytest.mark.parametrize("name", CHANNELS_FIRST)
def test_sequences_with_the_channels_first(name):
    """Their samples are images of one column: a pixel of them is a step."""
    torch.manual_seed(1)
    x = torch.randn(9, 4, 7)
    model = Net(CHANNELS_FIRST[name], rnn=nn.GRU(4, 6, batch_first=True), fc=nn.Linear(4, 6))
    network = export(model, x)
    assert network.shape == (4, 7)
    assert abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 5e-3


def test_the_same_move_of_other_values_is_another_one():
    """Of the values in front of a function and of those behind it."""
    model = Net(lambda m, x: torch.cat((m.fc(y := x.flip(1)), m.fc(torch.tanh(y))), 1), fc=nn.Linear(6, 3))
    network = export(model, x := torch.randn(9, 6))
    assert abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 2e-3


BOTH = {"product": lambda a, b: a * b, "difference": lambda a, b: a - b, "maximum": torch.maximum,
        "minimum": torch.minimum, "rsub": lambda a, b: torch.rsub(b, a), "abs": lambda a, b: torch.abs(a + b)}


@pytest.mark.parametrize("shape", [(9, 6), (9, 5, 6)])
@pytest.mark.parametrize("name", BOTH)
def test_functions_of_two_tensors(name, shape):
    model = Net(lambda m, x: torch.relu(BOTH[name](torch.tanh(m.a(x)), x)), a=nn.Linear(6, 6))
    network = export(model, x := torch.randn(shape))
    layer = [layer for layer in network.layers if layer.joins][-1]
    assert (layer.kind, layer.relu) == ({"rsub": "difference", "abs": "maximum"}.get(name, name), True)
    assert abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 5e-3


STACKED = {
    "sum": (lambda *branches: torch.stack(branches).sum(0), ["add"]),
    "mean": (lambda *branches: torch.stack(branches, -1).mean(-1), ["add", "scale"]),
    "maximum": (lambda *branches: torch.stack(branches, 1).amax(1), ["maximum"]),
    "values": (lambda *branches: torch.stack(branches, 1).max(1).values, ["maximum"]),
}


@pytest.mark.parametrize("shape", [(9, 6), (9, 5, 6)])
@pytest.mark.parametrize("name", STACKED)
def test_reductions_over_stacked_branches(name, shape):
    run, kinds = STACKED[name]
    layers = {each: nn.Linear(6, 4) for each in "abc"}
    for count in (2, 3):
        model = Net(lambda m, x, count=count: run(*(torch.tanh(getattr(m, each)(x)) for each in "abc"[:count])),
                    **{each: layers[each] for each in "abc"[:count]})
        network = export(model, x := torch.randn(shape))
        found = [layer.kind for layer in network.layers if layer.kind not in ("linear", "activation")]
        assert found == [kinds[0]] * (count - 2) + kinds
        assert abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 5e-3


def test_a_gated_linear_unit_is_a_product_of_ranges():
    for run in (nn.GLU(), lambda x: F.glu(x, -1), lambda x: F.glu(x, dim=1)):
        network = export(Net(lambda m, x, run=run: run(m.a(x)), a=nn.Linear(6, 8)), torch.randn(9, 6))
        kinds = sorted(layer.kind for layer in network.layers)
        assert kinds == ["activation", "linear", "product", "slice", "slice"]
    with pytest.raises(Refusal, match="it must halve an axis of each sample, not the batch"):
        export(Net(lambda m, x: F.glu(x, 0)), torch.randn(8, 6))


def test_a_dense_layer_takes_the_matrix_of_moves_into_its_own():
    def run(m, x):
        return m.fc(torch.cat((x[:, [5, 2, 3, 4]], torch.ones(len(x), 1)), 1))

    x, model = torch.randn(9, 6), Net(run, fc=nn.Linear(5, 2))
    network = export(model, x)
    assert [(layer.kind, layer.inputs, layer.outputs) for layer in network.layers] == [("linear", 6, 2)]
    assert abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 2e-3
    assert "into fc" in str(inspect(model, x))
    network = export(Net(lambda m, x: m.fc(y := x[:, [1, 0, 2, 3]]) + m.other(y), fc=nn.Linear(4, 2),
                         other=nn.Linear(4, 2)), x)
    assert [layer.kind for layer in network.layers] == ["linear", "linear", "linear", "add"], "it has another reader"


@pytest.mark.parametrize(("run", "shape", "why"), [
    (lambda m, x: m.rnn(x)[0][:, 1:], (5, 4), "indexing with"),  # the steps of a sequence that is computed
    (lambda m, x: x.flip(1), (200,), "flip")])  # 40,000 weights
def test_moves_that_no_matrix_of_that_size_makes(run, shape, why):
    with pytest.raises(Refusal, match=why):
        export(Net(run, rnn=nn.GRU(4, 4, batch_first=True)), torch.randn(3, *shape))


LAST = {"both": (lambda m, x: m.rnn(x)[0][:, -1], {"rnn": nn.GRU(6, 4, batch_first=True, bidirectional=True)}),
        "scan": (lambda m, x: m.a(m.scan(x)[:, -1]), {"scan": MinGru(6, 4), "a": nn.Linear(4, 3)}),
        "causal": (lambda m, x: m.conv(F.pad(x.transpose(1, 2), (2, 0)))[..., -1], {"conv": nn.Conv1d(6, 4, 3)})}


@pytest.mark.parametrize("name", LAST)
def test_the_last_step_of_any_sequence(name):
    run, modules = LAST[name]
    torch.manual_seed(0)
    model, x = Net(run, **modules).eval(), torch.randn(6, 5, 6)
    network = export(model, x)
    assert [layer.mode for layer in network.layers if layer.kind == "over_time"] == ["last"]
    assert np.abs(network.run(x.numpy()).real - model(x).detach().numpy()).max() < 2e-3


OVER_TIME = {
    "mean": ("mean", lambda m, x: m.a(m.rnn(x)[0].mean(1))),
    "axis kept": ("mean", lambda m, x: m.a(m.rnn(x)[0].mean(1, keepdim=True).squeeze(1))),
    "adaptive": ("mean", lambda m, x: m.a(F.adaptive_avg_pool1d(m.rnn(x)[0].transpose(1, 2), 1).squeeze(-1))),
    "amax": ("max", lambda m, x: m.a(m.rnn(x)[0].amax(dim=1))),
    "values": ("max", lambda m, x: m.a(m.rnn(x)[0].max(1).values)),
    "pair": ("max", lambda m, x: m.a(torch.max(m.rnn(x)[0], dim=1)[0])),
}


@pytest.mark.parametrize("name", OVER_TIME)
def test_reductions_over_time(name):
    mode, run = OVER_TIME[name]
    graph, report = check(Net(run, rnn=nn.GRU(6, 4, batch_first=True), a=nn.Linear(4, 3)), torch.randn(3, 5, 6))
    assert report.exportable, str(report)
    layers = lower(graph).model("net").layers
    assert [(layer.kind, getattr(layer, "mode", "")) for layer in layers] == [
        ("gru", ""), ("over_time", mode), ("linear", "")]


def test_steps_of_the_input_and_steps_first():
    graph, report = check(Net(lambda m, x: m.a(m.b(x).mean(1)), b=nn.Linear(6, 4), a=nn.Linear(4, 3)),
                          torch.randn(3, 5, 6))
    assert report.exportable, str(report)
    assert [layer.kind for layer in lower(graph).model("net").layers] == ["linear", "over_time", "linear"]
    graph, report = check(Net(lambda m, x: m.rnn(x.transpose(0, 1))[0].amax(0), rnn=nn.GRU(6, 4)),
                          torch.randn(3, 5, 6))
    assert report.exportable, str(report)
    assert [layer.kind for layer in lower(graph).model("net").layers] == ["gru", "over_time"]


@pytest.mark.parametrize(("run", "note"), [
    (lambda m, x: m.rnn(x)[0].mean(2), "no golden layer over the features of a step; reduce the steps, axis 1"),
    (lambda m, x: m.a(m.rnn(x)[0].max(1)), "it must take the values of a maximum without their places; use amax"),
    (lambda m, x: m.rnn(x)[0].max(1).indices, "the attribute 'indices' is not supported; only the values of a maximum"),
    (lambda m, x: m.rnn(x)[0].max(), "it must name the axes that it reduces, and nothing else")])
def test_reductions_that_have_no_layer(run, note):
    report = inspect(Net(run, rnn=nn.GRU(6, 4, batch_first=True), a=nn.Linear(4, 3)), torch.zeros(3, 5, 6))
    assert not report.exportable
    assert note in str(report)


SUMS = {
    "input": (lambda m, x: x + m.a(x), {"a": nn.Linear(6, 6)}),
    "hidden": (lambda m, x: torch.relu((h := m.a(x)) + m.c(torch.relu(m.b(h)))), {
        "a": nn.Linear(6, 8), "b": nn.Linear(8, 9), "c": nn.Linear(9, 8)}),
    "both": (lambda m, x: m.a(x) + m.b(torch.tanh(m.c(x))), {
        "a": nn.Linear(6, 5), "b": nn.Linear(5, 5), "c": nn.Linear(6, 5)}),
}


@pytest.mark.parametrize("shape", [(3, 6), (3, 5, 6)])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_vectors_and_of_steps(name, shape):
    run, modules = SUMS[name]
    graph, report = check(Net(run, **modules), torch.randn(shape))
    assert report.exportable, str(report)
    made = lower(graph).model("net")
    layer = made.layers[-1]
    assert (layer.kind, layer.relu, made.sequence) == ("add", name == "hidden", len(shape) == 3)


def test_a_sum_around_a_recurrent_layer():
    graph, report = check(Net(lambda m, x: x + m.rnn(x)[0], rnn=nn.GRU(6, 6, batch_first=True)), torch.randn(3, 5, 6))
    assert report.exportable, str(report)
    nodes = lower(graph).model("net").nodes
    assert [(node.layer.kind, len(node.sources)) for node in nodes] == [("gru", 1), ("add", 2)]
