import json

import pytest
import torch
from click.testing import CliRunner

from benchmarks.alternatives import measure
from benchmarks.alternatives.rows import INPUTS, ROWS
from benchmarks.commands import main

LIMITS = {"bits": 56_000, "multiplications": 6_600}


def test_every_row_keeps_its_budget_and_nearly_uses_one():
    for row in ROWS[1:]:
        spent = dict(zip(LIMITS, measure.size(row), strict=True))
        assert all(spent[name] <= LIMITS[name] for name in row.tables), row.label
    assert len({row.label for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_a_network_of_a_row_gives_logits(row):
    assert measure.Gru(row)(torch.randn(2, 3, INPUTS)).shape == (2, 60)


@pytest.fixture
def trained(monkeypatch):
    """Trainings of nothing, whose scores follow from rate and seed, and the calls."""
    calls = []

    def stand_in(row, data, seed, rate, epochs, teacher=None):
        calls.append((row.label, data, seed, rate, epochs))
        return None, 0.9 if rate == 0.01 else 0.5

    monkeypatch.setattr(measure, "_trained", stand_in)
    monkeypatch.setattr(measure, "noisy_digits", lambda held_out=False: "held" if held_out else "test")
    return calls


def test_a_rate_is_chosen_on_held_out_data_and_trainings_go_on(tmp_path, trained):
    path, label = tmp_path / "figures.json", ROWS[1].label
    measure.train(path, [label], [0])
    of_row = [call[1:] for call in trained if call[0] == label]
    assert of_row == [*(("held", 0, rate, 4) for rate in measure.RATES), ("test", 0, 0.01, 12)]
    trained.clear()
    measure.train(path, [label], [0, 1])
    assert [call[1:4] for call in trained if call[0] == label] == [("test", 1, 0.01)], "nothing twice"
    (found,) = measure.collect(path).values()
    assert found["errors"] == pytest.approx({"0": 10.0, "1": 10.0})


def test_the_command_prints_what_is_kept(tmp_path, trained):
    path = tmp_path / "figures.json"
    measure.train(path, [ROWS[1].label], [0])
    result = CliRunner().invoke(main, ["alternatives", "--kept", str(path), "--json", str(tmp_path / "out.json")])
    assert result.exit_code == 0, result.output
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["rows"][ROWS[1].label]["weight_bits"] == 55_044
    assert out["table"] == {f"{measure.TABLES['bits']}: {ROWS[1].label}":
                            "10.00 % errors (1 seeds), 55,044 bits, 4,587 multiplications"}
