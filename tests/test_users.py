"""Users on a fresh environment that has the wheel and its dependencies alone: `make users`.

Each starts in an empty folder with the files in tests/users, follows its `steps.sh` without a network, and
ends with a design whose every output word was compared.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_distribution import made_wheel

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[1]
FILES = ROOT / "tests" / "users"
USERS = {"classifier": "gestures", "regression": "meter", "onnx": "vibration", "controller": "drive",
         "paper": "tones"}
"""Each user's folder, and the name of the run."""

SECONDS = 900
"""What one user may take at most, on a busy machine."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The PATH and folders of a user whose Python has the wheel, as pip installs it."""
    folder = tmp_path_factory.mktemp("environment")
    made = made_wheel(folder / "distribution")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
                    "-c", ROOT / "constraints.txt", f"circulant[all] @ {made.as_uri()}"], check=True)
    own = ("PYTHON", "CIRCULANT", "VIRTUAL", "OMP", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return kept | {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "CIRCULANT_CACHE": str(folder / "cache"),
                   "VIRTUAL_ENV": str(venv)}


def without_network():
    """The prefix of a command that cuts it off from every network, where this machine allows it."""
    command = ["unshare", "--net"]
    allowed = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if allowed else []


def follow(steps, folder, environment):
    """Runs the lines of a file in a folder; the first that fails ends it.

    Raises:
        AssertionError: when a step fails, with all that was printed.
    """
    done = subprocess.run([*without_network(), "bash", "-euo", "pipefail", "-x", steps], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{steps} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("user", USERS)
def test_a_user_reaches_a_verified_design(user, environment, tmp_path):
    for path in (FILES / user).iterdir():
        shutil.copy(path, tmp_path)
    follow(tmp_path / "steps.sh", tmp_path, environment)
    run = tmp_path / "runs" / USERS[user]
    report = json.loads((run / "report.json").read_text())
    assert report["verification"]["mismatches"] == 0
    assert report["verification"]["words_compared"] > 0
    assert {"top.v", "manifest.json"} <= {path.name for path in (run / "hardware").iterdir()}
    assert (run / "report.html").stat().st_size > 0
    assert json.loads((tmp_path / "report.json").read_text())["verification"] == report["verification"]


def test_the_package_is_that_of_the_wheel(environment, tmp_path):
    where = subprocess.run(["python", "-c", "import circulant; print(circulant.__file__)"], cwd=tmp_path,
                           env=environment, capture_output=True, text=True, check=True).stdout
    assert where.startswith(environment["VIRTUAL_ENV"])
    assert not Path(where).is_relative_to(ROOT)


def test_a_step_that_fails_ends_the_user(environment, tmp_path):
    (tmp_path / "steps.sh").write_text("circulant simulate runs/none\ntouch further\n")
    with pytest.raises(AssertionError, match=r"(?s)ended with 2:.*runs/none"):
        follow(tmp_path / "steps.sh", tmp_path, environment)
    assert not (tmp_path / "further").exists()
