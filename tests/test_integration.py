"""Generated cores in other people's systems: a package of FuseSoC, and a SoC of LiteX."""
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from circulant.hw import generate
from circulant.kit import write_kit
from circulant.sim.cosim import icarus
from tests.hw import golden

EXAMPLE = Path(__file__).parents[1] / "examples/litex/simulate.py"

pytestmark = [pytest.mark.soak, pytest.mark.skipif(
    not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    network = golden.network(4, 6, 5, outputs=3, returns="sequence", activation_bits=9, weight_bits=8)
    folder = generate(network, multipliers=16, bus="axi4-lite", objective="throughput").write(
        tmp_path_factory.mktemp("core") / "design")
    write_kit(folder, network.vectors(np.random.default_rng(3).normal(0, 1, (5, 4, 5))))
    return folder


def test_fusesoc_finds_the_core_and_runs_its_test_bench(made, tmp_path):
    def fusesoc(*words):
        return subprocess.run([sys.executable, "-m", "fusesoc.main", "--cores-root", made, *words], cwd=tmp_path,
                              capture_output=True, text=True, timeout=300)

    name = next(line.split('"')[1] for line in (made / "circulant_top.core").read_text().splitlines()
                if line.startswith("name:"))
    shown = fusesoc("core", "show", name)
    assert shown.returncode == 0 and "sim" in shown.stdout and "lint" in shown.stdout, shown.stderr
    ran = fusesoc("run", "--target", "sim", name)
    assert ran.returncode == 0 and "PASS: " in ran.stdout + ran.stderr, ran.stderr


def test_a_soc_of_litex_reads_the_registers_and_plays_the_streams(made):
    done = subprocess.run([sys.executable, EXAMPLE, made], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("PASS: identification and hash read over the bus, 20 beats equal")
