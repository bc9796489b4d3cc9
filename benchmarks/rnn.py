"""Recurrent layers at the papers' scale: cycles per step, measured under Verilator against the golden model.

One layer with random weights, the shape of ESE's, C-LSTM's and E-RNN's by default, is generated for a budget of
multipliers twice: for one sequence with the least latency, and for several that are interleaved.
"""
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from circulant.hw import generate
from circulant.hw.design import layer_entry
from circulant.hw.plan.layer_plan import LayerPlan
from circulant.hw.plan.plan import plan
from circulant.report import gantt as charts
from circulant.report.plots import png
from circulant.sim.cosim import verify
from circulant.sim.figures import floor
from circulant.sim.golden.network import Network
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model

__all__ = ["layer", "measure", "schedule"]

CLOCK = 200e6
"""Hz; that of the papers' devices."""


def layer(cell: str, inputs: int, hidden: int, projection: int, block: int,
          seed: int = 0) -> FloatLstm | FloatGru:
    """A layer with random weights: an LSTM with peepholes, or torch's GRU."""
    rng = np.random.default_rng(seed)
    outputs = projection or hidden
    spread = 2 / np.sqrt(inputs + outputs)

    def matrix(rows: int, columns: int, *gates: int) -> np.ndarray:
        return rng.normal(0, spread, (*gates, -(-rows // block), -(-columns // block), block))

    if cell == "gru":
        b_ih, b_hh = rng.normal(0, 0.1, (2, 3, hidden))
        return FloatGru("gru", inputs=inputs, hidden=hidden, weight_ih=matrix(hidden, inputs, 3),
                        weight_hh=matrix(hidden, hidden, 3), bias_ih=b_ih, bias_hh=b_hh, returns="sequence")
    b_ih, b_hh = rng.normal(0, 0.1, (2, 4, hidden))
    return FloatLstm("lstm", inputs=inputs, hidden=hidden, outputs=outputs, weight_ih=matrix(hidden, inputs, 4),
                     weight_hh=matrix(hidden, outputs, 4), bias_ih=b_ih, bias_hh=b_hh,
                     projection=matrix(projection, hidden) if projection else None,
                     peephole=rng.normal(0, 0.1, (3, hidden)), returns="sequence")


def measure(*, cell: str, inputs: int, hidden: int, projection: int, block: int, multipliers: int, steps: int,
            streams: int, weight_bits: int, activation_bits: int, seed: int) -> dict[str, Any]:
    """Both designs, generated, built and simulated: figures, and a table."""
    rng = np.random.default_rng(seed)
    network = _network(cell, inputs, hidden=hidden, projection=projection, block=block, weight_bits=weight_bits,
                       activation_bits=activation_bits, seed=seed, rng=rng)
    single = _run(network, multipliers, 1, rng.normal(0, 0.5, (2, steps, inputs)))
    many = _run(network, multipliers, streams, rng.normal(0, 0.5, (2 * streams, steps, inputs)))
    work = single.pop("multiplications")
    figures: dict[str, Any] = {
        "multipliers": max(single["multipliers"], many["multipliers"]),
        "floor_cycles": floor(work, multipliers),
        "cycles_per_step_single": single["cycles_per_step"],
        "cycles_per_step_interleaved": many["cycles_per_step"],
        "microseconds_single": single["cycles_per_step"] / CLOCK * 1e6,
        "memory_bits": single["memory_bits"],
        "seconds_generate": single["seconds_generate"],
        "seconds_build": single["seconds_build"],
        "mismatches": single["mismatches"] + many["mismatches"],
    }
    rows = {
        "multipliers in the Verilog": f"{single['multipliers']:,} single, {many['multipliers']:,} interleaved "
                                      f"(budget {multipliers:,})",
        "floor of the budget": f"{figures['floor_cycles']} cycles for {work:,} multiplications",
        "cycles per step, single stream": f"{single['cycles_per_step']:g} (predicted {single['cycles_predicted']}), "
                                          f"{figures['microseconds_single']:.3f} µs at 200 MHz",
        f"cycles per step, {streams} streams": f"{many['cycles_per_step']:g} (predicted {many['cycles_predicted']})",
        "latency of a step": f"{single['latency_spaced']:g} cycles spaced, {single['latency_contiguous']:g} contiguous",
        "output words compared": f"{single['words']:,} and {many['words']:,}, {figures['mismatches']} mismatches",
        "memory": f"{single['memory_bits']:,} bits",
        "Verilog": f"{single['verilog_lines']:,} lines in {single['seconds_generate']:.1f} s, "
                   f"{single['processor_seconds_generate']:.1f} s of processor time, {single['peak_gib']:.1f} GiB",
        "Verilator build": f"{single['seconds_build']:.0f} s",
        "simulation": f"{single['simulated_cycles'] / single['seconds_simulate']:,.0f} cycles/s",
    }
    machine = {"system": platform.platform(), "cores": os.cpu_count()}
    return {"benchmark": "rnn", "table": rows, **figures, "single": single, "interleaved": many, "machine": machine}


def schedule(*, cell: str, inputs: int, hidden: int, projection: int, block: int, multipliers: int, streams: int,
             weight_bits: int, activation_bits: int, seed: int) -> tuple[dict[str, Any], bytes]:
    """When each unit works on a step, without generating anything: figures with a table, and the picture as PNG."""
    network = _network(cell, inputs, hidden=hidden, projection=projection, block=block, weight_bits=weight_bits,
                       activation_bits=activation_bits, seed=seed, rng=np.random.default_rng(seed))
    entries = [layer_entry(each, got) for each, got in
               zip(network.stages, plan(network, multipliers, streams=streams), strict=True)]
    figure = charts.draw(entries)
    assert figure is not None, "a recurrent layer has a chart"
    row, = charts.rows(entries)
    table = {name: row[name] for name in ("array", "chains", "elements", "cycles", "floor", "limit")}
    return {"benchmark": "schedule", "table": table, "layer": entries[0]}, png(figure)


def _network(cell: str, inputs: int, hidden: int, projection: int, block: int, weight_bits: int, activation_bits: int,
             seed: int, rng: np.random.Generator) -> Network:
    model = Model.chain(f"{cell}_{hidden}", inputs, True,
                        (layer(cell, inputs, hidden, projection=projection, block=block, seed=seed),))
    return quantize(model, rng.normal(0, 0.5, (4, 16, inputs)), weight_bits=weight_bits,
                    activation_bits=activation_bits)


def _run(network: Network, multipliers: int, streams: int, x: np.ndarray) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
        start, processor = time.perf_counter(), _processor_seconds()
        design = generate(network, multipliers=multipliers, streams=streams, objective="throughput")
        design.write(Path(folder) / "design")
        seconds, processor = time.perf_counter() - start, _processor_seconds() - processor
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        result = verify(Path(folder) / "design", network.vectors(x), stalls=False)
    got = design.plans[0]
    assert isinstance(got, LayerPlan), "one layer of one direction"
    return {
        "streams": streams, "shape": [got.shape.rows, got.shape.columns, got.shape.chains],
        "elements": got.elements, "multipliers": design.multipliers, "memory_bits": design.memory_bits,
        "multiplications": design.manifest["multiplications"]["per_step"], "cycles_per_step": result.cycles_per_step,
        "cycles_predicted": got.cycles, "latency_spaced": result.latency_spaced,
        "latency_contiguous": result.latency_contiguous, "words": result.words_compared,
        "mismatches": result.mismatches, "verilog_lines": design.verilog.count("\n"), "seconds_generate": seconds,
        "processor_seconds_generate": processor, "peak_gib": peak / (2 ** 20 if sys.platform == "linux" else 2 ** 30),
        "seconds_build": result.seconds_build, "seconds_simulate": result.seconds_simulate,
        "simulated_cycles": result.cycles,
    }


def _processor_seconds() -> float:
    """Processor seconds of this process and of those that it started, Yosys among them."""
    return sum(os.times()[:4])
