"""LeNet-5 by the emulator, which is the C of its golden network on this machine, beside onnxruntime, which computes the
dense network in float32: processor time of an image, in a thread each."""
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from benchmarks.designs import DESIGNS, network
from circulant.hw.c import Emulator
from circulant.training.models.models import build
from circulant.training.settings.model import ModelSettings

__all__ = ["measure"]

IMAGES = 1024

BATCHES = 1, 32, 256, IMAGES
"""Batches that onnxruntime is given."""

REPEATS = 7


def measure(note: Callable[[str], None] = lambda text: None) -> dict[str, float] | str:
    """Microseconds for an image, of integers and of float32, or why they were skipped; the emulator takes all images at
    once, and its integers are golden's."""
    if find_spec("onnxruntime") is None:
        return "skipped: onnxruntime is not installed"
    note("LeNet-5 by the emulator")
    shape, golden = DESIGNS["lenet5"], network("lenet5")
    x = np.random.default_rng(0).normal(0, 0.5, (IMAGES, *shape.sample)).astype(np.float32)
    emulator, integers = Emulator(golden), golden.integers(x)
    assert np.array_equal(emulator.run_integers(integers[:64]), golden.run_integers(integers[:64]))
    found = {"emulator": _least(lambda: emulator.run_integers(integers)),
             "emulator, real inputs": _least(lambda: emulator.run(x))}
    note("LeNet-5 by onnxruntime")
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory(prefix="circulant-onnx-") as folder:
        session = runtime.InferenceSession(_file(Path(folder), x), options, providers=["CPUExecutionProvider"])
    for batch in BATCHES:
        parts = np.split(x, range(batch, IMAGES, batch))
        found[f"onnxruntime, batches of {batch}"] = _least(lambda parts=parts: [  # type: ignore[misc]
            session.run(None, {"x": each}) for each in parts])
    return found


def _file(folder: Path, x: np.ndarray) -> str:
    """The dense network as an ONNX file."""
    model = build(ModelSettings(**DESIGNS["lenet5"].model), DESIGNS["lenet5"].sample, 10, seed=0).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.from_numpy(x[:1]),), str(folder / "lenet5.onnx"), dynamo=False,
                          input_names=["x"], dynamic_axes={"x": {0: "n"}})
    return str(folder / "lenet5.onnx")


def _least(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        before = time.process_time()
        run()
        seconds.append(time.process_time() - before)
    return round(1e6 * min(seconds) / IMAGES, 2)
