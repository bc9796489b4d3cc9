"""The entries of layers in ``network.json``, and their arrays in ``weights.npz``, by the rules of their kinds.

A member that has a rule is a field of the layer, one of its matrices, or one of its tables; its rule says what is read.
"""
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.files.schema import Listing, Rule
from circulant.sim.passes.bases import TABLES, activations
from circulant.sim.passes.layer import Arrays, Kind
from circulant.sim.passes.rules import ACTIVATION, CANDIDATE, FORMAT, PRODUCT, PWL, WINDOW
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window

__all__ = ["Entry", "entry_of", "integers", "layer_of", "plain", "typed"]

Entry = dict[str, Any]
"""An entry as JSON has it; `layer_of` gives its members their types."""

_FORMATS = ("weight", "input", "spectrum", "product", "output")
"""Formats of a product."""


def entry_of(layer: Any, kind: Kind) -> Entry:
    """The entry of a layer, all but its integers."""
    parts = {**layer.products, **activations(layer)}
    members = {name: parts[name] if name in parts else getattr(layer, name, None)
               for name in (*kind.fields, *kind.optional)}
    return {"kind": layer.kind, "name": layer.name, "inputs": layer.inputs} | {
        name: plain(value) for name, value in members.items() if name in kind.fields or value is not None}


def plain(value: Any) -> Any:
    """A member as JSON has it."""
    match value:
        case Product():
            shifts = {"row_shifts": list(value.row_shifts)} if value.row_shifts else {}
            approximate = {"multiplier": value.multiplier} if value.multiplier != EXACT else {}
            return {"block_size": value.block_size, "twiddle_bits": value.twiddle_bits,
                    **{name: getattr(value, name).as_json() for name in _FORMATS}, **shifts, **approximate}
        case Format() | Window() | Pwl():
            return dict(value.as_json())
        case tuple():
            return [*map(plain, value)]
    return value


def layer_of(entry: Mapping[str, Any], arrays: Arrays, kind: Kind) -> Any:
    """The layer of an entry that keeps to the rules of its kind.

    Raises:
        Refusal: when an array is missing or of another shape, or as the layer itself.
    """
    name = entry["name"]
    members = {member: typed(rule, entry[member], arrays, f"{name}.{member}")
               for member, rule in {**kind.fields, **kind.optional}.items() if member in entry}
    members |= {array: integers(arrays, f"{name}.{array}", axes) for array, axes in kind.arrays.items()}
    members |= {array: integers(arrays, f"{name}.{array}", axes) for array, axes in kind.optional_arrays.items()
                if f"{name}.{array}" in arrays}
    taken = inspect.signature(kind.make or kind.golden).parameters
    return (kind.make or kind.golden)(**{member: value for member, value in {
        "name": name, "inputs": entry["inputs"], **members}.items() if member in taken})


def typed(rule: Rule, said: Any, arrays: Arrays, path: str) -> Any:
    """The member that keeps to a rule, with its arrays, whose names begin with ``path``."""
    if rule is FORMAT:
        return Format.from_json(said)
    if rule is WINDOW:
        return Window.from_json(said)
    if rule is PRODUCT:
        return Product(integers(arrays, f"{path}.weights", 3), integers(arrays, f"{path}.bias", 1),
                       twiddle_bits=said["twiddle_bits"], row_shifts=tuple(said.get("row_shifts", ())),
                       multiplier=said.get("multiplier", EXACT),
                       **{name: Format.from_json(said[name]) for name in _FORMATS})
    if rule in (PWL, CANDIDATE, ACTIVATION):
        start, slope, base = (integers(arrays, f"{path}.{part}", 1) for part in TABLES)
        return Pwl(said["function"], said["method"], said["reach"],
                   input=Format.from_json(said["input"]), output=Format.from_json(said["output"]),
                   slope_format=Format.from_json(said["slope"]), base_format=Format.from_json(said["base"]),
                   start=start, slope=slope, base=base, parameters=tuple(said.get("parameters", ())))
    if isinstance(rule, Listing):
        return tuple(typed(rule.rule, each, arrays, path) for each in said)
    return said


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
