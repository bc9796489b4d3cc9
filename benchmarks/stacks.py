"""Stacks of recurrent layers whose cycles are published, dense, for Vollo, and the layers of the papers: period and
latency, predicted, and measured under Verilator against the golden model.

Published are latencies of model-zoo benchmarks, version 29.0.0+zoo.0.4.0, in cycles of the vendor's software model
without input and output: of dense matrices in bfloat16, without retraining. Nobody here has measured them.
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from benchmarks import families
from benchmarks.cycles import Cycles, measured, rows, samples
from benchmarks.designs import DESIGNS, of_shape
from benchmarks.rnn import layer
from circulant.hw.array.plans import LayerPlan
from circulant.hw.array.program import AHEAD, MAIN
from circulant.hw.plan.shared.cost import sample_issues
from circulant.hw.planner import plan
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal

__all__ = ["AIMED", "PAPERS", "SHAPES", "Shape", "gantt", "measure", "network"]

STEPS = 24
"""Steps of each of the two sequences that are played."""

LEVELS = 6
"""Levels of logic between two registers, for which figures are aimed at."""

COLUMNS = 62
"""Characters of a line of a chart."""


@dataclass(frozen=True)
class Shape:
    """A stack, and the published cycles of its latency on two cards: V80, IA-840f (None where it does not fit).

    Parameters:
        inputs: of the first layer; 0 for as many as its units.
        projection: of an LSTM; 0 for none.
        peephole: whether an LSTM has peepholes.
    """

    cell: str
    layers: int
    hidden: int
    v80: int | None = None
    ia840f: int | None = None
    inputs: int = 0
    projection: int = 0
    peephole: bool = False

    @property
    def title(self) -> str:
        if self.cell == "digits":
            return "digits-gru"
        return f"{self.layers} × {self.cell.upper()} {self.hidden}" + (f"/{self.projection}" if self.projection else "")


SHAPES = (Shape("lstm", 1, 128, 100, 97), Shape("lstm", 1, 352, 188, 141), Shape("lstm", 2, 256, 250, 192),
          Shape("lstm", 4, 176, 333, 314), Shape("lstm", 3, 768, 1253, None), Shape("gru", 1, 512, 327, 244),
          Shape("gru", 3, 512, 843, 622))

PAPERS = (Shape("lstm", 1, 1024, inputs=153, projection=512, peephole=True), Shape("gru", 1, 1024, inputs=153),
          SHAPES[0], SHAPES[4], SHAPES[6], Shape("mlp", 2, 512), Shape("mlp", 3, 1024), Shape("digits", 1, 64))
"""The layers of ESE, C-LSTM and E-RNN, of which no cycles are published in this form, and other networks of `AIMED`."""

LEAST = {"digits": 64}
"""Multipliers of networks that are to have no more."""

AIMED: dict[Shape, dict[int, tuple[float, float]]] = dict(zip(PAPERS, (
    {8: (220, 200), 16: (130, 125), 32: (90, 85)}, {16: (129, 95), 32: (72, 62)}, {8: (32, 35), 16: (30, 33)},
    {16: (500, 330)}, {16: (182, 215)}, {8: (inf, 100)}, {8: (inf, 350)}, {8: (52, 58)}), strict=True))
"""By block size the period and the spaced latency that networks are aimed at, with 2,760 multipliers and 6 levels."""


def network(shape: Shape, block: int, *, weight_bits: int = 12, activation_bits: int = 16,
            most: float = np.inf) -> Network:
    """The quantized stack with random weights, of torch's cells; each layer gives all its steps.

    Parameters:
        most: of the inputs that its formats are fitted to.
    """
    if shape.cell == "digits":
        return of_shape("digits-gru", replace(DESIGNS["digits-gru"], block=block))
    layers: list[FloatLstm | FloatGru] = []
    inputs = shape.inputs or shape.hidden
    if shape.cell == "mlp":
        data = np.random.default_rng(0).normal(0, 0.5, (64, inputs))
        return quantize(families.model(f"mlp-{shape.layers}x{shape.hidden}", block), data, weight_bits=weight_bits,
                        activation_bits=activation_bits)
    for n in range(shape.layers):
        made = layer(shape.cell, layers[-1].outputs if layers else inputs, shape.hidden, projection=shape.projection,
                     block=block, seed=n)
        made = replace(made, name=f"{shape.cell}{n + 1}")
        layers.append(replace(made, peephole=None) if isinstance(made, FloatLstm) and not shape.peephole else made)
    model = Model.chain(f"{shape.cell}_{shape.layers}x{shape.hidden}", inputs, True, tuple(layers))
    data = np.random.default_rng(0).normal(0, 0.5, (4, 16, inputs)).clip(-most, most)
    return quantize(model, data, weight_bits=weight_bits, activation_bits=activation_bits)


def measure(shapes: Sequence[int] = (), blocks: Sequence[int] = (), *, papers: bool = False,
            multipliers: int = 2760, simulate: bool = True, steps: int = STEPS,
            note: Callable[[str], None] = lambda text: None, **chosen: Any) -> Document:
    """Figures of each stack and block size, and a table.

    Parameters:
        shapes: numbers of `SHAPES`, from 1; all where there are none.
        blocks: block sizes; where there are none those that a network is aimed at, else 8 and 16.
        papers: `PAPERS` in place of `SHAPES`.
        simulate: whether designs are generated, built and simulated, or planned only.
        steps: of each of the two sequences that are played; where steps are long and short by turns, four turns of them
            at the least.
        chosen: options of `circulant.generate`: levels, objective, streams, beat_blocks.
    """
    known, streams = PAPERS if papers else SHAPES, chosen.get("streams", 1)
    works = [(f"{shape.title}, k = {block}" + (f", {streams} streams" if streams > 1 else ""),
              {"cell": shape.cell, "layers": shape.layers, "hidden": shape.hidden, "projection": shape.projection,
               "block": block, **chosen},
              partial(_stack, shape, block, multipliers=multipliers, steps=steps if simulate else 0, **chosen))
             for shape in [known[n - 1] for n in shapes] or known
             for block in blocks or (AIMED.get(shape, (8, 16)) if papers else (8, 16))]
    found, table = rows(works, note)
    return {"benchmark": "stacks", "table": table, "multipliers": multipliers, **chosen, "stacks": found}


def gantt(shape: Shape, block: int, *, multipliers: int, levels: int, objective: str) -> list[str]:
    """A Gantt chart of a sample on the array that the layers share, in characters, as the cost model plays it: when
    each layer has the array for its input's share (x) and for its recurrent one (h), which is for the next sample.

    Raises:
        Refusal: as `plan`; when each layer has its own array.
    """
    made = network(shape, block)
    plans = [each for each in plan(made, multipliers, levels=levels, objective=objective)
             if isinstance(each, LayerPlan)]
    sharing = plans[0].sharing
    if sharing is None:
        raise Refusal("A chart needs one array for all layers, but each has its own; give --objective area")
    issues = sample_issues([sharing], [each.elements for each in plans])
    width = -(-(max(cycle for cycle, _, _ in issues) + 1) // COLUMNS)
    lines = [f"{shape.title}, k = {block}: a character is {width} cycles, from the last block of a sample on"]
    for n, served in enumerate(made.stages):
        for name, command in (("x", AHEAD), ("h", MAIN)):
            works = {cycle // width for cycle, at, which in issues if (at, which) == (n, command)}
            line = "".join(name if at in works else " " for at in range(COLUMNS))
            lines.append(f"{served.name} {name} |{line}|")
    return lines


def _stack(shape: Shape, block: int, *, multipliers: int, steps: int, streams: int = 1, **chosen: Any) -> Cycles:
    made, aims = network(shape, block), AIMED.get(shape, {}).get(block, ())
    return measured(made, samples(made, steps, 2 * streams) if steps else None,
                    multipliers=min(multipliers, LEAST.get(shape.cell, multipliers)), streams=streams,
                    published={"V80": shape.v80, "IA-840f": shape.ia840f},
                    aimed=[None if each == inf else each for each in aims if chosen.get("levels") == LEVELS], **chosen)
