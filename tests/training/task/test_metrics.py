"""Metrics against their definitions, in any division into batches; what a metric of one's own must be."""
import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, mean_absolute_error, r2_score, root_mean_squared_error

from circulant.sim.refusal import Refusal
from circulant.training.task.metrics import METRICS, choose_metric

RNG = np.random.default_rng(0)
OUTPUTS, VALUES = RNG.normal(size=(30, 3)), RNG.normal(5.0, 2.0, size=(30, 3))
LABELS = RNG.integers(0, 2, (30, 3))


def figure(metric, outputs, targets, cuts=(7, 8, 30)):
    pairs = [(outputs[a:b], targets[a:b]) for a, b in zip((0, *cuts), cuts, strict=False)]
    return metric.figure([metric.tally(*map(torch.from_numpy, pair)) for pair in pairs])


@pytest.mark.parametrize(("task", "name", "targets", "wanted"), [
    ("regression", "r2", VALUES, r2_score(VALUES, OUTPUTS, multioutput="variance_weighted")),
    ("regression", "rmse", VALUES, root_mean_squared_error(VALUES.ravel(), OUTPUTS.ravel())),
    ("regression", "mse", VALUES, np.square(VALUES - OUTPUTS).mean()),
    ("regression", "mae", VALUES, mean_absolute_error(VALUES.ravel(), OUTPUTS.ravel())),
    ("multi-label", "f1", LABELS, f1_score(LABELS, OUTPUTS > 0, average="micro")),
    ("multi-label", "accuracy", LABELS, ((OUTPUTS > 0) == LABELS).mean()),
    ("classification", "accuracy", LABELS[:, 0], (OUTPUTS.argmax(1) == LABELS[:, 0]).mean())])
def test_a_figure_is_that_of_all_samples_together(task, name, targets, wanted):
    metric = METRICS[task][name]
    assert figure(metric, OUTPUTS, targets) == pytest.approx(wanted, rel=1e-12)
    assert figure(metric, OUTPUTS, targets) == figure(metric, OUTPUTS, targets, (1, 29, 30)) or name != "accuracy"


def test_r2_is_undefined_where_targets_do_not_differ():
    with pytest.raises(Refusal, match=r"^Targets must differ for R² to be defined, but all are the same; choose metric"
                                      r"='rmse', or more samples$"):
        figure(METRICS["regression"]["r2"], OUTPUTS, np.full((30, 3), 5.0))


def test_labels_that_nobody_has_and_nobody_says_are_right():
    assert figure(METRICS["multi-label"]["f1"], -np.abs(OUTPUTS), np.zeros((30, 3), int)) == 1.0


def test_a_metric_of_ones_own_sees_the_whole_part():
    def median(outputs, targets):
        assert len(outputs) == len(targets) == 30
        return (outputs - targets).abs().median()

    metric = choose_metric("regression", median, False)
    assert (metric.name, metric.higher_is_better) == ("median", False)
    assert figure(metric, OUTPUTS, VALUES) == torch.from_numpy(np.abs(OUTPUTS - VALUES)).median()


@pytest.mark.parametrize(("metric", "direction", "message"), [
    (torch.dist, None, "^A metric of your own must say which way is better, but higher_is_better is not given; give"),
    ("rmse", True, "^higher_is_better must be given for a metric of your own alone, as named ones have their d"),
    ("rsme", None, "^A metric of a regression must be one of 'r2', 'rmse', 'mse', 'mae', or a function of "),
    ("rsme", None, r"not 'rsme'; did you mean 'rmse'\?$")])
def test_metrics_that_are_refused(metric, direction, message):
    with pytest.raises(Refusal, match=message):
        choose_metric("regression", metric, direction)


@pytest.mark.parametrize(("value", "said"), [(torch.zeros(3), r"Tensor of shape \(3,\)"), (None, "NoneType")])
def test_a_metric_that_returns_no_number(value, said):
    with pytest.raises(Refusal, match=f"^A metric must return a number, not {said}; reduce it"):
        figure(choose_metric("regression", lambda outputs, targets: value, True), OUTPUTS, VALUES)
