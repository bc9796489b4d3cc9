"""The neutral graph: what a model computes, without torch's modules and without its ways of writing the same thing.

A node has inputs by name, so branches and residual sums fit. Operations, and what their options hold:

    input                  the data
    linear                 first columns (1, p, q, k), their constraint, bias, and the format (grid) on which the
                           weights lie, where a quantizer says one; over the last axis
    conv                   the same over the channels, axis 1, one group for each position; stride, padding
    both, scale, add       relu, when a ReLU has become part of them
    gru, lstm, rnn         the module; returns "sequence" or "last" (with two directions, the end of each)
    scale                  scale and shift for each channel of an axis: a batch normalisation that is not folded
    relu, add              nothing
    activation             function, parameters, as `circulant.sim.arith.activation.exact_function` has them; format,
                           where a quantizer says one
    softmax                log, whether it is the logarithm; over the last axis
    max_pool, average_pool kernel, stride, padding over the last axes
    maximum, mean          axes that are reduced, keep (whether they stay as 1)
    reshape, permute       shape, or order of the axes
    last_step, ends        the axis of time; ends are the last steps of both directions, each where it finishes
"""
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Graph", "Node", "simplify"]

STEPWISE = ("linear", "relu", "activation")
"""Operations that treat every step alike, so that the last step may as well be taken before them."""

RECTIFIED = ("linear", "conv", "scale", "add")
"""Operations that a ReLU behind them becomes part of."""


ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hard_sigmoid": functional.hardsigmoid,
    "hard_tanh": functional.hardtanh, "relu": functional.relu, "leaky_relu": functional.leaky_relu,
    "clip": torch.clamp}
"""Functions of activations in torch."""


@dataclass(frozen=True, eq=False)
class Node:
    """One operation.

    Parameters:
        name: differs from that of every other node; the path of a module where it is one.
        kind: what the user wrote: "Conv2d", "add".
        shape: of the result, None for the axis of the batch.
        module: the recurrent layer of "gru", "lstm" and "rnn".
    """

    name: str
    op: str
    kind: str
    inputs: tuple[str, ...]
    shape: tuple[int | None, ...]
    module: nn.Module | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can be computed, the input first; ``output`` is the name of the result.

    Parameters:
        dropped: "softmax" or "log_softmax", where the model ends with one, which the graph leaves out.
    """

    nodes: tuple[Node, ...]
    output: str
    dropped: str = ""

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def users(self, name: str) -> list[Node]:
        """The nodes that take the result of a node."""
        return [node for node in self.nodes if name in node.inputs]

    def run(self, x: Tensor) -> Tensor:
        """The output for inputs x, by torch: the graph's own meaning, to be compared with the model's."""
        values: dict[str, Tensor] = {}
        for node in self.nodes:
            y = _compute(node, [values[name] for name in node.inputs], x)
            values[node.name] = functional.relu(y) if node.options.get("relu") else y
        return values[self.output]


def _compute(node: Node, given: list[Tensor], x: Tensor) -> Tensor:
    options = node.options
    first = given[0] if given else x
    if node.op in ("linear", "conv"):
        weight = options["constraint"](options["first"]).to(first)
        bias = options["bias"].to(first)
        if node.op == "linear":
            return functional.linear(first, weight, bias)
        convolve = functional.conv2d if weight.ndim == 4 else functional.conv1d
        return convolve(first, weight, bias, options["stride"], options["padding"])
    if node.op in ("gru", "lstm", "rnn"):
        assert node.module is not None
        return _recurrent(node.module, options["returns"], first)
    if node.op == "scale":
        scale, shift = (options[part].to(first).view(-1, *(1,) * (first.ndim - 1 - options["axis"]))
                        for part in ("scale", "shift"))
        return first * scale + shift
    simple = {
        "input": lambda: first,
        "relu": lambda: functional.relu(first),
        "activation": lambda: ACTIVATIONS[options["function"]](first, *options["parameters"]),
        "softmax": lambda: (functional.log_softmax if options["log"] else functional.softmax)(first, -1),
        "add": lambda: given[0] + given[-1],
        "max_pool": lambda: _pool(functional.max_pool1d, functional.max_pool2d, first, options),
        "average_pool": lambda: _pool(functional.avg_pool1d, functional.avg_pool2d, first, options),
        "maximum": lambda: first.amax(options["axes"], keepdim=options["keep"]),
        "mean": lambda: first.mean(options["axes"], keepdim=options["keep"]),
        "reshape": lambda: first.reshape([-1 if size is None else size for size in node.shape]),
        "permute": lambda: first.permute(options["order"]),
        "last_step": lambda: first.select(options["axis"], -1),
        "ends": lambda: _ends(first, options["axis"]),
    }
    return simple[node.op]()


def _recurrent(module: nn.Module, returns: str, x: Tensor) -> Tensor:
    steps, states = module(x)
    if returns == "sequence":
        return steps
    last = states[0] if isinstance(states, tuple) else states  # (layers · directions, N, outputs)
    return torch.cat(tuple(last[-2:]), -1) if module.bidirectional else last[-1]


def _ends(x: Tensor, time: int) -> Tensor:
    forward, backward = x.chunk(2, -1)
    return torch.cat((forward.select(time, -1), backward.select(time, 0)), -1)


def _pool(one: Any, two: Any, x: Tensor, options: Mapping[str, Any]) -> Tensor:
    pool = one if len(options["kernel"]) == 1 else two
    return pool(x, options["kernel"], options["stride"], options["padding"])


def simplify(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The same function with fewer nodes: scales and ReLUs folded, last steps taken by the recurrent layers themselves.

    A scale s and shift t of the outputs of a matrix is another matrix, diag(s)·W, which is block-circulant only where s
    is one number within each block of rows. There (always at block size 1) it is folded, exactly; elsewhere, and where
    the weights of the matrix are quantized, the scale stays a node of its own, and only the bias of the matrix moves
    into its shift.

    Returns:
        The graph, and for each name what became of it, where a node went or changed.
    """
    notes: dict[str, str] = {}
    for name in [node.name for node in graph.nodes]:
        node = graph[name]  # what it takes may have changed
        if node.op == "scale":
            graph, notes[node.name] = _fold(graph, node)
            continue
        while (moved := _before(graph, node)) is not None:
            order, options = moved.options["order"], dict(node.options)
            if node.op == "last_step":
                node = replace(node, inputs=moved.inputs, options=options | {"axis": order[options["axis"]]})
            else:  # Axes that stay as 1 would be elsewhere; what follows gives the values a shape of its own.
                axes = tuple(sorted(order[axis] for axis in options["axes"]))
                shape = tuple(size for axis, size in enumerate(node.shape)
                              if not options["keep"] or axis not in options["axes"])
                node = replace(node, inputs=moved.inputs, shape=shape, options={"axes": axes, "keep": False})
            graph = _without(_with(graph, node), moved)
            notes[moved.name] = f"without effect on {node.name}"
        if node.op in ("last_step", "ends") and (path := _to_recurrent(graph, node)):
            source, *between = (replace(step, shape=(None, step.shape[-1])) for step in path)  # the axis of time goes
            source = replace(source, options=dict(source.options) | {"returns": "last"})
            graph = _without(_with(graph, source, *between), node)
            notes[node.name] = f"part of {source.name}"
    for name in [node.name for node in graph.nodes]:
        node = graph[name]
        if node.op == "relu" and (source := graph[node.inputs[0]]).op in RECTIFIED and len(
                graph.users(source.name)) == 1:
            graph = _without(_with(graph, replace(source, options=dict(source.options) | {"relu": True})), node)
            notes[name] = f"into {source.name}"
    last = graph[graph.output]
    if last.op == "softmax":
        notes[last.name] = "dropped: the greatest output stays the greatest"
        graph = replace(_without(graph, last), dropped="log_softmax" if last.options["log"] else "softmax")
    return graph, notes


