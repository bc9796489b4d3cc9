"""Hints: what is compared, what is trained along, and that nothing of it stays."""
import dataclasses

import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.data import load_data
from circulant.training.loop.distillation import DistillationTask
from circulant.training.loop.hints import Hints
from circulant.training.loop.loop import Fit, Recipe, forward
from circulant.training.loop.runtime import ProcessGroup
from circulant.training.loop.trainer import Trainer
from circulant.training.models.cells import PeepholeLstm, ResetBeforeGru
from circulant.training.models.models import ModelSettings, build
from circulant.training.models.sequences import SequenceLabeller
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.batches import Batch
from circulant.training.task.task import Ctc, task_of


def labeller(seed=0, cell="reset_gru", **options):
    torch.manual_seed(seed)
    return SequenceLabeller(3, 4, 5, cell=cell, layers=2, bidirectional=True, **options)


def batch(lengths=(6, 4)):
    x = torch.randn(len(lengths), max(lengths), 3, generator=torch.Generator().manual_seed(1))
    return Batch(x, torch.ones(len(lengths), 2, dtype=torch.long), torch.tensor(lengths),
                 torch.full((len(lengths),), 2), torch.arange(len(lengths)))


def heard(hints, student, teacher, samples) -> float:
    forward(student, samples)
    forward(teacher, samples)
    return hints.distance(samples.lengths).item()


@pytest.mark.parametrize(("cell", "options", "sizes"), [
    ("reset_gru", {}, [8, 8]), ("lstm", {"peephole": True, "projection": 3}, [6, 6])])
def test_every_layer_has_a_map_that_starts_at_zero(cell, options, sizes):
    student, teacher = labeller(1, cell, **options), labeller(2, cell, **options).eval()
    hints = Hints(student, teacher)
    assert [layer.weight.shape for layer in hints.maps] == [(size, size) for size in sizes]
    assert heard(hints, student, teacher, batch()) == pytest.approx(1, rel=1e-6), "all of the teacher's is missing"


def test_a_student_whose_map_gives_what_the_teacher_gives_is_at_no_distance():
    teacher = labeller()
    student = clone(teacher)
    hints = Hints(student, teacher.eval())
    with torch.no_grad():
        hints.maps[0].weight.copy_(torch.eye(8))
        assert heard(hints, student, teacher, batch()) == pytest.approx(0.5, rel=1e-5), "the mean over two layers"
        hints.maps[1].weight.copy_(torch.eye(8))
        assert heard(hints, student, teacher, batch()) == pytest.approx(0, abs=1e-10)


def test_padded_steps_do_not_count():
    student, teacher = labeller(1), labeller(2).eval()
    hints, samples = Hints(student, teacher), batch()
    with torch.no_grad():
        for layer in hints.maps:
            layer.bias.fill_(0.25)
        before = heard(hints, student, teacher, samples)
        samples.x[1, 4:] = 9.0
        assert heard(hints, student, teacher, samples) == pytest.approx(before, rel=1e-6)
        samples.x[1, 3] = 9.0
        assert heard(hints, student, teacher, samples) != pytest.approx(before, rel=1e-3)


def test_an_evaluation_between_two_epochs_leaves_nothing():
    student, teacher = labeller(1), labeller(2).eval()
    hints = Hints(student, teacher)
    forward(student.eval(), batch((9, 9)))
    assert heard(hints, student.train(), teacher, batch()) == pytest.approx(1, rel=1e-6)


def test_the_layers_are_let_go():
    student, teacher = labeller(1), labeller(2)
    task = DistillationTask(Ctc(5), teacher, student=student, hints=0.5)
    assert student.get_submodule("reset_gru").tap is not None
    assert teacher.get_submodule("reset_gru").tap is None, "the teacher is a copy"
    task.close()
    assert student.get_submodule("reset_gru").tap is None


def test_the_weight_is_that_of_the_loss():
    student, teacher, samples = labeller(1), labeller(2), batch()
    outputs = forward(student, samples)
    plain = DistillationTask(Ctc(5), teacher, weight=0.5).loss(outputs, samples)
    task = DistillationTask(Ctc(5), teacher, weight=0.5, student=student, hints=3.0)
    loss = task.loss(forward(student, samples), samples)
    assert loss.item() == pytest.approx(plain.item() + 3.0, rel=1e-6), "maps at zero are at a distance of 1"


def course(hints, kind="reset_gru", epochs=6):
    data = load_data("digits")
    data = dataclasses.replace(data, train_x=data.train_x[:96], train_y=data.train_y[:96], test_x=data.test_x[:32],
                               test_y=data.test_y[:32])
    settings = TrainingSettings(method="direct", dense_epochs=3, direct_epochs=epochs, distillation=1.0, hints=hints)
    model = build(ModelSettings(kind=kind, hidden=16), data.shape, data.classes)
    return Trainer(model, data, task=task_of(data), settings=settings, phases=("dense", "direct"), block_size=4)


