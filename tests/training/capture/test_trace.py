"""What a model may look like, what becomes of each of its nodes, and that all that it may not is refused at once."""
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import compress
from circulant.training.capture import capture, inspect
from circulant.training.kinds.scale import Scale
from circulant.training.models.cells import PeepholeLstm, ResetBeforeGru
from circulant.training.models.models import MODELS, ModelSettings, build
from tests import neutral
from tests.modules import Net


def gru(inputs=8, hidden=4, **options):
    return nn.GRU(inputs, hidden, **{"batch_first": True, **options})


def sequence(n=2, steps=5, inputs=8):
    return torch.rand(n, steps, inputs)


def steps(run, **modules):
    """Name and class of each node, with "last" for a recurrent layer that gives its last step."""
    graph, report = capture(Net(run, **modules).eval(), sequence())
    report.require()
    return [(node.name, "last" if getattr(node, "returns", "") == "last" else type(node).__name__)
            for node in graph.nodes[1:]]


def check(model, sample):
    """Capture a model, check that the graph computes what it computes, and return graph and report."""
    model = model.double().eval()
    sample = sample.double()
    graph, report = capture(model, sample)
    report.require()
    with torch.no_grad():
        torch.testing.assert_close(neutral.run(graph, sample), model(sample), rtol=1e-9, atol=1e-9)
    return graph, report


SAMPLES = {"lenet5": (2, 1, 28, 28), "lenet_caffe": (2, 1, 16, 20), "vgg": (2, 3, 16, 16), "cnn": (2, 3, 32, 32),
           "resnet8": (2, 3, 16, 16), "separable": (2, 1, 12, 12)}


def warmed(model, shape):
    """A model whose batch normalisations have statistics and scales that are not those of the start."""
    model.train()
    for seed in range(3):
        torch.manual_seed(seed)
        model(torch.randn(8, *shape[1:]) + 1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.uniform_(module.bias, -1, 1)
    return model


@pytest.mark.parametrize("block_size", [1, 4])
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "python"])  # That is a user's own.
def test_every_model_that_we_name_is_captured_exactly(kind, block_size):
    shape = SAMPLES.get(kind, (2, 10, 8))
    model = warmed(build(ModelSettings(kind), shape[1:], 10), shape)
    if block_size > 1:
        model = compress(model, {name: block_size for name, module in model.named_modules()
                                 if isinstance(module, nn.Linear | nn.Conv2d | nn.RNNBase | ResetBeforeGru)
                                 and name not in ("conv1", "conv") and getattr(module, "groups", 1) == 1})
    graph, report = check(model, torch.rand(shape))
    assert report.ok
    assert report.exportable, str(report)
    folded = [entry for entry in report if "Norm" in entry.kind and entry.status == "folded"]
    norms = [entry for entry in report if "Norm" in entry.kind]
    if block_size == 1:
        assert folded == norms, "a norm after a dense convolution must be folded"
    elif kind in ("vgg", "resnet8", "separable"):
        assert len(folded) < len(norms), "a norm after a circulant convolution must stay"
        assert all("not folded" in entry.note for entry in norms if entry not in folded)
    gains = kind == "lru" and block_size > 1  # Those of a complex recurrence fold into dense matrices, too.
    assert sum(isinstance(node, Scale) for node in graph.nodes) == len(norms) - len(folded) + gains


@pytest.mark.parametrize("run", [
    lambda m, x: m.fc(m.rnn(x)[0][:, -1]),
    lambda m, x: m.fc(m.rnn(x)[0][:, -1, :]),
    lambda m, x: m.fc(m.rnn(x)[1][-1]),
    lambda m, x: m.fc(m.rnn(x)[1][0]),
])
def test_last_step(run):
    assert steps(run, rnn=gru(), fc=nn.Linear(4, 2)) == [("rnn", "last"), ("fc", "Linear")]


def test_last_step_behind_layers_that_treat_every_step_alike():
    found = steps(lambda m, x: F.relu(m.fc(m.rnn(x)[0]))[:, -1], rnn=gru(), fc=nn.Linear(4, 2))
    assert found == [("rnn", "last"), ("fc", "Linear")]


