"""Runs side by side: which figure is the better one, which keys differ, and what is refused."""
import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from circulant.experiment import Experiment
from circulant.hardware import Hardware
from circulant.report.compare import differences, doubt, lines
from circulant.report.report import collect
from circulant.run.run_folder import Run
from circulant.training.settings import ModelSettings
from tests.circulant.conftest import make_generated, make_quantized, make_simulated, make_trained


@pytest.fixture
def other(tmp_path):
    run = Run(tmp_path / "runs" / "other", Experiment("other", model=ModelSettings(hidden=16),
                                                      hardware=Hardware(multipliers=99, objective="throughput")))
    for make in (make_trained, make_quantized, make_generated, make_simulated):
        make(run)
    return run


def test_the_better_figure_is_marked(finished, other):
    first, second = collect(finished), collect(other)
    second["accuracy"] = second["accuracy"] | {"quantized": 0.5}
    second["hardware"] = second["hardware"] | {"cycles_per_step": 9.0, "floor_cycles": 3}
    found = {line.name: line for line in lines([first, second])}
    assert found["accuracy, quantized"].values == ("96.00%", "50.00%") and found["accuracy, quantized"].best == (0,)
    assert found["cycles per step"].values == ("10", "9") and found["cycles per step"].best == (1,)
    assert found["multipliers"].best == () == found["floor of a step, cycles"].best, "equal, or neither is better"
    assert found["block sizes"].values == ("1, 4", "1, 4")
    assert found["device"].values == ("none; fits LFE5U-12F",) * 2


def test_runs_of_other_metrics_have_a_line_each(finished, other):
    first, second = collect(finished), collect(other)
    second["phone_error_rate"], second["metric"] = second.pop("accuracy"), "phone_error_rate"
    found = {line.name: line for line in lines([first, second])}
    assert found["accuracy, quantized"].values == ("96.00%", "")
    assert found["phone error rate, quantized"].values == ("", "96.00%")


def seeded(run, seed, score):
    tables = {**run["experiment"], "training": run["experiment"]["training"] | {"seed": seed}}
    return run | {"experiment": tables, "accuracy": run["accuracy"] | {"quantized": score}}


def test_runs_that_differ_in_their_seed_alone_have_a_mean(finished, other):
    first, second = collect(finished), collect(other)
    three = [seeded(first, seed, score) for seed, score in enumerate((0.94, 0.95, 0.96))]
    found = {line.name: line for line in lines([*three, second])}
    assert found["accuracy, quantized, over seeds"] == (
        "accuracy, quantized, over seeds", ("95.00% ± 1.00%",) * 3 + ("96.00%",), (3,))
    assert found["seeds of each"].values == ("3", "3", "3", "1")
    assert doubt([*three, second]).startswith("1 seed is too few to tell a difference of a point from chance")
    assert doubt(three) == "" == doubt([first, first])
    assert doubt(three[:2]).startswith("2 seeds are too few")


def test_keys_that_differ(finished, other):
    assert [(line.name, line.values) for line in differences([collect(finished), collect(other)])] == [
        ("model.hidden", ("8", "16")), ("hardware.multipliers", (str(Hardware().multipliers), "99"))]
    assert differences([collect(finished)] * 2) == []


def test_the_command_in_words_as_json_and_as_a_page(call, finished, other, tmp_path):
    code, out, err = call("compare", finished.folder, other.folder)
    assert (code, err) == (0, "")
    assert "model.hidden" in out and "cycles per step" in out
    code, out, err = call("compare", finished.folder, other.folder, "--json", "--page", tmp_path / "beside.html")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["differences"]["model.hidden"] == {str(finished.folder): "8", str(other.folder): "16"}
    assert found["runs"][str(other.folder)]["hardware"]["multipliers"] == 20

    class Links(HTMLParser):
        found = ()

        def handle_starttag(self, tag, attributes):
            self.found += tuple(value for name, value in attributes if name in ("href", "src"))

    page = (tmp_path / "beside.html").read_text()
    (links := Links()).feed(page)
    assert links.found == ("runs/small/report.html", "runs/other/report.html") * 2
    assert "equals its golden model, bit for bit" in page
    make_simulated(other, mismatches=2)
    assert call("compare", finished.folder, other.folder, "--page", tmp_path / "beside.html")[0] == 0
    assert f"differs from its golden model in {other.folder}" in (tmp_path / "beside.html").read_text()


def test_one_run_or_none_is_refused(call, finished, tmp_path):
    assert call("compare", finished.folder)[::2] == (2, (
        f"A comparison must have at least two runs, not {finished.folder} alone; name another run folder\n"))
    assert call("compare", finished.folder, tmp_path)[::2] == (2, (
        f"A run must be a folder with experiment.toml in it, but {tmp_path} is none; name a folder that "
        "`circulant run` wrote\n"))


def test_an_unfinished_run_is_refused_with_the_command_to_run(call, finished, other):
    other.path("verification.json").unlink()
    code, out, err = call("compare", finished.folder, other.folder)
    assert (code, out) == (2, "") and "verification.json is missing; run `circulant simulate " in err


def test_a_name_of_a_run_is_text_on_the_page(finished):
    from circulant.report import compare

    figures = collect(Run(finished.folder, replace(finished.experiment, name="x")))
    assert "<b>" not in compare.page(["<b>", "c"], [figures, figures], ["a b/report.html", "c/report.html"])
    assert 'href="a%20b/report.html"' in compare.page(["b", "c"], [figures, figures], ["a b/report.html", "c"])
