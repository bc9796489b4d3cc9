"""Figures of metrics as people read them."""
import pytest

from circulant.sim.metrics import shown, words


@pytest.mark.parametrize(("metric", "value", "text", "name"), [
    ("accuracy", 0.98765, "98.77%", "accuracy"), ("phone_error_rate", 0.5, "50.00%", "phone error rate"),
    ("f1", 1.0, "100.00%", "F1"), ("r2", 0.43215, "0.4321", "R²"), ("rmse", 53.21456, "53.21", "RMSE"),
    ("mine", 12345.6, "1.235e+04", "mine")])
def test_parts_are_percent_and_all_else_is_a_number(metric, value, text, name):
    assert (shown(metric, value), words(metric)) == (text, name)


def test_fewer_digits():
    assert (shown("accuracy", 0.98765, 1), shown("r2", 0.98765, 1)) == ("98.8%", "0.9877")
