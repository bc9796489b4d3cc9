"""From a design to cells of a small library, and of those that are known: equality, figures, files, refusals."""
import importlib.util
import json
import shutil
from dataclasses import replace

import pytest

from circulant.boards.asic import flow as module
from circulant.boards.asic import mapping
from circulant.boards.asic.cells.catalogue import OWN, known, library
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.flow import asic, lines
from circulant.boards.asic.macros import model
from circulant.boards.asic.timing import Stage, Timing
from circulant.sim.cosim import icarus, verify
from circulant.sim.refusal import Refusal, TimingMissed
from tests.boards.asic import tiny

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pyosys") is None,
                                reason="pyosys is not installed (circulant[synthesis])")
TIMED = pytest.mark.skipif(shutil.which("sta") is None, reason="OpenSTA is not installed (Debian: opensta)")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A design, its vectors, the library, and what became of them."""
    folder = tmp_path_factory.mktemp("asic")
    design, vectors = tiny.design(folder)
    found = tiny.read(folder)
    return design, vectors, found, folder / "out", asic(design, folder / "out", found, OWN, mhz=50.0, timed=False,
                                                        macros=model(found.gate_area, 1.0))


@pytest.mark.skipif(not icarus.available(), reason="Icarus Verilog is not installed")
def test_the_netlist_equals_golden(made):
    _, vectors, _, out, _ = made
    found = icarus.run(out / "simulation", vectors)
    assert (found.words > 30, found.mismatches) == (True, 0)


def test_every_part_of_the_area_is_of_one_kind(made):
    design, _, found, out, figures = made
    netlist = (out / "netlist.v").read_text()
    sizes = {name: cell.area for name, cell in found.cells.items()}
    total = sum(sizes.get(line.split()[0], 0) for line in netlist.splitlines() if line.startswith("  "))
    assert sum(figures.area_um2.values()) == pytest.approx(total)
    assert all(figures.area_um2[kind] > 0 for kind in ("logic", "registers", "clock_gates", "rom", "ram_registers"))
    bits = json.loads((design / "manifest.json").read_text())["memory_bits"]
    assert bits * 0.8 < sum(figures.memories.values()) <= bits  # Yosys leaves out what is constant.
    assert figures.gate_equivalents == pytest.approx(total / 2, abs=1)


def test_figures_are_kept_and_said(made):
    *_, out, figures = made
    kept = json.loads((out / "asic.json").read_text())
    assert kept["cells"] == figures.cells and kept["logic_um2"] == pytest.approx(figures.logic_um2)
    first = lines(figures.as_json())[0]
    assert first.startswith("tiny.lib (tiny): ") and f"{sum(figures.area_um2.values()) / 1e6:.4g} mm² with mem" in first
    assert "create_clock -name clk -period 20.0000" in (out / "design.sdc").read_text()


def test_the_mapping_is_found_again(made, monkeypatch):
    design, _, found, out, figures = made
    monkeypatch.setattr(mapping, "yosys", None)  # It would be called.
    again = asic(design, out, found, OWN, mhz=50.0, timed=False, macros=model(found.gate_area, 1.0))
    assert again.area_um2 == figures.area_um2


def test_a_clock_that_is_missed_says_how_far_it_comes(made, monkeypatch):
    design, _, found, out, _ = made
    monkeypatch.setattr(module, "found", lambda: "sta")
    monkeypatch.setattr(module, "analysed", lambda *_, **__: Timing(
        20.0, -5.0, "a_reg", "b_reg", (Stage("u1", "NAND2_1", 3.0), Stage("u2", "XOR2_1", 7.5)), hold=0.1))
    with pytest.raises(TimingMissed, match=r"^The clock of tiny\.lib must be 50 MHz, but the netlist reaches "
                                           r"40\.0 MHz: the slowest path goes from a_reg to b_reg through 2 cells, the "
                                           r"slowest of them a XOR2_1 with 7\.5 ns; take --mhz 40 or less"):
        asic(design, out, found, OWN, mhz=50.0, macros=model(found.gate_area, 1.0))
    assert json.loads((out / "asic.json").read_text())["critical"]["cells"][1] == ["u2", "XOR2_1", 7.5]


def test_a_missing_opensta_is_refused_before_any_work(made, monkeypatch, tmp_path):
    design, _, found, _, _ = made
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=r"^Timing needs OpenSTA, but PATH has no sta; install it \(on Debian: apt"):
        asic(design, tmp_path / "out", found, OWN, mhz=50.0, macros=model(found.gate_area, 1.0))
    assert not (tmp_path / "out").exists()


def test_vectors_of_another_network_are_refused_before_any_work(made, tmp_path):
    design, vectors, found, _, _ = made
    whole = tiny.network()
    for given, message in ((whole.with_argmax().chosen(vectors), "The vectors must be those of the network that "),
                           (replace(vectors, outputs=vectors.outputs[:, :1]), "Output vectors must be of 4 elements ")):
        with pytest.raises(Refusal, match=f"^{message}"):
            asic(design, tmp_path / "out", found, OWN, mhz=50.0, timed=False, macros=model(found.gate_area, 1.0),
                 vectors=given)
    assert not (tmp_path / "out").exists()


@TIMED
def test_opensta_finds_the_clock_that_the_delays_of_the_cells_allow(made):
    design, _, found, out, _ = made
    figures = asic(design, out, found, OWN, mhz=50.0, macros=model(found.gate_area, 1.0))  # The mapping is kept.
    assert figures.timing is not None
    stages = sum(stage.delay for stage in figures.timing.stages)
    assert figures.timing.stages
    assert 1e3 / figures.timing.mhz == pytest.approx(stages, abs=0.03)  # Less a setup time.


def slow(folder):
    """The library in a slow corner: twice the delays, 0.8 V, half the leakage."""
    text = tiny.liberty().replace("nom_voltage : 1.0", "nom_voltage : 0.8").replace("library (tiny)", "library (slow)")
    (folder / "slow.lib").write_text(text.replace("0.05", "0.1").replace("0.4", "0.8").replace(
        "power : 2;", "power : 1;").replace("power : 4;", "power : 2;"))
    return Library.read([folder / "slow.lib"])


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_power_at_rest_and_at_a_rate(made):
    design, vectors, found, out, _ = made
    every = {"mhz": 50.0, "timed": False, "macros": model(found.gate_area, 1.0)}  # The mapping is kept.
    figures = asic(design, out, found, OWN, **every, vectors=vectors, samples=4, rate=1000.0,
                   corners=[slow(out)]).as_json()
    netlist = (out / "netlist.v").read_text()
    leaked = sum(netlist.count(f"  {name} ") * cell.leakage for name, cell in found.cells.items()) * 1e-3
    assert figures["leakage_uw"] == pytest.approx(leaked, rel=1e-4)
    assert 0 < figures["idle_pj_per_cycle"] < 0.9 * sum(figures["energy_pj_per_cycle"].values())
    mean = figures["mean_power"]
    assert mean["busy"] == pytest.approx(1000 * figures["activity"]["cycles"] / 4 / 50e6)
    inference = figures["energy_nj_total"] - leaked * mean["busy"]  # nJ, for µW · s / 1,000.
    assert mean["clock_stopped_uw"] == pytest.approx(inference + leaked, rel=1e-3)
    assert mean["clock_running_uw"] - mean["clock_stopped_uw"] == pytest.approx(
        50 * (1 - mean["busy"]) * figures["idle_pj_per_cycle"], rel=1e-3)
    corner = figures["corners"]["slow"]
    assert corner["leakage_uw"] == pytest.approx(leaked / 2, rel=1e-4)
    assert 0.6 < corner["pj_per_cycle"] / sum(figures["energy_pj_per_cycle"].values()) < 1
    assert any("one that stops between" in line for line in lines(figures))
    with pytest.raises(Refusal, match=r"^--rate must be at most what the circuit takes at 50 MHz, .* not 1e\+08; ask"):
        asic(design, out, found, OWN, **every, vectors=vectors, rate=1e8)
    with pytest.raises(Refusal, match=r"^A mean power at 10 inferences a second needs the energy of one, but no"):
        asic(design, out, found, OWN, **every, rate=10.0)
    with pytest.raises(Refusal, match=r"^A corner must have the cells of the library, but tiny\.lib lacks GATE_1"):
        asic(design, out, found, OWN, **every, corners=[tiny.read(out, clock_gates=False)])


@TIMED
def test_a_slow_corner_is_slower(made):
    design, _, found, out, _ = made
    figures = asic(design, out, found, OWN, mhz=50.0, macros=model(found.gate_area, 1.0), corners=[slow(out)])
    assert figures.timing is not None
    assert 0 < figures.corners["slow"]["fmax_mhz"] < 0.7 * figures.timing.mhz


@pytest.mark.soak
def test_behavioural_macros_equal_golden(tmp_path):
    design, vectors = tiny.design(tmp_path)
    found = tiny.read(tmp_path)
    figures = asic(design, tmp_path / "out", found, OWN, mhz=50.0, timed=False, vectors=vectors, samples=6,
                   simulator="icarus", macros=model(found.gate_area, 1.0, 60, None, 60))
    assert figures.memories["macro"] > 0 and figures.area_um2["ram_macros"] > 0 and figures.area_um2["rom_macros"] > 0
    assert (tmp_path / "out/macro_placement.cfg").read_text().startswith("circulant_memory_")
    assert "initial" in (tmp_path / "out/simulation/macros.v").read_text()
    assert figures.power is not None
    assert (figures.power.activity.words, figures.power.activity.mismatches) == (24, 0)
    assert figures.simulated == {"simulator": "icarus", "sequences": 6, "words": 24, "mismatches": 0}


@pytest.mark.soak
@pytest.mark.parametrize("name", list(known()))
def test_netlists_of_the_known_libraries_equal_golden_under_verilator(name, tmp_path):
    try:
        found, entry = library((name,))
    except Refusal as refusal:
        pytest.skip(str(refusal))
    assert isinstance(found, Library)
    design, vectors = tiny.design(tmp_path)
    figures = asic(design, tmp_path / "out", found, entry, mhz=entry.mhz / 4, timed=False, vectors=vectors, samples=6,
                   macros=model(found.gate_area, found.voltage))
    assert figures.power is not None
    assert (figures.power.activity.words, figures.power.activity.mismatches) == (24, 0)
    assert 0 < figures.power.energy.total < figures.power.ungated.total
    assert verify(tmp_path / "out/simulation", vectors).mismatches == 0


@pytest.mark.soak
def test_a_scan_chain_shifts_every_flip_flop(tmp_path):
    design, _ = tiny.design(tmp_path)
    found = tiny.read(tmp_path)
    figures = asic(design, tmp_path / "out", found, OWN, mhz=50.0, timed=False, scan=True,
                   macros=model(found.gate_area, 1.0))
    assert figures.scan == (tmp_path / "out/netlist.v").read_text().count("  SDFF_1 ") > 100
    assert shifted(tmp_path / "out", figures.scan)


def shifted(out, length):
    """Whether bits that are shifted in come out again behind the whole chain."""
    import subprocess

    (out / "chain.v").write_text(f"""
