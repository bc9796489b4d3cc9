"""Models by name: shapes, options, seeded initial weights, refusals."""
import warnings

import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.models.cells import PeepholeLstm, ResetBeforeGru
from circulant.training.models.models import MODELS, ModelSettings, SequenceClassifier, build

SAMPLES = {"lenet5": (1, 28, 28), "lenet_caffe": (1, 28, 28), "cnn": (3, 32, 32), "vgg": (3, 32, 32),
           "resnet8": (3, 32, 32), "separable": (1, 28, 28)}


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "python"])
def test_build(kind):
    shape = SAMPLES.get(kind, (5, 8))
    model = build(ModelSettings(kind), shape, classes=10)
    steps = (5,) if kind == "labeller" else ()
    assert model(torch.zeros(3, *shape)).shape == (3, *steps, 10)


@pytest.mark.parametrize(("options", "layer"), [
    ({"kind": "gru", "layers": 2, "bidirectional": True}, nn.GRU),
    ({"kind": "lstm", "projection": 6}, nn.LSTM),
    ({"kind": "lstm", "projection": 6, "peephole": True, "bidirectional": True}, PeepholeLstm),
    ({"kind": "reset_gru", "layers": 2}, ResetBeforeGru),
    ({"kind": "labeller", "cell": "lstm", "layers": 2, "projection": 6, "peephole": True}, PeepholeLstm),
    ({"kind": "labeller", "bidirectional": True}, nn.GRU),
    ({"kind": "crnn", "cell": "reset_gru", "width": 4}, ResetBeforeGru),
])
def test_options(options, layer):
    model = build(ModelSettings(hidden=16, **options), (20, 12), 10)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
        outputs = model(torch.zeros(3, 20, 12))
    assert outputs.shape == ((3, 20, 10) if options["kind"] == "labeller" else (3, 10))
    assert [type(module) for module in model.modules() if isinstance(module, nn.RNNBase | PeepholeLstm | ResetBeforeGru)
            ] == [layer]


def test_dropout_acts_between_layers():
    for kind in ("gru", "reset_gru"):
        assert getattr(build(ModelSettings(kind, layers=2, dropout=0.3), 8, 10), kind).dropout == 0.3
        assert getattr(build(ModelSettings(kind, dropout=0.3), 8, 10), kind).dropout == 0, "one has no between"


def test_widths_stand_for_hidden_and_layers():
    model = build(ModelSettings("mlp", hidden=7, widths=(12, 5)), (20,), 3)
    assert [tuple(p.shape) for name, p in model.named_parameters() if "weight" in name] == [(12, 20), (5, 12), (3, 5)]


def test_channels_and_windows_of_lenet5():
    assert build(ModelSettings("lenet5"), (1, 28, 28), 10).conv1.weight.shape == (6, 1, 5, 5)
    assert build(ModelSettings("lenet5", width=8, window=3), (1, 28, 28), 10).conv1.weight.shape == (8, 1, 3, 3)


def test_widths_of_a_cnn():
    model = build(ModelSettings("cnn", widths=(8, 12)), (3, 8, 8), 10)
    assert [tuple(p.shape) for p in model.parameters() if p.ndim == 4] == [(8, 3, 3, 3), (12, 8, 3, 3)]


def test_classifier_takes_the_last_step():
    torch.manual_seed(0)
    model = SequenceClassifier(4, 8, 3)
    x = torch.rand(2, 5, 4)
    steps, _ = model.gru(x)
    assert torch.equal(model(x), model.linear(steps[:, 4]))
    assert type(model.gru) is nn.GRU


def test_classifier_of_two_directions_takes_the_end_of_each():
    torch.manual_seed(0)
    model = SequenceClassifier(4, 8, 3, bidirectional=True)
    x = torch.rand(2, 5, 4)
    steps, _ = model.gru(x)
    ends = torch.cat((steps[:, 4, :8], steps[:, 0, 8:]), -1)
    torch.testing.assert_close(model(x), model.linear(ends))


def test_the_seed_chooses_the_weights_and_nothing_else():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = (build(ModelSettings(), 8, 10, seed=seed).gru.weight_hh_l0 for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.rand(3), wanted), "the global random state must stay as it was"


@pytest.mark.parametrize(("kind", "shape", "message"), [
    ("vgg", (5, 8), r"^A model 'vgg' must have images \(channels, height, width\), not samples of shape \(5, 8\)"),
    ("gru", (3, 32, 32), r"^A model 'gru' must have sequences \(T, features\), not samples of shape \(3, 32, 32\)"),
    ("lenet_caffe", (1, 12, 30), r"^Caffe's LeNet-5 must have images of at least 16 × 16, not 12 × 30"),
    ("lenet5", (1, 8, 8), r"^LeNet-5 must have images of at least 12 × 12, not 8 × 8"),
])
def test_wrong_samples(kind, shape, message):
    with pytest.raises(Refusal, match=message):
        build(ModelSettings(kind), shape, 10)
