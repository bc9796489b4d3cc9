"""The file of a network in float64: its layers with their weights, from which it is quantized without torch."""
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim import artifact
from circulant.sim.files.files import reason
from circulant.sim.files.schema import Anything, Table
from circulant.sim.kinds.registry import KINDS
from circulant.sim.real.float_model import Bidirectional, Model, Residual
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Window

__all__ = ["load", "save"]

FORMAT, VERSION = "circulant-float", 2

CHAINS: dict[str, Callable[..., Any]] = {"Model": Model.chain, "Bidirectional": Bidirectional, "Residual": Residual}
"""Classes that a file of version 1 has by these names, from before a network was a graph."""

_META = Table({"model": Anything()})


def save(model: Model, path: str | Path) -> str:
    """Write a network; returns the hash of its contents.

    Raises:
        Refusal, ToolError: as `circulant.sim.files.writing.naming`.
    """
    arrays: dict[str, NDArray[Any]] = {}
    tree = _plain(model, arrays)
    return artifact.write_npz(path, FORMAT, VERSION, arrays, model=tree)


def load(path: str | Path) -> Model:
    """The network that `save` wrote.

    Raises:
        Refusal: as `circulant.sim.artifact.read_npz`, and when it describes no network.
    """
    arrays, meta = artifact.read_npz(path, FORMAT, VERSION, _META, former=(1,))
    try:
        former = CHAINS if "layers" in meta["model"]["fields"] else {}
        model = _made(meta["model"], arrays, _classes() | former)
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Refusal(f"{path} must describe a network, but it does not ({reason(error)}); write it again") from None
    if not isinstance(model, Model):
        raise Refusal(f"{path} must describe a network, not a {type(model).__name__}; write it again")
    return model


def _plain(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value as JSON has it; its arrays are put among the others."""
    if isinstance(value, np.ndarray):
        arrays[name := f"array{len(arrays)}"] = value
        return {"array": name}
    if is_dataclass(value):
        return {"kind": _name(type(value)),
                "fields": {field.name: _plain(getattr(value, field.name), arrays) for field in fields(value)
                           if field.init}}
    if isinstance(value, tuple | list):
        return [_plain(each, arrays) for each in value]
    return value


def _classes() -> dict[str, Callable[..., Any]]:
    """Classes of what may stand in a file, by name."""
    return {_name(kind): kind for kind in (Model, Input, Node, Flow, Window, *filter(None, (
        kind.real for kind in KINDS.values())))}


def _name(kind: type[Any]) -> str:
    """A layer in float64 stands there under the name that it has in integers."""
    return kind.__name__.removeprefix("Float")


def _made(value: Any, arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, Callable[..., Any]]) -> Any:
    if isinstance(value, list):
        return tuple(_made(each, arrays, kinds) for each in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        array = arrays[value["array"]]
        if array.dtype != np.float64:
            raise TypeError(f"{value['array']} must be float64, not {array.dtype}")
        return array
    return kinds[value["kind"]](**{name: _made(each, arrays, kinds) for name, each in value["fields"].items()})
