"""The same function with fewer nodes."""
from dataclasses import replace
from typing import Any

import torch

from circulant.training.capture import graph as neutral
from circulant.training.capture.graph import Function, Graph, Linear, Move, Node, Recurrent, Scale

__all__ = ["ends", "simplify"]

STEPWISE = Linear, Function
"""Nodes that treat every step alike, so that the last step may as well be taken before them."""

RECTIFIED = Linear, neutral.Conv, Scale, neutral.Add
"""Nodes that a ReLU behind them becomes part of."""


def simplify(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Scales and ReLUs folded, last steps taken by the recurrent layers themselves, a last softmax dropped.

    A scale s and shift t of the outputs of a matrix is another matrix, diag(s)·W, which is block-circulant only where s
    is one number within each block of rows. There (always at block size 1) it is folded, exactly; elsewhere, and where
    the weights of the matrix are quantized, the scale stays a node of its own, and only the bias of the matrix moves
    into its shift.

    Returns:
        The graph, and for each name what became of it, where a node went or changed.
    """
    notes: dict[str, str] = {}
    for kind in (Scale, Recurrent, Function):
        for name in [node.name for node in graph.nodes if isinstance(node, kind)]:
            node: Any = graph[name]  # what it takes may have changed
            if kind is Scale:
                graph, notes[name] = _fold(graph, node)
            elif kind is Recurrent:
                graph = _ended(graph, node, notes)
            elif node.function == "relu" and isinstance(source := graph[node.inputs[0]], RECTIFIED) and (
                    len(graph.users(source.name)) == 1):
                graph = graph.having(replace(source, relu=True)).without(node)
                notes[name] = f"into {source.name}"
    last = graph[graph.output]
    if isinstance(last, neutral.Softmax):
        notes[last.name] = "dropped: the greatest output stays the greatest"
        graph = replace(graph.without(last), dropped="log_softmax" if last.log else "softmax")
    return graph, notes


def _fold(graph: Graph, node: Scale) -> tuple[Graph, str]:
    """A scale into the matrix before it, as far as the structure of that allows."""
    source = graph[node.inputs[0]]
    axis = len(source.shape) - 1 if isinstance(source, Linear) else 1
    if not isinstance(source, Linear | neutral.Conv) or axis != node.axis or len(graph.users(source.name)) > 1:
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


def ends(sizes: tuple[int, ...], ways: int) -> torch.Tensor:
    """The numbers of the values of the last step among all (steps, size); with two directions those of the end of
    each."""
    steps, size = sizes
    numbers = torch.arange(steps * size).view(steps, size)
    return numbers[-1] if ways == 1 else torch.cat((numbers[-1, :size // 2], numbers[0, size // 2:]))


def _ended(graph: Graph, source: Recurrent, notes: dict[str, str]) -> Graph:
    """The graph whose recurrent layer gives its last step alone, where nothing takes another one."""
    path: list[Node] = [source]
    while len(users := graph.users(path[-1].name)) == 1 and isinstance(users[0], STEPWISE) and source.ways == 1 and (
            len(users[0].sizes) == 2 and graph.output != path[-1].name):
        path.append(users[0])
    wanted = ends(path[-1].sizes, source.ways)
    if not users or graph.output == path[-1].name or not all(
            isinstance(user, Move) and len(user.inputs) == 1 and torch.equal(user.places.flatten(), wanted)
            for user in users):
        return graph
    last: list[Any] = [replace(step, shape=(None, step.sizes[-1])) for step in path]
    graph = graph.having(replace(last[0], returns="last"), *last[1:])
    for user in users:
        assert isinstance(user, Move)
        notes.update(dict.fromkeys((user.name, *user.path), f"part of {source.name}"))
        if user.shape == last[-1].shape:
            graph = graph.without(user)
        else:
            places = torch.arange(len(wanted)).view(user.places.shape)
            graph = graph.having(replace(user, places=places))
    return graph
