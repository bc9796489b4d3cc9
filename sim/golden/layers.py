"""The kinds of layers, and how they stand in ``network.json`` and ``weights.npz``."""
from typing import Any

import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.golden.argmax import Argmax
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.scale import Scale
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window

__all__ = ["Layer", "Recurrent", "activations", "layer_arrays", "layer_as_json", "layer_from_json"]

Layer = Linear | Gru | Lstm | Bidirectional | Conv | Pool | Flatten | Scale | Residual | Argmax

Recurrent = Gru | Lstm | Bidirectional
"""Layers that take a sequence, and have a state."""


def activations(layer: Layer) -> dict[str, Pwl]:
    if isinstance(layer, Lstm):
        return {"sigmoid": layer.sigmoid, "tanh": layer.tanh, "tanh_cell": layer.tanh_cell}
    return {"sigmoid": layer.sigmoid, "tanh": layer.tanh} if isinstance(layer, Gru) else {}


def layer_arrays(layer: Layer) -> dict[str, np.ndarray]:
    """The integers of a layer by their names in the file."""
    if isinstance(layer, Bidirectional):
        return layer_arrays(layer.forward) | layer_arrays(layer.backward)
    if isinstance(layer, Residual):
        return {name: array for chain in layer.branches.values() for each in chain
                for name, array in layer_arrays(each).items()}
    if isinstance(layer, Scale):
        return {f"{layer.name}.scale": layer.scale, f"{layer.name}.shift": layer.shift}
    if isinstance(layer, Pool | Flatten | Argmax):
        return {}
    arrays = {}
    for role, product in layer.products.items():
        arrays[f"{layer.name}.{role}.weights"] = product.weights
        arrays[f"{layer.name}.{role}.bias"] = product.bias
    for role, pwl in activations(layer).items():
        arrays |= {f"{layer.name}.{role}.{part}": getattr(pwl, part) for part in _TABLES}
    if isinstance(layer, Lstm) and layer.peephole is not None:
        arrays[f"{layer.name}.peephole"] = layer.peephole
    return arrays


_TABLES = ("start", "slope", "base")

_PRODUCT_FORMATS = ("weight", "input", "spectrum", "product", "output")


def layer_as_json(layer: Layer) -> dict[str, Any]:
    """The entry of a layer, all but its integers."""
    entry: dict[str, Any] = {"kind": layer.kind, "name": layer.name, "inputs": layer.inputs}
    if isinstance(layer, Bidirectional):
        return entry | {direction: layer_as_json(each) for direction, each in layer.directions.items()}
    if isinstance(layer, Argmax):
        return entry | {"input_format": layer.input_format.as_json()}
    if isinstance(layer, Conv | Pool | Flatten | Residual):
        entry["grid"] = list(layer.grid)
    if isinstance(layer, Conv | Pool):
        entry["window"] = layer.window.as_json()
    if isinstance(layer, Pool | Flatten | Scale | Residual):
        entry |= {name: getattr(layer, name).as_json() for name in ("input_format", "output_format")}
    if isinstance(layer, Linear | Conv | Scale | Residual):
        entry["relu"] = layer.relu
    if isinstance(layer, Pool):
        return entry | {"mode": layer.mode}
    if isinstance(layer, Flatten):
        return entry | {"order": layer.order, "rows": layer.rows}
    if isinstance(layer, Scale):
        return entry | {"factor": layer.factor.as_json()}
    if isinstance(layer, Residual):
        return entry | {side: list(map(layer_as_json, chain)) for side, chain in layer.branches.items()}
    for role, product in layer.products.items():
        entry[role] = {"block_size": product.block_size, "twiddle_bits": product.twiddle_bits}
        entry[role] |= {name: getattr(product, name).as_json() for name in _PRODUCT_FORMATS}
    entry |= {role: pwl.as_json() for role, pwl in activations(layer).items()}
    if isinstance(layer, Gru | Lstm):
        entry |= {"hidden": layer.hidden, "returns": layer.returns}
    if isinstance(layer, Lstm):
        entry |= {"cell": layer.cell.as_json(), "peephole_format": layer.peephole_format.as_json()}
    if isinstance(layer, Gru):
        return entry | {"reset": layer.reset}
    return entry | {"outputs": layer.outputs}


