"""The main job: the digits through a block-circulant GRU, from torch to Verilator, with nothing in any cache."""
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from circulant.experiment import load
from circulant.progress import Bars
from circulant.report import report as reports
from circulant.run import steps
from circulant.run.run_folder import Run
from circulant.sim.document import Document

__all__ = ["measure", "table"]


def measure(overrides: tuple[str, ...] = ()) -> Document:
    """Run all five steps in a temporary folder, the Verilator build included: the report's figures, and a table."""
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
        os.environ["CIRCULANT_CACHE"] = str(Path(folder) / "cache")
        run = Run(Path(folder) / "run", load("digits-gru", overrides))
        start = time.perf_counter()
        with Bars(Console(stderr=True)) as bars:
            for step in (steps.train, steps.quantize, steps.generate, steps.simulate):
                step(run, bars)
            report = reports.write(run, bars)
        seconds = time.perf_counter() - start
    machine = {"system": platform.platform(), "cores": os.cpu_count()}
    return {"benchmark": "digits", "table": table(report, seconds), "seconds": seconds, "machine": machine,
            "report": report}


def table(report: dict[str, Any], seconds: float) -> dict[str, str]:
    """The rows of a table of docs/results.md."""
    accuracy, weights, hw, check = (report[part] for part in ("accuracy", "compression", "hardware", "verification"))
    return {
        "test accuracy, dense": f"{accuracy['dense']:.2%}",
        "test accuracy, block-circulant": f"{accuracy['circulant']:.2%}",
        "test accuracy, quantized": f"{accuracy['quantized']:.2%}",
        "weights of the compressed matrices": f"{weights['weights_dense']:,} → {weights['weights_circulant']:,} "
                                              f"({weights['ratio']:.1f}×)",
        "output words verified under Verilator": f"{check['words']:,} of {check['sequences']:,} sequences, "
                                                 f"{check['mismatches']} mismatches",
        "multipliers in the Verilog": f"{hw['multipliers']:,}",
        "cycles per step, floor of the multipliers": f"{hw['cycles_per_step']:g}, {hw['floor_cycles']}",
        "cycles per sequence, floor": f"{hw['cycles_per_sequence']:g}, {hw['floor_cycles_sequence']}",
        "memory": f"{hw['memory_bits']:,} bits",
        "seconds of the whole run, first Verilator build included": f"{seconds:.0f}",
    }
