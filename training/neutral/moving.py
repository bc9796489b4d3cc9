"""Values at other places: ranges, reversed and repeated steps, and matrices where no layer takes them as they come."""
from itertools import pairwise
from typing import Any

import numpy as np

from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.repeat import FloatRepeat
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.shape.window import Flow
from circulant.training.neutral.graph import Constant, Move, Node
from circulant.training.neutral.making import Maker
from circulant.training.neutral.rearranging import Rearrangement, of_steps, of_values
from circulant.training.neutral.streams import Form, Places, Stream, as_numpy, joined, unchanged

__all__ = ["Mover"]


class Mover(Maker):
    """Layers that nodes become, and those that move values to where nodes want them."""

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
        """The stream of a range of the values of each vector, step or pixel that a node gives, of its last step, or of
        its steps from back to front; None where the places are others.

        Parameters:
            name: of the move.
        """
        if repeated := self._repeated(name, source, places):
            return repeated
        stream, sizes = self.streams[source], self.graph[source].sizes
        form = stream.form
        if form.flow is not None and form.flow.sequence and np.array_equal(
                stream.at(places).reshape(-1), np.arange(stream.order.size)[-form.flow.size:]):
            return self.give(name, "last", self.settled(stream), lambda name, flow: FloatOverTime(
                name, flow.size, "last"), Form.of(Flow(form.flow.size)))
        if form.flow is not None and form.flow.grid and np.array_equal(places, np.arange(stream.order.size)):
            return self.vector(source)  # All values of images, as a vector.
        fresh = form.flow is None and len(sizes) == places.ndim <= 2 and form.become(
            stream.order.reshape(sizes), images=False)
        if form.flow is not None and form.flow.grid and places.shape[1:] == sizes[1:]:
            places = places.reshape(len(places), *form.shape[1:])
        if form.flow is None or places.ndim != len(form.shape):
            return None
        every, at = np.arange(stream.order.size).reshape(form.shape), stream.at(places)
        if form.flow.sequence and not fresh and (found := self._part(name, stream, at.T, every)):  # Features first.
            return Stream(found.name, found.form, np.arange(at.size).reshape(at.shape).T.reshape(-1))
        if found := self._part(name, stream, at, every):
            return found
        if fresh:
            form.flow, form.shape = None, ()
        return None

    def _part(self, name: str, stream: Stream, at: Places, every: Places) -> Stream | None:
        """The stream of a range of the features, or channels, of a stream, or of its steps from back to front; None
        where its values come otherwise.

        Parameters:
            at: the places of the stream that are taken, of ``every`` one.
        """
        form = stream.form
        assert form.flow is not None
        axis = 0 if form.flow.grid else at.ndim - 1
        first, size = int(np.unravel_index(at.flat[0], form.shape)[axis]), at.shape[axis]
        if np.array_equal(at, every):
            return self.settled(Stream(stream.name, form, np.arange(at.size), stream.parts))
        if np.array_equal(at, every.take(range(first, min(first + size, form.shape[axis])), axis)):
            shape = (size, *form.shape[1:]) if axis == 0 else (*form.shape[:-1], size)
            return self.give(name, "range", self.settled(stream), lambda name, flow: FloatSlice(
                name, flow.size, first, size), Form(Flow(size, form.flow.grid, form.flow.sequence), shape))
        if form.flow.sequence and np.array_equal(at, every[::-1]):
            return self.give(name, "reversed", self.settled(stream), lambda name, flow: FloatReverse(name, flow.size),
                             form)
        return None

    def _repeated(self, name: str, source: str, places: Places) -> Stream | None:
        """The stream of a vector that stands at each of as many steps as a sequence has, of which it is made, or that
        is another input; None where the places are others, and where no sequence has as many steps."""
        if places.ndim != 2 or len(places) < 2 or (places != places[0]).any():
            return None
        for entry in self.graph.inputs:  # What no layer has taken yet becomes a sequence of as many steps.
            if self.streams[entry.name].form.flow is None and len(entry.sizes) == 2 and entry.sizes[0] == len(places):
                self.streams[entry.name].form.become(self.streams[entry.name].order.reshape(entry.sizes), images=False)
        steps = next((each for each in self.sequences(source) if each.form.shape[0] == len(places)), None)
        vector = None if steps is None else self.vector(source)
        if steps is None or vector is None or not self._all(vector, places[0]):
            return None
        size, counted = len(places[0]), steps.form.flow
        assert counted is not None
        return self.give(name, "repeat", steps, lambda name, flow: FloatRepeat(name, size, counted.size), Form.of(
            Flow(size, sequence=True), len(places)), others=(vector,))

    @staticmethod
    def _all(vector: Stream, places: Places) -> bool:
        """Whether these are the values of a vector, each once, in their order."""
        return len(places) == len(vector.order) and unchanged(vector.at(places))

    def sequences(self, name: str) -> list[Stream]:
        """The sequences that a node is made of, the nearest first; those of the inputs, where there is none."""
        found, todo = dict[str, Stream](), [name]
        for each in todo:
            if each in self.streams and each not in found:
                found[each] = self.streams[each]
            todo += [before for before in self.graph[each].inputs if before not in todo]
        every = [*found.values(), *(self.streams[each.name] for each in self.graph.inputs if each.name not in found)]
        return [each for each in every if each.form.flow is not None and each.form.flow.sequence]

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
            if (part := self.vector(each.name)) is None:
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

    def vector(self, name: str) -> Stream | None:
        """The stream of a node as vectors of all its values; None of a sequence."""
        stream = self.streams[name]
        form = stream.form
        if form.flow is None:
            form.become(stream.order, images=False)
        if form.flow is not None and form.flow.grid is not None:
            flat = self._flat(name, self.settled(stream), "channels", False)
            return Stream(flat.name, flat.form, stream.order)
        return None if form.flow is None or form.flow.sequence else self.settled(stream)
