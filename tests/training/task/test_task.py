"""Losses and metrics of the tasks against their definitions; ragged sequences; outputs of the wrong shape."""
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.loop.loop import evaluate, fit
from circulant.training.task.batches import Part
from circulant.training.task.task import Classification, Ctc, task_of

CPU = torch.device("cpu")


def spoken(count: int = 96, seed: int = 0) -> Dataset:
    """Sequences of up to 12 steps that spell their symbols one after the other, each for 2 or 3 steps."""
    rng = np.random.default_rng(seed)
    x, y = np.zeros((count, 12, 5), np.float32), np.zeros((count, 4), np.int64)
    lengths, symbols = np.zeros(count, np.int64), rng.integers(1, 5, count)
    for i in range(count):
        y[i, :symbols[i]] = 1 + rng.permutation(4)[:symbols[i]]
        steps = np.repeat(y[i, :symbols[i]], rng.integers(2, 4, symbols[i]))
        lengths[i] = len(steps)
        x[i, np.arange(len(steps)), steps] = 1
        x[i, len(steps):] = 9.0  # padding that must not be seen
    cut = count * 2 // 3
    return Dataset("spoken", train_x=x[:cut], train_y=y[:cut], test_x=x[cut:], test_y=y[cut:], classes=5, task="ctc",
                   train_lengths=lengths[:cut], test_lengths=lengths[cut:],
                   train_target_lengths=symbols[:cut], test_target_lengths=symbols[cut:])