def test_last_step_of_a_sequence_that_is_also_used_whole():
    def run(m, x):
        out = m.rnn(x)[0]
        return out[:, -1] + out.mean(1)

    found = steps(run, rnn=gru())
    assert found == [("rnn", "Recurrent"), ("mean", "Reduce"), ("getitem", "Move"), ("add", "Add")]


@pytest.mark.parametrize("kind", [nn.LSTM, PeepholeLstm])
def test_last_step_of_an_lstm(kind):
    lstm = kind(8, 4, num_layers=2, batch_first=True)
    assert steps(lambda m, x: m.rnn(x)[1][0][-1], rnn=lstm) == [("rnn", "last")]
    assert steps(lambda m, x: m.rnn(x)[0], rnn=lstm) == [("rnn", "Recurrent")]


@pytest.mark.parametrize("kind", [nn.GRU, ResetBeforeGru])
def test_ends_of_both_directions(kind):
    both = kind(8, 4, num_layers=2, batch_first=True, bidirectional=True)

    def ends(m, x):
        h = m.rnn(x)[1]
        return torch.cat((h[-2], h[-1]), dim=1)

    assert steps(ends, rnn=both) == [("rnn", "last")]
    assert steps(lambda m, x: m.rnn(x)[0][:, -1], rnn=both) == [("rnn", "Recurrent"), ("getitem", "Move")]
    for run in (ends, lambda m, x: m.rnn(x)[0][:, -1]):
        check(Net(run, rnn=both), sequence())


def test_only_the_last_layer_takes_the_last_step():
    found = steps(lambda m, x: m.fc(m.b(m.a(m.pre(x))[0])[1][-1]),
                  pre=nn.Linear(8, 8), a=gru(), b=gru(4), fc=nn.Linear(4, 2))
    assert found == [("pre", "Linear"), ("a", "Recurrent"), ("b", "last"), ("fc", "Linear")]


def test_transparent_layers_and_dead_ends_are_left_out():
    def run(m, x):
        m.relu(x)
        out, _ = m.rnn(m.drop(m.nothing(x)))
        return m.fc(F.dropout(m.drop2(out[:, -1]), training=m.training).contiguous())

    modules = {"rnn": gru(), "fc": nn.Linear(4, 2), "drop": nn.Dropout(), "drop2": nn.Dropout(),
               "nothing": nn.Identity(), "relu": nn.ReLU()}
    assert steps(run, **modules) == [("rnn", "last"), ("fc", "Linear")]
    entries = {entry.name: entry for entry in inspect(Net(run, **modules), sequence())}
    assert {name: (entries[name].status, entries[name].note) for name in ("relu", "drop", "nothing", "getitem")} == {
        "relu": ("skipped", "its output is not used"), "drop": ("skipped", "without effect in evaluation"),
        "nothing": ("skipped", "without effect in evaluation"), "getitem": ("folded", "part of rnn")}


def test_nested_and_parametrized_modules():
    inner = Net(lambda m, x: m.rnn(x)[0], rnn=gru())
    model = compress(Net(lambda m, x: m.head(m.body(x)[:, -1]), body=inner, head=nn.Sequential(nn.Linear(4, 2))), 4)
    graph, _ = check(model, sequence())
    assert [node.name for node in graph.nodes[1:]] == ["body.rnn", "head.0"]
    assert graph["head.0"].first.shape == (1, 1, 1, 4)


def test_a_layer_alone():
    graph, _ = check(nn.Linear(8, 2), torch.rand(3, 8))
    assert [node.name for node in graph.nodes[1:]] == ["linear"]


