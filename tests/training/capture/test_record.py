"""Programs in other words, which compute what one in the usual words computes; and what recording must not follow."""
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from circulant.sim.refusal import Refusal
from circulant.training.capture import inspect
from circulant.training.conversion import export, reference
from circulant.training.models.cells import PeepholeLstm
from tests.modules import Net

STEPS, IMAGES, SIGNALS = (9, 6, 3), (8, 3, 8, 8), (8, 3, 12)


def lstm(**options):
    return nn.LSTM(3, 4, batch_first=True, **options)


def both(**options):
    return nn.GRU(3, 4, batch_first=True, bidirectional=True, **options)


def zeros(x, size=4):
    return torch.zeros(1, x.size(0), size)


def checked(m, x):
    assert x.ndim == 3 and x.shape[1] > 2
    assert x.shape[2] == 3, "the sample must have three features"
    if x.size(1) > 100:
        raise ValueError("too long")
    return m.fc(m.rnn(x)[0][:, -1])


PROGRAMS = {
    "zeros": (STEPS, lambda m, x: m.fc(m.rnn(x, (zeros(x), zeros(x)))[0][:, -1]), {"rnn": lstm()}),
    "zeros on a device": (STEPS, lambda m, x: m.fc(m.rnn(x, (zeros(x).to(x.device), zeros(x).to(x.device)))[0][:, -1]),
                          {"rnn": lstm()}),
    "new zeros": (STEPS, lambda m, x: m.fc(m.rnn(x, x.new_zeros(1, len(x), 4))[1][-1]), {
        "rnn": nn.GRU(3, 4, batch_first=True)}),
    "zeros of our own cell": (STEPS, lambda m, x: m.fc(m.rnn(x, (zeros(x), zeros(x)))[0][:, -1]), {
        "rnn": PeepholeLstm(3, 4, batch_first=True)}),
    "learned state that is zero": (STEPS, lambda m, x: m.fc(m.rnn(x, m.h.repeat(1, len(x), 1))[1][0]), {
        "rnn": nn.RNN(3, 4, batch_first=True)}),
    "h[-1, :, :]": (STEPS, lambda m, x: m.fc(m.rnn(x)[1][0][-1, :, :]), {"rnn": lstm()}),
    "squeezed h": (STEPS, lambda m, x: m.fc(m.rnn(x)[1][0].squeeze(0)), {"rnn": lstm()}),
    "h of two layers": (STEPS, lambda m, x: m.fc(m.rnn(x)[1][0].view(2, 1, len(x), 4)[-1, 0]), {
        "rnn": lstm(num_layers=2)}),
    "relu of h": (STEPS, lambda m, x: m.fc(F.relu(m.rnn(x)[1][0])[0]), {"rnn": lstm()}),
    "out[:, -1:, :]": (STEPS, lambda m, x: m.fc(m.rnn(x)[0][:, -1:, :].squeeze(1)), {"rnn": lstm()}),
    "out[:, -1:]": (STEPS, lambda m, x: m.fc(m.rnn(x)[0][:, -1:]), {"rnn": lstm()}),
    "the last step of a transposition": (STEPS, lambda m, x: m.fc(torch.tanh(m.rnn(x)[0].transpose(0, 1))[-1]), {
        "rnn": lstm()}),
    "select": (STEPS, lambda m, x: m.fc(m.rnn(x)[0].select(1, -1)), {"rnn": lstm()}),
    "last of unbind": (STEPS, lambda m, x: m.fc(m.rnn(x)[0].unbind(1)[-1]), {"rnn": lstm()}),
    "permuted h": (STEPS, lambda m, x: m.fc(m.rnn(x)[1].permute(1, 0, 2).reshape(len(x), -1)), {"rnn": both()}),
    "chunks of h": (STEPS, lambda m, x: m.fc(torch.cat(m.rnn(x)[1][-2:].unbind(0), dim=-1)), {
        "rnn": both(num_layers=2)}),
    "ends of out": (STEPS, lambda m, x: m.fc(torch.cat(((y := m.rnn(x)[0])[:, -1, :4], y[:, 0, 4:]), 1)), {
        "rnn": both()}),
    "asserts": (STEPS, checked, {"rnn": lstm()}),
    "dictionary": (STEPS, lambda m, x: {"logits": m.fc(m.rnn(x)[0][:, -1])}, {"rnn": lstm()}),
    "tuple of one": (STEPS, lambda m, x: (m.fc(m.rnn(x)[0][:, -1]),), {"rnn": lstm()}),
    "one value": (STEPS, lambda m, x: m.one(m.rnn(x)[0][:, -1]).squeeze(-1), {"rnn": lstm(), "one": nn.Linear(4, 1)}),
    "mean that keeps its axis": (STEPS, lambda m, x: m.fc(m.rnn(x)[0].mean(1, keepdim=True)).squeeze(1), {
        "rnn": lstm()}),
    "maximum that keeps its axis": (STEPS, lambda m, x: m.fc(m.rnn(x)[0].amax(1, keepdim=True)), {"rnn": lstm()}),
    "three branches": (STEPS, lambda m, x: m.three(x) + m.other(x) + x, {
        "three": nn.Linear(3, 3), "other": nn.Linear(3, 3)}),
    "pool by shape": (SIGNALS, lambda m, x: m.fc(F.avg_pool1d(y := m.conv(x), y.shape[-1]).flatten(1)), {
        "conv": nn.Conv1d(3, 4, 3)}),
    "pool by size": (IMAGES, lambda m, x: m.fc(F.max_pool2d(y := m.conv(x), y.size()[2:]).flatten(1)), {
        "conv": nn.Conv2d(3, 4, 3)}),
    "mean of images": (IMAGES, lambda m, x: m.fc(m.conv(x).mean((2, 3), keepdim=True).flatten(1)), {
        "conv": nn.Conv2d(3, 4, 3)}),
    "norm first": (IMAGES, lambda m, x: m.fc(m.conv(m.norm(x)).mean((2, 3))), {
        "norm": nn.BatchNorm2d(3), "conv": nn.Conv2d(3, 4, 3)}),
    "norm of signals first": (SIGNALS, lambda m, x: m.fc(m.conv(m.norm(x)).amax(2)), {
        "norm": nn.BatchNorm1d(3), "conv": nn.Conv1d(3, 4, 3)}),
    "packed": (STEPS, lambda m, x: m.fc(m.rnn(pack_padded_sequence(x, [x.shape[1]] * len(x), batch_first=True))[1][0][
        -1]), {"rnn": lstm()}),
    "packed and padded again": (STEPS, lambda m, x: m.fc(pad_packed_sequence(m.rnn(pack_padded_sequence(
        x.transpose(0, 1), torch.full((len(x),), x.shape[1]), enforce_sorted=False))[0], batch_first=True)[0]), {
            "rnn": both()}),
    "sum of what is flattened": (IMAGES, lambda m, x: m.fc(m.conv(x).flatten(1)) + m.wide(x.mean((2, 3))), {
        "conv": nn.Conv2d(3, 1, 7), "wide": nn.Linear(3, 2)}),
}


