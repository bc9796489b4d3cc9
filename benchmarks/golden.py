"""The golden model of a GRU and its C, in CPU seconds of one core: sequences per second, the same integers in both."""
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from circulant.hw.c import Emulator
from circulant.sim.golden.network import Network
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal

__all__ = ["measure", "table"]

INPUTS, HIDDEN, BLOCK, STEPS, SEQUENCES = 16, 64, 8, 20, 2048
REPEATS = 7


def measure(overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """The best of some repeats.

    Raises:
        Refusal: when a key of an experiment is given, which this benchmark has none of.
    """
    if overrides:
        raise Refusal(f"The benchmark golden has no experiment whose keys could be set, not {', '.join(overrides)}; "
                      "leave out --set")
    network = gru64()
    x = np.random.default_rng(1).normal(size=(SEQUENCES, STEPS, INPUTS))
    integers = network.input_format.quantize(x)
    emulator = Emulator(network)
    if not np.array_equal(network.run_integers(integers), emulator.run_integers(integers)):
        raise AssertionError("The C does not give the integers of the golden model")
    figures = {"gru64_sequences_per_s": round(SEQUENCES / best(lambda: network.run_integers(integers))),
               "gru64_c_sequences_per_s": round(SEQUENCES / best(lambda: emulator.run_integers(integers)))}
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "numpy": np.__version__}
    return {"benchmark": "golden", "table": table(figures), **figures, "machine": machine}


def table(figures: dict[str, Any]) -> dict[str, str]:
    """The rows for people."""
    what = f"GRU {INPUTS} to {HIDDEN}, blocks of {BLOCK}, {STEPS} steps"
    return {f"{what}: numpy": f"{figures['gru64_sequences_per_s']:,} sequences/s",
            f"{what}: C": f"{figures['gru64_c_sequences_per_s']:,} sequences/s"}


def gru64() -> Network:
    """A GRU with random weights, quantized with the default widths."""
    rng = np.random.default_rng(0)
    p, q = HIDDEN // BLOCK, INPUTS // BLOCK
    layer = FloatGru("gru", inputs=INPUTS, hidden=HIDDEN, weight_ih=rng.normal(0, 0.2, (3, p, q, BLOCK)),
                     weight_hh=rng.normal(0, 0.2, (3, p, p, BLOCK)), bias_ih=rng.normal(0, 0.2, (3, HIDDEN)),
                     bias_hh=rng.normal(0, 0.2, (3, HIDDEN)))
    model = float_model.Model.chain("gru64", INPUTS, True, (layer,))
    return quantize(model, rng.normal(size=(50, STEPS, INPUTS)))


def best(run: Callable[[], object]) -> float:
    """CPU seconds of this process, the least of some runs behind one that is not counted."""
    seconds = []
    for _ in range(1 + REPEATS):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds[1:])
