import sys
from functools import partial

import pytest

from circulant.sim import artifact
from circulant.sweep import run as module


@pytest.fixture
def call(call):
    """Runs `circulant sweep`."""
    return partial(call, "sweep")


@pytest.fixture
def stubbed(monkeypatch, rows):
    """A sweep whose rows are there at once."""
    seen = []

    def run(points, *, measure, jobs, show):
        seen.append((len(points), measure, jobs))
        show("points", len(rows), len(rows))
        return rows

    for row in rows:
        row["experiment"] = {"one": "digits-gru", "two": "fsdd-gru"}[row["experiment"]]
    monkeypatch.setattr(module, "run", run)
    return seen


def test_what_it_writes(call, stubbed, tmp_path, rows):
    code, out, err = call("recurrent", "--jobs", "2")
    assert code == 0
    folder = tmp_path / "runs" / "sweep-recurrent"
    assert {path.name for path in folder.iterdir()} == {
        "explore.html", "pareto.png", "pareto.svg", "points.csv", "sweep.json", "sweep.md"}
    assert artifact.read_json(folder / "sweep.json", "circulant-sweep", 1)["rows"] == rows
    assert "recurrent: 16 points, 1 failed" in out
    assert out.endswith("runs/sweep-recurrent/explore.html: the points as pictures and as a table\n")
    assert err == f"points: 16 of 16\n1 of 16 points failed: {rows[0]['reason']}\n"
    assert stubbed == [(270, "plan", 2)]


def test_markdown_for_the_documentation(call, stubbed, tmp_path):
    assert call("recurrent", "--out", "here", "--markdown", "docs/page.md")[0] == 0
    assert (tmp_path / "here" / "sweep.md").exists()
    text = (tmp_path / "docs" / "page.md").read_text()
    assert "Written by `circulant sweep recurrent --markdown docs/page.md`" in text
    assert "](images/sweep-recurrent.png)" in text
    assert (tmp_path / "docs" / "images" / "sweep-recurrent.png").read_bytes().startswith(b"\x89PNG")
    points = (tmp_path / "docs" / "measured" / "sweep-recurrent.csv").read_text()
    assert "](measured/sweep-recurrent.csv)" in text
    assert points == (tmp_path / "here" / "points.csv").read_text()


def test_rows_that_all_failed_are_no_table_and_a_missing_package_is_said_first(call, stubbed, rows, monkeypatch):
    rows[:] = [row | {"reason": "no licence", "code": 2} for row in rows]
    code, out, err = call("recurrent")
    assert code == 2 and "cycles" not in out and f"{len(rows)} of {len(rows)} points failed: no licence" in err
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    stubbed.clear()
    code, _, err = call("recurrent")
    assert code == 2 and err.startswith("circulant sweep needs rapidfuzz, which is not installed") and not stubbed


@pytest.mark.parametrize(("codes", "code"), [
    ([2, 2], 2), ([2, 3], 3), ([2, 0], 0), ([3, 0], 0), ([1, 0], 1), ([3, 1], 1)])
def test_the_exit_code_is_of_failures_alone_or_of_a_wrong_circuit(call, stubbed, rows, codes, code):
    failed = rows[0]["reason"]
    rows[:] = [row | ({"reason": failed, "code": each} if each else {"reason": ""})
               for row, each in zip(rows[1:], codes, strict=False)]
    assert call("recurrent")[0] == code


def test_an_interruption_says_how_to_go_on(call, monkeypatch, sweep_file):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", interrupted)
    path = sweep_file("block_size = [1]")
    code, _, err = call(path, "--jobs", "3", "--out", "mine")
    assert code == 130
    assert err.strip() == ("Interrupted; what is computed is kept: go on with "
                           f"`circulant sweep {path} --out mine --jobs 3`")


@pytest.mark.parametrize(("arguments", "words"), [
    (["recurent"], "did you mean 'recurrent'?"),
    (["missing.toml"], "A sweep must be a file that exists, but there is no missing.toml; give the path of one, or a "
                        "shipped sweep (recurrent, recurrent-search)"),
    (["recurrent", "--jobs", "2", "--cluster", "tcp://here:1"],
     "Work must be done by processes of this machine or by a cluster, not by --jobs 2 and --cluster tcp://here:1"),
    (["recurrent", "--jobs", "0"], "0 is not in the range x>=1"),
    ([], "Missing argument 'SWEEP'"),
])
def test_what_is_refused(call, tmp_path, arguments, words):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert not list(tmp_path.iterdir())


def test_help_has_an_example(call):
    code, out, _ = call("--help")
    assert code == 0
    assert "Example:\n    circulant sweep recurrent --jobs 4" in out