class Labeller(nn.Module):
    """Outputs for each step."""

    def __init__(self, bidirectional: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gru = nn.GRU(5, 16, batch_first=True, bidirectional=bidirectional)
        self.linear = nn.Linear(32 if bidirectional else 16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.gru(x)[0])


class Last(Labeller):
    """The class of the last symbol, from the last step."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)[:, -1]


def test_the_loss_of_ctc_is_the_sum_over_all_paths():
    data = spoken()
    batch = Part(data, "train", CPU).take(torch.tensor([2, 5]))
    outputs = torch.randn(2, batch.x.shape[1], 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    short = batch._replace(x=batch.x[:, :4], y=batch.y[:, :2], lengths=torch.tensor([4, 3]),
                           target_lengths=torch.tensor([2, 1]))
    chances = outputs[:, :4].softmax(-1)
    wanted = 0.0
    for i, (steps, symbols) in enumerate(((4, 2), (3, 1))):
        total = 0.0
        for path in itertools.product(range(5), repeat=steps):
            if [c for c, _ in itertools.groupby(path) if c] == short.y[i, :symbols].tolist():
                total += float(torch.stack([chances[i, t, c] for t, c in enumerate(path)]).prod())
        wanted -= np.log(total) / symbols / 2
    assert float(Ctc(5).loss(outputs[:, :4], short)) == pytest.approx(wanted, rel=1e-5)


def test_the_metric_of_ctc_is_the_phone_error_rate():
    data = spoken()
    part = Part(data, "test", CPU)
    batch = part.take(torch.arange(len(part)))
    right = batch.x * 10.0  # spells its symbols
    assert Ctc(5).tally(right, batch) == (0.0, float(batch.target_lengths.sum()))
    nothing = torch.zeros_like(right)
    nothing[..., 0] = 1.0
    assert Ctc(5).tally(nothing, batch) == (float(batch.target_lengths.sum()), float(batch.target_lengths.sum()))
    assert Ctc(5).score(nothing.numpy(), data) == 1.0
    assert (Ctc(5).metric, Ctc(5).higher_is_better) == ("phone_error_rate", False)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequences_of_symbols_are_learned(bidirectional):
    model, data = Labeller(bidirectional), spoken()
    history = fit(model, data, epochs=30, lr=0.03, batch=16, clip=5.0)
    assert set(history[0]) == {"loss", "phone_error_rate"}
    assert history[-1]["phone_error_rate"] <= 0.1 < history[0]["phone_error_rate"]
    alone = [model(torch.from_numpy(data.test_x[i:i + 1, :n])) for i, n in enumerate(data.test_lengths)]
    outputs = np.zeros((len(alone), 12, 5), np.float32)
    for i, one in enumerate(alone):
        outputs[i, :one.shape[1]] = one.detach()[0]
    assert task_of(data).score(outputs, data) == evaluate(model, data), "neither padding nor company may be seen"


def test_a_last_step_is_never_padding():
    data = spoken()
    classes = [y[np.arange(len(y)), n - 1] for y, n in ((data.train_y, data.train_target_lengths),
                                                        (data.test_y, data.test_target_lengths))]
    data = Dataset("last", data.train_x, train_y=classes[0], test_x=data.test_x, test_y=classes[1], classes=5,
                   train_lengths=data.train_lengths, test_lengths=data.test_lengths)
    history = fit(Last(), data, epochs=20, lr=0.03, batch=16)
    assert history[-1]["accuracy"] == 1.0


def test_a_model_that_asks_for_lengths_is_told():
    seen = []

    class Told(Labeller):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
            seen.append(lengths)
            return super().forward(x)

    data = spoken()
    evaluate(Told(), data)
    assert sorted(torch.cat(seen).tolist()) == sorted(data.test_lengths.tolist())


def test_label_smoothing():
    data = Dataset("two", np.zeros((2, 3), np.float32), train_y=np.array([0, 1]), test_x=np.zeros((2, 3), np.float32),
                   test_y=np.array([0, 1]), classes=3)
    batch, outputs = Part(data, "train", CPU).take(torch.arange(2)), torch.randn(2, 3)
    wanted = nn.functional.cross_entropy(outputs, batch.y, label_smoothing=0.2)
    assert torch.equal(Classification(3, smoothing=0.2).loss(outputs, batch), wanted)


def test_outputs_of_the_wrong_shape():
    with pytest.raises(Refusal, match=r"^Sequences of 4 symbols and the blank must have outputs \(16, \d+, 5\), not"):
        fit(Last(), spoken(), epochs=1, lr=0.1, batch=16)
    rng = np.random.default_rng(0)
    data = Dataset("points", rng.normal(size=(8, 4)).astype(np.float32), train_y=np.arange(8),
                   test_x=np.zeros((8, 4), np.float32), test_y=np.arange(8), classes=8)
    with pytest.raises(Refusal, match=r"^A classification into 8 classes must have outputs \(N, 8\), not \(8, 7\)"):
        fit(nn.Linear(4, 7), data, epochs=1, lr=0.1)


def test_ctc_takes_no_other_loss():
    with pytest.raises(Refusal, match="must be trained with the loss of CTC, not with another loss"):
        task_of(spoken(), loss=nn.functional.cross_entropy)
    with pytest.raises(Refusal, match=r"not with label smoothing 0\.1"):
        task_of(spoken(), smoothing=0.1)


LENGTHS = np.array([4, 2, 3])


def stepped(task: str) -> Dataset:
    """Three ragged sequences with a target at each step, whose padding would spoil every figure."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    y = {"classification": rng.integers(0, 5, (3, 4)), "regression": rng.normal(size=(3, 4, 5)).astype(np.float32),
         "multi-label": rng.integers(0, 2, (3, 4, 5))}[task]
    y[np.arange(4) >= LENGTHS[:, None]] = -7 if task != "regression" else np.nan
    return Dataset("steps", x, y, x, y, classes=5, task=task, train_lengths=LENGTHS, test_lengths=LENGTHS)


