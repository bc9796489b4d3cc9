"""Netlists that Yosys makes of a design for three families, in the cells of its simulation libraries, equal golden."""
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from circulant.hw import generate
from circulant.sim import artifact, design
from circulant.sim.cosim import icarus
from tests.random_networks import Random

pytestmark = [pytest.mark.soak,
              pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog"),
              pytest.mark.skipif(find_spec("pyosys") is None, reason="needs pyosys: pip install pyosys")]

PROGRAM = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"

FAMILIES = {
    "ice40": ("ice40", "synth_ice40", "ice40/cells_sim.v"),
    "ecp5": ("generic", "synth_ecp5 -nobram -nodsp", "ecp5/cells_sim.v"),
    "xcu": ("generic", "synth_xilinx -family xcu -noiopad -noclkbuf -nobram -nodsp", "xilinx/cells_sim.v")}
"""Family of the Verilog, commands of Yosys, and its library: without the blocks of which the library has no model."""


@pytest.fixture(scope="module")
def small():
    """A GRU and a classifier with few bits, and their vectors."""
    random = Random(5)
    network = random.network([random.gru("gru", 2, 2, 2), random.linear("linear", 2, 2, 2)], 2, sequence=True,
                             weight_bits=4, activation_bits=6)
    inputs = random.inputs(network)[:6]
    return network, network.vectors(inputs / 2.0 ** network.input_format.frac)


def inlined(path, seen):
    """A library with the files that it includes, each once, without what Icarus does not read."""
    if path in seen:
        return ""
    seen.add(path)
    text = re.sub('(?m)^`include "(.*)"', lambda match: inlined(path.with_name(match[1]), seen), path.read_text())
    return re.sub(r"\$error\([^;]*;", "", text)


def netlist(network, family, target):
    """A design folder with the netlist, and the models of its cells, in place of the Verilog."""
    profile, command, library = FAMILIES[family]
    generate(network, multipliers=7, family=profile, objective="throughput").write(target)
    body = design.read(target)
    (target / "run.ys").write_text(f"read_verilog -sv {' '.join(body['verilog'])}\n{command} -top {body['top']}\n"
                                   "write_verilog -noattr netlist.v\n")
    done = subprocess.run([sys.executable, "-c", PROGRAM, "run.ys"], cwd=target, capture_output=True, text=True,
                          check=False)
    assert (target / "netlist.v").is_file(), done.stdout[-2000:] + done.stderr
    assert " * " not in (target / "netlist.v").read_text(), "no operator is left in a netlist"
    models = Path(find_spec("pyosys").origin).parent / "share" / library
    text = (target / "netlist.v").read_text()
    for name in body["verilog"]:
        (target / name).write_text("")
    (target / body["verilog"][0]).write_text(f"`define NO_ICE40_DEFAULT_ASSIGNMENTS\n{text}{inlined(models, set())}")
    named = {name: (target / name).read_bytes() for name in (*body["verilog"], *body["images"])}
    kept = {key: value for key, value in body.items() if key not in ("format", "version", "hash", "files")}
    artifact.write_json(target / "manifest.json", design.KIND, design.VERSION, {**kept, "files": design.hashes(named)})
    return target


@pytest.mark.parametrize("family", FAMILIES)
def test_a_netlist_equals_golden(family, small, tmp_path):
    network, vectors = small
    result = icarus.run(netlist(network, family, tmp_path / family), vectors)
    assert (result.mismatches, result.first) == (0, None)
    assert result.words >= np.size(vectors.outputs)
