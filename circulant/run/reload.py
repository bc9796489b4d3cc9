"""The words that load another network into the reloadable design of a run, and the proof that they do."""
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from circulant.extras import extras
from circulant.progress import Show, silent
from circulant.run.integrity import played_of
from circulant.run.run_folder import Run, record, require
from circulant.run.sizing import levels
from circulant.run.steps import STAGES, budget, design_hash
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.golden.network import Network

__all__ = ["SEQUENCES", "reload"]

SEQUENCES = 8
"""Sequences of the test split that are played with each network."""


def reload(run: Run, folder: str | Path, show: Show = silent) -> Mapping[str, Any]:
    """``reload.bin``, pairs of little-endian 32-bit numbers, address and word; ``reload.json``, also after a mismatch.

    Parameters:
        folder: with ``network.json`` and ``weights.npz`` of the other network.

    Raises:
        Refusal: when the design is not reloadable, or the other network is of another structure.
        SimulationError: as `circulant.sim.cosim.exchange`.
    """
    with extras("circulant reload"):
        from circulant.hw.reload_words import writes_for
        from circulant.sim.cosim import exchange

    quantized, generated = require(run, "quantize"), require(run, "generate")
    (network, vectors), loaded = played_of(run, quantized), Network.load(folder)
    other = loaded.with_argmax() if run.experiment.hardware.argmax else loaded
    design_hash(run, generated)
    start = time.perf_counter()
    words = writes_for(run.one_chip(), network, other, multipliers=budget(run.experiment, network),
                       streams=run.experiment.hardware.streams, levels=levels(run.experiment))
    atomic_bytes(run.path("reload.bin"), np.array(words, "<u4").tobytes())

    def progress(stage: str, done: int, total: int) -> None:
        show(STAGES[stage], done, 0 if stage == "build" and not done else total)

    few = vectors.first(SEQUENCES)
    checked = exchange(run.one_chip(), network, other, words, few.inputs, lengths=few.lengths, progress=progress)
    hashes = {"network": quantized["hashes"]["network"], "other": loaded.hash}
    return record(run, "reload", {"hashes": hashes, "other": other.name, "exchange": checked.as_json(),
                                  "seconds": time.perf_counter() - start})
