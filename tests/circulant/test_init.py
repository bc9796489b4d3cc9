import subprocess
import sys

import pytest

import circulant
from circulant.extras import EXTRAS


def test_the_public_names_are_true():
    assert len(set(circulant.__all__)) == len(circulant.__all__)
    for name in circulant.__all__:
        assert getattr(circulant, name).__name__ == name
        assert getattr(circulant, name).__doc__
    assert set(circulant.__all__) <= set(dir(circulant))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"^module 'circulant' has no attribute 'compres'$"):
        circulant.compres  # noqa: B018


def test_importing_circulant_is_light():
    heavy = {"numpy", "scipy", "matplotlib", "rich", "click", "tomlkit", *EXTRAS}
    program = "import sys; old = set(sys.modules); import circulant; dir(circulant); print(*(set(sys.modules) - old))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "circulant" in loaded
    assert not heavy & {name.partition(".")[0] for name in loaded}


@pytest.mark.parametrize("name", ["Network", "Vectors", "Refusal"])
def test_the_golden_model_needs_no_extra(name):
    program = f"import sys, circulant; circulant.{name}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {*EXTRAS, "scipy"}  # scipy takes longer than all of it, in each process that simulates.
    assert not heavy & {module.partition(".")[0] for module in loaded}


@pytest.mark.parametrize(("name", "package", "extra"), [
    ("compress", "torch", "training"), ("export", "torch", "training"), ("generate", "amaranth", "hw")])
def test_a_missing_extra_is_named(name, package, extra):
    program = (f"import sys; sys.modules[{package!r}] = None\nimport circulant\n"
               f"try: circulant.{name}\nexcept ImportError as error: print(error)")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == f"circulant.{name} needs {package}, which is not installed; run: pip install 'circulant[{extra}]'\n"