FORMS = {
    "relu": (lambda m, x: F.relu(x) + torch.relu(x) + x.relu(), {}),
    "flatten": (lambda m, x: m.fc(torch.flatten(m.conv(x), 1)), {"fc": nn.Linear(324, 3)}),
    "view": (lambda m, x: m.fc(m.conv(x).view(x.size(0), -1)), {"fc": nn.Linear(324, 3)}),
    "reshape": (lambda m, x: m.fc(m.conv(x).reshape(x.shape[0], 4 * 9 * 9)), {"fc": nn.Linear(324, 3)}),
    "residual": (lambda m, x: m.relu(m.same(x) + x), {"same": nn.Conv2d(3, 3, 3, padding="same"), "relu": nn.ReLU()}),
    "twice": (lambda m, x: x + torch.add(x, x), {}),
    "strided": (lambda m, x: m.conv(x), {"conv": nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0))}),
    "global": (lambda m, x: x.mean((2, 3)) + torch.mean(x, dim=[-1, -2]) + F.adaptive_avg_pool2d(x, 1).flatten(1), {}),
    "global_max": (lambda m, x: m.pool(x).squeeze(-1).squeeze(-1), {"pool": nn.AdaptiveMaxPool2d((1, 1))}),
    "windows": (lambda m, x: F.max_pool2d(x, 3, 2, 1) + F.max_pool2d(x, kernel_size=3, stride=2, padding=1), {}),
    "averages": (lambda m, x: F.avg_pool2d(x, 2) + m.pool(x), {"pool": nn.AvgPool2d(2)}),
    "spectrogram": (lambda m, x: m.rnn(m.conv(x).permute(0, 2, 1, 3).flatten(2))[0][:, -1], {"rnn": gru(36)}),
    "norm_first": (lambda m, x: m.norm(x), {"norm": nn.BatchNorm2d(3)}),
    "norm_of_a_sum": (lambda m, x: m.norm(m.conv(x) + m.conv2(x)), {"norm": nn.BatchNorm2d(4),
                                                                    "conv2": nn.Conv2d(3, 4, 3)}),
    "shared_norm": (lambda m, x: m.norm(y) + y if (y := m.conv(x)) is not None else None, {"norm": nn.BatchNorm2d(4)}),
}


@pytest.mark.parametrize("name", FORMS)
def test_functional_forms(name):
    run, modules = FORMS[name]
    torch.manual_seed(0)
    model = Net(run, **{"conv": nn.Conv2d(3, 4, 3), **modules})
    check(warmed(model, (2, 3, 11, 11)), torch.rand(2, 3, 11, 11))


def test_sequences_through_convolutions_and_norms():
    torch.manual_seed(0)

    def run(m, x):
        y = m.norm(m.conv(x.transpose(1, 2))).transpose(1, 2)
        return m.fc(m.rnn(m.pool(y.transpose(1, 2)).permute(0, 2, 1))[0].mean(1))

    model = Net(run, conv=nn.Conv1d(8, 6, 3, padding=1), norm=nn.BatchNorm1d(6), pool=nn.MaxPool1d(2), rnn=gru(6),
                fc=nn.Linear(4, 2))
    _, report = check(warmed(model, (2, 12, 8)), sequence(steps=12))
    assert [entry.name for entry in report if entry.status == "folded"] == ["transpose", "norm"]


def test_steps_before_the_batch():
    def run(m, x):
        return m.rnn(x.transpose(0, 1))[0].transpose(0, 1)

    _, report = check(Net(run, rnn=nn.GRU(8, 4)), sequence())
    assert [(entry.name, entry.status) for entry in report if entry.kind == "transpose"] == [
        ("transpose", "skipped"), ("transpose_1", "skipped")]
    assert report.exportable


