"""The best weights of a phase: kept in either direction, and found again in a state."""
import pytest
import torch
from torch import nn

from circulant.training.loop.best import Best
from circulant.training.task.task import Classification, Regression


@pytest.mark.parametrize(("task", "scores", "best", "ends"), [
    (Classification(2), [0.1, 0.5, 0.5, None, 0.4], 2, [False, False, False, True, True]),
    (Regression(1, metric="rmse"), [3.0, 2.0, 2.5, 1.0, 1.5], 4, [False, False, False, False, False])])
def test_patience(task, scores, best, ends):
    model, kept, found = nn.Linear(1, 1), Best(task, 2), []
    for epoch, score in enumerate(scores, start=1):
        with torch.no_grad():
            model.weight.fill_(epoch)
        kept.see(model, epoch, score)
        found.append(kept.ends(epoch))
        other = Best(task, 2)
        other.load_state_dict(kept.state_dict())
        kept = other
    assert found == ends
    assert (kept.score, kept.weights["weight"].item()) == (scores[best - 1], best)


def test_without_patience_nothing_is_kept():
    kept = Best(Classification(2), 0)
    kept.see(nn.Linear(1, 1), 1, 0.5)
    kept.load_state_dict(None)
    assert (kept.score, kept.weights, kept.ends(100)) == (None, {}, False)
