import csv
import json
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner

from benchmarks.alternatives import document, measure
from benchmarks.alternatives.comparisons import COMPARISONS
from benchmarks.alternatives.networks import INPUTS
from benchmarks.commands import main

SAMPLES = {"digits": ((2, 3, INPUTS), (2, 60)), "images": ((2, 1, 28, 28), (2, 10)),
           "speech": ((2, 3, 160), (2, 3, 40))}


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_row_keeps_its_budget(name):
    its = COMPARISONS[name]
    assert its.rows[0].tables == (), "the dense network, which teaches, is in no table"
    for row in its.rows[1:]:
        spent = dict(zip(its.limits, its.network(row).size, strict=True))
        assert row.tables and all(spent[table] <= its.limits[table] for table in row.tables), row.label
    assert len({row.label for row in its.rows}) == len(its.rows)


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, its in COMPARISONS.items() for row in its.rows],
                         ids=lambda each: getattr(each, "label", each))
def test_a_network_of_a_row_gives_outputs_and_trains_every_weight(name, row):
    torch.manual_seed(0)
    shape, outputs = SAMPLES[name]
    model = COMPARISONS[name].network(row)
    y = model(torch.randn(shape))
    assert y.shape == outputs
    y.square().sum().backward()
    assert all(weight.grad is not None for weight in model.parameters() if weight.requires_grad)


def test_multiplications_of_a_network_are_those_of_its_matrices():
    cnn = COMPARISONS["images"].network(COMPARISONS["images"].rows[0])
    assert cnn.size.multiplications == 32 * 288 * 14 * 14 + 64 * 288 * 7 * 7 + 64 * 576
    labeller = COMPARISONS["speech"].network(COMPARISONS["speech"].rows[0])
    assert labeller.size == (2 * 3 * 96 * (128 + 96) * 12, 2 * 3 * 96 * (128 + 96))


def test_a_convolution_of_a_row_is_that_of_its_matrix():
    """Columns go by position of the kernel, then by channel: a block of k is of channels at one position."""
    torch.manual_seed(0)
    its = COMPARISONS["images"]
    model = its.network(next(row for row in its.rows if row.label == "circulant k = 8 of 32"))
    x = torch.randn(1, 1, 28, 28)
    inner = torch.nn.functional.max_pool2d(model.front(x).relu(), 2)
    windows = torch.nn.functional.unfold(inner, 3, padding=1).reshape(32, 9, -1).transpose(0, 1).reshape(9 * 32, -1)
    wanted = (model.second() @ windows).reshape(1, 32, 14, 14)
    kernel = model.second().unflatten(1, (3, 3, -1)).permute(0, 3, 1, 2)
    assert torch.allclose(torch.nn.functional.conv2d(inner, kernel, padding=1), wanted, atol=1e-5)


def test_padding_reaches_no_valid_step_of_a_labeller():
    torch.manual_seed(0)
    model = COMPARISONS["speech"].network(COMPARISONS["speech"].rows[-1]).eval()
    x = torch.randn(1, 4, 160)
    padded = torch.cat((x, torch.randn(1, 3, 160)), 1)
    assert torch.allclose(model(padded, torch.tensor([4]))[:, :4], model(x, torch.tensor([4])), atol=1e-6)


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """A comparison of nothing, whose scores follow from rate and seed, and the calls."""
    calls = []

    def stand_in(its, row, data, seed, rate, epochs, teacher=None):
        calls.append((row.label, data, seed, rate, epochs))
        return None, 0.9 if rate == 0.01 else 0.5

    monkeypatch.setattr(measure, "_trained", stand_in)
    its = replace(COMPARISONS["digits"], kept=tmp_path / "figures.json",
                  data=lambda held_out=False: "held" if held_out else "test")
    monkeypatch.setitem(COMPARISONS, "digits", its)
    return its, calls


def test_a_rate_is_chosen_on_held_out_data_and_trainings_go_on(trained):
    its, calls = trained
    label = its.rows[1].label
    measure.train(its, None, [label], [0])
    of_row = [call[1:] for call in calls if call[0] == label]
    assert of_row == [*(("held", 0, rate, 4) for rate in its.rates), ("test", 0, 0.01, 12)]
    calls.clear()
    measure.train(its, None, [label], [0, 1])
    assert [call[1:4] for call in calls if call[0] == label] == [("test", 1, 0.01)], "nothing twice"
    (found,) = measure.collect(its).values()
    assert found["errors"] == pytest.approx({"0": 10.0, "1": 10.0})


def test_the_command_prints_what_is_kept(tmp_path, trained):
    its, _ = trained
    measure.train(its, None, [its.rows[1].label], [0])
    result = CliRunner().invoke(main, ["alternatives", "--data", "digits", "--json", str(tmp_path / "out.json")])
    assert result.exit_code == 0, result.output
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["rows"]["digits"][its.rows[1].label]["weight_bits"] == 55_044
    assert out["table"] == {f"{its.title}, {its.tables['bits']}: {its.rows[1].label}":
                            "10.00 % errors (1 seeds), 55,044 bits, 4,587 multiplications"}


def test_a_document_has_the_best_row_of_each_table_first(tmp_path, trained):
    its, _ = trained
    few, many, none = its.rows[1], next(row for row in its.rows if len(row.tables) == 2), its.rows[0]
    scores = {few.label: [0.5, 0.7], many.label: [0.8], none.label: [0.9]}
    its.kept.write_text(json.dumps({label: {"tried": {}, "scores": {str(n): each for n, each in enumerate(rows)},
                                            "seconds": 1.0, "rate": 0.03} for label, rows in scores.items()}))
    path = tmp_path / "when.md"
    path.write_text(f"before\n{document.BEGIN}\nold\n{document.END}\nafter\n")
    result = CliRunner().invoke(main, ["alternatives", "--data", "digits", "--write", str(path)])
    assert result.exit_code == 0, result.output
    text = path.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    lines = [line for line in text.splitlines() if line.startswith(("###", "| ")) and "matrices" not in line]
    assert [line.split(" | ")[0].strip("| ") for line in lines] == [
        "### Spoken digits in noise", none.label, many.label, few.label, many.label]
    assert f"| {few.label} | 40.0 ± 14.1 | 55,044 | 4,587 |" in lines
    with (tmp_path / document.CSV).open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["errors_percent"] for row in written if row["matrices"] == few.label] == ["50.0", "30.0"]


def test_a_table_has_the_five_best_rows_and_the_best_of_each_other_kind():
    errors = {"circulant 1": 1, "circulant 2": 2, "dense 3": 3, "circulant 4": 4, "circulant 5": 5, "circulant 6": 6,
              "low rank 7": 7, "dense 8": 8, "low rank 9": 9}
    rows = {label: {"errors": {"0": value}} for label, value in reversed(errors.items())}
    assert document._best(rows) == [*list(errors)[:5], "low rank 7"]


def test_an_unknown_row_is_refused():
    result = CliRunner().invoke(main, ["alternatives", "--data", "images", "--only", "sparse"])
    assert result.exit_code == 2 and "not sparse" in result.output
