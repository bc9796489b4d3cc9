"""Models with several inputs and outputs: each is one of the network, and what does not fit is refused."""
import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.sim.error.error_bound import error_bound
from circulant.sim.refusal import Refusal
from circulant.training import export, inspect, reference
from tests.modules import Net


def summed(m, x, y):
    steps = m.rnn(x)[0]
    return {"head": m.head(steps), "end": m.end(torch.cat((steps.mean(1), y), 1))}


def model(run=summed):
    torch.manual_seed(0)

    class Two(Net):
        def forward(self, x, y):
            return run(self, x, y)

    return Two(None, rnn=nn.GRU(3, 4, batch_first=True), head=nn.Linear(4, 2),
               end=nn.Linear(6, 3)).eval()


def data(count=6):
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, (count, 5, 3)), rng.normal(0, 1, (count, 2))


def test_inputs_are_called_as_those_of_forward_and_outputs_come_in_its_order():
    x, y = data()
    exact = reference(model(), (x, y))
    assert [each.name for each in exact.inputs] == ["x", "y"]
    assert exact.outputs == ("head", "end")
    with torch.no_grad():
        wanted = model().double()(torch.tensor(x), torch.tensor(y))
    found = exact.run({"x": x, "y": y})
    for name, each in wanted.items():
        np.testing.assert_allclose(found[name], each.numpy(), atol=1e-6)


def test_integers_are_within_the_bound_and_by_name_or_in_order_the_same():
    x, y = data()
    network, exact = export(model(), (x, y)), reference(model(), (x, y))
    assert export(model(), {"y": y, "x": x}).hash == network.hash
    given = {"x": x, "y": y}
    golden, real, bound = network.run(given), exact.run(given), error_bound(network, exact, given)
    for name in network.outputs:
        assert (np.abs(golden[name].real - real[name]) <= bound[name] + 1e-9).all()
        assert bound[name].max() < 0.05
    traced = network.run(given, trace=True)["head"]
    np.testing.assert_array_equal(traced.integers, network.vectors(given).outputs)
    assert "mean.y" in traced.trace


def test_a_softmax_is_dropped_at_each_output():
    x, y = data()
    wanted = reference(model(lambda m, x, y: (torch.log_softmax(m.end(torch.cat((x[:, 0], x[:, 1]), 1)), -1),
                                              torch.softmax(y, -1))), (x, y))
    assert [node.layer.kind for node in wanted.nodes] == ["linear", "scale"]


def test_one_tensor_may_be_two_outputs():
    net, x = Net(lambda m, x: (m.fc(x), m.fc(x)), fc=nn.Linear(4, 3)), torch.rand(5, 4)
    twice = Net(lambda m, x: (y := m.fc(x), y, x), fc=nn.Linear(4, 3))
    assert len(export(net, x).outputs) == 2
    exact = reference(twice, x)
    assert [node.layer.kind for node in exact.nodes] == ["linear", "scale", "scale"]


@pytest.mark.parametrize(("given", "sentence"), [
    (data()[:1], r"^The sample must be of the inputs of the model, x, y, not of 1; give a tuple of those of each, "),
    ((*data(), data()[1]), r"^The sample must be of the inputs of the model, x, y, not of 3; "),
    ({"x": data()[0], "z": data()[1]}, r"^The sample must be of the inputs of the model, x, y, not of x, z; "),
    ((data()[0], data()[1][:2]), r"^All inputs must have as many samples, not 6, 2; give the same of each$")])
def test_samples_that_do_not_fit_are_refused(given, sentence):
    with pytest.raises(Refusal, match=sentence):
        inspect(model(), given)


def test_an_input_that_nothing_depends_on_is_refused():
    report = inspect(model(lambda m, x, y: m.head(m.rnn(x)[0])), data())
    with pytest.raises(Refusal, match=r"y \(input: no output depends on it; leave it out of forward\)$"):
        report.require()


def test_runs_need_the_data_of_each_input():
    x, y = data()
    network, exact = export(model(), (x, y)), reference(model(), (x, y))
    for run in (network.run, exact.run):
        with pytest.raises(Refusal, match=r" must be of x, y, not of x; give those of each input by its name$"):
            run({"x": x})
    with pytest.raises(Refusal, match=r"^Network 'two' must have one input for this, not 2, x, y; "):
        network.run(x)


def test_the_words_of_a_state_that_is_kept_come_out():
    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 4, batch_first=True)

        def forward(self, x):
            return self.rnn(x)[1]  # (1, N, 4)

    x = torch.randn(6, 5, 3)
    assert circulant.inspect(Kept(), x).exportable
    assert reference(Kept(), x).run(x.numpy()).shape == (6, 4)
