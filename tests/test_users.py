"""Users on a fresh environment that has the wheel and its dependencies alone: `make users`.

Each starts in an empty folder with the files in tests/users, follows its `steps.sh` without a network, and
ends with a design whose every output word was compared.
"""
import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import users

pytestmark = pytest.mark.soak

MILESTONES = {"classifier": 2, "regression": 1, "onnx": 1, "controller": 4, "paper": 4, "spotter": 3}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The variables of a user whose Python has the wheel, as pip installs it."""
    return users.environment(tmp_path_factory.mktemp("environment"))


@pytest.mark.parametrize("user", users.USERS)
def test_a_user_reaches_a_verified_design(user, environment, tmp_path):
    if why := users.lacking(user):
        pytest.skip(why)
    reached = users.follow(users.FILES / user, tmp_path, environment)
    assert len(reached) == MILESTONES[user] and list(reached.values()) == sorted(reached.values())
    run = tmp_path / "runs" / users.USERS[user]
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
    assert not Path(where).is_relative_to(users.ROOT)


def test_a_step_that_fails_ends_the_user(environment, tmp_path):
    (tmp_path / "user").mkdir()
    (tmp_path / "user/steps.sh").write_text("circulant simulate runs/none\ntouch further\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AssertionError, match=r"(?s)ended with 2:.*runs/none"):
        users.follow(tmp_path / "user", tmp_path / "empty", environment)
    assert not (tmp_path / "empty/further").exists()
