"""Minutes of users to their milestones."""
import json
import os

from click.testing import CliRunner

from benchmarks import users
from benchmarks.commands import main


def test_the_command_has_the_minutes_to_each_milestone(tmp_path, monkeypatch):
    (tmp_path / "regression").mkdir()
    (tmp_path / "regression/steps.sh").write_text(
        "test ! -e later  # An empty folder.\n#: a network of one's own\nsleep 1.5\ntouch later\n#: later\n")
    monkeypatch.setattr(users, "FILES", tmp_path)
    monkeypatch.setattr(users, "environment", lambda folder: dict(os.environ))
    done = CliRunner().invoke(main, ["users", "--user", "regression", "--json", "-"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    first, later = found["minutes"]["regression"].items()
    assert (first[0], later[0]) == ("a network of one's own", "later")
    assert later[1] - first[1] >= 0.02 and found["cores"] == os.cpu_count()


def test_a_user_who_lacks_cells_is_left_out_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(users, "DATA", tmp_path)
    assert users.lacking("regression") == "" and "has no liberty/sky130hd/" in users.lacking("spotter")