def model_of(name):
    torch.manual_seed(0)
    shape, run, modules = PROGRAMS[name]
    width = 8 if getattr(modules.get("rnn"), "bidirectional", False) else 4
    model = Net(run, **{"fc": nn.Linear(width, 2), **modules}).eval()
    model.register_parameter("h", nn.Parameter(torch.zeros(1, 1, 4)))
    for norm in modules.values():
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            norm.running_mean.fill_(0.3)
            norm.running_var.fill_(2.0)
    return model, torch.randn(shape)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_in_other_words(name):
    """The reference equals torch, and golden integers are close to it; `reference` itself allows 1e-6."""
    model, x = model_of(name)
    assert inspect(model, x).exportable, str(inspect(model, x))
    exact = reference(model, x).run(x.numpy())
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            wanted = model.double()(x.double())
    finally:
        torch.set_default_dtype(torch.float32)
    wanted = wanted["logits"] if isinstance(wanted, dict) else wanted[0] if isinstance(wanted, tuple) else wanted
    np.testing.assert_allclose(exact, wanted.numpy().reshape(exact.shape), rtol=0, atol=1e-9)
    golden = export(model.float(), x, weight_bits=16).run(x.numpy()).real
    assert np.abs(golden - exact).max() < 5e-3 * max(1, np.abs(exact).max())


@pytest.mark.parametrize(("run", "what"), [
    (lambda m, x: m.fc(x) if x.sum() > 0 else x, "bool reads values that depend on the data"),
    (lambda m, x: m.fc(x) * x.mean().item(), "item reads values that depend on the data"),
    (lambda m, x: m.fc(x) * float(x.mean()), "float reads values that depend on the data"),
    (lambda m, x: m.fc(x) * int(x.mean()), "int reads values that depend on the data"),
    (lambda m, x: m.fc(x) if max(x.flatten().tolist()) > 0 else x, "tolist reads values that depend on the data"),
    (lambda m, x: m.fc(torch.tensor(x.numpy()[:, :1])), "numpy reads values that depend on the data"),
    (lambda m, x: m.fc(x) if torch.equal(x, -x) else x, "equal reads values that depend on the data"),
    (lambda m, x: m.rnn(pack_padded_sequence(x, [6, 5], batch_first=True))[1][-1], "a packed sequence of different "
                                                                              "lengths")])
