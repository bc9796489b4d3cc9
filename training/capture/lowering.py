"""From the neutral graph to the graph of the reference, which the golden model quantizes: a function for each node."""
from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any

import numpy as np
from torch import nn

from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.blend import FloatBlend
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.decay import FloatDecay
from circulant.sim.kinds.depthwise import FloatDepthwise
from circulant.sim.kinds.difference import FloatDifference
from circulant.sim.kinds.elementwise import FloatElementwise
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.maximum import FloatMaximum
from circulant.sim.kinds.minimum import FloatMinimum
from circulant.sim.kinds.norm import FloatNorm
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.product import FloatProduct
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.kinds.spiral import FloatSpiral
from circulant.sim.kinds.taps import FloatTaps
from circulant.sim.real.float_model import Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow, Window
from circulant.training.blocks.matrices import block_sizes
from circulant.training.capture import graph as neutral
from circulant.training.capture.building import Builder
from circulant.training.capture.recurrent import as_numpy, level
from circulant.training.capture.report import NO_LAYER
from circulant.training.capture.streams import Form, Stream, unchanged
from circulant.training.models.cells import LinearRnn, ResetBeforeGru
from circulant.training.models.quantizer import grids_of

__all__ = ["judged", "lower", "missing"]


def missing(graph: neutral.Graph) -> dict[str, str]:
    """The nodes for which golden model or hardware has no layer, with the reason."""
    return judged(graph).problems


def judged(graph: neutral.Graph) -> Builder:
    """The builder that has noted what there is no layer for."""
    to = lower(graph, judging=True)
    if not to.problems:
        to.check_circuit()
    return to


def lower(graph: neutral.Graph, *, judging: bool = False) -> Builder:
    """The builder of the reference, which has taken all nodes of a graph.

    Parameters:
        judging: see `Builder`; without it everything must have a layer.
    """
    to = Builder(graph, judging=judging)
    for node in graph.nodes:
        if not isinstance(node, neutral.Move):
            to.streams[node.name] = lowered(node, to) or to.fresh(node)
    for each in graph.outputs:
        to.end(each.node)
    return to


@singledispatch
def lowered(node: neutral.Node, to: Builder) -> Stream | None:
    """The stream of what a node becomes; None where it has no layer."""
    raise TypeError(f"A node must be of a class that is lowered, not {type(node).__name__}; register it here")


@lowered.register
def _(node: neutral.Input, to: Builder) -> None:
    pass


@lowered.register
def _(node: neutral.Constant, to: Builder) -> None:
    pass


@lowered.register
def _(node: neutral.Softmax, to: Builder) -> None:
    to.problem(node.name, f"{NO_LAYER} within a network; leave it out, or let it be the last node, where it is dropped")


@lowered.register
def _(node: neutral.Function, to: Builder) -> Stream:
    source = to.single(node)
    kind = "relu" if node.function == "relu" else "activation"
    made = to.give(node.name, kind, source, lambda name, flow: FloatActivation(
        name, flow.size, node.function, node.parameters), source.form, order=source.order)
    if node.format:
        to.formats[made.name] = node.format
    return made


PAIRS: dict[type[neutral.Pair], type[FloatElementwise]] = {
    neutral.Add: FloatAdd, neutral.Subtract: FloatDifference, neutral.Multiply: FloatProduct,
    neutral.Maximum: FloatMaximum, neutral.Minimum: FloatMinimum}
"""The layers of functions of two tensors."""


@lowered.register
def _(node: neutral.Pair, to: Builder) -> Stream | None:
    if isinstance(node, neutral.Multiply) and not node.relu and (gated := to.gate(node)):
        return gated
    pair = [to.single(node, number) for number in (0, 1)]
    images = [stream.form.flow is not None and stream.form.flow.grid is not None for stream in pair]
    if len(set(images)) > 1 and None not in [stream.form.flow for stream in pair]:
        pair[images.index(True)] = to.taken(node, images.index(True))
    one, other = pair if isinstance(node, neutral.Subtract) else sorted(pair, key=to.behind, reverse=True)
    if one.form.flow is None and other.form.flow is None:
        one.form.become(np.arange(one.order.size).reshape(node.sizes), images=len(node.sizes) > 2)
    for form, known in ((one.form, other.form), (other.form, one.form)):
        if form.flow is None:
            form.flow, form.shape = known.flow, known.shape
    if (one.form.flow, one.form.shape) != (other.form.flow, other.form.shape) or not np.array_equal(
            one.order, other.order):
        to.problem(node.name)
        return None
    make = PAIRS[type(node)]
    return to.give(node.name, "sum" if make is FloatAdd else make.kind, one, lambda name, flow: make(
        name, flow.size, relu=node.relu), one.form, order=one.order, others=(other,))