def test_the_maps_learn_along():
    made = course(hints=1.0, epochs=40)
    trained = made.run()
    first, last = ([e["loss"] for e in made.history if e["phase"] == "direct"][at] for at in (0, -1))
    assert first > 1, "the distance of the outputs and that of the hints, of which the maps know nothing yet"
    assert last < 0.5 * first
    assert all(module.tap is None for module in trained.modules() if hasattr(module, "tap"))
    assert not [name for name in trained.state_dict() if "maps" in name]


def test_convolutions_are_compared_channel_by_channel():
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.Flatten())
    student, samples = clone(teacher), torch.randn(5, 1, 6, 6)
    hints = Hints(student, teacher.eval())
    assert [tuple(layer.weight.shape) for layer in hints.maps] == [(4, 4), (6, 6)]
    with torch.no_grad():
        clone(student)(samples)  # A copy, such as an average of weights, is not heard.
        student(samples), teacher(samples)
        assert hints.distance(None).item() == pytest.approx(1), "maps at zero"
        hints.maps[0].weight.copy_(torch.eye(4))
        student(samples), teacher(samples)
        assert hints.distance(None).item() == pytest.approx(0.5, rel=1e-5)
    hints.close()
    assert not student[0]._forward_hooks and not teacher[0]._forward_hooks


@pytest.mark.parametrize("kind", ["gru", "mlp"])
def test_no_layers_to_listen_to_are_refused_before_any_work(kind):
    with pytest.raises(Refusal, match=r"^training\.hints must have recurrent layers of our own .* choose 0$"):
        course(hints=1.0, kind=kind)


def test_hints_need_a_distillation():
    with pytest.raises(Refusal, match=r"hints must be 0 if training\.distillation is 0, not 0\.5"):
        TrainingSettings(hints=0.5)


class Pair(nn.Module):
    """Two layers, registered in the reverse of the order in which they are called."""

    def __init__(self, first=1, second=1):
        super().__init__()
        self.second, self.first = ResetBeforeGru(4, 6), ResetBeforeGru(4, 4)
        self.times = first, second

    def forward(self, x):
        for layer, times in zip((self.first, self.second), self.times, strict=True):
            for _ in range(times):
                x = layer(x)[0]
        return x


def test_layers_are_compared_with_those_of_their_name_in_whatever_order_they_are_called():
    torch.manual_seed(4)
    teacher = Pair()
    student = clone(teacher)
    hints = Hints(student, teacher.eval())
    with torch.no_grad():
        for layer in hints.maps:
            layer.weight.copy_(torch.eye(*layer.weight.shape))
        x = torch.randn(5, 2, 4)
        student(x), teacher(x)
        assert hints.distance(None).item() == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(("times", "count"), [({"first": 2}, 2), ({"second": 0}, 0)])
def test_a_layer_called_twice_or_not_at_all_is_refused(times, count):
    student, teacher, x = Pair(**times), Pair(**times).eval(), torch.randn(5, 2, 4)
    hints = Hints(student, teacher)
    student(x), teacher(x)
    with pytest.raises(Refusal, match=f"calls once each, but one was called {count} times; choose 0"):
        hints.distance(None)


def test_an_interruption_lets_the_layers_go(monkeypatch):
    made = course(hints=1.0)
    given = []

    def interrupted(model, *_, **__):
        given.append(model)
        raise KeyboardInterrupt

    made.dense = made._teacher.state_dict()
    made._enter(1, False)
    monkeypatch.setattr("circulant.training.loop.trainer.Fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made._train(1, None)
    assert given[0].reset_gru.tap is None


def test_an_overflow_of_one_process_stops_the_step_of_all():
    class Overflown(ProcessGroup):
        """Its mean is not finite."""

        def average(self, module):
            for parameter in module.parameters():
                parameter.grad.fill_(torch.inf)

    data = load_data("digits")
    data = dataclasses.replace(data, train_x=data.train_x[:32], train_y=data.train_y[:32], test_x=data.test_x[:32],
                               test_y=data.test_y[:32])
    model = build(ModelSettings(kind="reset_gru", hidden=8), data.shape, data.classes)
    task = DistillationTask(task_of(data), model, student=model, hints=1.0)
    Fit(model, data, task, Recipe(1, 0.01, precision="float16"), team=Overflown()).run_epoch()
    maps, _ = task.auxiliary_modules["hints"]
    assert all(torch.equal(parameter, torch.zeros_like(parameter)) for parameter in maps.parameters())


def test_the_random_state_of_the_caller_stays():
    student, teacher = labeller(1), labeller(2)
    before = torch.get_rng_state()
    Hints(student, teacher)
    assert torch.equal(torch.get_rng_state(), before)


def test_both_cells_can_be_listened_to():
    heard_steps = []
    layer = PeepholeLstm(3, 4, num_layers=2)
    layer.tap = heard_steps.append
    steps, _ = layer(torch.randn(5, 2, 3))
    assert [tuple(each.shape) for each in heard_steps] == [(5, 2, 4)] * 2
    assert torch.equal(heard_steps[1], steps)
