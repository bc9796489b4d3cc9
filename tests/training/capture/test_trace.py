"""What a model may look like, and that all that it may not is refused at once."""
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.constraint import compress
from circulant.training.graph import chain


class Net(nn.Module):
    """A model whose forward method is given as a function of itself and its input."""

    def __init__(self, run, **modules):
        super().__init__()
        self.run = run
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x):
        return self.run(self, x)


def gru(inputs=8, hidden=4, **options):
    return nn.GRU(inputs, hidden, **{"batch_first": True, **options})


def steps(run, **modules):
    return [(step.path, step.last) for step in chain(Net(run, **modules), sequence=True)]


@pytest.mark.parametrize("run", [
    lambda m, x: m.fc(m.rnn(x)[0][:, -1]),
    lambda m, x: m.fc(m.rnn(x)[0][:, -1, :]),
    lambda m, x: m.fc(m.rnn(x)[1][-1]),
    lambda m, x: m.fc(m.rnn(x)[1][0]),
    lambda m, x: m.fc(m.rnn(x)[0])[:, -1],
])
def test_last_step(run):
    assert steps(run, rnn=gru(), fc=nn.Linear(4, 2)) == [("rnn", True), ("fc", False)]


def test_sequence():
    assert steps(lambda m, x: m.fc(m.rnn(x)[0]), rnn=gru(), fc=nn.Linear(4, 2)) == [("rnn", False), ("fc", False)]


def test_only_the_last_gru_takes_the_last_step():
    found = steps(lambda m, x: m.fc(m.b(m.a(m.pre(x))[0])[1][-1]),
                  pre=nn.Linear(8, 8), a=gru(), b=gru(4), fc=nn.Linear(4, 2))
    assert found == [("pre", False), ("a", False), ("b", True), ("fc", False)]


def test_transparent_layers_and_dead_ends_are_left_out():
    def run(m, x):
        m.relu(x)
        out, _ = m.rnn(m.drop(m.nothing(x)))
        return m.fc(m.drop2(out[:, -1]))

    found = steps(run, rnn=gru(), fc=nn.Linear(4, 2), drop=nn.Dropout(), drop2=nn.Dropout(), nothing=nn.Identity(),
                  relu=nn.ReLU())
    assert found == [("rnn", True), ("fc", False)]


def test_nested_and_parametrized_modules():
    inner = Net(lambda m, x: m.rnn(x)[0], rnn=gru())
    model = compress(Net(lambda m, x: m.head(m.body(x)[:, -1]), body=inner, head=nn.Sequential(nn.Linear(4, 2))), 4)
    assert [(step.path, step.last) for step in chain(model, sequence=True)] == [("body.rnn", True), ("head.0", False)]


def test_a_layer_alone():
    assert [step.path for step in chain(nn.Linear(8, 2), sequence=False)] == ["linear"]