module chain;
  reg clk = 0, rst = 0, enable = 1;
  reg [63:0] pattern = 64'h9d3c_51a7_0f68_b2e4, seen = 0;
  wire said;
  integer n;
  circulant_top dut (.clk(clk), .rst(rst), .s_axis_tdata(16'b0), .s_axis_tvalid(1'b0), .s_axis_tlast(1'b0),
                     .m_axis_tready(1'b0), .scan_enable(enable), .scan_in(pattern[63]), .scan_out(said));
  initial begin
    for (n = 0; n < {length} + 64; n = n + 1) begin
      #1 if (n >= {length}) seen = {{seen[62:0], said}};
      clk = 1; #1 clk = 0; pattern = {{pattern[62:0], pattern[63]}};
    end
    $display("%h", seen);
  end
endmodule
""")
    cells_of = (out / "simulation/cells.v").read_text()
    assert "module SDFF_1" in cells_of
    subprocess.run(["iverilog", "-g2012", "-s", "chain", "-o", "chain.vvp", "chain.v", "netlist.v",
                    "simulation/cells.v"], cwd=out, check=True)
    done = subprocess.run(["vvp", "chain.vvp"], cwd=out, check=True, capture_output=True, text=True)
    return done.stdout.strip() == "9d3c51a70f68b2e4"
