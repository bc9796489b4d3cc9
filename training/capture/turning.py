"""Images whose axes the data has in another order: it is read in the order that layers take, so that nothing is moved.

Where the columns of images become steps, rows and columns are exchanged, windows with them: a step then leaves with its
last pixel. Where data has the channels last, pixels come as they lie. Where only layers over steps take data with the
channels first, it comes step by step, and sequences may have any length.
"""
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from circulant.sim.shape.graph import free_name
from circulant.sim.shape.window import Flow
from circulant.training.kinds.elementwise import Pair
from circulant.training.kinds.over_time import Reduce
from circulant.training.kinds.taps import CausalConv, CausalDepthwise
from circulant.training.neutral.graph import Graph, Move, Node
from circulant.training.neutral.streams import flattening

__all__ = ["turned"]

CAUSAL = (CausalConv, CausalDepthwise)


def turned(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The graph with such inputs, and notes on what is taken otherwise than a model says."""
    notes: dict[str, str] = {}
    for entry in graph.inputs:
        moved = _channels_first(graph, entry)
        between = _over_steps(graph, moved or entry)
        if between is None:
            graph = _channels_last(graph, entry, notes)
        elif moved:
            graph = graph.having(*between.values())
        elif any(isinstance(node, (*CAUSAL, Pair)) for node in graph.nodes) and not any(
                isinstance(user, Move) for user in graph.users(entry.name)):
            graph = _steps_first(graph, entry, between)
        graph = _columns_first(graph, graph[entry.name], notes)
    return graph, notes


def _over_steps(graph: Graph, node: Node) -> dict[str, Node] | None:
    """The nodes that work on each step of what one gives, (channels, steps), as nodes over steps, up to causal
    convolutions and to what takes a whole sequence; None where something else takes it."""
    todo, found = [node], dict[str, Node]()
    for each in todo:
        users = graph.users(each.name)
        if len(each.sizes) != 2 or not users or each.name in graph.ends:
            return None
        for user in users:
            if user.name in found or isinstance(user, CAUSAL) or _of_steps(user, each):
                continue
            made = user if user.single else user.causal(user.sizes[-1])
            if made is None:
                return None
            found[user.name] = made
            todo.append(user)
    return found


def _of_steps(user: Node, node: Node) -> bool:
    """Whether what takes (channels, steps) of a node takes its last step, or a mean or maximum over the steps, or moves
    the channels to the end."""
    if isinstance(user, Reduce):
        return user.axes == (2,)
    every = torch.arange(torch.Size(node.sizes).numel()).view(node.sizes)
    return isinstance(user, Move) and len(user.inputs) == 1 and (
        torch.equal(user.places, every.T) or torch.equal(user.places, every[:, -1]))


def _channels_first(graph: Graph, entry: Node) -> Node | None:
    """The only node that takes an input of steps, where it moves the channels to the front."""
    users = graph.users(entry.name)
    return users[0] if len(users) == 1 and len(entry.sizes) == 2 and isinstance(users[0], Move) and torch.equal(
        users[0].places, torch.arange(torch.Size(entry.sizes).numel()).view(entry.sizes).T) else None


def _steps_first(graph: Graph, entry: Any, between: dict[str, Node]) -> Graph:
    """The graph whose input comes step by step, and is moved to channels first."""
    steps = replace(entry, shape=(None, *entry.sizes[::-1]), axes=(1, 0), given=entry.sizes)
    places = torch.arange(torch.Size(entry.sizes).numel()).view(steps.sizes).T
    moved = Move(name=free_name(f"{entry.name}.steps", [node.name for node in graph.nodes]), kind="move",
                 inputs=(entry.name,), shape=entry.shape, places=places, path=())
    nodes = [replace(node, inputs=tuple(moved.name if name == entry.name else name for name in node.inputs))
             for node in graph.having(*between.values()).nodes if node is not entry]
    return replace(graph, nodes=(steps, moved, *nodes))


def _channels_last(graph: Graph, entry: Any, notes: dict[str, str]) -> Graph:
    """The graph whose input is what one permutation makes of it, where layers over images take that alone."""
    users: list[Any] = graph.users(entry.name)
    if not users or entry.name in graph.ends or torch.Size(users[0].sizes).numel() != torch.Size(entry.sizes).numel():
        return graph
    first = users[0]
    if not all(isinstance(user, Move) and user.inputs == (entry.name,) and user.batch == 0 and torch.equal(
            user.places, first.places) for user in users):
        return graph
    numbers = torch.arange(first.places.numel()).view(entry.sizes)
    axes = next((axes for axes in ((2, 0, 1), (1, 0)) if len(axes) == len(entry.sizes) and torch.equal(
        numbers.permute(axes).reshape(-1), first.places.reshape(-1))), None)
    takers = [taker for user in users for taker in graph.users(user.name)]
    if axes is None or not takers or graph.ends & {user.name for user in users} or not all(
            taker.over_images for taker in takers):
        return graph
    made = replace(entry, shape=first.shape, axes=axes, given=entry.sizes)
    note = f"part of {entry.name}: its data is read in this order"
    notes.update({name: note for user in users for name in user.path})
    graph = graph.having(made)
    for user in users:
        graph = graph.without(user)
    return graph


def _columns_first(graph: Graph, entry: Any, notes: dict[str, str]) -> Graph:
    """The graph whose images have rows and columns exchanged, where only so columns become steps."""
    if len(entry.sizes) != 3 or entry.axes:
        return graph
    images, ends, todo = {entry.name: entry.exchanged()}, dict[str, Node](), [entry.name]
    while todo:
        for user in graph.users(todo.pop()):
            if len(user.sizes) == 3 and user.batch == 0 and getattr(user, "axis", None) in (1, None) and (
                    other := user.exchanged()):
                todo += [] if user.name in images else [user.name]
                images[user.name] = other
            else:
                ends[user.name] = user
    if graph.ends & set(images) or not all(
            set(node.inputs) <= set(images) for node in images.values()):
        return graph
    made: list[Node] = []
    wanted = False
    for node in ends.values():
        source = graph[node.inputs[0]].sizes
        if isinstance(node, Reduce) and set(node.axes) == {2, 3}:
            continue
        if not isinstance(node, Move) or len(node.inputs) > 1:
            return graph
        places = _numbers(source)[node.places]
        found = flattening(places.numpy(), Flow(source[0], (source[2], source[1])))
        if found is None:
            return graph
        wanted |= found[1] and flattening(node.places.numpy(), Flow(source[0], (source[1], source[2]))) is None
        made.append(replace(node, places=places))
    if not wanted:
        return graph
    made += images.values()
    notes.update(dict.fromkeys((name for name, node in images.items() if hasattr(node, "bias")),
                               "with rows and columns exchanged"))
    return graph.having(*made)


def _numbers(sizes: tuple[int, ...]) -> Tensor:
    """For each value of images (channels, height, width) its number where rows and columns are exchanged."""
    numbers = torch.arange(int(np.prod(sizes))).view(sizes[0], sizes[2], sizes[1])
    return numbers.transpose(1, 2).reshape(-1)
