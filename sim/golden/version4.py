"""Version 4 of ``network.json``, from before a network was a graph: a chain of layers, some of which held others."""
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from circulant.sim.arith.fixed import Format
from circulant.sim.files.schema import SHA, Flag, Kinds, Later, Listing, Rule, Table
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.registry import KINDS, entries, entry, layer_as_json, layer_from_json
from circulant.sim.passes.files import Entry, plain
from circulant.sim.passes.layer import Arrays
from circulant.sim.passes.rules import FORMATS, GRID, NAME, SIZE

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["NETWORK", "VERSION", "body", "made"]

VERSION = 4

_CHAIN = Listing(Later(lambda: _LAYER), most=1000)
_CELL = Kinds("kind", entries({kind: KINDS[kind] for kind in ("gru", "lstm", "rnn")}))

_LAYER: Rule = Kinds("kind", {
    **entries({name: kind for name, kind in KINDS.items() if not kind.golden.joins and name != "reverse"}),
    "bidirectional": entry("bidirectional", {"forward": _CELL, "backward": _CELL}),
    "residual": entry("residual", {"relu": Flag(), "body": _CHAIN, "shortcut": _CHAIN, **FORMATS}, {"grid": GRID}),
})

NETWORK = Table({"name": NAME, "inputs": SIZE, "sequence": Flag(), "shape": Listing(SIZE, most=3),
                 "weights": SHA, "layers": Listing(_LAYER, 1, 10_000)}, {"ragged": Flag()})


def made(said: Entry, arrays: Arrays, make: "Callable[..., Network]") -> "Network":
    """The network of a file.

    Parameters:
        make: `Network.chain`.
    """
    layers = [_layer(each, arrays) for each in said["layers"]]
    return make(said["name"], said["inputs"], said["sequence"], layers=layers, shape=tuple(said["shape"]),
                ragged=said.get("ragged", False))


def body(network: "Network", weights: str) -> Entry:
    """The contents of the file behind its header.

    Parameters:
        weights: the hash of the arrays.
    """
    ragged = {"ragged": True} if network.ragged else {}
    return {"name": network.name, "inputs": network.flow.size, "sequence": network.sequence,
            "shape": list(network.shape), **ragged, "weights": weights, "layers": list(map(_entry, network.stages))}


def _layer(said: Entry, arrays: Arrays) -> Any:
    if said["kind"] == Bidirectional.kind:
        return Bidirectional(said["name"], *(layer_from_json(said[way], arrays) for way in ("forward", "backward")))
    if said["kind"] == Residual.kind:
        body, shortcut = (tuple(_layer(each, arrays) for each in said[side]) for side in ("body", "shortcut"))
        given, gives = (Format.from_json(said[name]) for name in FORMATS)
        return Residual(said["name"], said["inputs"], tuple(said["grid"]) if "grid" in said else None, body=body,
                        shortcut=shortcut, input_format=given, output_format=gives, relu=said["relu"])
    return layer_from_json(said, arrays)


def _entry(layer: Any) -> Entry:
    if isinstance(layer, Bidirectional):
        return {"kind": layer.kind, "name": layer.name, "inputs": layer.inputs,
                **{way: layer_as_json(each) for way, each in layer.directions.items()}}
    if isinstance(layer, Residual):
        grid = {} if layer.grid is None else {"grid": list(layer.grid)}
        return {"kind": layer.kind, "name": layer.name, "inputs": layer.inputs, **grid, **{
                    name: plain(getattr(layer, name)) for name in FORMATS},
                "relu": layer.relu, **{side: list(map(_entry, chain)) for side, chain in layer.branches.items()}}
    return layer_as_json(layer)
