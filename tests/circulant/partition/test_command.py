import json
import sys
from functools import cache

import pytest
from click.testing import CliRunner

from circulant.cli import cli
from circulant.hardware import Hardware
from circulant.partition import command
from circulant.run.divided import divide
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import data, pair


@pytest.fixture
def run(tmp_path):
    pair().save(tmp_path)
    pair().vectors(data(pair())).save(tmp_path / "vectors.npz")
    return tmp_path


@cache
def divided(*asked):
    return divide(pair(), asked[0], **dict(asked[1:]))


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """What is asked for twice is divided once."""
    def of(network, asked, **how):
        assert network.hash == pair().hash
        return divided(asked, *how.items())

    monkeypatch.setattr(command, "divide", of)


def call(*arguments):
    said = CliRunner().invoke(cli, ["partition", *map(str, arguments)], standalone_mode=False)
    if said.exception is not None:
        raise said.exception
    return said.output


def test_each_chip_gets_a_folder(run):
    found = json.loads(call(run, "--multipliers", 100, "--link", "16,2", "--json"))
    assert len(found["places"]) == 2 and found["period"] > 0
    assert sum(each["multipliers"] for each in found["chips"]) <= 200
    assert sorted(each.name for each in (run / "chips").iterdir()) == ["chip0", "chip1", "partition.json", "system"]
    assert json.loads((run / "chips" / "chip0" / "manifest.json").read_text())["network"] == pair().hash


def test_independent_sequences_take_turns_where_that_is_asked_for(run):
    found = json.loads(call(run, "--multipliers", 100, "--streams", "--json"))
    assert found["places"] == [f"lstm{n}: streams, in turn on chip0, chip1" for n in (1, 2)]


@pytest.mark.parametrize(("streams", "lossy"), [
    (("--streams",), ""), ((), "; with links of 3 to 9 cycles that lose words the period is 51")])
def test_lossy_links_are_named_where_there_are_links(run, monkeypatch, streams, lossy):
    monkeypatch.setattr(command, "check", lambda *_: {
        "words_compared": 1200, "mismatches": 0, "cycles_per_step": 50.0, "latency_spaced": 80,
        "latencies": [3, 9] if lossy else [0], "rough_cycles_per_step": 51.0})
    said = call(run, "--multipliers", 100, *(streams or ("--link", "16,2")), "--simulate")
    assert said.endswith(f"1,200 words compared, 0 differ; period 50, latency 80 measured{lossy}\n")


def test_udp_without_liteeth_is_refused(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "liteeth", None)
    with pytest.raises(Refusal, match=r"Carrier udp needs liteeth, which is not installed; run: pip.*udp"):
        call(run, "--device", "LFE5U-85F", "--carrier", "udp")


def test_a_project_for_aurora_is_said_to_be_unrouted(run):
    said = call(run, "--device", "XCKU060", "--multipliers", 100, "--carrier", "aurora")
    assert "makes a Vivado project, which is not routed" in said and "estimates: cycles, latency_spaced" in said
    assert (run / "chips" / "chip0" / "chip0_aurora.tcl").is_file()


@pytest.mark.parametrize(("options", "said"), [
    (("--link", "0,3", "--multipliers", 99), "chips.link_bits must be an integer from 1 to 1024, not 0"),
    (("--link", "wide", "--multipliers", 99), "--link must be BITS,LATENCY, such as 64,20, not 'wide'"),
    (("--link", "64", "--multipliers", 99), "--link must be BITS,LATENCY, such as 64,20, not '64'"),
    (("--multipliers", 99, "--ip", "10.0.0.2"), "ip must be left out where the carrier is pins, since links over udp"),
    (("--device", "XCKU060", "--carrier", "aurora", "--mac", "02:00:00:00:00:07"), "mac must be left out where"),
    ((), "Chips must have a budget, but none is given"),
    (("--chips", 3, "--multipliers", 9, "--multipliers", 9), "once for each of the 3, not 2 times"),
    (("--chips", 0, "--multipliers", 9), "--chips must be from 1 to 64, not 0"),
    (("--multipliers", 2), "Some chips must hold a share of each layer"),
    (("--multipliers", 99, "--topology", "star"), "A topology must be one of all, line, ring, or pairs"),
    (("--chips", 3, "--multipliers", 99, "--topology", "0-1"), "there is none from 'chip0' to 'chip2'; add a link"),
    (("--multipliers", 99, "--topology", "0-2"), "must join two of the chips 0 to 1, not 0 and 2"),
    (("--device", "LFE5U-99F"), "A device must be one of"),
    (("--multipliers", 99, "--carrier", "smoke"), "chips.carrier must be .*pins.*udp.*aurora.*smoke"),
    (("--multipliers", 99, "--carrier", "udp"), "Carrier udp must know each chip's device, but chip0 has none"),
    (("--device", "LFE5U-25F", "--carrier", "aurora"), "chip0 is LFE5U-25F with none; take one of them"),
    (("--device", "LFE5U-25F", "--carrier", "udp", "--ip", "10.0.0.256"), "ip must be an address such as"),
    (("--device", "LFE5U-25F", "--carrier", "udp", "--mac", "01:00:00:00:00:00"), "mac must be an address such as"),
    (("--device", "LFE5U-25F", "--carrier", "udp", "--mac", "02:ff:ff:ff:ff:ff"), "mac must be followed by addresses"),
    (("--device", "LFE5U-25F", "--carrier", "udp", *("--ip", "10.0.0.2") * 2), "for each chip, all different")])
def test_what_cannot_be_is_refused(run, options, said):
    with pytest.raises(Refusal, match=said):
        call(run, *options)


def test_an_experiment_gives_one_address_or_a_list_of_them():
    asked = {"count": 2, "device": "LFE5U-45F", "carrier": "udp"}
    for given in ("10.0.0.2", ["10.0.0.2"]):
        hardware = Hardware(chips={**asked, "ip": given, "mac": "02:00:00:00:00:01"})
        assert hardware.contradictions() == [] and hardware.several.ip == ("10.0.0.2",)
        assert hardware.several.mac == ("02:00:00:00:00:01",)
