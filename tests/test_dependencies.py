"""What pyproject.toml and constraints.txt say: a version, a Python, a reason and a pin of each dependency."""
import re
import sys
import tomllib

from tests.sources import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_version_is_said_once():
    import circulant

    assert circulant.__version__ == PYPROJECT["project"]["version"]


def test_every_dependency_says_why_it_is_needed():
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    bounds = [line for line in lines if line.startswith('  "') and any(sign in line for sign in (">=", "=="))]
    declared = [*PYPROJECT["project"]["dependencies"],
                *(entry for extra in PYPROJECT["project"]["optional-dependencies"].values() for entry in extra
                  if not entry.startswith("circulant["))]
    assert len(bounds) == len(declared)
    assert all("# " in line for line in bounds)


def test_no_python_is_claimed_but_that_of_the_tests():
    running = "{}.{}".format(*sys.version_info)
    classifiers = [entry.rpartition(" :: ")[2] for entry in PYPROJECT["project"]["classifiers"] if "Python ::" in entry]
    assert classifiers == [running] == [PYPROJECT["tool"]["mypy"]["python_version"]]
    for page in ("README.md", "docs/install.md", "docs/quickstart.md"):
        named = set(re.findall(r"Python (3\.\d+(?: or newer)?)", (ROOT / page).read_text("utf-8")))
        assert named == {running}, page


def test_constraints_pin_every_dependency():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pins["torch"] == "2.13.0"
    assert all(version and "+" not in version for version in pins.values())
    pinned = {name.lower().replace("_", "-") for name in pins}
    for entries in (PYPROJECT["project"]["dependencies"], *PYPROJECT["project"]["optional-dependencies"].values()):
        for entry in entries:
            name = entry.replace("[", ">").replace("=", ">").partition(">")[0]
            assert name == "circulant" or name.lower() in pinned, name
