"""Paths of an experiment start from its file, and Python files are known by what they hold."""
import os

import pytest

from circulant.experiment import load, save
from circulant.sim.refusal import Refusal

TOML = """
[data]
name = "npz"
path = "mine.npz"
[model]
kind = "python"
path = "net.py:Net"
arguments = {hidden = 8, names = ["a"]}
[training]
dense = "runs/base"
"""


@pytest.fixture
def written(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "net.py").write_text("Net = None\n")
    (tmp_path / "deep" / "mine.toml").write_text(TOML)
    return tmp_path / "deep" / "mine.toml"


def test_paths_start_from_the_file(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source in (written, "deep/mine.toml"):
        made = load(source)
        assert (made.data.path, made.training.dense) == (f"{tmp_path}/deep/mine.npz", f"{tmp_path}/deep/runs/base")
        assert made.model.path == f"{tmp_path}/deep/net.py:Net"
        assert made.model.arguments == {"hidden": 8, "names": ["a"]}
    assert load("deep/mine.toml", ["data.path=other.npz"]).data.path == f"{tmp_path}/other.npz", "not of the file"
    assert load("deep/mine.toml", ["data.path=~/a.npz"]).data.path == os.path.expanduser("~/a.npz")


def test_a_run_folder_keeps_the_files(written, tmp_path):
    experiment, run = load(written), tmp_path / "run"
    save(experiment, run)
    assert (run / "source/model/net.py").read_text() == "Net = None\n"
    assert load(run) == experiment, "the file itself, where it still says the same"
    net = written.parent / "net.py"
    net.write_text("Net = 3\n")
    assert load(run).model.path == f"{run}/source/model/net.py:Net"
    assert load(run).identity() == experiment.identity() != load(written).identity()
    net.unlink()
    moved = run.rename(tmp_path / "moved")
    assert load(moved).model.path == f"{moved}/source/model/net.py:Net"
    assert load(moved).identity() == experiment.identity()
    with pytest.raises(Refusal, match=r"^model\.path must name a file that exists, but there is no .*/deep/net\.py; "):
        load(written)


def test_the_content_is_that_of_the_reading(written, tmp_path):
    experiment = load(written)
    before = experiment.identity()
    (written.parent / "net.py").write_text("Net = 3\n")
    assert experiment.identity() == before
    save(experiment, tmp_path / "run")
    assert (tmp_path / "run/source/model/net.py").read_text() == "Net = None\n"


@pytest.mark.parametrize("path", ["net.py", "net:Net"])
def test_a_path_of_another_form(written, path):
    with pytest.raises(Refusal, match=r"^model\.path must name a Python file and what to take from it"):
        load(written, [f"model.path={path}"])
