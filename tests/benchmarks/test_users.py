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


def test_a_user_who_fails_or_takes_too_long_leaves_what_was_reached_and_the_others_go_on(tmp_path, monkeypatch):
    for name, steps in (("paper", "#: begun\necho no room >&2\nfalse\n#: never\n"), ("onnx", "sleep 300 & wait\n"),
                        ("regression", "#: done\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "steps.sh").write_text(steps)
    monkeypatch.setattr(users, "FILES", tmp_path)
    monkeypatch.setattr(users, "SECONDS", 2)
    monkeypatch.setattr(users, "environment", lambda folder: dict(os.environ))
    asked = [word for name in ("paper", "onnx", "regression") for word in ("--user", name)]
    done = CliRunner().invoke(main, ["users", *asked, "--json", "-"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert {name: [*reached] for name, reached in found["minutes"].items()} == {
        "paper": ["begun"], "onnx": [], "regression": ["done"]}
    assert set(found["failed"]) == {"paper", "onnx"} and "no room" in found["failed"]["paper"]
    assert "ended with 1" in found["failed"]["paper"] and "did not end within 2 s" in found["failed"]["onnx"]


def test_a_user_who_lacks_cells_is_left_out_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(users, "DATA", tmp_path)
    assert users.lacking("regression") == "" and "has no liberty/sky130hd/" in users.lacking("spotter")
