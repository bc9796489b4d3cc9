"""What `inspect` calls exportable has units of hardware for all of its layers; what it does not, no golden network."""
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.hw.planner import plan
from circulant.hw.resources import parts
from circulant.sim.refusal import Refusal
from circulant.training import ResetBeforeGru, export, inspect
from tests.training.capture.test_trace import Net


def gru(**options):
    return nn.GRU(6, 4, batch_first=True, **options)


def ends(states):
    return torch.cat((states[-2], states[-1]), -1)


VECTORS, STEPS, IMAGES = (8, 6), (8, 5, 6), (8, 2, 6, 6)

MODELS = {
    "perceptron": (VECTORS, True, lambda m, x: torch.sigmoid(m.b(torch.tanh(m.a(x)))),
                   {"a": nn.Linear(6, 4), "b": nn.Linear(4, 3)}),
    "leaky": (VECTORS, True, lambda m, x: m.b(F.leaky_relu(m.n(m.a(x)))),
              {"a": nn.Linear(6, 4), "n": nn.BatchNorm1d(4), "b": nn.Linear(4, 3)}),
    "softmax": (VECTORS, True, lambda m, x: F.log_softmax(m.a(x), -1), {"a": nn.Linear(6, 4)}),
    "softmax within": (VECTORS, False, lambda m, x: m.b(F.softmax(m.a(x), -1)), {
        "a": nn.Linear(6, 4), "b": nn.Linear(4, 3)}),
    "sum": (VECTORS, True, lambda m, x: x + m.a(x), {"a": nn.Linear(6, 6)}),
    "sum of steps": (STEPS, True, lambda m, x: m.b((h := m.rnn(x)[0]) + torch.relu(m.a(h))), {
        "rnn": gru(), "a": nn.Linear(4, 4), "b": nn.Linear(4, 3)}),
    "sum around a recurrent layer": (STEPS, True, lambda m, x: m.a(x) + m.rnn(x)[0], {
        "rnn": gru(), "a": nn.Linear(6, 4)}),
    "side by side": (STEPS, True, lambda m, x: m.a(torch.cat((m.rnn(x)[0], x), -1)), {
        "rnn": gru(), "a": nn.Linear(10, 3)}),
    "plain": (STEPS, True, lambda m, x: m.a(m.rnn(x)[1][-1]), {
        "rnn": nn.RNN(6, 4, nonlinearity="relu", batch_first=True), "a": nn.Linear(4, 3)}),
    "steps": (STEPS, True, lambda m, x: F.hardtanh(m.a(m.rnn(x)[0]), -0.5, 0.5), {"rnn": gru(), "a": nn.Linear(4, 3)}),
    "before": (STEPS, True, lambda m, x: m.a(torch.relu(m.rnn(x)[0])[:, -1]), {
        "rnn": ResetBeforeGru(6, 4, batch_first=True), "a": nn.Linear(4, 3)}),
    "ends": (STEPS, True, lambda m, x: torch.tanh(ends(m.rnn(x)[1])), {"rnn": gru(bidirectional=True)}),
    "mean over time": (STEPS, True, lambda m, x: m.rnn(x)[0].mean(1), {"rnn": gru()}),
    "maximum over time": (STEPS, True, lambda m, x: m.p(m.rnn(x)[0].transpose(1, 2)).squeeze(-1), {
        "rnn": gru(), "p": nn.AdaptiveMaxPool1d(1)}),
    "mean of a bidirectional layer": (STEPS, True, lambda m, x: m.a(m.rnn(x)[0].mean(1)), {
        "rnn": gru(bidirectional=True), "a": nn.Linear(8, 3)}),
    "mean over features": (STEPS, False, lambda m, x: m.rnn(x)[0].mean(2), {"rnn": gru()}),
    "images": (IMAGES, True, lambda m, x: m.a(m.p(F.relu6(m.c(x))).flatten(1)), {
        "c": nn.Conv2d(2, 3, 3), "p": nn.AdaptiveAvgPool2d(2), "a": nn.Linear(12, 3)}),
    "residual": (IMAGES, True, lambda m, x: (F.hardsigmoid(m.c(x)) + x).flatten(1), {
        "c": nn.Conv2d(2, 2, 3, padding=1)}),
    "each position": (STEPS, True, lambda m, x: m.a(torch.relu(m.c(x)).transpose(1, 2)), {
        "c": nn.Conv1d(5, 4, 3), "a": nn.Linear(4, 3)}),
    "rows": (IMAGES, True, lambda m, x: m.rnn(m.c(x).permute(0, 2, 1, 3).flatten(2))[0], {
        "c": nn.Conv2d(2, 1, 1), "rnn": gru()}),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_exportable_has_hardware(name):
    shape, wanted, run, modules = MODELS[name]
    torch.manual_seed(0)
    model, x = Net(run, **modules).eval(), torch.randn(shape)
    report = inspect(model, x)
    assert report.exportable is wanted, str(report)
    if not wanted:
        with pytest.raises(Refusal, match=r"^The golden model must have a layer for everything that is exported"):
            export(model, x)
        return
    network = export(model, x)
    made = parts(network, plan(network, 2000))
    assert made.memories
