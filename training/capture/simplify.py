"""The same function with fewer nodes."""
from dataclasses import replace
from typing import Any

import torch

from circulant.sim.shape.graph import free_name
from circulant.training.kinds.activation import Function, Softmax
from circulant.training.kinds.add import Add
from circulant.training.kinds.cell import Recurrent, ends
from circulant.training.kinds.conv import Conv
from circulant.training.kinds.depthwise import Depthwise
from circulant.training.kinds.linear import Linear
from circulant.training.kinds.matrix import Matrix
from circulant.training.kinds.maximum import Maximum
from circulant.training.kinds.over_time import Reduce
from circulant.training.kinds.product import Multiply
from circulant.training.kinds.scale import Scale
from circulant.training.kinds.taps import CausalConv
from circulant.training.neutral.graph import Constant, Graph, Move, Node

__all__ = ["simplify"]

STEPWISE = Linear, Function
"""Nodes that treat every step alike, so that the last step may as well be taken before them."""

KIN: dict[tuple[str, tuple[float, ...]], str] = {("sigmoid", ()): "silu", ("hard_sigmoid", ()): "hard_swish"}
"""Functions whose product with their argument is a function of its own."""


def simplify(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Scales and ReLUs folded, last steps taken by the recurrent layers themselves, a last softmax dropped; of
    convolutions those are causal whose later outputs nothing takes.

    A scale s and shift t of the outputs of a matrix is another matrix, diag(s)·W, which is block-circulant only where s
    is one number within each block of rows. There (always at block size 1) it is folded, exactly; elsewhere, and where
    the weights of the matrix are quantized, the scale stays a node of its own, and only the bias of the matrix moves
    into its shift.

    Returns:
        The graph, and for each name what became of it, where a node went or changed.
    """
    notes: dict[str, str] = {}
    for kind in (Conv, Depthwise, CausalConv, Multiply, Reduce, Scale, Recurrent, Function):
        for name in [node.name for node in graph.nodes if isinstance(node, kind)]:
            if not any(node.name == name for node in graph.nodes):
                continue
            node: Any = graph[name]  # what it takes may have changed
            if kind in (Conv, Depthwise):
                graph = _causal(graph, node, notes)
            elif kind is CausalConv:  # What is beside it takes a single step, which may come as a vector, too.
                graph = graph.having(*filter(None, (user.causal(node.sizes[-1]) for user in graph.users(
                    node.inputs[0]) if user.sizes[-1] == node.sizes[-1])))
            elif kind is Multiply:
                graph = _product(graph, node, notes)
            elif kind is Reduce:
                graph = _of_branches(_reduced(graph, node, notes), name, notes)
            elif kind is Scale:
                graph, note = _fold(graph, node)
                notes |= {name: note} if note else {}
            elif kind is Recurrent:
                graph = _ended(graph, node, notes)
            elif node.function == "relu" and hasattr(source := graph[node.inputs[0]], "relu") and (
                    graph.alone(source.name)):
                rectified: Any = source
                graph = graph.having(replace(rectified, relu=True)).without(node)
                notes[name] = f"into {source.name}"
    outputs = []
    for given in graph.outputs:
        last = graph[given.node]
        if isinstance(last, Softmax) and not graph.users(last.name):
            notes[last.name] = "dropped: the greatest output stays the greatest"
            given = given._replace(node=last.inputs[0], dropped="log_softmax" if last.log else "softmax")
        outputs.append(given)
    return replace(graph, outputs=tuple(outputs)).pruned, notes


def _fold(graph: Graph, node: Scale) -> tuple[Graph, str]:
    """A scale into the matrix before it, as far as the structure of that allows."""
    source = graph[node.inputs[0]]
    alone = graph.alone(source.name)
    if isinstance(source, Scale) and alone and not source.relu and (source.axis == node.axis or None in (
            source.axis, node.axis)):
        merged = replace(source, scale=node.scale * source.scale, shift=node.scale * source.shift + node.shift,
                         axis=source.axis if node.axis is None else node.axis)
        size = max(len(merged.scale), len(merged.shift))
        merged = replace(merged, scale=merged.scale.expand(size), shift=merged.shift.expand(size))
        graph = graph.having(merged).without(node)
        if not bool((merged.scale != 1).any() or merged.shift.any()):
            graph = graph.without(merged)
            return graph, "without effect"
        return _fold(graph, merged)[0], f"into {source.name}, exactly"
    if alone and node.axis in (None, 1) and (scaled := source.scaled(node.scale, node.shift)):
        return graph.having(scaled).without(node), f"into {source.name}, exactly"
    axis = source.features % len(source.shape) if isinstance(source, Matrix) else None
    if node.axis is None and isinstance(source, Matrix) and alone and not source.relu:
        rows = source.constraint.rows
        node = replace(node, scale=node.scale.expand(rows), shift=node.shift.expand(rows), axis=axis)
        graph = graph.having(node)
    if node.axis is None:
        return graph, ""
    if not isinstance(source, Matrix) or axis != node.axis or not alone:
        return graph, "not folded, as no matrix stands alone before it"
    scale, k = node.scale, source.constraint.block_size
    padded = torch.cat([scale, scale[-1:].expand(-len(scale) % k)]).view(-1, k)  # (p, k)
    shift = node.shift + scale * source.bias
    held = source.grid is not None and not bool((scale == 1).all())
    if not held and bool((padded == padded[:, :1]).all()):
        folded = replace(source, first=source.first * padded[:, 0, None, None], bias=shift)
        return graph.having(folded).without(node), f"into {source.name}, exactly"
    graph = graph.having(replace(source, bias=torch.zeros_like(source.bias)), replace(node, shift=shift))
    if held:
        return graph, f"not folded, as the weights of {source.name} are quantized"
    return graph, f"not folded, as it differs within the blocks of {k} of {source.name}"


def _causal(graph: Graph, node: Node, notes: dict[str, str]) -> Graph:
    """The graph in which a convolution over time that pads both sides is causal, where nothing takes the outputs that
    know later steps, as in the TCN of Bai et al. 2018 (arXiv 1803.01271)."""
    steps, every, users = graph[node.inputs[0]].sizes[-1], node.sizes[-1], graph.users(node.name)
    made = node.causal(steps)
    if made is None or every == steps or not users or node.name in graph.ends or not all(
            isinstance(user, Move) and len(user.inputs) == 1 and bool((user.places % every < steps).all())
            for user in users):
        return graph
    graph = graph.having(made)
    for user in users:
        assert isinstance(user, Move)
        kept = replace(user, places=user.places // every * steps + user.places % every)
        graph = graph.having(kept)
        if kept.shape == made.shape and torch.equal(kept.places.flatten(), torch.arange(kept.places.numel())):
            graph = graph.without(kept)
            notes.update(dict.fromkeys(user.path, f"part of {node.name}"))
    return graph


def _product(graph: Graph, node: Multiply, notes: dict[str, str]) -> Graph:
    """The graph in which x · sigmoid(x) and its kin are one function."""
    def root(name: str) -> tuple[Node, Any]:
        found = graph[name]
        return (graph[found.inputs[0]], found.places) if isinstance(found, Move) and len(found.inputs) == 1 else (
            found, None)

    def same(one: Any, other: Any) -> bool:
        return one is other or (one is not None and other is not None and torch.equal(one, other))

    for x, y in (node.inputs, node.inputs[::-1]):
        (of, moved), (function, again) = root(x), root(y)
        if not isinstance(function, Function) or not same(moved, again):
            continue
        before = graph[function.inputs[0]]
        path: list[Node] = [function]
        gate = function.function, function.parameters
        wanted = KIN.get(gate)
        if gate == ("clip", (0.0, 6.0)) and isinstance(before, Scale) and before.axis is None and (
                float(before.scale), float(before.shift)) == (1.0, 3.0):
            wanted, before, path = "hard_swish", graph[before.inputs[0]], [function, before]
        elif gate == ("tanh", ()) and isinstance(before, Function) and (before.function, before.parameters[:1]) == (
                "softplus", (1.0,)):
            wanted, before, path = "mish", graph[before.inputs[0]], [function, before]
        if wanted is None or before is not of:
            continue
        made: Node = Function(name=node.name, kind=node.kind, inputs=(x,), shape=node.shape, function=wanted)
        graph = graph.having(made)
        if len(path) == 2 and wanted == "hard_swish":  # x · relu6(x + 3) is six times that
            inner = replace(made, name=free_name(f"{node.name}.swish", [each.name for each in graph.nodes]))
            six = torch.tensor([6.0], dtype=torch.float64)
            outer = Scale(name=node.name, kind=node.kind, inputs=(inner.name,), shape=node.shape, scale=six,
                          shift=torch.zeros_like(six), axis=None)
            graph = replace(graph, nodes=tuple(part for each in graph.nodes for part in (
                (inner, outer) if each.name == node.name else (each,))))
        notes.update({each.name: f"part of {node.name}" for each in path})
        return graph.pruned
    return graph


def _reduced(graph: Graph, node: Reduce, notes: dict[str, str]) -> Graph:
    """The graph in which a reduction over one axis after the other is one over both."""
    source = graph[node.inputs[0]]
    if not isinstance(source, Reduce) or source.mode != node.mode or source.keep != node.keep or not graph.alone(
            source.name):
        return graph
    before = graph[source.inputs[0]]
    rest = [axis for axis in range(len(before.shape)) if source.keep or axis not in source.axes]
    axes = tuple(sorted({*source.axes, *(rest[axis] for axis in node.axes)}))
    notes[source.name] = f"into {node.name}"
    return graph.having(replace(node, inputs=source.inputs, axes=axes)).pruned


def _of_branches(graph: Graph, name: str, notes: dict[str, str]) -> Graph:
    """The graph in which the mean or maximum over branches that are stacked is one of their values, one by one."""
    node: Any = graph[name]
    came = graph[node.inputs[0]]
    if node.keep or len(node.axes) > 1 or not isinstance(came, Move) or len(came.inputs) < 2:
        return graph
    branches = came.places.unbind(node.axes[0] - (node.axes[0] > came.batch))
    numbers = torch.arange(came.places.numel()).view(len(branches), -1)
    if len(branches) != len(came.inputs) or not all(
            torch.equal(part.flatten(), wanted) for part, wanted in zip(branches, numbers, strict=True)) or any(
            graph[each].shape != node.shape or isinstance(graph[each], Constant) for each in came.inputs):
        return graph
    last, known, made = came.inputs[0], [each.name for each in graph.nodes], list[Node]()
    for other in came.inputs[1:]:
        end = node.mode == "max" and other == came.inputs[-1]
        label = name if end else free_name(f"{name}.branches", known)
        make = Maximum if node.mode == "max" else Add
        made.append(make(name=label, kind=node.kind, inputs=(last, other), shape=node.shape))
        known.append(label)
        last = label
    if node.mode == "mean":
        scale = torch.tensor([1 / len(branches)], dtype=torch.float64)
        made.append(Scale(name=name, kind=node.kind, inputs=(last,), shape=node.shape, scale=scale,
                          shift=torch.zeros_like(scale), axis=None))
    notes.update(dict.fromkeys(came.path, f"part of {name}"))
    return replace(graph, nodes=tuple(part for each in graph.nodes for part in (
        made if each.name == name else (each,)))).pruned


def _ended(graph: Graph, source: Recurrent, notes: dict[str, str]) -> Graph:
    """The graph whose recurrent layer gives its last step alone, where nothing takes another one."""
    path: list[Node] = [source]
    while len(users := graph.users(path[-1].name)) == 1 and isinstance(users[0], STEPWISE) and source.ways == 1 and (
            len(users[0].sizes) == 2 and path[-1].name not in graph.ends):
        path.append(users[0])
    wanted = ends(path[-1].sizes, source.ways)
    if not users or path[-1].name in graph.ends or not all(
            isinstance(user, Move) and len(user.inputs) == 1 and torch.isin(user.places, wanted).all()
            for user in users):
        return graph
    last: list[Any] = [replace(step, shape=(None, step.sizes[-1])) for step in path]
    graph = graph.having(replace(last[0], returns="last"), *last[1:])
    for user in users:
        assert isinstance(user, Move)
        notes.update(dict.fromkeys((user.name, *user.path), f"part of {source.name}"))
        if user.shape == last[-1].shape and torch.equal(user.places, wanted):
            graph = graph.without(user)
        else:
            numbers = torch.zeros(torch.Size(path[-1].sizes).numel(), dtype=torch.int64)
            numbers[wanted] = torch.arange(len(wanted))
            graph = graph.having(replace(user, places=numbers[user.places]))
    return graph
