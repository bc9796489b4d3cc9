"""Options: what is out of range is refused, all at once, and so is what a data set would not obey."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data.options import Options


@pytest.mark.parametrize(("given", "problem"), [
    ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
    ({"subset": 2.0}, "subset must be an integer of at least 0, not 2.0"),
    ({"steps": True}, "steps must be an integer of at least 0, not True"),
    ({"stack": 0}, "stack must be an integer of at least 1, not 0"),
    ({"deltas": "frst"}, "deltas must be one of 'auto', 'none', 'first', 'second', not 'frst'; did you mean 'first'?"),
    ({"layout": "row"}, "layout must be one of 'auto', 'image', 'flat', 'rows', not 'row'; did you mean 'rows'?"),
    ({"normalise": 1}, "normalise must be one of 'auto', 'none', 'sample', 'train', not 1"),
    ({"phones": 40}, "phones must be one of 39, 48, 61, not 40"),
    ({"path": 3}, "path must be a string, not 3"),
])
def test_out_of_range(given, problem):
    with pytest.raises(Refusal) as caught:
        Options.of(given)
    assert str(caught.value).startswith(f"Options of a data set out of range: {problem}")


def test_all_problems_at_once():
    with pytest.raises(Refusal, match=r"seed must .*; bands must .*; layout must "):
        Options(seed=-1, bands=-2, layout="x")


def test_what_would_be_ignored_is_refused():
    options = Options(seed=3, subset=2, bands=20, stack=2)
    options.only("fsdd", ("bands", "stack"))
    with pytest.raises(Refusal, match=r"^The data set 'mnist' takes the options seed, subset, test_subset, held_out, "
                                      r"layout, not bands = 20, stack = 2; leave them out$"):
        options.only("mnist", ("layout",))