def test_a_decision_that_depends_on_data_is_refused_by_name(run, what):
    model = Net(run, fc=nn.Linear(3, 4), rnn=nn.GRU(3, 4, batch_first=True))
    with pytest.raises(Refusal, match=r"^1 part of the model cannot be converted: forward \(it cannot be traced beyond "
                                      rf"`.*`, line \d+ of test_record.py \(TraceError: {what}\); it must be free of "
                                      r"packed sequences of different lengths and of decisions that depend on data\)$"):
        inspect(model, torch.rand(2, 6, 3)).require()


def test_a_failure_of_the_model_itself_says_where():
    def run(m, x):
        assert x.shape[1] == 5, "five steps"
        return m.fc(x)

    with pytest.raises(Refusal, match=r"forward \(it fails on samples of the shape \(2, 6, 3\): AssertionError: five "
                                      r"steps beyond `assert .*`, line \d+ of test_record.py\)$"):
        inspect(Net(run, fc=nn.Linear(3, 4)), torch.rand(2, 6, 3)).require()


def test_sizes_and_texts_are_no_decisions():
    said = []

    def run(m, x):
        said.append(f"{x.shape} {x.mean():.3f} {len(x)} {x.dtype} {x.is_cuda} {x.is_contiguous()}")
        return m.fc(x) if x.dim() == 3 and x.is_floating_point() and x.numel() > 4 else x

    assert inspect(Net(run, fc=nn.Linear(3, 4)), torch.rand(1, 6, 3)).exportable
    assert said[0].startswith("torch.Size([2, 6, 3])"), "one sample is recorded as two"


def test_the_sample_and_the_model_stay_as_they_are():
    def run(m, x):
        x += 1
        return m.fc(x.relu_())

    sample = torch.rand(2, 3) - 2
    before = sample.clone()
    report = inspect(model := Net(run, fc=nn.Linear(3, 4)), sample)
    assert report.exportable, str(report)
    assert torch.equal(sample, before)
    assert not model.fc._forward_hooks and not model.fc._forward_pre_hooks


def test_what_changes_in_place_is_followed():
    def run(m, x):
        y = m.fc(x)
        y += x
        return y.relu_()

    x = torch.randn(16, 3)
    model = Net(run, fc=nn.Linear(3, 3))
    with torch.no_grad():
        wanted = model(x).numpy()
    np.testing.assert_allclose(reference(model, x).run(x.numpy()), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("run", [
    lambda m, x: torch.cat((m.rnn(x)[0], x), -1),
    lambda m, x: m.a(y := m.c(x)) + m.b((z := m.d(x)) + y) + z])
def test_branches_that_cross_or_stand_side_by_side(run):
    torch.manual_seed(0)
    model = Net(run, rnn=nn.GRU(3, 4, batch_first=True), **{name: nn.Linear(3, 3) for name in "abcd"})
    x = torch.randn(4, 6, 3)
    assert inspect(model, x).exportable, str(inspect(model, x))
    with torch.no_grad():
        wanted = model(x).numpy()
    np.testing.assert_allclose(reference(model, x).run(x.numpy()), wanted, rtol=0, atol=1e-6)
    network = export(model, x, weight_bits=16)
    assert not network.arrangement.chain
    assert np.abs(network.run(x.numpy()).real - wanted).max() < 2e-3


def test_many_sums_in_a_row_are_judged_at_once():
    """Each doubles the paths from the input to the output, which must not double the time."""
    def run(m, x):
        for number in range(40):
            x = torch.relu(x + getattr(m, f"layer{number}")(x))
        return x

    model = Net(run, **{f"layer{number}": nn.Linear(3, 3) for number in range(40)})
    assert inspect(model, torch.zeros(2, 3)).exportable


def test_the_parts_of_one_call_are_told_apart():
    def run(m, x):
        steps = m.rnn(x)[0].unbind(1)
        return m.fc(steps[-1]) + m.other(steps[0])

    model = Net(run, rnn=lstm(), fc=nn.Linear(4, 2), other=nn.Linear(4, 2))
    report = inspect(model, torch.randn(STEPS))
    assert {entry.name: entry.status for entry in report}["unbind"] == "captured", str(report)
    with pytest.raises(Refusal, match=r"has none for unbind \(unbind"):
        export(model, torch.randn(STEPS))


def test_an_input_may_be_called_as_a_module():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.audio, self.text = nn.Linear(6, 3), nn.Linear(4, 6)

        def forward(self, audio, text):
            return torch.cat((self.audio(audio), self.text(text)), 1)

    model, given = Both(), {"audio": torch.randn(9, 6), "text": torch.randn(9, 4)}
    network = export(model, given)
    assert [entry.name for entry in network.inputs] == ["audio", "text"]
    assert abs(network.run(given).real - model(**given).detach().numpy()).max() < 2e-3
