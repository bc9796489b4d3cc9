"""The engine with 14 lanes, k = 8, on an LFE5U-85F: what its clock reaches after place and route by nextpnr."""
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.synthesis import Point, network
from circulant.boards.placement import place
from circulant.hw import generate
from circulant.hw.plan.layer_plan import LayerPlan

__all__ = ["ENGINE", "measure"]

ENGINE = Point("linear", 224, 256, 8, 154)
"""32 × 28 blocks on 14 lanes of 11 products, in rows of seven like the LSTM of the papers; the device has 156
multipliers."""


def measure(*, device: str, mhz: float, seed: int, point: Point = ENGINE) -> dict[str, Any]:
    """Figures, and a table."""
    design = generate(network(point), multipliers=point.multipliers, objective="throughput")
    (chosen,) = design.plans
    assert isinstance(chosen, LayerPlan), "one layer of one direction"
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
        placed = place(design.write(Path(temporary) / "design"), device, target_mhz=mhz, seed=seed)
    (way, *_), made, slowest = placed.ways, placed.synthesis, placed.critical
    table = {
        "design": f"{point.title}, {chosen.lanes} lanes",
        "multipliers": f"{made.dsps} of the device, {placed.bare_products} without registers; {design.multipliers} in "
                       "the Verilog",
        "results kept within multipliers": f"{placed.absorbed}",
        "block RAMs": f"{made.block_rams:g}",
        "look-up tables": f"{made.luts:,} of logic, {made.lut_rams:,} of memories, {made.carries:,} carry cells",
        "flip-flops": f"{made.flip_flops:,}",
        "most levels": f"{way.levels} levels of LUT4 and {way.carries} cells of carry chains, to {way.end}",
        "slowest path": f"{slowest.logic + slowest.routing:.1f} ns, {slowest.routing:.1f} of them routing, from "
                       f"{slowest.start} to {slowest.end}",
        "clock": f"{placed.mhz:.1f} MHz on {device}-6, {mhz:g} MHz asked for",
        "time": f"{made.seconds:.0f} s of Yosys, {placed.seconds:.0f} s of nextpnr",
    }
    return {"benchmark": "place", "table": table, "lanes": chosen.lanes, **asdict(placed)}
