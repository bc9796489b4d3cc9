"""One small real experiment through all five steps, and what happens when one bit of its hardware is wrong."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from circulant.report import report
from circulant.sim import artifact, design
from circulant.sim.arith import fft
from circulant.sim.cosim.toolchain import OPT_FAST
from circulant.sim.golden.network import Network
from circulant.sim.vectors import Vectors
from tests.processes import call

TINY = """
[model]
hidden = 16
[compression]
block_size = 8
[training]
dense_epochs = 3
admm_epochs = 2
retrain_epochs = 3
[hardware]
multipliers = 40
objective = "throughput"
"""
MISMATCH = re.compile(r"(\d+) of \d+ words differ from the golden model; the first: "
                      r"sequence (\d+), step (\d+), word (\d+): expected (-?\d+), got (-?\d+)\n$")


@pytest.fixture(scope="module", autouse=True)
def optimised():
    """One simulator that plays more than any other of the tests is worth what users have it compiled with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPT_FAST, "-O1")
        yield


@pytest.fixture(scope="module")
def whole(optimised, tmp_path_factory):
    """The run folder of `circulant run`, made once for all tests of this file. Nobody writes into it."""
    folder = tmp_path_factory.mktemp("end-to-end")
    (folder / "tiny.toml").write_text(TINY)
    assert call("run", folder / "tiny.toml", "--out", folder / "run") == 0
    return folder / "run"


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "run"))


def flip(image, line, bit):
    """Flip one bit of one word of a memory image."""
    words = image.read_text().split("\n")
    digits = len(words[line])
    words[line] = f"{int(words[line], 16) ^ 1 << bit:0{digits}x}"
    image.write_text("\n".join(words))


def certify(folder):
    """Have the files of the design, as they are, be those that were generated: a fault of the generator."""
    manifest = folder / "hardware" / "manifest.json"
    body = artifact.read_json(manifest, design.KIND, design.VERSION)
    del body["hash"]
    body["files"] = design.hashes({name: (folder / "hardware" / name).read_bytes() for name in body["files"]})
    sha = artifact.write_json(manifest, design.KIND, design.VERSION, body)
    record = artifact.read_json(folder / "generation.json", "circulant-generation", 1)
    del record["hash"]
    record["hashes"]["design"] = sha
    artifact.write_json(folder / "generation.json", "circulant-generation", 1, record)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_output_bit_equals_the_golden_model(whole):
    figures = artifact.read_json(whole / report.FILE, report.FORMAT, report.VERSION)
    check = figures["verification"]
    assert (check["sequences"], check["words"], check["mismatches"], check["first"]) == (360, 3600, 0, None)
    assert check["simulator"].startswith("Verilator 5.")


def test_the_report_holds_what_it_must(whole):
    figures = artifact.read_json(whole / report.FILE, report.FORMAT, report.VERSION)
    assert all(0 < figures["accuracy"][stage] <= 1 for stage in ("dense", "circulant", "quantized"))
    weights = figures["compression"]
    assert (weights["weights_dense"], weights["weights_circulant"]) == (3 * 16 * (8 + 16) + 10 * 16,
                                                                        3 * 2 * (1 + 2) * 8 + 2 * 2 * 8)
    hardware = figures["hardware"]
    assert 0 < hardware["multipliers"] <= 40
    assert hardware["latency_spaced_predicted"] == hardware["latency_spaced"], "the cost model is exact"
    assert hardware["latency_contiguous_predicted"] == pytest.approx(hardware["latency_contiguous"], rel=0.05)
    assert hardware["estimates"] == ["latency_contiguous"], "a class is of a whole sequence"
    assert 0 < hardware["floor_cycles"] <= hardware["cycles_per_step"] < hardware["latency_spaced"] < 10000
    assert hardware["floor_cycles_sequence"] <= hardware["cycles_per_sequence"]
    assert hardware["memory_bits"] > 12 * weights["weights_circulant"]
    assert {"network", "vectors", "design", "model"} <= set(figures["hashes"])
    assert {"circulant", "python", "torch", "amaranth", "cocotb", "verilator"} <= set(figures["versions"])


def test_the_files_belong_together(whole):
    network, vectors = Network.load(whole), Vectors.load(whole / "vectors.npz")
    assert network.hash == vectors.network == design.read(whole / "hardware")["network"]
    assert np.array_equal(network.run_integers(vectors.inputs), vectors.outputs)
    assert {"report.html", "training.png", "accuracy.png", "cycles.png"} <= {path.name for path in whole.iterdir()}
    assert not list(whole.rglob(".*")), "no temporary file may be left"


