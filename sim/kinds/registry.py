"""The registry of the kinds of layers: each file of this folder that has a ``KIND``."""
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from circulant.sim.files.schema import Choice, Rule, Table
from circulant.sim.passes.files import Entry, entry_of, layer_of
from circulant.sim.passes.layer import Arrays, Kind
from circulant.sim.passes.rules import NAME, SIZE
from circulant.sim.shape.kinds import unknown

__all__ = ["KINDS", "entries", "entry", "layer_as_json", "layer_from_json"]

KINDS: dict[str, Kind] = {
    kind.name: kind for each in iter_modules([str(Path(__file__).parent)]) if f"{__package__}.{each.name}" != __name__
    and (kind := getattr(import_module(f"{__package__}.{each.name}"), "KIND", None))}
"""By the name that a kind has in files and messages."""


def entry(kind: str, fields: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Table:
    """The rule of an entry with its kind, name and inputs."""
    return Table({"kind": Choice((kind,)), "name": NAME, "inputs": SIZE, **fields}, optional or {})


def entries(kinds: dict[str, Kind], more: dict[str, Rule] | None = None) -> dict[str, Table]:
    """The rules of the entries of these kinds, by name.

    Parameters:
        more: members that all of them have besides.
    """
    return {name: entry(name, {**(more or {}), **kind.fields}, {**kind.optional}) for name, kind in kinds.items()}


def layer_as_json(layer: Any) -> Entry:
    """The entry of a layer, all but its integers.

    Raises:
        TypeError: when it is of no kind that is registered.
    """
    if (kind := KINDS.get(layer.kind)) is None or not isinstance(layer, kind.golden):
        raise unknown(layer, "written to a file")
    return entry_of(layer, kind)


def layer_from_json(said: Entry, arrays: Arrays) -> Any:
    """The layer of an entry that keeps to its rule.

    Raises:
        Refusal: when an array is missing or of another shape, or as the layer itself.
    """
    return layer_of(said, arrays, KINDS[said["kind"]])
