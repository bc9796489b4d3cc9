"""Designs of several chips, all in one circuit with their links: every word equals the one-chip golden model."""
import json
from dataclasses import replace

import pytest

from circulant.hw.chips.cluster import Link
from circulant.hw.chips.cut import Place
from circulant.hw.chips.folders import generate_chips
from circulant.hw.chips.plans import planned, shared
from circulant.hw.chips.search import search
from circulant.hw.chips.words import UDP
from circulant.sim import design
from circulant.sim.chips import SYSTEM, chips_of, drawn, partition_of, roughened
from circulant.sim.cosim import verify
from circulant.sim.refusal import Refusal
from tests.hw.chips import networks
from tests.hw.chips.networks import ROWS, classifier, cluster, data, pair

WHOLE = {"lstm1": Place((0,)), "lstm2": Place((1,))}


@pytest.fixture(scope="module")
def chips():
    """The designs of two chips that divide the rows of a cell."""
    return generate_chips(planned(pair(), cluster(40, 40), ROWS))


@pytest.fixture(scope="module")
def rows(chips, tmp_path_factory):
    return planned(pair(), cluster(40, 40), ROWS), chips.write(tmp_path_factory.mktemp("chips") / "rows")


def test_rows_of_a_cell_over_two_chips_are_those_of_one(rows):
    plan, folder = rows
    found = verify(folder / SYSTEM, pair().vectors(data(pair(), 1, 24)), stalls=False)
    assert found.mismatches == 0 and found.words_compared > 2 * 24 * 16
    assert found.cycles_per_step == plan.timing.period == max(plan.timing.exchanges.values()), "states go to and fro"
    assert found.latency_spaced == pytest.approx(plan.timing.latency, abs=2), "two streams share a link: an estimate"


@pytest.mark.parametrize("cell", [pytest.param("lstm", marks=pytest.mark.soak), "gru"])
def test_layers_that_share_an_array_of_each_chip_are_those_of_one(cell, tmp_path):
    network = pair(cell)
    ways = shared(network, cluster(24, 24, latency=20), networks.rows(cell))
    plan = min(ways, key=lambda each: each.timing.latency)
    folder = generate_chips(plan).write(tmp_path / "chips")
    found = verify(folder / SYSTEM, network.vectors(data(network, 2, 20), lengths=(20, 3)))
    assert found.mismatches == 0 and found.words_compared > 2 * 23 * 16
    assert (found.cycles_per_step, found.latency_spaced) == (plan.timing.period, plan.timing.latency)


def test_independent_sequences_take_turns_on_two_chips(tmp_path):
    plan = search(pair(), cluster(40, 40), streams=True)
    assert plan.lines() == [f"lstm{n}: streams, in turn on chip0, chip1" for n in (1, 2)]
    timing = plan.planned.timing
    assert timing.period == timing.parts[0] / 2 and timing.estimates == ()
    folder = generate_chips(plan.planned).write(tmp_path / "chips")
    found = verify(folder / SYSTEM, pair().vectors(data(pair(), 4, 14), lengths=(14, 14, 3, 3)))
    assert found.mismatches == 0 and found.words_compared > 2 * 34 * 16
    assert (found.cycles_per_step, found.latency_spaced) == (timing.period, timing.latency)


def test_lost_doubled_and_spoilt_words_and_slow_pins_change_no_bit(rows, tmp_path):
    """Resets come, too, while words are under way."""
    plan, folder = rows
    settings = drawn(design.read(folder / SYSTEM)["links"], 3)
    assert len(settings) == 4 and max(latency for latency, _ in settings.values()) > 20
    rough = roughened(folder / SYSTEM, tmp_path / "rough", settings)
    found = verify(rough, pair().vectors(data(pair(), 2, 5)), patience=20_000)
    assert found.mismatches == 0 and found.words_compared > 2 * 5 * 16
    assert found.cycles_per_step > plan.timing.period + 10, "what is slow or lost takes time"


