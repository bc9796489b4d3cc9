"""The host software of the controller, tried on the simulated device; and whether what was asked for is reached."""
import json
from pathlib import Path

from circulant.boards.host import Device
from circulant.sim.vectors import Vectors

estimate = json.loads(Path("estimate.json").read_text())["estimate"]
report = json.loads(Path("report.json").read_text())
assert estimate["latency_spaced"] == report["hardware"]["latency_spaced"], "the estimate is not what was simulated"
assert report["clock"]["latency_spaced_us"] < 5 and report["clock"]["steps_per_second"] > 1000
vectors = Vectors.load("runs/drive/vectors.npz")
with Device.simulated("runs/drive") as device:
    for given, expected in list(zip(vectors.inputs, vectors.outputs, strict=True))[:3]:
        assert (device.infer_integers(given) == expected).all(), "the device is not the golden model"
