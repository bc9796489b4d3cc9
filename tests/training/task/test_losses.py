"""Losses by name and of one's own: whose targets they take, and what they must return."""
import pytest
import torch
from torch import nn
from torch.nn import functional

from circulant.sim.refusal import Refusal
from circulant.training.task.losses import choose_loss, loss_name, scalar, task_of_loss


@pytest.mark.parametrize(("loss", "task", "name"), [
    ("cross_entropy", "classification", "cross_entropy"), (nn.CrossEntropyLoss(), "classification", "CrossEntropyLoss"),
    ("huber", "regression", "huber"), (functional.l1_loss, "regression", "l1_loss"), ("bce", "multi-label", "bce"),
    (nn.BCEWithLogitsLoss(), "multi-label", "BCEWithLogitsLoss"), (torch.dist, None, "dist"), (None, None, "NoneType")])
def test_whose_targets_a_loss_takes(loss, task, name):
    assert (task_of_loss(loss), loss_name(loss)) == (task, name)


@pytest.mark.parametrize("loss", [None, "bce", nn.BCEWithLogitsLoss()])
def test_losses_of_labels_take_integers(loss):
    outputs, labels = torch.tensor([[0.5, -1.0]]), torch.tensor([[1, 0]])
    wanted = functional.binary_cross_entropy_with_logits(outputs, labels.float())
    assert choose_loss("multi-label", loss)(outputs, labels) == wanted


@pytest.mark.parametrize(("task", "loss", "message"), [
    ("regression", "cross_entropy", "^Targets must be those that the loss 'cross_entropy' takes, of a classification, "
     "but they are of a regression; choose 'mse' or 'l1' or 'huber', or give targets of a classification$"),
    ("classification", nn.MSELoss(), "^Targets must be those that the loss 'MSELoss' takes, of a regression, but they"),
    ("regression", "mes", r"^A loss must be one of 'cross_entropy', .*, not 'mes'; did you mean 'mse'\?$")])
def test_losses_of_other_targets(task, loss, message):
    with pytest.raises(Refusal, match=message):
        choose_loss(task, loss)


@pytest.mark.parametrize(("value", "said"), [(torch.zeros(2, 1), r"a tensor of shape \(2, 1\)"), (0.5, "float")])
def test_a_loss_is_one_number(value, said):
    with pytest.raises(Refusal, match=f"^A loss must return a tensor of one number, but 'mine' returns {said}; end it "
                                      r"with \.mean\(\)$"):
        scalar(value, "mine")
    assert scalar(torch.tensor(2.0), "mine") == 2.0
