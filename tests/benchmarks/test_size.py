"""The size of the project is counted as people count it: no line twice behind a link."""
import json

from click.testing import CliRunner

from benchmarks import size
from benchmarks.commands import main


def test_lines_and_words_of_a_project(tmp_path, monkeypatch):
    for path, text in {
            "sim/a.py": "1\n2\n", "sim/deep/b.py": "3\n", "sim/c.txt": "no\n", "circulant/d.py": "4\n\n",
            "tests/sim/test_a.py": "5\n" * 7, "docs/a.md": "# One\n\ntwo three", "docs/deep/b.md": "four",
            "docs/e.py": "6\n", "README.md": "five six", "CHANGELOG.md": "# seven"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "circulant" / "sim").symlink_to("../sim")
    monkeypatch.setattr(size, "ROOT", tmp_path)
    found = size.measure()
    assert found["lines"] == {"circulant": 2, "training": 0, "sim": 3, "hw": 0, "boards": 0, "benchmarks": 0,
                              "examples": 0, "docs": 1}
    assert (found["tests"], found["words"]) == (7, {"docs": 5, "readme": 2, "changelog": 2})
    assert found["table"]["lines without tests"] == "6"


def test_the_command_prints_json():
    done = CliRunner().invoke(main, ["size", "--json", "-"])
    assert done.exit_code == 0
    figures = json.loads(done.stdout)
    assert figures["lines"].keys() == set(size.FOLDERS)
    assert figures["words"].keys() == {"docs", "readme", "changelog"}
    assert figures["tests"] > 10_000
    assert "words of docs" in done.stderr
