"""From the neutral graph to the layers of the reference, which the golden model quantizes."""
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from circulant.sim.reference import Gru, Linear
from circulant.training.capture.graph import Graph, Node
from circulant.training.matrices import Matrix, constraint_of

__all__ = ["lower", "missing", "moves_batch"]


def missing(graph: Graph) -> dict[str, str]:
    """The nodes for which the golden model has no layer, with the reason."""
    found = {}
    for node in graph.nodes:
        if node.op in ("input", "linear") or moves_batch(node):
            continue
        if node.op != "gru" or not isinstance(node.module, nn.GRU):
            found[node.name] = "the golden model has no such layer"
        elif node.module.bidirectional:
            found[node.name] = "the golden model has one direction only"
    return found


def moves_batch(node: Node) -> bool:
    """Whether a node only moves the axis of the batch, and so does nothing to a single sample."""
    return node.op == "permute" and [axis for axis in node.options["order"] if axis] == list(
        range(1, len(node.shape))) and None in node.shape


def lower(graph: Graph) -> tuple[Linear | Gru, ...]:
    """The layers of the reference, in their order; everything of the graph must have one (see `missing`).

    Their names are letters, digits and underscores, start with a letter, and differ from one another.
    """
    layers: list[Linear | Gru] = []
    for node in graph.nodes:
        if node.op == "linear":
            layers.append(_linear(_name(node.name, "linear", layers), node))
        elif node.op == "gru":
            assert isinstance(node.module, nn.GRU)
            for level in range(node.module.num_layers):
                path = f"{node.name}.l{level}" if node.module.num_layers > 1 else node.name
                layers.append(_gru(_name(path, "gru", layers), node, level))
    return tuple(layers)


def _linear(name: str, node: Node) -> Linear:
    constraint = node.options["constraint"]
    return Linear(name=name, inputs=constraint.columns, outputs=constraint.rows,
                  weight=_numpy(node.options["first"])[0], bias=_numpy(node.options["bias"]))


def _gru(name: str, node: Node, level: int) -> Gru:
    module: Any = node.module
    hidden = module.hidden_size
    inputs = hidden if level else module.input_size
    last = node.options["returns"] == "last" and level == module.num_layers - 1
    fields: dict[str, Any] = {}
    for side, columns in (("ih", inputs), ("hh", hidden)):
        fields[f"weight_{side}"] = _first_columns(Matrix(module, f"weight_{side}_l{level}", 3, hidden, columns))
        bias = _numpy(getattr(module, f"bias_{side}_l{level}")) if module.bias else np.zeros(3 * hidden)
        fields[f"bias_{side}"] = bias.reshape(3, hidden)
    return Gru(name=name, inputs=inputs, hidden=hidden, returns="last" if last else "sequence", **fields)


def _first_columns(matrix: Matrix) -> NDArray[np.float64]:
    """First columns (groups, p, q, k) of a weight; k = 1 where it is dense."""
    if constraint_of(matrix):
        chains: Any = matrix.module.parametrizations
        return _numpy(chains[matrix.tensor].original)
    return _numpy(matrix.weight).reshape(matrix.groups, matrix.rows, matrix.columns, 1)


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _name(path: str, kind: str, others: list[Linear | Gru]) -> str:
    name = re.sub(r"\W", "_", path, flags=re.ASCII).strip("_")
    if not name[:1].isalpha():
        name = f"{kind}_{name}".rstrip("_")
    taken = {layer.name for layer in others}
    return name if name not in taken else next(
        other for i in range(2, len(taken) + 3) if (other := f"{name}_{i}") not in taken)