@pytest.mark.parametrize("name", ["classification", "regression", "multi-label"])
def test_padding_of_targets_at_each_step_does_not_count(name):
    data = stepped(name)
    task, batch = task_of(data), Part(data, "test", CPU).take(torch.arange(3))
    outputs = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    valid = [(i, t) for i, n in enumerate(LENGTHS) for t in range(n)]
    flat, targets = (torch.stack([each[i, t] for i, t in valid]) for each in (outputs, batch.y))
    whole = Dataset("flat", np.zeros((9, 2), np.float32), targets.numpy(), np.zeros((9, 2), np.float32),
                    targets.numpy(), classes=5, task=name)
    alone, samples = task_of(whole), Part(whole, "test", CPU).take(torch.arange(9))
    assert task.pads and task.per_step and not alone.per_step
    assert torch.equal(task.loss(outputs, batch), alone.loss(flat, samples))
    assert task.score(outputs.numpy(), data) == alone.score(flat.numpy(), whole)
    assert torch.isfinite(task.loss(outputs, batch))


@pytest.mark.parametrize("name", ["classification", "regression", "multi-label"])
def test_targets_at_each_step_are_learned(name):
    data = stepped(name)
    history = fit(Labeller(), data, epochs=40, lr=0.05, batch=2)
    assert history[-1]["loss"] < history[0]["loss"] / 3
    metric = task_of(data).metric
    assert history[-1][metric] > 0.9 > history[0][metric]


def test_the_loss_of_an_epoch_is_a_mean_over_steps():
    data, model = stepped("regression"), Labeller()
    batch = Part(data, "train", CPU).take(torch.arange(3))
    wanted = float(task_of(data).loss(model(batch.x), batch).detach())
    for size in (1, 2, 3):
        assert fit(Labeller(), data, epochs=1, lr=1e-12, batch=size)[0]["loss"] == pytest.approx(wanted, rel=1e-5)


def test_a_loss_and_a_metric_of_ones_own():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    y = (x @ np.array([[1.0], [-2.0], [0.5]], np.float32)).astype(np.float32)
    data = Dataset("line", x, y, x, y, task="regression")

    def likelihood(outputs, targets):
        mean, spread = outputs.split(1, -1)
        return nn.functional.gaussian_nll_loss(mean, targets, spread.exp())

    def worst(outputs, targets):
        return (outputs[:, :1] - targets).abs().max()

    model = nn.Linear(3, 2)
    task = task_of(data, loss=likelihood, metric=worst, higher_is_better=False)
    history = fit(model, data, task=task, epochs=60, lr=0.05, batch=8)
    assert task.chosen == {"loss": "likelihood", "metric": "worst"}
    assert history[-1]["worst"] == evaluate(model, data, task=task) < 0.2 < history[0]["worst"]
    assert task.score(model(torch.from_numpy(x)).detach().numpy(), data) == pytest.approx(history[-1]["worst"])
    with pytest.raises(Refusal, match=r"^A regression of 1 values must have outputs \(N, 1\), not \(8, 2\); end the "):
        fit(model, data, loss=likelihood, epochs=1, lr=0.05, batch=8)


def test_what_a_task_refuses():
    data = stepped("regression")
    with pytest.raises(Refusal, match=r"^Label smoothing must be of a classification, not 0\.1 of a regression; leave"):
        task_of(data, smoothing=0.1)
    with pytest.raises(Refusal, match=r"^Targets must be those that the loss 'cross_entropy' takes, of a class"):
        task_of(data, loss="cross_entropy")
    with pytest.raises(Refusal, match=r"'squares' returns a tensor of shape"):
        fit(Labeller(), data, loss=squares, epochs=1, lr=0.1)
    with pytest.raises(Refusal, match=r"^A regression of 5 values must have outputs \(N, steps, 5\), not \(3, 5\); "
                                      r"choose a model that returns every step, with a Linear of 5 outputs$"):
        fit(Last(), data, epochs=1, lr=0.1)
    with pytest.raises(Refusal, match="must be trained with the loss of CTC, not with another metric"):
        task_of(spoken(), metric="accuracy")


def squares(outputs, targets):
    return (outputs - targets).square()
