"""A driver and a sink of AXI4-Stream that others wrote get the words of the golden model, as our own do."""
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from circulant.hw import generate
from circulant.sim.cosim import worker
from circulant.sim.cosim.build import build
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import job_of
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import planned
from circulant.sim.exercise import exercise
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples

pytestmark = [pytest.mark.soak, pytest.mark.skipif(
    find_spec("cocotbext") is None, reason="needs cocotbext-axi: pip install cocotbext-axi")]


def test_frames_through_cocotbext_axi_equal_golden(tmp_path):
    model = samples.model()
    network = quantize(model, samples.data(model))
    manifest = Manifest.load(generate(network, multipliers=12, objective="throughput").write(tmp_path / "design"))
    played, _, _ = planned(manifest, exercise(network, 16, steps=6).vectors, None)
    job = job_of(manifest, (Run("all", tuple(range(len(played)))),), played, None)
    folder, tools = tmp_path / "run", find()
    folder.mkdir()
    for image in manifest.images:
        shutil.copyfile(image, folder / image.name)
    np.savez(folder / "sent.npz", *(job.offered(n)[0] for n in range(len(played))))
    simulator = build(manifest, tools).folder
    worker.run([str(simulator / manifest.top)], "cocotb", folder=folder, log=folder / "log", poll=lambda: None,
               environment=tools.environment() | tools.test("tests.sim.cosim.foreign_driver", manifest.top, seed=1),
               step="cocotbext-axi", seconds=600)
    assert (folder / "received.npz").is_file(), (folder / "log").read_text()[-2000:]
    with np.load(folder / "received.npz") as received:
        frames = list(received.values())
    assert len(frames) == len(played)
    for frame, golden in zip(frames, played.outputs, strict=True):
        np.testing.assert_array_equal(frame, manifest.output.pack(golden).reshape(-1))
