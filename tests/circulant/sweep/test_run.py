import pytest

from circulant import training
from circulant.project import create
from circulant.sweep import run as module
from circulant.sweep.grid import read
from circulant.sweep.run import run

AXES = "block_size = [1, 4, 64]\nweight_bits = [4, 10]\nactivation_bits = [12]\nmultipliers = [2, 24]"


@pytest.fixture
def trainings(monkeypatch):
    """Counts the trainings that begin, and the epochs of each."""
    seen, train = [], training.train

    def counted(data, settings, *, progress, **options):
        seen.append(0)

        def report(*arguments):
            seen[-1] += 1
            progress(*arguments)

        return train(data, settings, progress=report, **options)

    monkeypatch.setattr(training, "train", counted)
    return seen


def test_rows(sweep_file, trainings):
    sweep, shown = read(sweep_file(AXES)), []
    rows = run(sweep.points, show=lambda *report: shown.append(report))
    assert trainings == [1, 2, 2], "one baseline, and a model for each block size"
    assert [(row["block_size"], row["weight_bits"], row["activation_bits"], row["budget"]) for row in rows] == [
        (k, bits, 12, budget) for k in ("1", "4", "64") for bits in (4, 10) for budget in (2, 24)]
    for row in rows:
        failed = row["block_size"] == "64" or row["budget"] == 2
        assert bool(row["reason"]) == failed, row
        assert ("cycles_per_step" in row) != failed
        assert ("quantized" in row) == (row["block_size"] != "64"), "its accuracy is known without hardware"
    assert {row["dense"] for row in rows[:8]} == {rows[0]["dense"]}
    assert rows[1]["weight_memory_bits"] == 4 * rows[1]["weights"] < rows[3]["weight_memory_bits"]
    assert rows[1]["latency_spaced"] > rows[5]["latency_spaced"], "larger blocks take fewer cycles"
    assert shown[-1][:3] == ("points", 12, 12)
    assert shown[-1][3].startswith("8 failed, the last one: ")
    assert shown[-1][3].partition(": ")[2] in {row["reason"] for row in rows}
    assert [(done, total, words.partition(", accuracy ")[0]) for task, done, total, *words in shown
            for words in words if task == "training"][:5] == [
        (1, 7, "digits-gru, dense, k = 1: dense 1 of 1"), (1, 7, "1 of 1 models"),
        (2, 7, "digits-gru, k = 1: admm 1 of 1"), (3, 7, "digits-gru, k = 1: retrain 1 of 1"), (3, 7, "1 of 3 models")]

    # Again: the same, and nothing is trained but what failed.
    assert run(sweep.points) == rows
    assert trainings == [1, 2, 2]


def test_after_the_deadline_only_what_is_kept_is_there(sweep_file):
    axes = "block_size = [1]\nmultipliers = [24]\nweight_bits = "
    before, = run(read(sweep_file(f"{axes}[10]")).points)
    late = run(read(sweep_file(f"{axes}[8, 10]")).points, deadline=0.0)
    assert [row["reason"] for row in late] == ["the time was over", ""] and late[1] == before


def test_it_goes_on_after_an_interruption(sweep_file, trainings, tmp_path, monkeypatch):
    sweep = read(sweep_file("block_size = [1, 4]\nweight_bits = [6, 10]"))

    def stop_at(task, done):
        def show(*report):
            if report[:2] == (task, done):
                raise KeyboardInterrupt

        return show

    with pytest.raises(KeyboardInterrupt):
        run(sweep.points, show=stop_at("training", 4))
    assert trainings == [1, 2, 1]
    with pytest.raises(KeyboardInterrupt):
        run(sweep.points, show=stop_at("points", 2))
    assert trainings == [1, 2, 1, 1], "the interrupted training must go on from its checkpoint"
    rows = run(sweep.points)
    assert trainings == [1, 2, 1, 1]
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "other"))
    assert run(sweep.points) == rows, "the outcome must be that of a sweep that was never interrupted"


def test_several_processes_give_the_same_rows(sweep_file, tmp_path, monkeypatch):
    sweep = read(sweep_file("block_size = [4, 64]\nweight_bits = [10]\nmultipliers = [2, 24]"))
    rows = run(sweep.points, jobs=2)
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "other"))
    assert run(sweep.points) == rows
    assert [bool(row["reason"]) for row in rows] == [True, False, True, True]


def test_a_process_that_ends_fails_its_points(sweep_file, monkeypatch):
    sweep = read(sweep_file("weight_bits = [6, 10]\nmultipliers = [16, 24]"))
    each = module.side_by_side

    def broken(tasks, processes):
        for at, result in each(tasks, processes):
            yield at, {"reason": "It ended"} if at else result

    monkeypatch.setattr(module, "side_by_side", broken)
    assert [row["reason"] for row in run(sweep.points)] == ["", "", "It ended", "It ended"]


OWN = """
[[grid]]
experiment = "mine/mine.toml"
set = ["model.arguments.hidden=8", "data.subset=60", "data.test_subset=40", "training.dense_epochs=1",
       "training.admm_epochs=1", "training.retrain_epochs=1", "training.warmup_epochs=0",
       "quantization.budget=0"]
block_size = [1, {gru = 4}]
weight_bits = [6, 12]
multipliers = [24]
"""


@pytest.fixture
def own_sweep(tmp_path):
    create(tmp_path / "mine")
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


def test_a_network_and_data_of_ones_own(own_sweep):
    rows = run(read(str(own_sweep)).points)
    assert [row["reason"] for row in rows] == [""] * 4
    assert [(row["block_size"], row["weight_bits"]) for row in rows] == [
        ("1", 6), ("1", 12), ("gru=4", 6), ("gru=4", 12)]
    assert len({row["dense"] for row in rows}) == 1, "all points start from one dense baseline"
    assert rows[0]["weights"] > 2 * rows[2]["weights"] > 0
    assert rows[0]["floor_cycles"] > rows[2]["floor_cycles"] > 0
    assert run(read(str(own_sweep)).points) == rows, "nothing is trained twice"


def test_changed_code_of_ones_own_is_trained_again(own_sweep, tmp_path):
    """What a training depends on includes the file of the model."""
    own_sweep.write_text(OWN.replace("[1, {gru = 4}]", "[4]").replace("[6, 12]", "[12]"))
    before, = run(read(str(own_sweep)).points)
    net = tmp_path / "mine" / "net.py"
    text = net.read_text()
    assert "nn.Linear(hidden, 10)" in text
    net.write_text(text.replace("nn.Linear(hidden, 10)", "nn.Linear(hidden, 10, bias=False)"))
    after, = run(read(str(own_sweep)).points)
    assert after["reason"] == before["reason"] == ""
    assert after["dense"] != before["dense"]


def test_a_model_that_cannot_be_made_fails_its_points(own_sweep, tmp_path):
    (tmp_path / "mine" / "net.py").write_text("class Other:\n    pass\n")
    rows = run(read(str(own_sweep)).points)
    assert len(rows) == 4
    for row in rows:
        assert "Net" in row["reason"] and "net.py" in row["reason"], row
