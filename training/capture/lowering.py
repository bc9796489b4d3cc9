"""From the neutral graph to the layers of the reference, which the golden model quantizes."""
import re
from typing import Any

import numpy as np
from torch import Tensor

from circulant.sim.arith.fixed import Format, Reals
from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.real import float_model
from circulant.sim.real.float_model import Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow, Grid, Window
from circulant.training.blocks.matrices import block_sizes
from circulant.training.capture.graph import Graph, Node
from circulant.training.capture.images import IMAGES, grid_of, pair, takes_images
from circulant.training.capture.moves import MOVES, arrival, flattening, numbered, unchanged
from circulant.training.capture.recurrent import as_numpy, level
from circulant.training.capture.report import NO_LAYER
from circulant.training.models.quantizer import grids_of

__all__ = ["Lowering", "lower", "missing", "moves_batch"]

LONGEST = 60
"""Characters of a layer's name: it becomes part of names of files, of Verilog modules and of C."""

Made = tuple[list[Stage], Flow | None]
"""Layers, and what the last one gives; None where there is none, and who takes it is judged by its shape."""


def missing(graph: Graph) -> dict[str, str]:
    """The nodes for which the golden model has no layer, with the reason."""
    return Lowering(graph, judging=True).problems


def lower(graph: Graph) -> "Lowering":
    """The layers of the reference, in their order; everything of the graph must have one (see `missing`)."""
    return Lowering(graph)


def moves_batch(node: Node) -> bool:
    """Whether a node only moves the axis of the batch, and so does nothing to a single sample."""
    if node.op != "permute":
        return False
    order, batch = node.options["order"], node.shape.index(None)
    rest = [axis for axis in order if axis != order[batch]]
    return rest == sorted(rest)


