"""From the neutral graph to the layers of the reference, which the golden model quantizes."""
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from circulant.sim.reference import Bidirectional, Gru, Layer, Linear, Lstm
from circulant.training.capture.graph import Graph, Node
from circulant.training.capture.report import NO_LAYER
from circulant.training.cells import PeepholeLstm, Recurrent, ResetBeforeGru
from circulant.training.matrices import Matrix, block_sizes, constraint_of

__all__ = ["flattening", "lower", "missing", "moves_batch"]


def missing(graph: Graph) -> dict[str, str]:
    """The nodes for which the golden model has no layer, with the reason."""
    found = {}
    for node in graph.nodes:
        if node.op in ("gru", "lstm"):
            assert node.module is not None
            sizes = set(block_sizes(node.module).values())
            if len(sizes) > 1:
                found[node.name] = (f"its matrices have block sizes {', '.join(map(str, sorted(sizes)))}, but those of "
                                    "a recurrent layer must share one")
        elif node.op == "last_step":
            found[node.name] = f"{NO_LAYER}; take the ends of both directions, torch.cat((h_n[-2], h_n[-1]), -1)"
        elif node.op not in ("input", "linear") and not moves_batch(node) and node is not flattening(graph):
            found[node.name] = NO_LAYER
    return found


def flattening(graph: Graph) -> Node | None:
    """The node that makes a vector of all values of a sample, where nothing comes before it."""
    source = graph.nodes[0]
    users = graph.users(source.name)
    if len(users) == 1 and users[0].op == "reshape" and len(users[0].shape) == 2 and users[0].shape[0] is None:
        return users[0]
    return None


def moves_batch(node: Node) -> bool:
    """Whether a node only moves the axis of the batch, and so does nothing to a single sample."""
    if node.op != "permute":
        return False
    order, batch = node.options["order"], node.shape.index(None)
    rest = [axis for axis in order if axis != order[batch]]
    return rest == sorted(rest)


def lower(graph: Graph) -> tuple[Layer, ...]:
    """The layers of the reference, in their order; everything of the graph must have one (see `missing`).

    Their names are letters, digits and underscores, start with a letter, and differ from one another.
    """
    layers: list[Layer] = []
    for node in graph.nodes:
        if node.op == "linear":
            layers.append(_linear(_name(node.name, "linear", layers), node))
        elif node.op in ("gru", "lstm"):
            module: Any = node.module
            for level in range(module.num_layers):
                path = f"{node.name}.l{level}" if module.num_layers > 1 else node.name
                name = _name(path, node.op, layers)
                last = node.options["returns"] == "last" and level == module.num_layers - 1
                layers.append(_level(name, module, level, "last" if last else "sequence"))
    return tuple(layers)


def _linear(name: str, node: Node) -> Linear:
    constraint = node.options["constraint"]
    return Linear(name=name, inputs=constraint.columns, outputs=constraint.rows,
                  weight=_numpy(node.options["first"])[0], bias=_numpy(node.options["bias"]),
                  relu=bool(node.options.get("relu")))


def _level(name: str, module: Any, level: int, returns: str) -> Layer:
    """One layer of a recurrent module, in one direction or both."""
    suffix = f"_l{level}"
    if not module.bidirectional:
        return _direction(name, module, level, suffix, returns)
    return Bidirectional(name, _direction(f"{name}.forward", module, level, suffix, returns),
                         _direction(f"{name}.backward", module, level, f"{suffix}_reverse", returns))


def _direction(name: str, module: Any, level: int, suffix: str, returns: str) -> Gru | Lstm:
    hidden, outputs = module.hidden_size, getattr(module, "proj_size", 0) or module.hidden_size
    inputs = outputs * (1 + module.bidirectional) if level else module.input_size
    gates = _gates(module)
    fields: dict[str, Any] = {"inputs": inputs, "hidden": hidden, "returns": returns,
                              "hard": getattr(module, "hard", False)}
    for side, columns in (("ih", inputs), ("hh", outputs)):
        fields[f"weight_{side}"] = _first_columns(Matrix(module, f"weight_{side}{suffix}", gates, hidden, columns))
        fields[f"bias_{side}"] = np.zeros((gates, hidden))
    for side in (("ih", "hh") if module.bias else ()):
        ours = isinstance(module, Recurrent)  # with one bias
        if not ours or side == "ih":
            bias = getattr(module, f"bias{suffix}" if ours else f"bias_{side}{suffix}")
            fields[f"bias_{side}"] = _numpy(bias).reshape(gates, hidden)
    if gates == 3:
        return Gru(name, reset="before" if isinstance(module, ResetBeforeGru) else "after", **fields)
    if module.proj_size:
        fields["projection"] = _first_columns(Matrix(module, f"weight_hr{suffix}", 1, outputs, hidden))[0]
    if isinstance(module, PeepholeLstm):
        fields["peephole"] = _numpy(getattr(module, f"peephole{suffix}"))
    return Lstm(name, outputs=outputs, **fields)


def _gates(module: nn.Module) -> int:
    return 3 if isinstance(module, nn.GRU | ResetBeforeGru) else 4


def _first_columns(matrix: Matrix) -> NDArray[np.float64]:
    """First columns (groups, p, q, k) of a weight; k = 1 where it is dense."""
    if constraint_of(matrix):
        chains: Any = matrix.module.parametrizations
        return _numpy(chains[matrix.tensor].original)
    return _numpy(matrix.weight).reshape(matrix.groups, matrix.rows, matrix.columns, 1)


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _name(path: str, kind: str, others: list[Layer]) -> str:
    name = re.sub(r"\W", "_", path, flags=re.ASCII).strip("_")
    if not name[:1].isalpha():
        name = f"{kind}_{name}".rstrip("_")
    taken = {layer.name for layer in others}
    return name if name not in taken else next(
        other for i in range(2, len(taken) + 3) if (other := f"{name}_{i}") not in taken)
