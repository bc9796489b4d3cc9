"""The entries of layers in ``network.json``, and their arrays in ``weights.npz``: what kinds write and read alike."""
from typing import Any

import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.passes.bases import TABLES, activations, layer_fields
from circulant.sim.passes.layer import Arrays, GoldenLayer
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Grid

__all__ = ["formats", "integers", "joined_formats", "layer_as_json", "product_fields", "read_grid", "read_joined",
           "read_product", "read_pwl", "reader_formats"]

_PRODUCT_FORMATS = ("weight", "input", "spectrum", "product", "output")


def layer_as_json(layer: Any) -> dict[str, Any]:
    """The entry of a layer, all but its integers."""
    fields = layer_fields(layer)
    return {"kind": layer.kind, "name": layer.name, "inputs": layer.inputs, **fields}


def product_fields(layer: Any) -> dict[str, Any]:
    """The entries of all matrices and tables of a layer."""
    entry: dict[str, Any] = {}
    for role, product in layer.products.items():
        entry[role] = {"block_size": product.block_size, "twiddle_bits": product.twiddle_bits}
        entry[role] |= {name: getattr(product, name).as_json() for name in _PRODUCT_FORMATS}
        entry[role] |= {"row_shifts": list(product.row_shifts)} if product.row_shifts else {}
    return entry | {role: pwl.as_json() for role, pwl in activations(layer).items()}


def formats(layer: Any) -> dict[str, Any]:
    """The entries of the formats of what a layer takes and gives."""
    return {name: getattr(layer, name).as_json() for name in ("input_format", "output_format")}


def joined_formats(layer: GoldenLayer) -> dict[str, Any]:
    """The same of a join."""
    return {"input_formats": [form.as_json() for form in layer.taken], "output_format": layer.output_format.as_json()}


def read_joined(entry: dict[str, Any]) -> tuple[tuple[Format, ...], Format]:
    """The formats of what a join takes and gives."""
    return tuple(map(Format.from_json, entry["input_formats"])), Format.from_json(entry["output_format"])


def read_product(entry: dict[str, Any], arrays: Arrays, role: str) -> Product:
    """The matrix of a role."""
    name = f"{entry['name']}.{role}"
    given = {field: Format.from_json(entry[role][field]) for field in _PRODUCT_FORMATS}
    return Product(integers(arrays, f"{name}.weights", 3), integers(arrays, f"{name}.bias", 1),
                   twiddle_bits=entry[role]["twiddle_bits"], row_shifts=tuple(entry[role].get("row_shifts", ())),
                   **given)


def read_pwl(entry: dict[str, Any], arrays: Arrays, role: str) -> Pwl:
    """The table of a role."""
    data = entry[role]
    start, slope, base = (integers(arrays, f"{entry['name']}.{role}.{part}", 1) for part in TABLES)
    return Pwl(data["function"], data["method"], data["reach"],
               input=Format.from_json(data["input"]), output=Format.from_json(data["output"]),
               slope_format=Format.from_json(data["slope"]), base_format=Format.from_json(data["base"]),
               start=start, slope=slope, base=base, parameters=tuple(data.get("parameters", ())))


def read_grid(entry: dict[str, Any]) -> Grid:
    """The images that come."""
    height, width = entry["grid"]
    return height, width


def reader_formats(entry: dict[str, Any]) -> tuple[Format, Format]:
    """The formats of what the layer takes and gives."""
    return Format.from_json(entry["input_format"]), Format.from_json(entry["output_format"])


def integers(arrays: Arrays, name: str, axes: int) -> Integers:
    """An array of the file.

    Raises:
        Refusal: when there is no such array of 64-bit integers with so many axes, and something in it.
    """
    array = arrays.get(name)
    if array is None or array.dtype != np.int64 or array.ndim != axes or not array.size:
        given = "missing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise Refusal(f"The array {name!r} must be 64-bit integers with {axes} {'axis' if axes == 1 else 'axes'}, not "
                      f"{given}; quantize again")
    return array