@pytest.mark.parametrize(("run", "modules", "message"), [
    (lambda m, x: m.rnn(x)[0][-1], {}, r"getitem\w* \(getitem: indexing with \[-1\] is not supported; take the last"),
    (lambda m, x: m.rnn(x)[0][:, 0], {}, r"getitem\w* \(getitem: indexing with \[:, 0\] is not supported"),
    (lambda m, x: m.rnn(x)[0][:, -2:], {}, r"getitem\w* \(getitem: indexing with \[:, -2:\] is not supported"),
    (lambda m, x: m.rnn(x)[1][0], {"rnn": gru(num_layers=2)}, r"getitem\w* \(getitem: indexing with \[0\] is not"),
    (lambda m, x: m.lstm(x), {"lstm": nn.LSTM(8, 4, batch_first=True)}, r"output_2 \(cells c_n and states of lower l"),
    (lambda m, x: (m.rnn(x)[0], 3), {}, r"output_1 \(it must be a tensor, or a collection of tensors, not int; take"),
    (lambda m, x: (), {}, r"output \(there must be a tensor that depends on the input\)"),
    (lambda m, x: m.rnn(x.transpose(0, 1))[0], {"rnn": nn.GRU(8, 4)}, r"output \(the batch must be its first axis"),
    (lambda m, x: torch.zeros(2, 3), {}, r"output \(it must depend on the input\)"),
    (lambda m, x: m.fc(m.rnn(x)), {}, r"fc \(Linear: it must take a tensor, not all that a recurrent layer returns"),
    (lambda m, x: m.rnn2(m.rnn(x)[0][:, -1])[0], {"rnn2": gru(4)}, r"rnn2 \(GRU: it must take a sequence"),
    (lambda m, x: m.rnn(x, m.fc(x))[0], {"fc": nn.Linear(8, 4)}, r"rnn \(GRU: an initial state is not supported"),
    (lambda m, x: m.rnn(x, torch.ones(1, 2, 4))[0], {}, r"rnn \(GRU: an initial state is not supported; leave it out"),
    (lambda m, x: torch.cat((x, torch.eye(10).view(2, 5, 10)), 2), {}, r"cat \(cat: a constant must be the same f"),
    (lambda m, x: 1 / m.rnn(x)[0], {}, r"rdiv \(rdiv: it must divide by a constant, not by what"),
    (lambda m, x: m.rnn(x)[0] + m.rnn(x)[0][:, None], {}, r"add \(add: it must sum two tensors of as many axes, which"),
    (lambda m, x: torch.erf(m.rnn(x)[0]), {}, r"erf \(erf: the function is not supported\)"),
    (lambda m, x: m.rnn(x)[0].reshape(10, 4), {}, r"reshape \(reshape: it must leave the batch an axis of its own, n"),
    (lambda m, x: m.rnn(x)[0].view(5, 2, 4), {}, r"view \(view: it must leave the batch an axis of its own, not turn"),
    (lambda m, x: m.rnn(x)[0].mean(0), {}, r"mean \(mean: it must not reduce the batch"),
    (lambda m, x: m.rnn(x)[0].mean(), {}, r"mean \(mean: it must name the axes that it reduces"),
    (lambda m, x: F.dropout(m.rnn(x)[0]), {}, r"dropout \(dropout: dropout must be inactive in evaluation"),
    (lambda m, x: m.rnn(x)[0], {"rnn": nn.GRU(8, 4)}, r"rnn \(GRU: it must take \(T, N, inputs\) with batch_first=F"),
    (lambda m, x: m.rnn(x.transpose(0, 1))[0], {}, r"rnn \(GRU: it must take \(N, T, inputs\) with batch_first=True"),
    (lambda m, x: m.rnn(x)[0], {"rnn": nn.GRUCell(8, 4)}, r"rnn \(GRUCell: it must go through all steps"),
    (lambda m, x: m.rnn(x)[0], {"rnn": type("MyGru", (nn.GRU,), {})(8, 4)}, r"rnn \(MyGru: the layer is not supported"),
    (lambda m, x: m.rnn(x)[0] if x.sum() > 0 else x, {}, r"forward \(it cannot be traced beyond `.*TraceErr"),
    (lambda m, x: m.fc(torch.maximum(m.rnn(x)[0], m.fc.bias)), {"fc": nn.Linear(4, 4)}, r"fc_bias \(tensor: fc\.bias"),
    (lambda m, x: m.fc(m.rnn(x)[0]), {"fc": nn.Linear(5, 2)}, r"fc \(Linear: it fails on samples of the shape "),
    (lambda m, x: m.conv(x), {"conv": nn.Conv1d(5, 5, 3, padding=1, padding_mode="circular")},
     r"conv \(Conv1d: padding_mode='circular' is not supported; only"),
    (lambda m, x: m.norm(x), {"norm": nn.BatchNorm1d(5, track_running_stats=False)}, r"norm \(BatchNorm1d: it must"),
    (lambda m, x: m.pool(x), {"pool": nn.MaxPool1d(3, ceil_mode=True)}, r"pool \(MaxPool1d: ceil_mode=True is not"),
    (lambda m, x: m.pool(x), {"pool": nn.AdaptiveAvgPool1d(3)}, r"pool \(AdaptiveAvgPool1d: the output size must div"),
    (lambda m, x: F.max_pool1d(x, 2, ceil_mode=True), {}, r"max_pool1d \(max_pool1d: ceil_mode=True is not"),
])
def test_what_cannot_be_captured_is_refused(run, modules, message):
    with pytest.raises(Refusal, match=rf"^[12] parts? of the model cannot be converted: (.*, )?{message}"):
        steps(run, **{"rnn": gru(), "fc": nn.Linear(4, 2), **modules})