@pytest.mark.parametrize(("image", "line", "bit"), [
    pytest.param("gru_weights_0_0.hex", 0, 0, id="weight of the GRU"),
    pytest.param("linear_weights_0_0.hex", 0, 0, id="weight of the classifier", marks=pytest.mark.soak),
    pytest.param("gru_sigmoid.hex", 15, 20, id="entry of the sigmoid", marks=pytest.mark.soak),
    pytest.param("gru_tanh.hex", 20, 20, id="entry of the tanh", marks=pytest.mark.soak),
])
def test_one_flipped_bit_of_a_memory_image_is_found(copy, capsys, image, line, bit):
    flip(copy / "hardware" / image, line, bit)
    assert call("simulate", copy) == 2, "it is not what was generated"
    assert f"{image} must be as it was generated" in capsys.readouterr().err
    certify(copy)
    assert call("simulate", copy) == 1
    assert_mismatch(copy, capsys.readouterr().err)


@pytest.mark.soak
def test_one_flipped_bit_of_a_twiddle_factor_is_found(copy, capsys, monkeypatch):
    true = fft.twiddle

    def flipped(m, n, twiddle_bits):
        c, s = true(m, n, twiddle_bits)
        return c ^ 1 << (twiddle_bits // 2), s

    with monkeypatch.context() as patch:
        patch.setattr(fft, "twiddle", flipped)
        assert call("generate", copy) == 0
    assert call("simulate", copy) == 1
    assert_mismatch(copy, capsys.readouterr().err)


def assert_mismatch(folder, said):
    """The message names a word of the test split, with what the golden model expects there, and the record agrees."""
    found = MISMATCH.search(said)
    assert found, said
    mismatches, sequence, step, word, expected, got = map(int, found.groups())
    assert mismatches > 0
    assert step == 7, "the classifier speaks after the last of 8 rows"
    assert Vectors.load(folder / "vectors.npz").outputs[sequence, word] == expected != got
    record = json.loads((folder / "verification.json").read_text())["verification"]
    assert record["mismatches"] == mismatches
    assert call("report", folder) == 0
    assert json.loads((folder / "report.json").read_text())["verification"]["mismatches"] == mismatches


def test_a_missing_compiler_is_refused(copy, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    before = contents(copy)
    assert call("simulate", copy) == 2
    said = capsys.readouterr().err
    assert "g++" in said and said.count("\n") == 1
    assert contents(copy) == before


def test_a_later_step_starts_from_the_files_of_the_one_before(copy, capsys):
    (copy / "model.pt").unlink()
    assert call("generate", copy, "--set", "hardware.multipliers=30") == 0
    assert call("report", copy) == 2
    assert "verification.json must follow generation.json beside it" in capsys.readouterr().err
    assert json.loads((copy / "generation.json").read_text())["hardware"]["multipliers"] <= 30


def test_a_design_larger_than_the_board_is_refused(copy, capsys):
    before = contents(copy)
    assert call("generate", copy, "--set", "board.device=iCE40UP5K") == 2
    assert "A design must fit iCE40UP5K, but it needs" in capsys.readouterr().err
    assert contents(copy) == before


def test_an_interrupted_training_leaves_the_run_usable(copy):
    before = contents(copy)
    command = [sys.executable, "-c", "from circulant.cli import main; main()", "train", str(copy),
               "--set", "training.dense_epochs=10000", "--set", "training.decay=none"]
    environment = os.environ | {"FORCE_COLOR": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as training:
        assert training.stderr is not None
        said = ""
        while "accuracy" not in said:  # The bar of the first epochs.
            said += training.stderr.read(1)
        time.sleep(0.2)
        training.send_signal(signal.SIGINT)
        said += training.stderr.read()
    assert training.returncode == 130
    assert "Interrupted" in said.rstrip().splitlines()[-1] and "--resume" in said.rstrip().splitlines()[-1]
    assert "Traceback" not in said
    after = contents(copy)
    assert {path.parts[0] for path in after.keys() - before.keys()} <= {"checkpoint"}, "for --resume"
    assert {path: after[path] for path in before} == before
    assert call("quantize", copy) == 0
