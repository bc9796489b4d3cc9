"""The cells that Yosys makes of ten designs, against what `circulant.hw.resources` says of them without it.

DSP blocks, block RAMs, products before mapping, and the look-up tables on the longest path between two registers, over
cells, block sizes, widths, lanes, folds and streams; and the prediction for the designs of the papers' scale.
"""
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from benchmarks.rnn import layer
from circulant.boards.device import device
from circulant.boards.levels import Netlist
from circulant.boards.synthesis import FAMILIES, synthesize
from circulant.hw import Design, generate
from circulant.hw.design import TOP
from circulant.hw.emit.inventory import Inventory
from circulant.hw.foreseen import logic, quantities
from circulant.hw.plan.layer_plan import LayerPlan
from circulant.hw.planner import plan
from circulant.hw.resources import parts, predict
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model

__all__ = ["LARGE", "POINTS", "Counts", "Logic", "Point", "cells", "counts", "foretold", "measure", "network",
           "occupied"]

FAMILY = "xcu"
"""UltraScale, that of the papers' XCKU060."""


@dataclass(frozen=True)
class Point:
    """Layers of random weights, and what they are generated for.

    Parameters:
        layers: of this kind, one behind the other, each with as many outputs.
    """

    cell: str
    inputs: int
    outputs: int
    block: int
    multipliers: int
    projection: int = 0
    weight_bits: int = 12
    activation_bits: int = 16
    streams: int = 1
    levels: int = 4
    packing: str = "none"
    layers: int = 1
    objective: str = "throughput"

    @property
    def title(self) -> str:
        layers = f"{self.layers} × " if self.layers > 1 else ""
        projection = f"/{self.projection}" if self.projection else ""
        streams = f", {self.streams} streams" if self.streams > 1 else ""
        return (f"{layers}{self.cell} {self.inputs} → {self.outputs}{projection}, k = {self.block}, "
                f"{self.weight_bits}×{self.activation_bits} bits{streams}"
                + (f", {self.levels} levels allowed" if self.levels != 4 else "")
                + (", in pairs" if self.packing != "none" else "")
                + (f", {self.objective}" if self.objective != "throughput" else ""))


POINTS = [
    Point("linear", 40, 24, 4, 4, weight_bits=8, activation_bits=12),
    Point("linear", 24, 18, 1, 6),
    Point("linear", 96, 64, 8, 44),
    Point("linear", 96, 64, 16, 23, weight_bits=16),
    Point("gru", 12, 20, 4, 15),
    Point("gru", 10, 16, 2, 14, weight_bits=8, activation_bits=12, streams=3),
    Point("gru before", 8, 24, 4, 20),
    Point("lstm", 20, 24, 4, 26, projection=12),
    Point("lstm", 12, 16, 8, 22, activation_bits=12, streams=2),
    Point("lstm", 16, 32, 16, 60, projection=16, streams=3),
]
FEWER = [Point(cell, 12, 16, block, multipliers, levels=levels)
         for cell, block, multipliers in (("lstm", 8, 30), ("gru", 4, 15)) for levels in (4, 6, 9, 12)]
"""Designs with fewer and fewer registers."""

PACKED = [Point(cell, inputs, 32, 8, multipliers, weight_bits=weights, activation_bits=activations, packing=packing)
          for cell, inputs, multipliers, weights, activations in (
              ("linear", 64, 88, 8, 8), ("linear", 64, 88, 4, 16), ("gru", 16, 60, 8, 8))
          for packing in ("none", "27x18")]
"""Designs without and with two products in a DSP block."""

LARGE = [
    Point("lstm", 153, 1024, 8, 2760, projection=512), Point("lstm", 153, 1024, 16, 2760, projection=512),
    Point("gru", 153, 1024, 16, 2760),
]
"""The papers' scale: predicted only, because Yosys takes hours."""


def network(point: Point) -> Network:
    """The quantized layers of a point."""
    rng = np.random.default_rng(0)
    steps = () if point.cell == "linear" else (6,)
    layers = [_layer(point, rng)]
    while len(layers) < point.layers:
        layers.append(_layer(replace(point, inputs=layers[-1].outputs), rng))
    if point.layers > 1:
        layers = [replace(each, name=f"{each.name}{n}") for n, each in enumerate(layers, start=1)]
    model = Model.chain("point", point.inputs, bool(steps), tuple(layers))
    return quantize(model, rng.normal(0, 0.5, (8, *steps, point.inputs)), weight_bits=point.weight_bits,
                    activation_bits=point.activation_bits)


