import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.alternatives import ways
from benchmarks.commands import main
from circulant.training.data import Dataset


@pytest.fixture
def small(monkeypatch):
    """A data set of a few samples, the same for all, in place of the recordings, and an epoch for each phase."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3, 16)).astype(np.float32), np.arange(40) % 4
    short = {name: replace(way, dense_epochs=1, direct_epochs=way.stages, admm_epochs=1, retrain_epochs=1)
             for name, way in ways.WAYS.items()}
    monkeypatch.setattr(ways, "WAYS", short)
    monkeypatch.setattr(ways, "BLOCKS", (8,))
    monkeypatch.setattr(ways, "noisy_digits",
                        lambda held_out=False: Dataset("small", x, y, test_x=x, test_y=y, classes=4))


def test_all_ways_are_trained_and_go_on(tmp_path, small):
    path = tmp_path / "ways.json"
    ways.train(path, [0])
    rows = ways.collect(path)
    assert set(rows) == {"dense network", *(f"k = {k}, {name}" for k in ways.BLOCKS for name in ways.WAYS)}
    said = []
    ways.train(path, [0], said.append)
    assert said == [], "nothing twice"
    assert all(0 <= row["errors"]["0"] <= 100 for row in rows.values())
    assert all(set(row["tried"]) == {"0.01", "0.03"} for label, row in rows.items() if label != "dense network")
    result = CliRunner().invoke(main, ["ways", "--kept", str(path), "--json", str(tmp_path / "out.json")])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out.json").read_text())["table"]["k = 8, dense"].endswith("% errors, seeds 0")


def test_all_ways_have_the_same_epochs():
    spent = {name: sum(way.epochs(phase) for phase in (("admm", "retrain") if way.method == "admm" else ("direct",)))
             for name, way in ways.WAYS.items()}
    assert set(spent.values()) == {ways.EPOCHS} and len(spent) == 4