class Lowering:
    """Follows a graph from its input to its output, and where it forks through both branches to their sum.

    Members:
        start: what the first layer takes.
        shape: of a sample, where `circulant.sim.real.float_model.Model` asks for it.
        layers: of the reference, in their order. Their names are letters, digits and underscores, start with a letter,
            and differ from one another.
        formats: by activation layer that of its outputs, where a quantizer says it.
        grids: by matrix the format on whose grid its weights lie, where a quantizer says it.
        problems: the nodes that have no layer, with the reason.

    Parameters:
        judging: only `problems` are wanted, of a model with any weights; recurrent layers are then left out.
    """

    def __init__(self, graph: Graph, *, judging: bool = False) -> None:
        self._judging = judging
        self.problems: dict[str, str] = {}
        self.formats, self.grids = dict[str, Format](), dict[str, Format]()
        self.shape: tuple[int, ...] = ()
        self._graph = graph
        self._names, self._judged = set[str](), set[str]()
        source = graph.nodes[0]
        moves, users = self._moves(source)
        self.start = self._entry(source, moves, users)
        self.layers = tuple(self._run(moves[-1] if moves else source, self.start))
        for node in graph.nodes if judging else ():  # Those behind branches that do not meet.
            if node.op not in ("input", "add", *MOVES) and node.name not in self._judged:
                self._one(node, self._entry(graph[node.inputs[0]], [], [node]))

    def _run(self, at: Node, flow: Flow | None) -> list[Stage]:
        """The layers behind a node."""
        layers: list[Stage] = []
        while True:
            moves, users = self._moves(at)
            if flow is None:
                flow = self._entry(at, moves, users)
            else:
                found, flow = self._moved(at, flow, moves, users)
                layers += found
            at = moves[-1] if moves else at
            if not users:
                return layers
            if flow is None:
                flow = self._entry(at, [], users)
            if len(users) > 1:
                join = next((node for node in self._graph.nodes if node.op == "add" and len(node.inputs) == 2 and all(
                    self._leads(side, at) for side in node.inputs)), None)
                if join is None or len(users) > 2:
                    for user in users:
                        self._problem(user, f"{NO_LAYER} for branches that do not meet in a sum")
                    return layers
                found, flow = self._residual(join, at, flow)
                at = join
            else:
                found, flow = self._one(users[0], flow)
                at = users[0]
            layers += found

    def _problem(self, node: Node, reason: str = NO_LAYER) -> Made:
        self.problems.setdefault(node.name, reason)
        return [], None

    def _moves(self, at: Node) -> tuple[list[Node], list[Node]]:
        """The nodes behind a node that only move values, and what takes them then."""
        moves: list[Node] = []
        while at.name != self._graph.output:
            users = self._graph.users(at.name)
            if len(users) > 1 or users[0].op not in MOVES:
                return moves, users
            at = users[0]
            moves.append(at)
        return moves, []

    def _entry(self, source: Node, moves: list[Node], users: list[Node]) -> Flow:
        """The flow that the first layer takes; also one behind a node without a layer, which is judged by itself."""
        came, went = numbered(source), arrival(source, moves)
        while len(users) == 1 and users[0].op in ("activation", "relu") and users[0].name != self._graph.output:
            users = self._graph.users(users[0].name)
        if not unchanged(went):
            for move in moves:
                self._problem(move)
            return self._entry(moves[-1], [], users)
        if went.ndim in (2, 3) and takes_images(users, went.ndim):
            self.shape = went.shape
            return Flow(went.shape[0], grid_of(went.shape))
        if went.ndim == 1:
            self.shape = came.shape if came.ndim > 1 else ()
            return Flow(len(went))
        if went.ndim == 2:
            self.shape = came.shape if came.ndim != 2 or came.shape != went.shape else ()
            return Flow(went.shape[1], sequence=True)
        return Flow(came.shape[-1], sequence=came.ndim == 2)

    def _moved(self, at: Node, flow: Flow, moves: list[Node], users: list[Node]) -> Made:
        """Layers and flow that those who move the values of a node make of them."""
        if at.op == "input":
            return [], flow
        went = arrival(at, moves)
        if flow.grid is None or (went.ndim > 1 and takes_images(users, went.ndim, came=True)):
            vectors = flow.grid is None and not flow.sequence
            if (vectors or went.shape == numbered(at).shape) and unchanged(went):
                return [], flow
        elif found := flattening(went, flow):
            name = moves[-1].name if moves else f"{at.name}_flat"
            layer = FloatFlatten(self._name(name, "flatten"), flow.size, flow.grid, *found)
            return [layer], Flow(layer.outputs, sequence=layer.rows)
        elif not moves and users:
            return [], flow
        for move in moves or [at]:
            self._problem(move, NO_LAYER if moves else f"{NO_LAYER} for images behind it; flatten them")
        return [], None

    def _residual(self, join: Node, fork: Node, flow: Flow) -> Made:
        """The sum of both branches."""
        known = len(self.problems)
        chains: list[tuple[Stage, ...]] = []
        end: Flow | None = None
        for side in join.inputs:
            layers: list[Stage] = []
            end, before = flow, fork
            for node in self._between(side, fork):
                found, end = self._one(node, end or self._entry(before, [], [node]))
                layers, before = layers + found, node
            chains.append(tuple(layers))
        if flow.grid is None and (whole := self._of_time(join, fork)):
            return self._problem(whole, f"{NO_LAYER} within a sum of vectors; only FloatLinear, activations and batch "
                                       "normalisation may stand there")
        if len(self.problems) > known:
            return [], end
        body, shortcut = sorted(chains, key=len, reverse=True)
        return [float_model.Residual(self._name(join.name, "sum"), flow.size, grid=flow.grid, body=body,
                                            shortcut=shortcut, relu=bool(join.options.get("relu")))], end

    def _of_time(self, join: Node, fork: Node) -> Node | None:
        """A node of one of both branches that does not take each vector by itself."""
        return next((node for side in join.inputs for node in self._between(side, fork)
                     if node.op not in ("linear", "activation", "relu", "scale")), None)

    def _leads(self, name: str, start: Node) -> bool:
        """Whether a chain of nodes leads from ``start`` to the one called ``name``."""
        while name != start.name:
            node = self._graph[name]
            if len(node.inputs) != 1 or len(self._graph.users(name)) != 1:
                return False
            name = node.inputs[0]
        return True

    def _between(self, name: str, start: Node) -> list[Node]:
        found: list[Node] = []
        while name != start.name:
            found.insert(0, self._graph[name])
            name = found[0].inputs[0]
        return found

    def _one(self, node: Node, flow: Flow) -> Made:
        """The layers of a node that computes something."""
        self._judged.add(node.name)
        if node.op in ("gru", "lstm", "rnn"):
            return self._recurrent(node, flow)
        if node.op == "last_step":
            return self._problem(
                node, f"{NO_LAYER}; take the ends of both directions, torch.cat((h_n[-2], h_n[-1]), -1)")
        if node.op == "softmax":
            return self._problem(node, f"{NO_LAYER} within a network; leave it out, or let it be the last node, where "
                                       "it is dropped")
        if node.op in ("mean", "maximum") and flow.sequence:
            return self._over_time(node, flow)
        if node.op not in (*IMAGES, "linear", "scale", "activation", "relu"):
            return self._problem(node)
        options, relu = node.options, bool(node.options.get("relu"))
        if node.op in ("activation", "relu"):
            name = self._name(node.name, node.op)
            if form := options.get("format"):
                self.formats[name] = form
            function = options.get("function", "relu")
            return [FloatActivation(name, flow.size, function, options.get("parameters", ()))], flow
        if node.op == "linear" and flow.grid is None:
            layer = FloatLinear(self._name(node.name, "linear"), flow.size, outputs=options["constraint"].rows,
                                weight=self._values(options["first"])[0], bias=self._values(options["bias"]), relu=relu)
            self._note_grid(layer.name, node, product=options["grid"])
            return [layer], Flow(layer.outputs, sequence=flow.sequence)
        if node.op == "scale" and options["axis"] == 1 and not flow.sequence:
            return [FloatScale(self._name(node.name, "scale"), flow.size, self._values(options["scale"]),
                               self._values(options["shift"]), relu)], flow
        if node.op not in IMAGES or flow.grid is None:
            return self._problem(node)
        return self._over_images(node, flow, flow.grid)

    def _over_time(self, node: Node, flow: Flow) -> Made:
        shape = self._graph[node.inputs[0]].shape
        steps = tuple(axis for axis, size in enumerate(shape[:-1]) if size is not None)
        if node.options["axes"] != steps:
            return self._problem(node, f"{NO_LAYER} over the features of a step; reduce the steps, axis {steps[0]}")
        mode = "max" if node.op == "maximum" else "mean"
        return [FloatOverTime(self._name(node.name, "pool"), flow.size, mode)], Flow(flow.size)

    def _over_images(self, node: Node, flow: Flow, grid: Grid) -> Made:
        options = node.options
        if node.op in ("maximum", "mean"):
            rank = len(self._graph[node.inputs[0]].shape)
            if options["axes"] != tuple(range(2, rank)):
                return self._problem(node)
            window = Window(grid)
        else:
            kernel = options["constraint"].kernel if node.op == "conv" else options["kernel"]
            window = Window(pair(kernel, 1), pair(options["stride"], 1), pair(options["padding"], 0))
        try:
            after = window.outputs(node.name, grid)
        except Refusal as refusal:
            return self._problem(node, str(refusal))
        if node.op == "conv":
            conv = FloatConv(self._name(node.name, "conv"), inputs=flow.size,
                             outputs=options["constraint"].rows, grid=grid,
                             window=window, weight=self._values(options["first"]),
                             bias=self._values(options["bias"]), relu=bool(options.get("relu")))
            self._note_grid(conv.name, node, product=options["grid"])
            return [conv], Flow(conv.outputs, after)
        mode = "max" if node.op in ("max_pool", "maximum") else "average"
        pool = FloatPool(self._name(node.name, "pool"), flow.size, grid, window, mode)
        return [pool], Flow(flow.size, after)

    def _recurrent(self, node: Node, flow: Flow) -> Made:
        module: Any = node.module
        sizes = set(block_sizes(module).values())
        if len(sizes) > 1:
            return self._problem(node, f"its matrices have block sizes {', '.join(map(str, sorted(sizes)))}, but those "
                                       "of a recurrent layer must share one")
        if not flow.sequence:
            return self._problem(node)
        after = Flow(node.shape[-1] or 0, sequence=node.options["returns"] != "last")
        if self._judging:
            return [], after
        layers: list[Stage] = []
        for number in range(module.num_layers):
            path = f"{node.name}.l{number}" if module.num_layers > 1 else node.name
            last = node.options["returns"] == "last" and number == module.num_layers - 1
            layers.append(level(self._name(path, node.op), module, number, "last" if last else "sequence"))
            directions = ((".forward", ""), (".backward", "_reverse")) if module.bidirectional else (("", ""),)
            for side, suffix in directions:
                found = (grids_of(module).get(f"weight_{part}_l{number}{suffix}") for part in ("ih", "hh"))
                self._note_grid(f"{layers[-1].name}{side}", node,
                                **dict(zip(("input_product", "recurrent_product"), found, strict=True)))
        return layers, after

    def _note_grid(self, name: str, node: Node, **grids: Format | None) -> None:
        """Keep the formats of a layer's matrices.

        Raises:
            Refusal: when the layer is block-circulant, so that spectra are stored in place of its weights.
        """
        known = {} if self._judging else {f"{name}.{role}": grid for role, grid in grids.items() if grid is not None}
        sizes = block_sizes(node.module) if node.module is not None else {"": node.options["constraint"].block_size}
        if known and set(sizes.values()) != {1}:
            raise Refusal(f"A layer whose weights have a quantizer must be dense, as one of blocks stores spectra "
                          f"instead of weights, but {name!r} has blocks of {max(sizes.values())}; import it without "
                          "quantizers: from_onnx(path, x, quantizers=False)")
        self.grids |= known

    def _values(self, tensor: Tensor) -> Reals:
        """Weights, those that are not finite as 0 while nobody asks for them."""
        return np.nan_to_num(as_numpy(tensor), posinf=0, neginf=0) if self._judging else as_numpy(tensor)

    def _name(self, path: str, kind: str) -> str:
        """A name that no other layer has."""
        name = re.sub(r"\W", "_", path, flags=re.ASCII).strip("_")
        if not name[:1].isalpha():
            name = f"{kind}_{name}"
        name = name[:LONGEST].rstrip("_")
        if name in self._names:
            name = next(other for i in range(2, len(self._names) + 3) if (other := f"{name}_{i}") not in self._names)
        self._names.add(name)
        return name