@pytest.mark.parametrize(("run", "modules", "message"), [
    (lambda m, x: m.rnn(x)[0][-1], {}, r"getitem\w* \(indexing with \[-1\] is not supported; take the last step"),
    (lambda m, x: m.rnn(x)[0][:, 0], {}, r"getitem\w* \(indexing with \[:, 0\] is not supported"),
    (lambda m, x: m.rnn(x)[0][:, -1:], {}, r"getitem\w* \(indexing with \[:, -1:\] is not supported"),
    (lambda m, x: m.rnn(x)[1][0], {"rnn": gru(num_layers=2)}, r"getitem\w* \(indexing with \[0\] is not supported"),
    (lambda m, x: m.rnn(x), {}, r"output \(it must be one tensor, not what a GRU returns"),
    (lambda m, x: m.rnn(x)[1], {}, r"output \(it must be one tensor, not what a GRU returns"),
    (lambda m, x: (m.fc(x), x), {}, r"output \(it must be one tensor"),
    (lambda m, x: m.fc(2), {}, r"fc \(Linear: it must depend on the input of the model, not on a constant\)"),
    (lambda m, x: x, {}, r"output \(it must come from at least one Linear or GRU\)"),
    (lambda m, x: m.fc(m.rnn(x)), {}, r"fc \(Linear: it must take a tensor, not all that a GRU returns"),
    (lambda m, x: m.rnn(m.rnn(x)[0])[0], {"rnn": gru(4)}, r"rnn \(GRU: it is called more than once"),
    (lambda m, x: m.rnn2(m.rnn(x)[0][:, -1])[0], {"rnn2": gru(4)}, r"rnn2 \(GRU: it must take a sequence"),
    (lambda m, x: m.rnn(x, m.fc(x))[0], {}, r"rnn \(GRU: an initial state is not supported; leave it out"),
    (lambda m, x: m.rnn(x)[0] + x, {}, r"add \(add: the function is not supported\)"),
    (lambda m, x: torch.relu(m.rnn(x)[0]), {}, r"relu \(relu: the function is not supported\)"),
    (lambda m, x: m.rnn(x.transpose(1, 2))[0], {}, r"transpose \(transpose: the function is not supported\)"),
    (lambda m, x: m.rnn(x)[0], {"rnn": nn.GRU(8, 4)}, r"rnn \(GRU: batch_first=False is not supported; build it with"),
    (lambda m, x: m.rnn(x)[0], {"rnn": gru(bidirectional=True)}, r"rnn \(GRU: bidirectional=True is not supported"),
    (lambda m, x: m.rnn(x)[0], {"rnn": nn.LSTM(8, 4, proj_size=2)}, r"rnn \(LSTM: the layer is not supported"),
    (lambda m, x: m.rnn(x)[0], {"rnn": type("MyGru", (nn.GRU,), {})(8, 4)}, r"rnn \(MyGru: the layer is not supported"),
    (lambda m, x: m.rnn(x)[0] if x.sum() > 0 else x, {}, r"forward \(TraceError: .*free of decisions"),
    (lambda m, x: m.rnn(x, torch.zeros(1, 3, 4))[0], {}, r"rnn \(GRU: an initial state is not"),
    (lambda m, x: m.fc(m.rnn(x)[0] * m.fc.bias), {}, r"mul \(mul: the function is not supported\)"),
])
def test_what_cannot_be_converted_is_refused(run, modules, message):
    with pytest.raises(Refusal, match=rf"^[12] parts? of the model cannot be converted: (.*, )?{message}"):
        steps(run, **{"rnn": gru(), "fc": nn.Linear(4, 2), **modules})


def test_everything_is_listed_at_once():
    def run(m, x):
        out, _ = m.rnn(m.conv(x))
        return torch.softmax(m.fc(m.relu(out[:, -1])), dim=-1)

    with pytest.raises(Refusal) as refusal:
        steps(run, conv=nn.Conv1d(8, 8, 1), rnn=nn.GRU(8, 4, bidirectional=True), relu=nn.ReLU(), fc=nn.Linear(4, 2))
    text = str(refusal.value)
    assert text.startswith("4 parts of the model cannot be converted: conv (Conv1d: ")
    for part in ("rnn (GRU: batch_first=False is not supported", "bidirectional=True is not supported", "relu (ReLU: ",
                 "softmax (softmax: "):
        assert part in text, f"{part!r} must be in {text}"


def test_layers_are_listed_also_where_the_model_cannot_be_traced():
    def run(m, x):
        return m.relu(x) if x.sum() > 0 else x

    with pytest.raises(Refusal, match=r"^2 parts of the model cannot be converted: relu \(ReLU: .*, forward \(Trace"):
        steps(run, relu=nn.ReLU())


def test_more_than_one_input_is_refused():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x, y):
            return self.fc(x + y)

    with pytest.raises(Refusal, match=r"forward \(it takes more than one input"):
        chain(Two(), sequence=False)


def test_circulant_among_other_parametrizations_is_refused():
    model = Net(lambda m, x: m.fc(x), fc=nn.Linear(4, 4))
    model = compress(model, 4)
    nn.utils.parametrize.register_parametrization(model.fc, "weight", nn.Identity())
    with pytest.raises(Refusal, match=r"fc \(Linear: weight carries other parametrizations beside BlockCirculant"):
        chain(model, sequence=False)
