"""circulant on the models of `shapes`: dense, and in blocks of 8."""
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import circulant
from benchmarks.peers.shapes import error, exact, model, rate, samples, timed
from circulant.hw.c import Emulator

COUNT, SIMULATED = 1000, 100

COMPRESSED = {"perceptron": "0", "lstm": "rnn", "cnn": "4"}
"""The module of each model that has blocks; the others are small and stay dense."""


def measure(name: str, folder: Path, *, block: int) -> dict[str, Any]:
    """The figures of a model, as a peer's script gives them; with blocks, the error is against the projected model.

    Parameters:
        block: block size of the module in `COMPRESSED`; 1 for none.
    """
    net = model(name)
    if block > 1:
        net = circulant.compress(net, {COMPRESSED[name]: block})
    x = samples(name, COUNT)
    network, converting = timed(lambda: circulant.export(net, x, weight_bits=8 if block == 1 else 12))
    integers = network.input_format.quantize(x)
    emulator, building = None, 0.0
    if name != "cnn":
        emulator, building = timed(lambda: Emulator(network))
    outputs = network.run(x).real
    with torch.no_grad():
        wanted = exact(name, x) if block == 1 else net.double()(torch.from_numpy(x).double()).numpy()
    found: dict[str, Any] = {
        "format": f"weights of {8 if block == 1 else 12} bits, activations of 16", "convert_s": converting,
        "build_s": building, "error": error(outputs, wanted),
        "samples_per_s": rate(lambda: emulator.run_integers(integers) if emulator else network.run(x), COUNT)}
    design, found["generate_s"] = timed(lambda: circulant.generate(network, multipliers=64, objective="throughput"))
    design.write(folder / "design")
    vectors = network.vectors(x[:SIMULATED])
    with patch.dict("os.environ", CIRCULANT_CACHE=str(folder / "cache")):  # Nothing is compiled yet.
        _, first = timed(lambda: circulant.verify(folder / "design", vectors, stalls=False))
        check, again = timed(lambda: circulant.verify(folder / "design", vectors, stalls=False))
    manifest = design.manifest
    found |= {"sources": [str(folder / "design" / file) for file in manifest["verilog"]],
              "images": [str(folder / "design" / file) for file in manifest["images"]], "top": manifest["top"],
              "simulator": check.simulator, "simulation_build_s": max(first - again, 0.0),
              "simulation_s": again, "words": check.words, "mismatches": check.mismatches,
              "cycles": check.cycles_per_sequence, "latency_spaced": check.latency_spaced,
              "latency_contiguous": check.latency_contiguous}
    return found