@pytest.mark.parametrize("lossy", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_eight_pins_with_a_clock_carry_what_many_do(lossy, tmp_path):
    of = cluster(24, 24)
    plan = planned(pair(), replace(of, link=Link(16, 3, pins=8)), WHOLE)
    assert plan.links[0, 1].beats == plan.links[1, 0].beats > 4
    folder = generate_chips(plan).write(tmp_path / "chips")
    record = json.loads((folder / "chip0" / "manifest.json").read_text())
    assert record["links"]["chip1"]["pins"] == 8 + 2, "a strobe and a clock"
    which = folder / SYSTEM
    if lossy:
        which = roughened(which, tmp_path / "rough", drawn(design.read(which)["links"], 5))
    found = verify(which, pair().vectors(data(pair(), 2, 5)), stalls=not lossy, patience=50_000)
    assert found.mismatches == 0 and found.words_compared > 2 * 5 * 16
    assert found.cycles_per_step >= plan.timing.links[0, 1], "the link is the slowest"


def test_frames_over_ethernet_carry_what_pins_do(tmp_path):
    """Lost, doubled, late, cut and spoilt ones, with resets while they are under way."""
    plan = planned(pair(), replace(cluster(24, 24), link=Link(64, 60, carrier=UDP)), WHOLE)
    assert plan.timing.estimates == ("cycles", "latency_spaced")
    folder = generate_chips(plan).write(tmp_path / "chips")
    record = json.loads((folder / "chip0" / "manifest.json").read_text())
    assert record["links"]["chip1"]["carrier"] == "udp" and record["links"]["chip1"]["frame"] == plan.links[0, 1].frame
    assert {name for name, *_ in record["ports"] if name.startswith("link")} == {
        f"link1_{name}" for name in ("tx_tdata", "tx_tvalid", "tx_tready", "tx_tlast", "rx_tdata", "rx_tvalid",
                                     "rx_tlast")}
    rough = roughened(folder / SYSTEM, tmp_path / "rough", drawn(design.read(folder / SYSTEM)["links"], 5))
    found = verify(rough, pair().vectors(data(pair(), 2, 5)), patience=50_000)
    assert found.mismatches == 0 and found.words_compared > 2 * 5 * 16


def test_what_a_partition_says(rows):
    plan, folder = rows
    found = partition_of(folder, pair().hash)
    assert [each["layers"] for each in found["chips"]] == [["lstm1", "lstm2"], ["lstm2"]]
    assert {(each["start"], each["words"]) for each in found["links"]} == {
        (f"chip{n}", plan.timing.links[n, 1 - n]) for n in (0, 1)}
    assert set(found["rows"]) == {"chip0", "chip1", "chip0 → chip1", "chip1 → chip0"}
    assert all(0 <= start < end for spans in found["rows"].values() for start, end in spans)


def test_a_result_for_each_sequence_comes_as_planned(tmp_path):
    """What a step leaves under way holds up the first step of the next sequence, so one latency is planned."""
    network = classifier()
    plan = planned(network, cluster(60, 60), {"layer_0": Place((0,)), "out": Place((1,))})
    folder = generate_chips(plan).write(tmp_path / "chips")
    found = verify(folder / SYSTEM, network.vectors(data(network)), stalls=False)
    assert found.mismatches == 0 and found.words_compared >= 3
    assert found.latency_spaced == plan.timing.latency
    assert found.latency_contiguous > found.latency_spaced


def test_what_is_simulated_is_what_each_chip_gets(rows):
    _, folder = rows
    for chip in ("chip0", "chip1"):
        files = [each for each in (folder / chip).iterdir() if each.name != "manifest.json"]
        assert len(files) > 4
        assert all(each.read_bytes() == (folder / SYSTEM / each.name).read_bytes() for each in files)
    record = json.loads((folder / "chip1" / "manifest.json").read_text())
    assert record["network"] == pair().hash != record["part"]
    assert record["links"]["chip0"]["sends"] == ["lstm2__1"] and record["links"]["chip0"]["words"] == 3


def test_the_chips_of_another_network_and_changed_files_are_refused(rows, tmp_path):
    _, folder = rows
    assert chips_of(folder, pair().hash) == {0: "chip0", 1: "chip1"}
    with pytest.raises(Refusal, match="must be of a part of network 000000000000…, but its part is of"):
        chips_of(folder, "0" * 64)
    with pytest.raises(Refusal, match="must hold a folder for each chip, but there is none"):
        chips_of(tmp_path, pair().hash)
    changed = folder / "chip1" / "chip1_chip.v"
    text = changed.read_text()
    try:
        changed.write_text(text + "\n")
        with pytest.raises(Refusal, match=r"chip1_chip\.v must be as it was generated"):
            chips_of(folder, pair().hash)
    finally:
        changed.write_text(text)


def test_a_folder_of_something_else_is_left_alone(chips, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(Refusal, match="must be new, empty or one of chips"):
        chips.write(tmp_path)
