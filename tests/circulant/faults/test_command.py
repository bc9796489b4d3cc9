import csv
import json

import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.faults import campaign
from circulant.faults.figures import registers

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (60, 8)).astype(np.float32)
DATA = circulant.Dataset("mine", X, np.arange(60) % 3, X[:30], np.arange(30) % 3, classes=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    torch.manual_seed(1)
    model = circulant.compress(nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 3)), {"0": 4})
    network = circulant.export(model, DATA.train_x, weight_bits=8)
    return circulant.save_run(tmp_path_factory.mktemp("faults") / "mine", model, network, DATA)


def figures(call, *arguments, code=0):
    found, out, err = call("faults", *arguments, "--json")
    assert found == code, err
    return json.loads(out)


def test_a_campaign_is_the_mean_of_its_draws(call, made, tmp_path):
    out = tmp_path / "out"
    options = ["--rate", "0.001", "--rate", "0.05", "--draws", "12", "--margin", "0.2"]
    found = figures(call, made, *options, "--out", out)
    network = circulant.Network.load(made)
    bits = sum(each.bits for name, each in network.memories.items() if name.endswith("weights"))
    assert (found["bits"], found["single"]["all"]["draws"]) == (bits, 23)
    rows = list(csv.DictReader((out / "draws.csv").read_text().splitlines()))
    assert len(rows) == 1 + 23 + 2 * 12 and float(rows[0]["score"]) == found["score"]
    often = [row for row in rows if row["rate"] == "0.05"]
    assert found["rates"][1]["mean"] == pytest.approx(np.mean([float(row["score"]) for row in often]))
    assert found["rates"][1]["low"] <= found["rates"][1]["mean"] <= found["rates"][1]["high"]
    x = network.integers(DATA.test_x)
    for row in often[:3]:  # By hand.
        faults = network.draw_faults(rate=0.05, seed=int(row["seed"]))
        classes = network.with_faults(faults).run_integers(x).argmax(-1)
        assert float(row["score"]) == pytest.approx((classes == DATA.test_y).mean())
        assert int(row["faults"]) == len(faults)
    assert sum(row["draws"] for row in found["single"]["bits"]) == 23
    page = (out / "faults.html").read_text()
    assert "One fault, by memory" in page and "data:image/png;base64," in page
    assert (out / "faults.png").read_bytes().startswith(b"\x89PNG")


def test_it_goes_on_where_it_was_interrupted(call, made, tmp_path, monkeypatch):
    arguments = made, "--rate", "0.01", "--draws", "20", "--margin", "0.3", "--out", tmp_path / "out"
    whole = figures(call, *arguments)
    file, scored = tmp_path / "out/draws.jsonl", []
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:7]) + "\n" + lines[7][:30])  # Cut in a line.
    real = campaign._scored
    monkeypatch.setattr(campaign, "_scored", lambda folder, draws: scored.extend(draws) or real(folder, draws))
    assert figures(call, *arguments) == whole
    assert len(scored) == len(lines) - 7
    assert figures(call, *arguments[:4], "30", *arguments[5:])["rates"][0]["draws"] == 30
    assert len(scored) == len(lines) - 7 + 10, "more draws, and the old ones again"


def test_processes_find_the_same(call, made, tmp_path):
    arguments = made, "--rate", "0.02", "--draws", "24", "--margin", "0.4"
    assert figures(call, *arguments, "--out", tmp_path / "a") == figures(
        call, *arguments, "--out", tmp_path / "b", "--jobs", "2")


@pytest.mark.parametrize(("arguments", "words"), [
    (["--rate", "1.5"], "A bit error rate must be a number from 0 to 1, not 1.5; 0.001 is one bit of a thousand"),
    (["--memory", "gru"], "A memory with faults must be one of linear_0.product.weights, "),
    (["--margin", "0"], "A margin of error must be a number between 0 and 1, not 0.0; 0.05 is five points"),
    (["--confidence", "1"], "A confidence must be a number between 0 and 1, not 1.0; 0.95 is usual"),
    (["--kind", "flop"], "'flop' is not one of 'flip', 'stuck-at-0', 'stuck-at-1'"),
    (["--draws", "2", "--simulate", "1", "--margin", "0.5"], "generate"),
])
def test_what_cannot_be_is_refused(call, made, arguments, words, tmp_path):
    code, out, err = call("faults", made, *arguments, "--out", tmp_path / "out")
    assert (code, out) == (2, "") and words in err