@lowered.register
def _(node: neutral.Scale, to: Builder) -> Stream | None:
    if node.axis is None:
        source = to.single(node)
        return to.give(node.name, "scale", source, lambda name, flow: FloatScale(
            name, flow.size, np.repeat(as_numpy(node.scale), flow.size), np.repeat(as_numpy(node.shift), flow.size),
            node.relu), source.form, order=source.order)
    axis = node.axis - (node.axis > node.batch)
    stream, places = to.source(node.inputs[0])
    if stream.form.flow is None:
        stream.form.become(stream.at(places), images=places.ndim > 1 and axis == 0)
    source = to.single(node)
    form = source.form
    channel = np.arange(node.sizes[axis]).reshape(-1, *(1,) * (len(node.sizes) - 1 - axis))
    if form.flow is not None:
        found = np.broadcast_to(channel, node.sizes).reshape(-1)[source.order].reshape(form.shape)
        found = np.moveaxis(found, 0, -1) if form.flow.grid else found
        found = found.reshape(-1, form.flow.size)
        if (found == found[0]).all():
            return to.give(node.name, "scale", source, lambda name, flow: FloatScale(
                name, flow.size, as_numpy(node.scale)[found[0]], as_numpy(node.shift)[found[0]], node.relu), form,
                order=source.order)
    to.problem(node.name)
    return None


@lowered.register
def _(node: neutral.Linear, to: Builder) -> Stream | None:
    source, rows = to.taken(node), node.constraint.rows
    if source.form.flow is None:
        return None
    sequence, weight, bias = source.form.flow.sequence, as_numpy(node.first)[0], as_numpy(node.bias)
    if node.constraint.block_size == 1 and node.grid is None and (found := to.unmoved(node, source)):
        source, moved = found
        weight, bias = (weight[..., 0] @ moved.weight)[..., None], bias + weight[..., 0] @ moved.bias
    made = to.give(node.name, "linear", source, lambda name, flow: FloatLinear(
        name, flow.size, rows, weight=weight, bias=bias, relu=node.relu),
        Form.of(Flow(rows, sequence=sequence), *source.form.shape[:-1]))
    to.note_grid(made.name, {node.constraint.block_size}, product=node.grid)
    return made


@lowered.register
def _(node: neutral.Conv, to: Builder) -> Stream | None:
    def conv(name: str, flow: Flow) -> Stage:
        return FloatConv(name, flow.size, constraint.rows, flow.grid or (1, 1), window, weight=as_numpy(node.first),
                         bias=as_numpy(node.bias), relu=node.relu)

    constraint = node.constraint
    if (constraint.kernel, node.stride, node.padding, node.groups) == ((1,), (1,), (0,), 1) and (
            came := to.source(node.inputs[0])[0].form.flow) and came.sequence:
        return _of_steps(node, to)
    if {*to.graph[node.inputs[0]].sizes[1:], *node.sizes[1:]} <= {1} and (made := _of_a_pixel(node, to)):
        return made
    window = _window(constraint.kernel, node.stride, node.padding, node.dilation)
    made = _windowed(node, to, window, conv, rows=constraint.rows)
    if made is not None:
        to.note_grid(made.name, {constraint.block_size}, product=node.grid)
    if node.groups > 1:
        to.notes[node.name] = f"with zeros between its {node.groups} groups, which are multiplied as other weights are"
    return made


@lowered.register
def _(node: neutral.Depthwise, to: Builder) -> Stream | None:
    window, weight, bias = _window(node.kernel, node.stride, node.padding, node.dilation), *map(
        as_numpy, (node.weight, node.bias))
    made = _windowed(node, to, window, lambda name, flow: FloatDepthwise(
        name, flow.size, flow.grid or (1, 1), window, weights=weight, bias=bias, relu=node.relu), kind="conv")
    if made is not None:
        to.note_grid(made.name, {1}, weights=node.grid)
    return made


