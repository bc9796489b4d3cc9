"""Twelve designs with random weights, and hashes that tell whether one has changed.

A change of the code's form alone leaves every hash as it is: of the network, of the memory images, and of the plan with
its cycles. That of the Verilog also stays, unless the emitter was changed on purpose.
"""
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from benchmarks.rnn import layer
from circulant import training
from circulant.hw import generate
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.training import assign
from circulant.training.blocks.constraint import initialise
from circulant.training.models.models import ModelSettings, build

__all__ = ["DESIGNS", "FIXED", "Shape", "differences", "measure", "network", "of_shape"]

FIXED = ("network", "images", "plans", "cycles", "multipliers", "memory_bits")
"""Figures that a change of the code's form leaves as they are."""

SHAPE = ("rows", "columns", "chains", "fold", "positions", "blocks", "lines")
"""Numbers of an array's shape, as far as it has them."""

LSTM = {"cell": "lstm", "inputs": 153, "hidden": 1024, "projection": 512}
GRU = {"cell": "gru", "inputs": 153, "hidden": 1024, "projection": 0}


@dataclass(frozen=True)
class Shape:
    """A network by its shape, and the hardware that it gets.

    Parameters:
        sample: shape of a sample.
        model: fields of `ModelSettings`; or, with ``cell``, the arguments of `benchmarks.rnn.layer`.
        block: block size, or one for each matrix.
        options: of `circulant.generate`.
    """

    sample: tuple[int, ...]
    model: dict[str, Any]
    block: int | dict[str, int] = 8
    options: dict[str, Any] = field(default_factory=lambda: {"multipliers": 64})


DESIGNS = {
    "digits-gru": Shape((8, 8), {"kind": "gru", "hidden": 64}),
    "fsdd-gru": Shape((80, 32), {"kind": "gru", "hidden": 64}),
    "fsdd-lstm": Shape((80, 32), {"kind": "lstm", "hidden": 64}),
    "lstm-k16": Shape((16, 153), LSTM, 16, {"multipliers": 2760}),
    "lstm-k8": Shape((16, 153), LSTM, 8, {"multipliers": 2760}),
    "gru-1024": Shape((16, 153), GRU, 16, {"multipliers": 2760}),
    "lenet5": Shape((1, 28, 28), {"kind": "lenet5"}, {"conv2": 8, "fc1": 8, "fc2": 8}, {"multipliers": 342}),
    "resnet8": Shape((3, 32, 32), {"kind": "resnet8", "dense": ("first", "last")}, 8, {"multipliers": 342}),
    "crnn": Shape((80, 32), {"kind": "crnn", "hidden": 64, "dense": ("first", "last")}, 8, {"multipliers": 342}),
    "bidirectional": Shape((20, 16), {"kind": "lstm", "hidden": 32, "bidirectional": True}),
    "reloadable": Shape((20, 16), {"kind": "gru", "hidden": 32}, 8, {"multipliers": 64, "reloadable": True}),
    "interleaved": Shape((20, 16), {"kind": "lstm", "hidden": 32, "projection": 16}, 4,
                         {"multipliers": 64, "streams": 3}),
}


def network(name: str) -> Network:
    """The golden network of a design: random weights, and formats fitted to random data, both seeded."""
    return of_shape(name, DESIGNS[name])


def of_shape(name: str, shape: Shape) -> Network:
    """The same of any shape."""
    rng = np.random.default_rng(3)
    data = rng.normal(0, 0.5, (16, *shape.sample))
    if "cell" in shape.model:
        block = shape.block
        assert isinstance(block, int)
        return quantize(Model.chain(name, shape.sample[-1], True, (layer(**shape.model, block=block),)), data)
    settings = ModelSettings(**shape.model)
    model = build(settings, shape.sample, 10, seed=0)
    model = initialise(model, assign(model, shape.block, settings.dense)).eval()
    with torch.no_grad():
        return quantize(training.reference(model, data.astype(np.float32), name=name), data)


def measure(names: Sequence[str] = tuple(DESIGNS), *, note: Callable[[str], None] = lambda text: None) -> Document:
    """Hashes of designs.

    Parameters:
        note: told each design before it is generated.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        note(name)
        made = network(name)
        design = generate(made, **DESIGNS[name].options, objective="throughput")
        rows[name] = {"network": made.hash, "images": _hash(design.images),
                      "plans": _hash([_plan(plan) for plan in design.plans]),
                      "cycles": [entry["cycles"] for entry in design.manifest["layers"]],
                      "multipliers": design.multipliers, "memory_bits": design.memory_bits,
                      "verilog": _hash(design.verilog), "verilog_lines": design.verilog.count("\n")}
    table = {name: ", ".join(f"{figure} {str(value)[:20]}" for figure, value in row.items())
             for name, row in rows.items()}
    return {"benchmark": "generation", "table": table, "designs": rows}


def differences(found: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Names of the designs of two measurements that differ in what is to stay, with the names of the figures.

    Parameters:
        found, before: what `measure` gives; designs that only one has are not compared.
    """
    return [f"{name}: {', '.join(changed)}" for name, row in found["designs"].items() if name in before["designs"]
            if (changed := [figure for figure in FIXED if row[figure] != before["designs"][name][figure]])]


def _plan(plan: Any) -> Any:
    """The numbers of a plan: without the golden layer, which the network's hash covers, and which classes hold them."""
    found = {"cycles": plan.cycles, "multipliers": plan.multipliers}
    for name in ("shape", "elements", "streams", "spacing", "pixels"):
        value = getattr(plan, name, None)
        found[name] = str({key: getattr(value, key) for key in SHAPE if hasattr(value, key)}
                          if name == "shape" else value)
    return found


def _hash(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=asdict)
    return hashlib.sha256(text.encode()).hexdigest()