def _fold(graph: Graph, node: Node) -> tuple[Graph, str]:
    """A scale into the matrix before it, as far as the structure of that allows."""
    source = graph[node.inputs[0]]
    axis = len(source.shape) - 1 if source.op == "linear" else 1
    if source.op not in ("linear", "conv") or axis != node.options["axis"] or len(graph.users(source.name)) > 1:
        return graph, "not folded, as no matrix stands alone before it"
    scale, shift = node.options["scale"], node.options["shift"]
    first, bias, k = source.options["first"], source.options["bias"], source.options["constraint"].block_size
    padded = torch.cat([scale, scale[-1:].expand(-len(scale) % k)]).view(-1, k)  # (p, k)
    shift = shift + scale * bias
    held = source.options["grid"] is not None and not bool((scale == 1).all())
    if not held and bool((padded == padded[:, :1]).all()):
        options = dict(source.options) | {"first": first * padded[:, 0, None, None], "bias": shift}
        return _without(_with(graph, replace(source, options=options)), node), f"into {source.name}, exactly"
    graph = _with(graph, replace(source, options=dict(source.options) | {"bias": torch.zeros_like(bias)}),
                  replace(node, options=dict(node.options) | {"shift": shift}))
    if held:
        return graph, f"not folded, as the weights of {source.name} are quantized"
    return graph, f"not folded, as it differs within the blocks of {k} of {source.name}"


def _to_recurrent(graph: Graph, node: Node) -> list[Node]:
    """The recurrent layer that may give its last step alone, and what lies between; empty where it may not."""
    path = [node]
    while path[0].op not in ("gru", "lstm", "rnn"):
        source = graph[path[0].inputs[0]]
        path.insert(0, source)
        passes = source.op in STEPWISE and node.op == "last_step"
        if source.op in ("gru", "lstm", "rnn"):
            passes = getattr(source.module, "bidirectional", False) == (node.op == "ends")
        if not passes or len(graph.users(source.name)) != 1:
            return []
    return path[:-1]


def _before(graph: Graph, node: Node) -> Node | None:
    """The permutation that a last step, a mean or a maximum may be taken before: nobody else takes its axes, and the
    rest keep their order; None where there is none."""
    if node.op not in ("last_step", "mean", "maximum") or (moved := graph[node.inputs[0]]).op != "permute":
        return None
    if node.options.get("keep") and any(user.op != "reshape" for user in graph.users(node.name)):
        return None
    taken = (node.options["axis"],) if node.op == "last_step" else node.options["axes"]
    rest = [axis for number, axis in enumerate(moved.options["order"]) if number not in taken]
    return moved if len(graph.users(moved.name)) == 1 and rest == sorted(rest) else None


def _with(graph: Graph, *changed: Node) -> Graph:
    by_name = {node.name: node for node in changed}
    return replace(graph, nodes=tuple(by_name.get(node.name, node) for node in graph.nodes))


def _without(graph: Graph, gone: Node) -> Graph:
    """The graph without a node of one input, which takes its place."""
    def renamed(name: str) -> str:
        return gone.inputs[0] if name == gone.name else name

    nodes = tuple(replace(node, inputs=tuple(map(renamed, node.inputs))) for node in graph.nodes if node is not gone
                  and node.name != gone.name)
    return replace(graph, nodes=nodes, output=renamed(graph.output))
