"""Layers of the reference in the making: their names, sources and sizes, which are known at the end."""
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.stages import Unbuilt, arranged
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.real.float_model import Bidirectional, Model, Residual, Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, free_name, linked
from circulant.sim.shape.graph import Node as Edge
from circulant.sim.shape.layer import OverImages
from circulant.sim.shape.window import Flow
from circulant.training.neutral.graph import Graph, Move, Node
from circulant.training.neutral.rearranging import Rearrangement
from circulant.training.neutral.streams import Form, Places, Stream

__all__ = ["LONGEST", "NO_LAYER", "Maker"]

NO_LAYER = "no golden layer"
"""Why most nodes that are captured do not export."""

LONGEST = 60
"""Characters of a layer's name: it becomes part of names of files, of Verilog modules and of C."""


class Maker:
    """Layers that the nodes of a graph become, in its order.

    Members:
        streams: of the nodes that are no moves, by name.
        formats: by activation layer that of its outputs, where a quantizer says it.
        grids: by matrix the format on whose grid its weights lie, where a quantizer says it.
        problems: the nodes that have no layer, with the reason; each is judged by itself.
        notes: what a layer costs that the user did not ask for, by the names of calls.

    Parameters:
        judging: only `problems` are wanted.
    """

    def __init__(self, graph: Graph, *, judging: bool = False) -> None:
        self.graph, self.judging = graph, judging
        self.problems, self.notes = dict[str, str](), dict[str, str]()
        self.formats, self.grids = dict[str, Format](), dict[str, Format]()
        self.streams = dict[str, Stream]()
        self._made: list[tuple[Callable[[], Stage], tuple[str, ...]]] = []
        self._nodes, self._behind = dict[str, str](), dict[str, set[str]]()  # By the names of layers.
        self._extra = dict[tuple[str, object], Stream]()
        self._pieces = dict[str, tuple[Stream, Places] | None]()  # By moves that put such side by side.
        self._moved = dict[str, tuple[Stream, Rearrangement]]()  # By layers that do nothing else.
        self._outputs = list[str]()

    def model(self, name: str) -> Model:
        """The reference, where there are no problems."""
        nodes, inputs, entries = list[Edge](), list[Input](), dict[str, str]()
        for entry in self.graph.inputs:
            wish = "input" if len(self.graph.inputs) == 1 else re.sub(r"\W", "_", entry.name, flags=re.ASCII)
            entries[entry.name] = free_name(wish, {*self._nodes, *entries.values()})
            form = self.streams[entry.name].form
            assert form.flow is not None
            plain = form.flow.grid is None and len(entry.sizes) == 1 + form.flow.sequence and form.shape == entry.sizes
            shape = () if plain else form.shape if form.flow.grid else entry.sizes
            inputs.append(Input(entries[entry.name], form.flow, entry.given or shape, entry.axes))
        for make, sources in self._made:
            layer = make()
            taken = tuple(entries.get(source, source) for source in sources)
            nodes += linked([layer], taken[0]) if hasattr(layer, "nodes") else [Edge(layer, taken)]
        return Model(name, tuple(inputs), tuple(nodes), tuple(self._outputs))

    def problem(self, name: str, reason: str = NO_LAYER) -> None:
        """Note that a node has no layer."""
        self.problems.setdefault(name, reason)

    def give(self, node: str, kind: str, source: Stream, make: Callable[[str, Flow], Stage], form: Form, *,
             order: Places | None = None, others: tuple[Stream, ...] = (), path: str = "") -> Stream:
        """The stream of a new layer.

        Parameters:
            node: what it is made of.
            kind: begins its name where that of the node is none.
            make: from its name and the flow that comes to it.
            form: of what it gives.
            order: of that; as torch has it where none is given.
            others: further sources.
            path: what it is called after, where that is not the node.
        """
        name, sources = self._name(path or node, kind), (source, *others)

        def made() -> Stage:
            assert source.form.flow is not None
            return make(name, source.form.flow)

        self._made.append((made, tuple(each.name for each in sources)))
        self._nodes[name] = node
        self._behind[name] = {name}.union(*(self._behind.get(each.name, set()) for each in sources))
        return Stream(name, form, np.arange(int(np.prod(form.shape))) if order is None else order)

    def behind(self, stream: Stream) -> int:
        """How many layers a stream has come through."""
        return len(self._behind.get(stream.name, ()))

    def fresh(self, node: Node) -> Stream:
        """The values of an input, or of a node without a layer: what follows is judged by itself."""
        return Stream(node.name, Form(), np.arange(int(np.prod(node.sizes))))

    def settled(self, stream: Stream) -> Stream:
        """A stream, its parts put side by side."""
        if not stream.parts:
            return stream
        key, (first, *others) = (stream.name, "joined"), stream.parts
        if key not in self._extra:
            sizes = tuple(part.form.flow.size for part in stream.parts if part.form.flow is not None)
            self._extra[key] = self.give(stream.name, "concat", first, lambda name, flow: FloatConcat(name, sizes),
                                         stream.form, others=tuple(others))
        return Stream(self._extra[key].name, stream.form, stream.order)

    def _flat(self, name: str, stream: Stream, order: str, rows: bool) -> Stream:
        """The stream of the layer that flattens images, one for all that take it."""
        flow, key = stream.form.flow, (stream.name, (order, rows))
        assert flow is not None and flow.grid is not None
        if key not in self._extra:
            grid = flow.grid
            self._extra[key] = self.give(
                name, "flatten", stream, lambda name, flow: FloatFlatten(name, flow.size, grid, order, rows),
                Form.of(Flow(FloatFlatten("", flow.size, grid, order, rows).outputs, sequence=rows), grid[0]),
                path=name if isinstance(self.graph[name], Move) else f"{name}_flat")
        return self._extra[key]

    def astray(self, node: Node, name: str, *, images: bool = False) -> None:
        """Note that a node cannot take the values that come from another one as they come.

        Parameters:
            images: whether they are images, which it does not take.
        """
        came = self.graph[name]
        if isinstance(came, Move) and came.path and came.places.ndim == 2 and bool(
                (len(came.places) > 1) & (came.places == came.places[0]).all()):
            self.problem(came.path[-1], f"it repeats a vector for {len(came.places)} steps, which no sequence that it "
                                        "is made of has; repeat it for x.shape[1]")
        elif isinstance(came, Move):
            for each in came.path or (node.name,):
                self.problem(each)
        else:
            self.problem(name if images else node.name,
                         f"{NO_LAYER} for images behind it; flatten them" if images else NO_LAYER)

    def note_grid(self, name: str, sizes: set[int], **grids: Format | None) -> None:
        """Keep the formats of a layer's matrices.

        Raises:
            Refusal: when the layer is block-circulant, so that spectra are stored in place of its weights.
        """
        known = {} if self.judging else {f"{name}.{role}": grid for role, grid in grids.items() if grid is not None}
        if known and sizes != {1}:
            raise Refusal(f"A layer whose weights have a quantizer must be dense, as one of blocks stores spectra "
                          f"instead of weights, but {name!r} has blocks of {max(sizes)}; import it without "
                          "quantizers: from_onnx(path, x, quantizers=False)")
        self.grids |= known

    def _name(self, path: str, kind: str) -> str:
        """A name that no other layer has: letters, digits and underscores, the first a letter."""
        name = re.sub(r"\W", "_", path, flags=re.ASCII).strip("_")
        if not name[:1].isalpha():
            name = f"{kind}_{name}"
        name = name[:LONGEST].rstrip("_")
        return name if name not in self._nodes else next(
            other for n in range(2, len(self._nodes) + 3) if (other := f"{name}_{n}") not in self._nodes)

    def _drop(self, name: str) -> None:
        """Take back the layer that was made last."""
        self._made.pop()
        for known in (self._nodes, self._behind):
            known.pop(name)

    def check_circuit(self) -> None:
        """Note what no circuit is built for."""
        def residual(layer: Any, flow: Flow, before: list[Any], body: list[Any], shortcut: list[Any]) -> Residual:
            return Residual(layer.name, flow.size, flow.grid, body=tuple(body), shortcut=tuple(shortcut),
                            relu=layer.relu)

        try:
            found = arranged(self.model("model"), residual, Bidirectional).each
        except Unbuilt as refusal:
            self.problem(self._nodes[refusal.layer.partition(".")[0]], str(refusal))
            return
        for stage in found:
            for layer in _within(stage):
                if not (getattr(layer, "stepwise", False) or isinstance(layer, OverImages)):
                    self.problem(self._nodes[layer.name.partition(".")[0]], f"{NO_LAYER} within a sum of images")


def _within(stage: Any) -> Iterator[Any]:
    """The layers of the branches of a sum, and of those within them."""
    if stage.kind == "residual":
        for part in (*stage.body, *stage.shortcut):
            yield from _within(part) if part.kind == "residual" else (part,)
