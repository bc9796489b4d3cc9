"""A kind has one home: a sample kind of a few files of its own goes from torch to golden, Verilog and C, exactly."""
import subprocess
import sys

from tests.sources import ROOT

MOST_FILES = 8
"""Files that a kind takes at the most, tests apart."""

PROGRAM = """
import sys
import numpy as np
import torch
from torch import nn
from circulant import training
from circulant.hw import generate
from circulant.hw.c import Emulator
from circulant.sim.cosim import verify
from circulant.sim.quantize.quantize import quantize
from circulant.sim.kinds import registry
from tests.sample_kind import gain, gain_c, gain_torch, gain_unit

registry.KINDS["gain"] = gain.KIND

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), gain_torch.Double(), nn.Linear(8, 3)).eval()
x = np.random.default_rng(0).normal(0, 1, (12, 6)).astype(np.float32)
real = training.reference(model, x, name="sample")
assert np.allclose(real.run(x), model(torch.tensor(x)).detach().numpy(), atol=1e-5)
network = quantize(real, x)
kinds = [layer.kind for layer in network.layers]
assert kinds == ["linear", "gain", "linear"], kinds
integers = network.input_format.quantize(x)
assert np.array_equal(Emulator(network).run_integers(integers), network.run_integers(integers))
design = generate(network, multipliers=12)
assert "GainLayer" in design.verilog
assert design.manifest["latency_spaced"]
design.write(sys.argv[1])
found = verify(sys.argv[1], network.vectors(x))
assert found.words and not found.mismatches, found
print("exact")
"""


def test_a_sample_kind_goes_from_torch_to_verilog_and_c_in_a_few_files(tmp_path):
    """In a process of its own, as a registration stays."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "design")], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.stdout.endswith("exact\n"), done.stderr
    files = [path for path in (ROOT / "tests/sample_kind").iterdir() if path.is_file()]
    assert len(files) <= MOST_FILES
