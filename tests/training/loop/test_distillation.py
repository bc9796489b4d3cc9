import pytest
import torch
from torch import nn

from circulant.training.loop.distillation import DistillationTask
from circulant.training.task.batches import Batch
from circulant.training.task.task import Classification, Ctc


def batch(x, lengths=None):
    return Batch(x, torch.zeros(len(x), dtype=torch.long), lengths, None, torch.arange(len(x)))


def test_the_loss_is_the_distance_from_the_teacher():
    teacher = nn.Linear(3, 4)
    task = DistillationTask(Classification(4), teacher)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = teacher(x)
        assert task.loss(wanted + 7.0, batch(x)).item() == pytest.approx(0, abs=1e-9), "a common shift decides nothing"
        off = torch.zeros(5, 4)
        off[:, 0] = 1.0
        power = (wanted - wanted.mean(-1, keepdim=True)).square().sum()
        assert task.loss(wanted + off, batch(x)).item() == pytest.approx(5 * 0.75 / power.item(), rel=1e-4)


def test_a_weight_mixes_the_distance_and_the_loss_of_the_task():
    teacher, x = nn.Linear(3, 4), torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    labels = Classification(4)
    outputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    distance, loss = DistillationTask(labels, teacher).loss(outputs, batch(x)), labels.loss(outputs, batch(x))
    mixed = DistillationTask(labels, teacher, weight=0.75).loss(outputs, batch(x))
    assert mixed.item() == pytest.approx(0.75 * distance.item() + 0.25 * loss.item(), rel=1e-6)


def test_the_teacher_is_a_copy():
    teacher = nn.Linear(3, 4)
    task, x = DistillationTask(Classification(4), teacher), torch.ones(2, 3)
    with torch.no_grad():
        before = teacher(x)
        teacher.weight.zero_()
        assert task.loss(before, batch(x)).item() == pytest.approx(0, abs=1e-9)


def test_padded_steps_do_not_count():
    teacher = nn.Linear(3, 4)
    task, x = DistillationTask(Ctc(4), teacher), torch.ones(2, 5, 3)
    with torch.no_grad():
        outputs = teacher(x)
        outputs[0, 3:] = torch.tensor([9.0, 0, 0, 0])
        assert task.loss(outputs, batch(x, torch.tensor([3, 5]))).item() == pytest.approx(0, abs=1e-9)
        assert task.loss(outputs, batch(x, torch.tensor([4, 5]))).item() > 0.1
    assert (task.metric, task.higher_is_better, task.pads) == ("phone_error_rate", False, True)