def test_everything_is_listed_at_once():
    def run(m, x):
        return torch.erf(m.fc(m.gelu(m.rnn(m.conv(x)[:, -1]))))

    with pytest.raises(Refusal) as refusal:
        steps(run, conv=nn.Conv1d(5, 5, 1, bias=False, padding_mode="circular"), rnn=nn.GRUCell(8, 4),
              gelu=nn.RReLU(), fc=nn.Linear(4, 2))
    text = str(refusal.value)
    assert text.startswith("4 parts of the model cannot be converted: conv (Conv1d: padding_mode='circular'")
    for part in ("rnn (GRUCell: ", "gelu (RReLU: ", "erf (erf: "):
        assert part in text, f"{part!r} must be in {text}"


def test_layers_are_listed_also_where_the_model_cannot_be_traced():
    def run(m, x):
        return m.gelu(x) if x.sum() > 0 else x

    with pytest.raises(Refusal, match=r"^2 parts of the model cannot be converted: gelu \(RReLU: .*, forward \(it can"):
        steps(run, gelu=nn.RReLU())


def test_the_inside_of_a_layer_is_not_listed():
    def run(m, x):
        return m.attention(x, x, x)[0] if x.sum() > 0 else m.fc(x)

    layers = {"attention": nn.MultiheadAttention(8, 2, batch_first=True), "fc": compress(nn.Linear(8, 8), 4)}
    with pytest.raises(Refusal, match=r"^2 parts of the model cannot be converted: attention \(Multi[^,]*, .*forward"):
        steps(run, **layers)


def test_what_comes_after_a_refusal_is_not_judged():
    report = inspect(Net(lambda m, x: m.fc(m.gelu(m.rnn(x)[0])[:, -1]), rnn=gru(), gelu=nn.RReLU(), fc=nn.Linear(4, 2)),
                     sequence())
    assert [(entry.name, entry.status) for entry in report] == [
        ("rnn", "converted"), ("gelu", "refused"), ("getitem", "not judged"), ("fc", "not judged")]
    assert report.entries[-1].note == "something before it is refused"
    assert str(report).endswith("Net: 1 converted, 1 refused, 2 not judged")


def test_inputs_that_are_left_out_take_their_defaults():
    class Lengths(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x, lengths=None):
            return self.fc(x)

    class Maybe(Lengths):
        def forward(self, x, y=None):
            return self.fc(x if y is None else x + y)

    class Two(Lengths):
        def forward(self, x, y):
            return self.fc(x + y)

    assert inspect(Lengths(), torch.rand(2, 4)).exportable
    assert inspect(Maybe(), torch.rand(2, 4)).exportable
    with pytest.raises(Refusal, match=r"^The sample must be of the inputs of the model, x, y, not of 1; give a tuple"):
        inspect(Two(), torch.rand(2, 4))


@pytest.mark.parametrize("shape", [(4,), (0, 4)])
def test_wrong_samples(shape):
    with pytest.raises(Refusal, match=r"^Sample inputs must have the shape \(N, inputs\), \(N, T, inputs\) or"):
        inspect(nn.Linear(4, 2), torch.zeros(shape))


def test_the_model_stays_as_it_is():
    model = compress(Net(lambda m, x: m.drop(m.rnn(x)[0]), rnn=gru(), drop=nn.Dropout()), 4).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    inspect(model, sequence(n=1))
    assert model.training and model.drop.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_circulant_among_other_parametrizations_is_refused():
    model = compress(Net(lambda m, x: m.fc(x), fc=nn.Linear(4, 4)), 4)
    nn.utils.parametrize.register_parametrization(model.fc, "weight", nn.Identity())
    with pytest.raises(Refusal, match=r"fc \(Linear: weight carries other parametrizations beside BlockCirculant"):
        capture(model, torch.rand(2, 4)).report.require()
