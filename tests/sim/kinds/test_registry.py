"""The registry names every file of a kind, and a kind has one name everywhere."""
import pytest

from circulant.sim.kinds import registry
from tests.sources import ROOT

SHARED = {"__init__", "registry", "matrix", "cell", "elementwise", "scan", "partial_sum"}


def test_the_registry_has_the_files_of_its_folder():
    assert set(registry.KINDS) == {path.stem for path in (ROOT / "sim/kinds").glob("*.py")} - SHARED


@pytest.mark.parametrize("name", registry.KINDS)
def test_a_kind_has_one_name(name):
    """A class in float64 is called as that in integers, with Float before it; files depend on that."""
    kind = registry.KINDS[name]
    assert kind.name == name
    assert kind.golden.__name__.lower() == name.replace("_", "")
    assert kind.real is None or (kind.real.kind == name and kind.real.__name__ == f"Float{kind.golden.__name__}")


def test_only_the_choice_is_in_no_model():
    assert [name for name, kind in registry.KINDS.items() if kind.real is None] == ["argmax"]
