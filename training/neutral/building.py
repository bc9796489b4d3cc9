"""Builder of the reference: streams of values between layers, and what each node takes of them."""

import numpy as np

from circulant.sim.kinds.gate import FloatGate
from circulant.sim.kinds.scale import FloatScale
from circulant.training.neutral.graph import Move, Node
from circulant.training.neutral.moving import Mover
from circulant.training.neutral.streams import Form, Places, Stream, flattening, grid_of, joined, unchanged

__all__ = ["Builder"]


class Builder(Mover):
    """Layers that the nodes of a graph become, in its order; see `circulant.training.neutral.making.Maker`."""

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

    def gate(self, node: Node) -> Stream | None:
        """The stream of the product of all steps, or pixels, with one vector; None where it is none of such."""
        for number, name in enumerate(node.inputs):
            came = self.graph[name]
            if not isinstance(came, Move) or len(came.inputs) > 1 or (
                    came.places.unique().numel() == came.places.numel()):
                continue
            stream = self.single(node, 1 - number)
            form = stream.form
            if form.flow is None or not (form.flow.grid or (form.flow.sequence and self.sequences(came.inputs[0]))):
                continue
            places = came.places.numpy().reshape(-1)[stream.order].reshape(form.shape)
            each = (np.moveaxis(places, 0, -1) if form.flow.grid else places).reshape(-1, form.flow.size)
            vector = self.vector(came.inputs[0]) if (each == each[0]).all() else None
            if vector is not None and self._all(vector, each[0]):
                return self.give(node.name, "gate", stream, lambda name, flow: FloatGate(name, flow.size), form,
                                 order=stream.order, others=(vector,))
        return None

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
                made.form.flow.sequence or not sequence) and unchanged(made.order) and (
                    (images and made.form.flow.grid == grid_of(places.shape)) or made.form.shape == places.shape):
            return made
        self.astray(node, name, images=not images and form.flow is not None and form.flow.grid is not None)
        virtual = Stream("", Form(), np.arange(places.size))
        virtual.form.become(virtual.order.reshape(places.shape), images=images)
        return virtual

    def steps(self, node: Node, number: int = 0) -> Stream | None:
        """The sequence that a node takes with its features first, (size, steps); None where none comes so."""
        name = node.inputs[number]
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
        elif (made := self.rearranged(name)) is not None and unchanged(made.order):
            stream = made
        elif form.flow is not None and form.flow.sequence and at.size == stream.order.size and unchanged(at.T):
            self.problem(name, "it gives the features first, but a circuit one step after the other; return (N, steps, "
                               "features)")
            return
        else:
            self.astray(self.graph[name], name, images=form.flow is not None and form.flow.grid is not None)
            return
        if stream.name not in self._nodes or stream.name in self._outputs:
            stream = self.give(name, "same", stream, lambda name, flow: FloatScale(
                name, flow.size, np.ones(flow.size), np.zeros(flow.size)), form, order=stream.order)
        self._outputs.append(stream.name)

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
