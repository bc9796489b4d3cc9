import sys

import pytest

from circulant.extras import EXTRAS, MissingExtra, extras
from circulant.sim.refusal import Refusal


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_of_an_extra(package):
    with pytest.raises(MissingExtra) as caught, extras("circulant train"):
        raise ModuleNotFoundError(name=f"{package}.nn")
    assert isinstance(caught.value, Refusal)
    assert isinstance(caught.value, ImportError)
    assert str(caught.value) == (f"circulant train needs {package}, which is not installed; "
                                 f"run: pip install 'circulant[{EXTRAS[package]}]'")


def test_other_missing_modules_are_mistakes_of_ours():
    with pytest.raises(ModuleNotFoundError) as caught, extras("circulant train"):
        raise ModuleNotFoundError(name="circulant.trainig")
    assert not isinstance(caught.value, Refusal)


def test_packages_that_are_used_later_are_imported_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    rule = r"^circulant train needs torch, which is not installed; run: pip install "
    with pytest.raises(MissingExtra, match=rule), extras("circulant train", "torch"):
        pytest.fail("the block must not begin")