def _layer(point: Point, rng: np.random.Generator) -> FloatLinear | FloatLstm | FloatGru:
    k, inputs, outputs = point.block, point.inputs, point.outputs
    if point.cell == "linear":
        weight = rng.normal(0, 1 / np.sqrt(inputs), (-(-outputs // k), -(-inputs // k), k))
        return FloatLinear("linear", inputs, outputs, weight, rng.normal(0, 0.1, outputs))
    made = layer(point.cell.split()[0], inputs, outputs, point.projection, k)
    if isinstance(made, FloatGru) and point.cell == "gru before":
        return FloatGru(made.name, inputs=inputs, hidden=outputs, weight_ih=made.weight_ih,
                        weight_hh=made.weight_hh, bias_ih=made.bias_ih, bias_hh=made.bias_hh, returns=made.returns,
                        reset="before")
    return made


def measure(points: list[Point], *, levels: bool, note: Callable[[str], None] = lambda text: None) -> Document:
    """Rows of figures, and a table.

    Parameters:
        levels: map the logic too, which takes most of the time.
        note: told which point is next.
    """
    rows = []
    for point in points:
        note(point.title)
        rows.append(_point(point, levels))
    large = [_large(point) for point in LARGE]
    table = {str(row["point"]): _line(row) for row in [*rows, *large]}
    return {"benchmark": "synthesis", "family": FAMILY, "table": table, "points": rows, "large": large}


def _point(point: Point, levels: bool) -> Document:
    design = generate(network(point), multipliers=point.multipliers, streams=point.streams,
                      levels=point.levels, objective="throughput", dsp_packing=point.packing)
    expected = predict(design.network, design.plans, FAMILY)
    (chosen,) = design.plans
    assert isinstance(chosen, LayerPlan), "one layer of one direction"
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
        folder = design.write(Path(temporary) / "design")
        file = Path(temporary) / "netlist.json"
        found = synthesize(folder, FAMILY, logic=levels, netlist=file if levels else None)
        row: Document = {
            "point": point.title, "lanes": chosen.lanes, "fold": chosen.shape.fold, "multipliers": design.multipliers,
            "levels_allowed": point.levels, "cycles": chosen.cycles,
            "latency_spaced": design.manifest["latency_spaced"],
            "products": found.products, "dsps_predicted": expected.dsps, "dsps": found.dsps,
            "block_rams_predicted": expected.block_rams, "block_rams": found.block_rams,
            "latches": found.latches, "warnings": found.warnings, "seconds": found.seconds,
        }
        if levels:
            netlist = Netlist(file, TOP)
            (way,) = netlist.ways(1)
            row |= {"luts": found.luts, "lut_rams": found.lut_rams, "flip_flops": found.flip_flops,
                    "levels": way.levels, "carries": way.carries, "way": [way.start, way.end],
                    "bare_products": len(netlist.bare_products())}
    return row


class Logic(TypedDict):
    """Cells that Yosys makes of a design."""

    dsps: int
    block_rams: float
    luts: int
    lut_rams: int
    carries: int
    flip_flops: int


class Counts(TypedDict):
    """Parts and logic of a design, and quantities of its plan."""

    resources: Mapping[str, Any]
    quantities: dict[str, float]


def cells(design: Design, family: str) -> Logic:
    """The cells that Yosys makes of a design for a family."""
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
        found = synthesize(design.write(Path(folder) / "design"), family)
    return {"dsps": found.dsps, "block_rams": found.block_rams, "luts": found.luts, "lut_rams": found.lut_rams,
            "carries": found.carries, "flip_flops": found.flip_flops}


def counts(design: Design) -> Counts:
    """Parts and logic of a design, counted, and the quantities of its plan that `foretold` takes."""
    levels = {plan.shape.levels for plan in design.plans if isinstance(plan, LayerPlan)} or {LEVELS}
    made = parts(design.network, design.plans)
    return {"resources": design.counted.as_json(),
            "quantities": quantities(made, len(design.network.stages), levels=max(levels))}


def foretold(row: Counts) -> Inventory:
    """The inventory that is foreseen of a measured design."""
    return replace(Inventory.from_json(row["resources"]), logic=logic(row["quantities"]))


def occupied(family: str, found: Logic) -> int:
    """Look-up tables that logic and memories occupy; of an ECP5 also those of the slices that carry chains take (two
    for each cell) and memories (six for 16 × 4 bits, of which two hold the bits)."""
    more = float(found["lut_rams"])
    if family == "ecp5":
        beside, memories = FAMILIES[family].beside, FAMILIES[family].parts["lut_rams"]
        more += beside["CCU2C"] * found["carries"] + sum(
            beside[cell] / held for cell, held in memories.items()) * found["lut_rams"]
    return int(found["luts"] + more)


def _large(point: Point) -> Document:
    made = network(point)
    plans = plan(made, point.multipliers, streams=point.streams)
    expected, held = predict(made, plans, FAMILY), device("XCKU060")
    (chosen,) = plans
    assert isinstance(chosen, LayerPlan), "one layer of one direction"
    return {"point": point.title, "lanes": chosen.lanes, "fold": chosen.shape.fold, "multipliers": chosen.multipliers,
            "dsps_predicted": expected.dsps, "block_rams_predicted": expected.block_rams,
            "dsps_held": held.dsps, "block_rams_held": held.block_rams}


def _line(row: dict[str, Any]) -> str:
    if "dsps" not in row:
        return (f"{row['lanes']} lanes: {row['dsps_predicted']:,} DSP of {row['dsps_held']:,}, "
                f"{row['block_rams_predicted']:g} RAMB36 of {row['block_rams_held']:,} predicted")
    levels = (f"; {row['levels']} levels, {row['bare_products']} products without registers" if "levels" in row else "")
    return (f"{row['lanes']} lanes, fold {row['fold']}: {row['dsps_predicted']} DSP predicted, {row['dsps']} found, "
            f"{row['products']} products; {row['block_rams_predicted']:g} RAMB36 predicted, {row['block_rams']:g} found"
            f"{levels}")
