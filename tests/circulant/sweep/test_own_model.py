"""A sweep over a network and data of a user's own, as `circulant new` writes them."""
import pytest

from circulant.project import create
from circulant.sweep.grid import read
from circulant.sweep.run import run

SWEEP = """
[[grid]]
experiment = "mine/mine.toml"
set = ["model.arguments.hidden=8", "data.subset=60", "data.test_subset=40", "training.dense_epochs=1",
       "training.admm_epochs=1", "training.retrain_epochs=1", "quantization.budget=0"]
block_size = [1, {gru = 4}]
weight_bits = [6, 12]
multipliers = [24]
"""


@pytest.fixture
def sweep_file(tmp_path):
    create(tmp_path / "mine")
    path = tmp_path / "own.toml"
    path.write_text(SWEEP)
    return path


def test_every_point_has_its_row(sweep_file):
    rows = run(read(str(sweep_file)))
    assert [row["reason"] for row in rows] == [""] * 4
    assert [(row["block_size"], row["weight_bits"]) for row in rows] == [
        ("1", 6), ("1", 12), ("gru=4", 6), ("gru=4", 12)]
    assert len({row["dense"] for row in rows}) == 1, "all points start from one dense baseline"
    assert rows[0]["weights"] > 2 * rows[2]["weights"] > 0
    assert rows[0]["cycles_per_step"] > rows[2]["cycles_per_step"] > 0
    assert run(read(str(sweep_file))) == rows, "nothing is trained twice"


def test_changed_code_is_trained_anew(sweep_file, tmp_path):
    """What a training depends on includes the file of the model."""
    sweep_file.write_text(SWEEP.replace("[1, {gru = 4}]", "[4]").replace("[6, 12]", "[12]"))
    before, = run(read(str(sweep_file)))
    net = tmp_path / "mine" / "net.py"
    text = net.read_text()
    assert "nn.Linear(hidden, 10)" in text
    net.write_text(text.replace("nn.Linear(hidden, 10)", "nn.Linear(hidden, 10, bias=False)"))
    after, = run(read(str(sweep_file)))
    assert after["reason"] == before["reason"] == ""
    assert after["dense"] != before["dense"]


def test_a_model_that_cannot_be_made_fails_its_points(sweep_file, tmp_path):
    (tmp_path / "mine" / "net.py").write_text("class Other:\n    pass\n")
    rows = run(read(str(sweep_file)))
    assert len(rows) == 4
    for row in rows:
        assert "Net" in row["reason"] and "net.py" in row["reason"], row