def _of_a_pixel(node: neutral.Conv, to: Builder) -> Stream | None:
    """The stream of the one position of a kernel that does not meet zeros, over vectors; None where images come."""
    stream, places = to.source(node.inputs[0])
    if stream.form.flow is None or stream.form.flow.grid or stream.form.flow.sequence or not unchanged(
            stream.at(places)) or places.size != stream.order.size:
        return None
    at = int(np.ravel_multi_index(node.padding, node.constraint.kernel))
    rows, weight = node.constraint.rows, as_numpy(node.first)[at]
    made = to.give(node.name, "linear", to.settled(stream), lambda name, flow: FloatLinear(
        name, flow.size, rows, weight=weight, bias=as_numpy(node.bias), relu=node.relu), Form.of(Flow(rows)))
    to.note_grid(made.name, {node.constraint.block_size}, product=node.grid)
    return made


@lowered.register
def _(node: neutral.CausalConv, to: Builder) -> Stream | None:
    return _of_steps(node, to, node.dilation)


def _of_steps(node: neutral.Conv | neutral.CausalConv, to: Builder, dilation: int = 1) -> Stream | None:
    """The newest and earlier vectors side by side, and a linear layer over them."""
    source, constraint = to.steps(node), node.constraint
    if source is None:
        return None
    (taps,), k, steps = constraint.kernel, constraint.block_size, source.form.shape[0]
    width = -(-constraint.columns // k) * k
    first, bias = as_numpy(node.first), as_numpy(node.bias)
    past = source if taps == 1 else to.give(node.name, "taps", source, lambda name, flow: FloatTaps(
        name, flow.size, taps, dilation, width), Form.of(Flow(taps * width, sequence=True), steps),
        path=f"{node.name}_taps")
    weight = np.moveaxis(first, 0, 1).reshape(first.shape[1], -1, k)
    made = to.give(node.name, "conv", past, lambda name, flow: FloatLinear(
        name, flow.size, constraint.rows, weight=weight, bias=bias, relu=node.relu),
        Form.of(Flow(constraint.rows, sequence=True), steps),
        order=np.arange(constraint.rows * steps).reshape(constraint.rows, steps).T.reshape(-1))
    to.note_grid(made.name, {k}, product=node.grid)
    return made


@lowered.register
def _(node: neutral.CausalDepthwise, to: Builder) -> Stream | None:
    """The newest and earlier vectors side by side, a factor for each value, and the sum of the taps."""
    source = to.steps(node)
    if source is None:
        return None
    steps, (taps, size), weight, bias = source.form.shape[0], node.weight.shape, as_numpy(node.weight), as_numpy(
        node.bias)
    every, one = (Form.of(Flow(values, sequence=True), steps) for values in (taps * size, size))
    past = to.give(node.name, "taps", source, lambda name, flow: FloatTaps(
        name, size, taps, node.dilation, size), every, path=f"{node.name}_taps")
    scaled = to.give(node.name, "scale", past, lambda name, flow: FloatScale(
        name, taps * size, weight.reshape(-1), np.append(np.zeros((taps - 1) * size), bias)), every,
        path=f"{node.name}_scale")
    first, *others = (to.give(node.name, "range", scaled, partial(_tap, n, taps * size, size), one,
                              path=f"{node.name}_tap") for n in range(taps))
    return to.give(node.name, "conv", first, lambda name, flow: FloatAdd(name, size, taps, relu=node.relu), one,
                   order=np.arange(size * steps).reshape(size, steps).T.reshape(-1), others=tuple(others))


def _tap(number: int, inputs: int, size: int, name: str, flow: Flow) -> Stage:
    return FloatSlice(name, inputs, number * size, size)


@lowered.register
def _(node: neutral.Norm, to: Builder) -> Stream | None:
    source = to.taken(node)
    if source.form.flow is None:
        return None
    gain, shift = as_numpy(node.gain), as_numpy(node.shift)
    return to.give(node.name, "norm", source, lambda name, flow: FloatNorm(
        name, flow.size, node.mode, gain, shift, epsilon=node.epsilon), source.form)


@lowered.register
def _(node: neutral.Blend, to: Builder) -> Stream:
    gate, given = (to.taken(node, number, sequence=True) for number in (0, 1))
    return to.give(node.name, "blend", gate, lambda name, flow: FloatBlend(name, flow.size), given.form,
                   others=(given,))


@lowered.register
def _(node: neutral.Decay, to: Builder) -> Stream:
    source, factors = to.taken(node, sequence=True), as_numpy(node.factors)
    turns = None if node.turns is None else as_numpy(node.turns)
    return to.give(node.name, "decay", source, lambda name, flow: FloatDecay(name, flow.size, factors) if turns is None
                   else FloatSpiral(name, flow.size, factors, turns), source.form)


@lowered.register
def _(node: neutral.Pool, to: Builder) -> Stream | None:
    window = _window(node.kernel, node.stride, node.padding, (1,))
    return _windowed(node, to, window, lambda name, flow: FloatPool(name, flow.size, flow.grid or (1, 1), window,
                                                                    node.mode))


def _window(*sizes: tuple[int, ...]) -> Window:
    """The window of a kernel, a stride, a padding and a dilation, each for one axis or two."""
    return Window(*((size[0], size[1] if len(size) > 1 else one) for size, one in zip(
        sizes, (1, 1, 0, 1), strict=True)))


def _windowed(node: neutral.Node, to: Builder, window: Window, make: Callable[[str, Flow], Stage],
              rows: int = 0, kind: str = "pool") -> Stream | None:
    """The stream of a layer that moves a window over images; it gives ``rows`` channels, or those that come."""
    source = to.taken(node, images=True)
    flow = source.form.flow
    assert flow is not None and flow.grid is not None
    try:
        after = window.outputs(node.name, flow.grid)
    except Refusal as refusal:
        to.problem(node.name, str(refusal))
        return None
    return to.give(node.name, "conv" if rows else kind, source, make, Form.of(Flow(rows or flow.size, after)))


@lowered.register
def _(node: neutral.Reduce, to: Builder) -> Stream | None:
    came = to.graph[node.inputs[0]]
    stream, places = to.source(came.name)
    axes = tuple(axis - (axis > came.batch) for axis in node.axes)
    rest, form = tuple(axis for axis in range(places.ndim) if axis not in axes), stream.form
    if form.flow is None:
        form.become(stream.at(places), images=rest == (0,) and places.ndim > 1)
    if form.flow is None or (moved := stream.moved(places)) is None:
        to.astray(node, came.name)
        return None
    at = stream.at(places).transpose(*rest, *axes).reshape(-1, int(np.prod([places.shape[axis] for axis in axes])))
    of = np.arange(places.size).reshape(form.shape)
    of = of.reshape(form.flow.size, -1) if form.flow.grid else of.reshape(-1, form.flow.size).T
    if not np.array_equal(np.sort(at, axis=1), of) or not (form.flow.grid or form.flow.sequence):
        steps = next(axis for axis, size in enumerate(came.shape) if size is not None)
        to.problem(node.name, f"{NO_LAYER} over the features of a step; reduce the steps, axis {steps}"
                   if form.flow.sequence else NO_LAYER)
        return None
    source = to.settled(moved)
    if (grid := form.flow.grid) is None:
        return to.give(node.name, "pool", source, lambda name, flow: FloatOverTime(name, flow.size, node.mode),
                       Form.of(Flow(form.flow.size)))
    mode = "max" if node.mode == "max" else "average"
    return to.give(node.name, "pool", source, lambda name, flow: FloatPool(name, flow.size, grid, Window(grid), mode),
                   Form.of(Flow(form.flow.size, (1, 1))))


@lowered.register
def _(node: neutral.Recurrent, to: Builder) -> Stream | None:
    module: Any = node.module
    sizes = set(block_sizes(module).values())
    if len(sizes) > 1:
        to.problem(node.name, f"its matrices have block sizes {', '.join(map(str, sorted(sizes)))}, but those of a "
                              "recurrent layer must share one")
        return None
    source = to.taken(node, sequence=True)
    kind = "rnn" if isinstance(module, nn.RNN | LinearRnn) else (
        "gru" if isinstance(module, nn.GRU | ResetBeforeGru) else "lstm")
    width = (getattr(module, "proj_size", 0) or module.hidden_size) * node.ways
    for number in range(module.num_layers):
        returns = node.returns if number == module.num_layers - 1 else "sequence"
        source = to.give(node.name, kind, source, partial(_level, module, number, returns), Form.of(
            Flow(width, sequence=returns == "sequence"), *source.form.shape[:1]),
            path=f"{node.name}.l{number}" if module.num_layers > 1 else node.name)
        directions = ((".forward", ""), (".backward", "_reverse")) if module.bidirectional else (("", ""),)
        for side, suffix in directions:
            found = (grids_of(module).get(f"weight_{part}_l{number}{suffix}") for part in ("ih", "hh"))
            products = dict(zip(("input_product", "recurrent_product"), found, strict=True))
            to.note_grid(f"{source.name}{side}", sizes, **products)
    return source


def _level(module: Any, number: int, returns: str, name: str, flow: Flow) -> Stage:
    return level(name, module, number, returns)