def test_a_folder_that_is_no_run_is_refused(call, tmp_path):
    code, _, err = call("faults", tmp_path)
    assert code == 2 and "A run must be a folder with experiment.toml in it" in err


def test_the_circuit_is_played_beside_golden(call, made, tmp_path, monkeypatch):
    assert call("generate", made, "--multipliers", "20")[0] == 0
    arguments = made, "--rate", "0.05", "--draws", "2", "--margin", "0.5", "--simulate", "6"
    found = figures(call, *arguments, "--programs", "4", "--out", tmp_path / "a")["simulated"]
    assert (found["runs"], found["equal"], sum(found["ends"].values())) == (6, 6, 4)
    true = circulant.Network.with_faults
    monkeypatch.setattr(circulant.Network, "with_faults", lambda self, faults: true(self, faults[1:]))
    other = figures(call, *arguments, "--out", tmp_path / "b", code=1)["simulated"]
    assert other["equal"] < 6, "golden with other faults is another one"


def test_check_bits_are_drawn_too_and_put_flips_right(call, made, tmp_path):
    options = made, "--rate", "0.01", "--draws", "8", "--margin", "0.5"
    plain = figures(call, *options, "--out", tmp_path / "out")
    guarded = figures(call, *options, "--protection", "secded", "--out", tmp_path / "out")
    assert guarded["bits"] > plain["bits"] and "single" not in guarded
    rows = list(csv.DictReader((tmp_path / "out/draws.csv").read_text().splitlines()))[1:]
    network = circulant.Network.load(made)
    left = [len(network.draw_faults(rate=0.01, seed=seed, protection="secded")) for seed in range(8)]
    assert [int(row["faults"]) for row in rows] == left
    assert 0 < sum(left) < sum(len(network.draw_faults(rate=0.01, seed=seed)) for seed in range(8))
    assert figures(call, *options, "--out", tmp_path / "out") == plain, "draws of both are kept side by side"


@pytest.mark.soak
def test_bits_of_registers_are_flipped(call, made, tmp_path):
    assert call("generate", made, "--multipliers", "20")[0] == 0
    arguments = made, "--draws", "1", "--margin", "0.5", "--registers", "12", "--out", tmp_path
    found = figures(call, *arguments)["registers"]
    assert found["runs"] == sum(found["ends"].values()) == 12 and found["bits"] > 100
    assert found["ends"] == {end: sum(unit[end] for unit in found["units"].values()) for end in found["ends"]}
    assert found["ends"]["masked"] > 0
    assert 0 < found["control_bits"] < found["bits"] and sum(found["control"].values()) <= 12
    assert "control in all units" in (tmp_path / "faults.html").read_text()


def test_what_control_has_to_do_with_wrong_outputs_is_said_with_its_interval():
    one = {"masked": 9, "wrong": 6, "hang": 1, "broken": 0}
    found = campaign.Flipped(20, 1000, {"masked": 11, "wrong": 8, "hang": 1, "broken": 0}, {
        "array": one, "row": {"masked": 2, "wrong": 2, "hang": 0, "broken": 0}}, control_bits=50,
        control={"masked": 1, "wrong": 2, "hang": 1, "broken": 0})
    assert list(registers(found, 0.95).items()) == [
        ("one flipped bit of 1,000 bits of registers",
         "11 masked, 8 wrong, 1 hang, 0 broken; wrong 40.0% (21.9% to 61.3%)"),
        ("wrong outputs by unit", "array 75% (6 of 16), row 25% (2 of 4)"),
        ("wrong outputs by control, 5.0% of the bits", "25.0% (7.1% to 59.1%), 2 of 8; hangs 1 of 1")]
    none = dict.fromkeys(one, 0)
    assert len(registers(found._replace(ends=none | {"masked": 20}, control=none), 0.95)) == 1
