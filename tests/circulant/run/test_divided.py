"""Runs over several chips: what their experiment says, and what each step makes of it."""
import json
from dataclasses import replace

import pytest

from circulant.experiment import Experiment, Simulation, parse
from circulant.hardware import Hardware
from circulant.report import report
from circulant.run import steps
from circulant.run.divided import partitioned
from circulant.run.run_folder import Run, record
from circulant.sim.refusal import Refusal
from circulant.training.settings import ModelSettings
from tests.circulant.conftest import make_trained
from tests.hw.chips.networks import data, pair

CHIPS = {"count": 2, "multipliers": [100, 120], "link_bits": 16, "link_ns": 60.0}


def quantized(folder, chips):
    run = Run(folder, Experiment("pair", model=ModelSettings(hidden=16), hardware=Hardware(chips=chips),
                                 simulation=Simulation(samples=2, drawn=0)))
    make_trained(run)
    pair().save(run.folder)
    vectors = pair().vectors(data(pair())).save(run.path("vectors.npz"))
    record(run, "quantize", {"hashes": {"network": pair().hash, "vectors": vectors}, "metric": "accuracy",
                             "accuracy": {"quantized": 0.96}, "seconds": 1.0, "ranges": []})
    return run


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    run = quantized(tmp_path_factory.mktemp("divided") / "pair", CHIPS)
    steps.generate(run)
    return run, steps.simulate(run)


def test_a_run_obeys_its_chips_and_all_of_them_are_played(divided):
    run, simulated = divided
    found = json.loads(run.path("chips/partition.json").read_text())
    assert [each["multipliers"] <= most for each, most in zip(found["chips"], CHIPS["multipliers"], strict=True)]
    assert {(each["bits"], each["latency"]) for each in found["links"]} == {(16, 6)}, "60 ns at 100 MHz"
    assert not run.path("hardware").exists()
    check = simulated["verification"]
    assert check["mismatches"] == check["chips"]["mismatches"] == 0
    assert check["chips"]["words_compared"] > 1000 and check["cycles_per_step"] == found["period"]
    assert check["chips"]["latencies"][-1] > 6, "links that are slower than planned"
    with pytest.raises(Refusal, match=r"must be for one chip here, but hardware\.chips of .* names several"):
        run.one_chip()


def test_the_report_of_chips(divided):
    run, _ = divided
    figures = report.write(run)
    assert [each["name"] for each in figures["chips"]["chips"]] == ["chip0", "chip1"]
    page = run.path("report.html").read_text()
    assert "Chips and links" in page and "chip0 → chip1" in page and run.path("chips.png").stat().st_size > 5000
    load = next(each["load"] for each in figures["chips"]["links"] if each["words"])
    assert f"{load:.0%}" in page


def test_chips_that_are_not_those_that_were_played_are_refused(divided):
    run, _ = divided
    other = run.path("chips/chip1/chip1_chip.v")
    text = other.read_text()
    other.write_text(text + "\n")
    try:
        with pytest.raises(Refusal, match=r"chip1_chip\.v must be as it was"):
            report.write(run)
    finally:
        other.write_text(text)
    with pytest.raises(Refusal, match="must be of a part of network"):
        partitioned(run, replace(pair(), name="another"))


@pytest.mark.parametrize(("chips", "said"), [
    ({"multipliers": 2}, "Some chips must hold a share of each layer"),
    ({"multipliers": 100, "count": 3, "topology": "0-1"}, "There must be a way of links between all chips"),
    ({"device": "iCE40UP5K", "memory": 1}, "multipliers|block RAMs")])
def test_what_no_chips_can_be_leaves_nothing_behind(tmp_path, chips, said):
    run = quantized(tmp_path / "pair", chips)
    with pytest.raises(Refusal, match=said):
        steps.generate(run)
    assert not run.path("chips").exists() and not run.path("generation.json").exists()


@pytest.mark.parametrize(("chips", "said"), [
    ({"link_bits": 0, "multipliers": 9}, "hardware.chips.link_bits must be an integer from 1 to 1024, not 0"),
    ({"multipliers": 9, "topology": "star"}, "hardware.chips: A topology must be one of all, line, ring, or pairs"),
    ({"device": "LFE5U-99F"}, "hardware.chips: A device must be one of"),
    ({"count": 3, "multipliers": [1, 2]}, "hardware.chips.multipliers must be given once for all chips"),
    ({"count": 2}, "hardware.chips: Chips must have a budget, but none is given"),
    ({"multipliers": 9, "carrier": "udp", "link_pins": 8},
     r"hardware\.chips.*link_pins must be left out where udp carries the words, not 8"),
    ({"number": 2}, r"\[hardware.chips\] has no key 'number'"),
    ([2], "hardware.chips must be a table, not")])
def test_chips_that_an_experiment_cannot_have(chips, said):
    with pytest.raises(Refusal, match=said):
        parse({"hardware": {"chips": chips}})


def test_what_is_for_one_chip_alone_does_not_come_with_several():
    with pytest.raises(Refusal, match=r"hardware\.chips must come without streams = 2, bus = 'axi4-lite'"):
        parse({"hardware": {"chips": {"multipliers": 9}, "streams": 2, "bus": "axi4-lite"}})