def layer_from_json(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Layer:
    """The layer of an entry that keeps to `circulant.sim.golden.rules.LAYER`.

    Raises:
        Refusal: when an array is missing or of another shape, or as the layer itself.
    """
    name = entry["name"]
    if entry["kind"] == Bidirectional.kind:
        forward, backward = (layer_from_json(entry[direction], arrays) for direction in ("forward", "backward"))
        assert isinstance(forward, Gru | Lstm) and isinstance(backward, Gru | Lstm)
        return Bidirectional(name, forward, backward)

    def product(role: str) -> Product:
        formats = {field: Format.from_json(entry[role][field]) for field in _PRODUCT_FORMATS}
        return Product(_integers(arrays, f"{name}.{role}.weights", 3), _integers(arrays, f"{name}.{role}.bias", 1),
                       twiddle_bits=entry[role]["twiddle_bits"], **formats)

    def pwl(role: str) -> Pwl:
        data = entry[role]
        start, slope, base = (_integers(arrays, f"{name}.{role}.{part}", 1) for part in _TABLES)
        return Pwl(data["function"], data["method"], data["reach"], Format.from_json(data["input"]),
                   Format.from_json(data["output"]), Format.from_json(data["slope"]), Format.from_json(data["base"]),
                   start, slope, base)

    if entry["kind"] == Gru.kind:
        gates = JointProduct((product("input_product"), product("recurrent_product")))
        x, h = product("candidate_input"), product("candidate_recurrent")
        before = entry["reset"] == "before"
        return Gru(name, entry["inputs"], entry["hidden"], entry["returns"], entry["reset"], gates,
                   JointProduct((x, h)) if before else x, None if before else h, pwl("sigmoid"), pwl("tanh"))
    if entry["kind"] == Lstm.kind:
        peephole = _integers(arrays, f"{name}.peephole", 2) if f"{name}.peephole" in arrays else None
        return Lstm(
            name, entry["inputs"], entry["hidden"], entry["outputs"], entry["returns"],
            JointProduct((product("input_product"), product("recurrent_product"))),
            product("projection") if "projection" in entry else None, peephole,
            Format.from_json(entry["peephole_format"]), Format.from_json(entry["cell"]),
            pwl("sigmoid"), pwl("tanh"), pwl("tanh_cell"))
    if entry["kind"] == Linear.kind:
        return Linear(name, entry["inputs"], entry["outputs"], product("product"), entry["relu"])
    if entry["kind"] == Conv.kind:
        return Conv(name, entry["inputs"], entry["outputs"], _grid(entry), Window.from_json(entry["window"]),
                    product("product"), entry["relu"])
    return _without_product(entry, arrays)


def _integers(arrays: dict[str, np.ndarray], name: str, axes: int) -> Integers:
    """
    Raises:
        Refusal: when there is no such array of 64-bit integers with so many axes, and something in it.
    """
    array = arrays.get(name)
    if array is None or array.dtype != np.int64 or array.ndim != axes or not array.size:
        given = "missing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise Refusal(f"The array {name!r} must be 64-bit integers with {axes} {'axis' if axes == 1 else 'axes'}, not "
                      f"{given}; quantize again")
    return array


def _grid(entry: dict[str, Any]) -> tuple[int, int]:
    height, width = entry["grid"]
    return height, width


def _without_product(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Layer:
    """Layers that have no matrix of their own."""
    name, kind, inputs = entry["name"], entry["kind"], entry["inputs"]
    if kind == Argmax.kind:
        return Argmax(name, inputs, Format.from_json(entry["input_format"]))
    given, made = (Format.from_json(entry[form]) for form in ("input_format", "output_format"))
    if kind == Pool.kind:
        return Pool(name, inputs, _grid(entry), Window.from_json(entry["window"]), entry["mode"], given, made)
    if kind == Flatten.kind:
        return Flatten(name, inputs, _grid(entry), entry["order"], entry["rows"], given)
    if kind == Scale.kind:
        return Scale(name, inputs, _integers(arrays, f"{name}.scale", 1), _integers(arrays, f"{name}.shift", 1),
                     Format.from_json(entry["factor"]), given, made, entry["relu"])
    body, shortcut = (tuple(layer_from_json(each, arrays) for each in entry[side]) for side in ("body", "shortcut"))
    return Residual(name, inputs, _grid(entry), body, shortcut, given, made, entry["relu"])
