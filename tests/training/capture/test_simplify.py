"""Folding: a batch normalisation after a matrix is exact in every case, and leaves the matrix block-circulant."""
import pytest
import torch
from torch import nn

from circulant.training.blocks.constraint import compress
from circulant.training.capture import capture
from circulant.training.conversion import reference
from circulant.training.kinds.conv import Conv
from circulant.training.kinds.depthwise import Depthwise
from circulant.training.kinds.linear import Linear
from circulant.training.kinds.scale import Scale
from circulant.training.kinds.taps import CausalConv, CausalDepthwise
from circulant.training.neutral.graph import Input
from tests import neutral
from tests.modules import Net

K = 4


def normed(layer, norm, scale, seed=0):
    """A layer and its normalisation with these scales, random shifts and statistics; in double precision."""
    torch.manual_seed(seed)
    model = nn.Sequential(layer, norm).double().eval()
    with torch.no_grad():
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        norm.weight.copy_(torch.as_tensor(scale) * (norm.running_var + norm.eps).sqrt())
        norm.bias.normal_()
    return model


def simplified(model, x):
    """The graph, checked to compute what the model computes."""
    graph, report = capture(model, x)
    report.require()
    with torch.no_grad():
        torch.testing.assert_close(neutral.run(graph, x), model(x), rtol=1e-10, atol=1e-10)
    return graph, {entry.name: entry for entry in report}


PLACES = [
    pytest.param(lambda n: nn.Linear(8, n), nn.BatchNorm1d, (3, 8), id="linear"),
    pytest.param(lambda n: nn.Conv1d(8, n, 3), nn.BatchNorm1d, (3, 8, 9), id="conv1d"),
    pytest.param(lambda n: nn.Conv2d(8, n, 3, bias=False), nn.BatchNorm2d, (3, 8, 7, 6), id="conv2d"),
]


@pytest.mark.parametrize(("layer", "norm", "shape"), PLACES)
@pytest.mark.parametrize("channels", [8, 10])
@pytest.mark.parametrize(("k", "scales", "folds"), [
    (1, "different", True), (K, "different", False), (K, "one in each block", True), (K, "one", True)])
def test_a_norm_folds_where_the_structure_allows(layer, norm, shape, channels, k, scales, folds):
    scale = {"different": torch.linspace(0.5, 2, channels), "one": torch.full((channels,), 1.5),
             "one in each block": torch.arange(1.0, 9).repeat_interleave(K)[:channels]}[scales].double()
    model = normed(layer(channels), norm(channels), scale)
    with torch.no_grad():  # the product of square roots is one number only up to rounding
        var = model[1].running_var
        model[1].running_var.fill_(1 - model[1].eps) if folds and k > 1 else None
        model[1].weight.copy_(scale if folds and k > 1 else scale * (var + model[1].eps).sqrt())
    model = compress(model, k) if k > 1 else model
    graph, entries = simplified(model, torch.randn(shape, dtype=torch.float64))
    source = graph["0"]
    assert source.first.shape[-1] == k, "the matrix must stay in the set"
    if folds:
        assert graph.nodes[1:] == (source,)
        assert (entries["1"].status, entries["1"].note) == ("folded", "into 0, exactly")
    else:
        assert [type(node) for node in graph.nodes[1:]] == [type(source), Scale]
        assert not source.bias.any(), "the bias must move into the shift"
        assert "differs within the blocks of 4 of 0" in entries["1"].note


def test_folding_by_force_would_leave_the_set():
    model = compress(normed(nn.Linear(8, 8), nn.BatchNorm1d(8), torch.linspace(0.5, 2, 8).double()), K)
    scaled = torch.linspace(0.5, 2, 8).double()[:, None] * model[0].weight
    constraint = model[0].parametrizations.weight[0]
    assert (constraint.project(scaled) - scaled).abs().max() > 0.01


def test_a_matrix_that_others_use_is_not_changed():
    model = Net(lambda m, x: (y := m.fc(x)) + m.norm(y), fc=nn.Linear(8, 8), norm=nn.BatchNorm1d(8)).double().eval()
    model.norm.running_var.fill_(3.0)
    graph, entries = simplified(model, torch.randn(3, 8, dtype=torch.float64))
    assert torch.equal(graph["fc"].bias, model.fc.bias)
    assert entries["norm"].status == "converted"


def test_two_norms_in_a_row():
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.BatchNorm1d(8, affine=False)).double().eval()
    for norm in model[1:]:
        nn.init.uniform_(norm.running_var, 0.5, 2)
        nn.init.normal_(norm.running_mean)
    graph, _ = simplified(model, torch.randn(3, 8, dtype=torch.float64))
    assert [type(node) for node in graph.nodes] == [Input, Linear]
    simplified(compress(model, 8), torch.randn(3, 8, dtype=torch.float64))


def test_the_shapes_of_nodes():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 5)).double().eval()
    graph, entries = simplified(model, torch.randn(2, 3, 9, 9, dtype=torch.float64))
    assert [node.shape for node in graph.nodes] == [(None, 3, 9, 9), (None, 4, 4, 4), (None, 4, 2, 2), (None, 16),
                                                    (None, 5)]
    assert [entry.shape for entry in entries.values()] == ["N × 4 × 4 × 4", "N × 4 × 2 × 2", "N × 16", "N × 5"]
    assert [node.name for node in graph.users("0")] == ["1"]


def test_a_convolution_whose_later_outputs_nothing_takes_is_causal():
    """The block of Bai et al. 2018, whose shortcut is computed first, and a depthwise one."""
    def run(m, x):
        x = x.transpose(1, 2)
        short = m.short(x)
        y = torch.relu(m.first(x)[:, :, :-4].contiguous())
        return m.last(torch.relu(m.second(y)[..., :x.shape[-1]] + short)[:, :, -1])

    torch.manual_seed(0)
    for groups in (1, 8):
        model = Net(run, first=nn.Conv1d(4, 8, 3, padding=4, dilation=2), short=nn.Conv1d(4, 8, 1),
                    second=nn.Conv1d(8, 8, 3, padding=2, groups=groups), last=nn.Linear(8, 3)).double().eval()
        x = torch.randn(6, 9, 4, dtype=torch.float64)
        graph, report = capture(model, x)
        report.require()
        assert [type(graph[name]) for name in ("first", "short", "second")] == [
            CausalConv, CausalConv, CausalConv if groups == 1 else CausalDepthwise]
        with torch.no_grad():
            found = torch.as_tensor(reference(model, x).run(x.numpy()))
            torch.testing.assert_close(found, model(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("padding", "part"), [(2, slice(2, None)), (3, slice(None, -4))])
@pytest.mark.parametrize(("groups", "kind"), [(1, Conv), (4, Depthwise)])
def test_a_convolution_that_knows_later_steps_stays_one_over_images(padding, part, groups, kind):
    model = Net(lambda m, x: m.conv(x)[:, :, part].flatten(1),
                conv=nn.Conv1d(4, 4, 3, padding=padding, groups=groups)).double().eval()
    graph, _ = simplified(model, torch.randn(3, 4, 9, dtype=torch.float64))
    assert type(graph["conv"]) is kind
