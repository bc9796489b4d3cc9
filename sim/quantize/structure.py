"""The structure of a network: what its circuit follows from, as opposed to the numbers in it."""
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from circulant.sim.arith.multiplier import EXACT
from circulant.sim.golden.network import Network
from circulant.sim.kinds.registry import layer_as_json
from circulant.sim.passes.bases import layer_arrays
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Graph, Node

__all__ = ["check_structure", "renamed", "wiring"]


def renamed(network: Network, like: Network) -> Network:
    """The network under the names of another one of its structure."""
    was, now = ([*(each.name for each in graph.inputs), *(node.name for node in graph.nodes)]
                for graph in (network, like))
    names = dict(zip(was, now, strict=True))
    nodes = tuple(Node(replace(node.layer, name=names[node.name]), tuple(names[source] for source in node.sources))
                  for node in network.nodes)
    return replace(network, inputs=like.inputs, nodes=nodes, outputs=tuple(names[name] for name in network.outputs))


def wiring(graph: Graph) -> list[Any]:
    """The kinds of all layers, and which of the inputs and layers before it each takes, by number; last the outputs."""
    number = {name: n for n, name in enumerate(graph.flows)}
    return [*((node.layer.kind, *(number[source] for source in node.sources)) for node in graph.nodes),
            tuple(number[name] for name in graph.outputs)]


def check_structure(rule: Network, given: Network) -> None:
    """
    Raises:
        Refusal: when the circuit of one network cannot be that of the other, with the first thing in which they differ.
    """
    flows = [[each.flow for each in network.inputs] for network in (rule, given)]
    if flows[0] != flows[1] or len(rule.nodes) != len(given.nodes):
        what = [f"{len(n.nodes)} layers for {' and '.join(str(each.flow) for each in n.inputs)}" for n in (rule, given)]
        raise Refusal(f"A network can be loaded if it has the structure of the design's, {what[0]}, but {given.name!r} "
                      f"has {what[1]}; generate a design for it")
    for theirs, mine in zip(rule.layers, given.layers, strict=True):
        for (field, due), (_, found) in zip(_structure(theirs), _structure(mine), strict=False):
            if due != found:
                raise Refusal(f"Layer {mine.name!r} of network {given.name!r} must have {field} {due} as the design "
                              f"has, not {found}; quantize it with the formats of the design's network (`circulant "
                              "quantize --like`, quantize_like), or generate a design for it")
    if wiring(rule) != wiring(given):
        raise Refusal(f"A network can be loaded if its layers take what those of the design take, but those of "
                      f"{given.name!r} do not; generate a design for it")


def _structure(layer: GoldenLayer) -> Iterator[tuple[str, Any]]:
    """Field by field what the circuit follows from: kind, sizes, formats; those without a place are last."""
    yield "the kind", layer.kind
    entry = layer_as_json(layer)
    yield "the parts", sorted(entry)
    yield from _fields("", entry)
    arrays = layer_arrays(layer)
    yield "the arrays", sorted(name.removeprefix(f"{layer.name}.") for name in arrays)
    for name, array in arrays.items():
        yield f"{name.removeprefix(f'{layer.name}.')} of the shape", array.shape
        if name.endswith(".start"):
            yield f"{name.removeprefix(f'{layer.name}.')} at", array.tolist()


def _fields(path: str, entry: dict[str, object]) -> Iterator[tuple[str, Any]]:
    if "block_size" in entry:  # A product: what may be left out is named too, so that both have the same fields.
        entry = {"row_shifts": [], "multiplier": EXACT, **entry}
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from _fields(f"{path}{name}.", value)
        elif name != "name":
            yield f"{path}{name}", value
