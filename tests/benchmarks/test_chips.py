from benchmarks import chips
from benchmarks.chips import Work
from benchmarks.stacks import Shape


def test_rows_have_what_is_predicted_and_what_the_papers_compare_with(monkeypatch):
    monkeypatch.setattr(chips, "WORKS", (Work(Shape("lstm", 2, 16, inputs=8), 4, (100, 100)),))
    found = chips.measure(simulate=False, nodes=3, chips=2)
    row, = found["rows"]
    assert row["network"] == "2 × LSTM 16 over 2 chips" and row["chips"] == [100, 100]
    assert 0 < row["predicted"]["period"] < row["one_chip"]["period"] and row["mismatches"] is None
    assert 0 < found["baselines"]["data"] <= row["one_chip"]["period"] / 2 <= found["baselines"]["traffic"]
    assert found["search"]["optimal_gap"] <= 0.01 and found["search"]["seconds"] > 0
