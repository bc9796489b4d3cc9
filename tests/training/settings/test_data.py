"""Options: what is out of range is refused, all at once, and so is what a data set would not obey."""
import pytest

from circulant.sim.refusal import Refusal
from circulant.sim.settings import choices
from circulant.training.data import DATASETS
from circulant.training.settings.data import OPTIONS, DataSettings
from tests.refused import refused


@pytest.mark.parametrize(("given", "problem"), [
    ({"seed": -1}, "seed must be an integer from 0 to 2147483647, not -1"),
    ({"subset": 2.0}, "subset must be an integer from 1 to 1000000000, or 0 for all, not 2.0"),
    ({"steps": True}, "steps must be an integer from 1 to 1000000, or 0 for as they are, not True"),
    ({"stack": 0}, "stack must be an integer from 1 to 64, not 0"),
    ({"deltas": "frst"}, "deltas must be one of 'auto', 'none', 'first', 'second', not 'frst'; did you mean 'first'?"),
    ({"layout": "row"}, "layout must be one of 'auto', 'image', 'flat', 'rows', not 'row'; did you mean 'rows'?"),
    ({"normalise": 1}, "normalise must be one of 'auto', 'none', 'sample', 'train', not 1"),
    ({"phones": 40}, "phones must be one of 39, 48, 61, not 40"),
    ({"path": 3}, "path must be a string, not 3"),
])
def test_out_of_range(given, problem):
    assert refused(DataSettings, **given) == f"data.{problem}"


def test_all_problems_at_once():
    with pytest.raises(Refusal, match=r"^data.seed must .*; data.layout must .*; data.bands must "):
        DataSettings(seed=-1, bands=-2, layout="x")


def test_what_would_be_ignored_is_refused():
    DataSettings("fsdd", seed=3, subset=2, bands=20, stack=2)
    with pytest.raises(Refusal, match=r"^The data set 'mnist' takes the options seed, subset, test_subset, held_out, "
                                      r"path, layout, normalise, not bands = 20, stack = 2; leave them out$"):
        DataSettings("mnist", seed=3, subset=2, bands=20, stack=2)


def test_every_data_set_has_a_loader():
    assert DATASETS.keys() == OPTIONS.keys() == set(choices(DataSettings, "name"))
