import pytest

from circulant.sim.refusal import Refusal, nearest


def test_is_a_value_error_with_one_sentence():
    assert issubclass(Refusal, ValueError)
    assert str(Refusal("k must be 1, not 2; choose 1")) == "k must be 1, not 2; choose 1"


@pytest.mark.parametrize(("word", "legal", "hint"), [
    ("sigmod", ["sigmoid", "tanh"], "; did you mean 'sigmoid'?"),
    ("Tanh", ["sigmoid", "tanh"], "; did you mean 'tanh'?"),
    ("tanh", ["sigmoid", "tanh"], "; did you mean 'tanh'?"),
    ("relu", ["sigmoid", "tanh"], ""),
    ("", ["sigmoid"], ""),
    ("sigmoid", [], ""),
])
def test_nearest(word, legal, hint):
    assert nearest(word, legal) == hint


def test_nearest_reads_any_iterable():
    assert nearest("hiden", {"hidden": 1, "inputs": 2}) == "; did you mean 'hidden'?"
    assert nearest("hiden", (name for name in ("hidden", "inputs"))) == "; did you mean 'hidden'?"
