"""Builder of the reference: streams of values between layers, and the layers, whose sizes are known at the end."""
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.stages import Unbuilt, arranged
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.real.float_model import Bidirectional, Model, Residual, Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, free_name, linked
from circulant.sim.shape.graph import Node as Edge
from circulant.sim.shape.layer import OverImages
from circulant.sim.shape.window import Flow
from circulant.training.capture.graph import Constant, Graph, Move, Node
from circulant.training.capture.rearranging import Rearrangement, of_steps, of_values
from circulant.training.capture.recurrent import as_numpy
from circulant.training.capture.report import NO_LAYER
from circulant.training.capture.simplify import ends
from circulant.training.capture.streams import Form, Places, Stream, flattening, grid_of, joined, unchanged

__all__ = ["LONGEST", "Builder"]

LONGEST = 60
"""Characters of a layer's name: it becomes part of names of files, of Verilog modules and of C."""


class Builder:
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

    def source(self, name: str) -> tuple[Stream, Places]:
        """The stream of what a node takes, and the numbers of the values that come, in the shape in which they come."""
        node = self.graph[name]
        if not isinstance(node, Move):
            return self.streams[name], np.arange(int(np.prod(node.sizes))).reshape(node.sizes)
        parts = [self.streams[each] for each in node.inputs]
        stream = parts[0] if len(parts) == 1 else joined(name, parts)
        if len(parts) > 1 and name not in self._pieces:
            self._pieces[name] = self._side_by_side(node)
        if pieces := self._pieces.get(name):
            return pieces
        if stream is None:
            stream = self.rearranged(name)
            if stream is None:
                self.astray(node, name)
            return stream or self.fresh(node), np.arange(node.places.numel()).reshape(node.sizes)
        return stream, node.places.numpy()

    def single(self, node: Node, number: int = 0) -> Stream:
        """The stream of a node that works on each value by itself."""
        stream, places = self.source(node.inputs[number])
        if (found := stream.moved(places)) is not None:
            return self.settled(found)
        if (made := self.rearranged(node.inputs[number])) is not None:
            return made
        self.astray(node, node.inputs[number])
        return Stream("", Form(), np.arange(places.size))

    def taken(self, node: Node, number: int = 0, *, images: bool = False, sequence: bool = False) -> Stream:
        """The stream of a node that takes images, or else vectors and sequences of them, or sequences alone."""
        name = node.inputs[number]
        stream, places = self.source(name)
        at, form = stream.at(places), stream.form
        whole = at.size == stream.order.size and unchanged(at)
        if form.flow is None:
            fits = whole and form.become(at, images=images)
            if not fits and not images and (turned := self._turned(name, stream, at)):
                return self._flat(name, stream, *turned)
        elif images:
            fits = whole and form.flow.grid == grid_of(at.shape) and at.shape[0] == form.flow.size
        elif form.flow.grid is None:
            fits = whole and at.shape[-1] == form.flow.size
        elif (found := flattening(at, form.flow)) and (found[1] or not sequence):
            return self._flat(name, self.settled(stream), *found)
        else:
            fits = False
        if fits and form.flow is not None and (form.flow.sequence or not sequence):
            return self.settled(stream)
        if (made := self.rearranged(name)) is not None and made.form.flow is not None and (
                made.form.flow.sequence or not sequence) and (
                    (images and made.form.flow.grid == grid_of(places.shape)) or made.form.shape == places.shape):
            return made
        self.astray(node, name, images=not images and form.flow is not None and form.flow.grid is not None)
        virtual = Stream("", Form(), np.arange(places.size))
        virtual.form.become(virtual.order.reshape(places.shape), images=images)
        return virtual

    def steps(self, node: Node) -> Stream | None:
        """The sequence that a node takes with its features first, (size, steps); None where none comes so."""
        name = node.inputs[0]
        stream, places = self.source(name)
        at, form = stream.at(places), stream.form
        if form.flow is None and at.ndim == 2 and not (
                at.size == stream.order.size and form.become(at.T, images=False)):
            form.become(at, images=True)
        if form.flow is not None and form.flow.grid is not None and (found := flattening(at.T, form.flow)) and found[1]:
            return self._flat(name, self.settled(stream), *found)
        if form.flow is not None and form.flow.sequence and at.size == stream.order.size and unchanged(at.T):
            return self.settled(stream)
        self.astray(node, name)
        return None

    def end(self, name: str) -> None:
        """Take an output. Axes of one element do not count, images and what has more axes than a sequence come as a
        vector of all values, and what no layer gives, or is an output already, gets one that changes nothing."""
        stream, places = self.source(name)
        if (key := (name, "moved")) in self._extra or (
                stream.at(places).size < stream.order.size and self.rearranged(name)):
            stream, places = self._extra[key], np.arange(places.size).reshape(places.shape)
        at, form = stream.at(places), stream.form
        many, whole = [size for size in at.shape if size > 1], at.size == stream.order.size and unchanged(at)
        if form.flow is None and whole and not form.become(at, images=False):
            form.become(at.reshape(-1), images=False)
        if form.flow is not None and form.flow.grid is not None and (
                found := flattening(at, form.flow) or flattening(at.reshape(many or [1]), form.flow) or flattening(
                    at.reshape(-1), form.flow)):
            stream = self._flat(name, self.settled(stream), *found)
        elif form.flow is not None and form.flow.grid is None and whole and (not form.flow.sequence or many == [
                size for size in form.shape if size > 1]):
            stream = self.settled(stream)
        elif (made := self.rearranged(name)) is not None:
            stream = made
        else:
            self.astray(self.graph[name], name, images=form.flow is not None and form.flow.grid is not None)
            return
        if stream.name not in self._nodes or stream.name in self._outputs:
            stream = self.give(name, "same", stream, lambda name, flow: FloatScale(
                name, flow.size, np.ones(flow.size), np.zeros(flow.size)), form, order=stream.order)
        self._outputs.append(stream.name)

    def rearranged(self, name: str) -> Stream | None:
        """The stream of a layer that moves the values of vectors, or of each step, to the places that a node wants;
        None where there is none."""
        node, key = self.graph[name], (name, "moved")
        if not isinstance(node, Move):
            return None
        if key not in self._extra:
            if len(node.inputs) == 1 and (picked := self._picked(name, node.inputs[0], node.places.numpy())):
                self._extra[key] = picked
                return picked
            made = self._of_steps(node) or self._of_values(node)
            if made is None:
                return None
            source, found = made
            assert source.form.flow is not None
            size, sequence = len(found.bias), source.form.flow.sequence
            stream = self.give(name, "moved", source, lambda name, flow: FloatLinear(
                name, flow.size, size, weight=found.weight[..., None], bias=found.bias),
                Form.of(Flow(size, sequence=sequence), *node.sizes[:1] * sequence))
            self.notes.update(dict.fromkeys(node.path, f"as a matrix of {size} x {found.weight.shape[1]}"))
            self._extra[key], self._moved[stream.name] = stream, made
        return self._extra[key]

    def _picked(self, name: str, source: str, places: Places) -> Stream | None:
        """The stream of a range of the values of each vector, step or pixel that a node gives, or of its steps from the
        last to the first; None where the places are others.

        Parameters:
            name: of the move.
        """
        stream, sizes = self.streams[source], self.graph[source].sizes
        form = stream.form
        fresh = form.flow is None and len(sizes) == places.ndim <= 2 and form.become(
            stream.order.reshape(sizes), images=False)
        if form.flow is not None and form.flow.grid and places.shape[1:] == sizes[1:]:
            places = places.reshape(len(places), *form.shape[1:])
        if form.flow is None or not unchanged(stream.order) or places.ndim != len(form.shape):
            return None
        every, axis = np.arange(stream.order.size).reshape(form.shape), 0 if form.flow.grid else places.ndim - 1
        first, size = int(np.unravel_index(places.flat[0], form.shape)[axis]), places.shape[axis]
        if np.array_equal(places, every):
            return self.settled(stream)
        if np.array_equal(places, every.take(range(first, min(first + size, form.shape[axis])), axis)):
            shape = list(form.shape)
            shape[axis] = size
            return self.give(name, "range", self.settled(stream), lambda name, flow: FloatSlice(
                name, flow.size, first, size), Form(Flow(size, form.flow.grid, form.flow.sequence), tuple(shape)))
        if form.flow.sequence and np.array_equal(places, every[::-1]):
            return self.give(name, "reversed", self.settled(stream), lambda name, flow: FloatReverse(name, flow.size),
                             form)
        if fresh:
            form.flow, form.shape = None, ()
        return None

    def _side_by_side(self, node: Move) -> tuple[Stream, Places] | None:
        """The stream of what a move puts side by side, where some of that are ranges or reversed steps, and the numbers
        of its values; None where each is all that a node gives, or something else."""
        if any(isinstance(self.graph[each], Constant) for each in node.inputs):
            return None
        counts = [int(np.prod(self.graph[each].sizes)) for each in node.inputs]
        starts, places = np.cumsum([0, *counts]), node.places.numpy()
        of = np.searchsorted(starts, places, "right") - 1
        for axis in dict.fromkeys((places.ndim - 1, 0)):
            line = np.moveaxis(of, axis, 0).reshape(places.shape[axis], -1)
            ends = [0, *(np.flatnonzero(np.diff(line[:, 0])) + 1).tolist(), len(line)]
            if (line != line[:, :1]).any() or len(ends) < 3:
                continue
            runs = [(node.inputs[int(line[first, 0])], places.take(range(first, end), axis) - starts[line[first, 0]])
                    for first, end in pairwise(ends)]
            if all(run.shape == self.graph[each].sizes and unchanged(run) for each, run in runs):
                return None
            before, known = len(self._made), dict(self._extra)
            parts = [self._picked(node.name, each, run) for each, run in runs]
            if None in parts or (stream := joined(node.name, [part for part in parts if part])) is None:
                self._extra = known
                while len(self._made) > before:
                    self._drop(list(self._nodes)[-1])
                continue
            blocks, start = [], 0
            for _, run in runs:
                blocks.append(np.arange(start, start + run.size).reshape(run.shape))
                start += run.size
            return stream, np.concatenate(blocks, axis)
        return None

    def _turned(self, name: str, stream: Stream, at: Places) -> tuple[str, bool] | None:
        """How the values of an input are those of images whose pixels are steps: of sequences with the channels
        first. None where they come in another order.

        Parameters:
            name: of the move.
        """
        form, inputs = stream.form, self.graph[name].inputs
        sizes = self.graph[inputs[0]].sizes if len(inputs) == 1 else ()
        if len(sizes) < 2 or not form.become(stream.order.reshape(sizes), images=True):
            return None
        assert form.flow is not None
        found = flattening(at, form.flow)
        if found is None or not found[1]:
            form.flow, form.shape = None, ()
            return None
        return found

    def _of_steps(self, node: Move) -> tuple[Stream, Rearrangement] | None:
        """The sequence within whose steps values move, and how."""
        source, sizes = self.streams[node.inputs[0]], self.graph[node.inputs[0]].sizes
        found = of_steps(node.places.numpy(), sizes) if len(node.inputs) == 1 else None
        if found is None:
            return None
        if source.form.flow is None:
            source.form.become(source.order.reshape(sizes), images=False)
        sequence = source.form.flow is not None and source.form.flow.sequence and unchanged(source.order)
        return (self.settled(source), found) if sequence else None

    def _of_values(self, node: Move) -> tuple[Stream, Rearrangement] | None:
        """The vector whose values move, and how."""
        parts, columns, start = list[Stream](), list[Any](), 0
        for each in map(self.graph.__getitem__, node.inputs):
            if isinstance(each, Constant):
                columns.append(as_numpy(each.values))
                continue
            if (part := self._vector(each.name)) is None:
                return None
            parts.append(part)
            columns.append(part.at(np.arange(part.order.size)) + start)
            start += part.order.size
        together = parts[0] if len(parts) == 1 else joined(node.name, parts)
        found = None if together is None else of_values(node.places.numpy(), columns, start)
        return None if together is None or found is None else (self.settled(together), found)

    def unmoved(self, node: Node, stream: Stream) -> tuple[Stream, Rearrangement] | None:
        """Source and matrix of a stream that was just rearranged for a node alone; that layer goes."""
        name = node.inputs[0]
        if stream.name not in self._moved or len(self.graph.users(name)) > 1 or name in self.graph.ends:
            return None
        self._drop(stream.name)
        self.notes.update(dict.fromkeys(getattr(self.graph[name], "path", ()), f"into {node.name}"))
        return self._moved.pop(stream.name)

    def _drop(self, name: str) -> None:
        """Take back the layer that was made last."""
        self._made.pop()
        for known in (self._nodes, self._behind):
            known.pop(name)

    def _vector(self, name: str) -> Stream | None:
        """The stream of a node as vectors of all its values; None of a sequence."""
        stream = self.streams[name]
        form = stream.form
        if form.flow is None:
            form.become(stream.order, images=False)
        if form.flow is not None and form.flow.grid is not None:
            flat = self._flat(name, self.settled(stream), "channels", False)
            return Stream(flat.name, flat.form, stream.order)
        return None if form.flow is None or form.flow.sequence else self.settled(stream)

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
        if isinstance(came, Move):
            sizes = self.graph[came.inputs[0]].sizes
            last = len(sizes) == 2 and np.array_equal(came.places.flatten(), ends(sizes, 1))
            for each in came.path or (node.name,):
                self.problem(each, f"{NO_LAYER}; take the ends of both directions, torch.cat((h_n[-2], h_n[-1]), -1)"
                             if last else NO_LAYER)
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
