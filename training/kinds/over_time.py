"""Reductions over axes: those over steps, and those over all pixels, which are global poolings."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.shape.window import Flow, Window
from circulant.training.kinds.scale import Scale
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.neutral.making import NO_LAYER
from circulant.training.neutral.streams import Form
from circulant.training.onnx import OnnxCall, Values, of_onnx

__all__ = ["Reduce"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Node):
    """The maximum ("max") or mean ("mean") over axes.

    Parameters:
        keep: whether the axes stay as 1.
    """

    mode: str
    axes: tuple[int, ...]
    keep: bool


@of_torch("mean")
def _mean(call: Call) -> Value:
    """A mean over axes, which over those of an image or over time is global pooling."""
    return _reduced(call, "mean")


@of_torch("sum")
def _total(call: Call) -> Value:
    """A sum over axes: the mean, as often as there are values."""
    mean = _reduced(call, "mean", part="mean")
    count = call.tensor.sizes, mean.sizes
    size = torch.Size(count[0]).numel() // torch.Size(count[1]).numel()
    return call.emit(Scale, (mean,), mean.batch, scale=torch.tensor([float(size)], dtype=torch.float64),
                     shift=torch.zeros(1, dtype=torch.float64), axis=None)


@of_torch("max", "amax")
def _maximum(call: Call) -> Value | list[Value]:
    """A maximum over axes, amax, or the values and places of one over an axis, max, as `mean`."""
    value = _reduced(call, "max")
    places = Value(value.places, value.batch, refused="the attribute 'indices' is not supported; only the values of a "
                                                      "maximum are")
    return value if call.kind == "amax" else [value, places]


def _reduced(call: Call, mode: str, part: str = "") -> Value:
    source, options = call.tensor, call.bind("dim", "keepdim", dim=None, keepdim=False)
    given = options.get("dim")
    if given is None or isinstance(given, Value) or call.kwargs.get("dtype") is not None:
        raise Unsupported("it must name the axes that it reduces, and nothing else")
    axes = tuple(sorted(axis % source.rank for axis in (given if isinstance(given, Sequence) else (given,))))
    if source.batch in axes:
        raise Unsupported("it must not reduce the batch; name other axes")
    batch = source.batch - (0 if options["keepdim"] else sum(axis < source.batch for axis in axes))
    inner = tuple(axis - (axis > source.batch) for axis in axes)
    if all(source.sizes[axis] == 1 for axis in inner):  # There is nothing to reduce.
        assert source.places is not None
        places = source.places if options["keepdim"] else source.places.squeeze(inner)
        return Value(places, batch, source.path, source.refused)
    return call.emit(Reduce, (source,), batch, part=part, mode=mode, axes=axes, keep=bool(options["keepdim"]))


@lowered.register
def _(node: Reduce, to: Builder) -> Stream | None:
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


@of_onnx("ReduceMean", "ReduceMax", "ReduceSum", becomes="poolings, means and maxima over time",
         conditions="not over the batch")
def _run(call: OnnxCall, module: Any, values: Values) -> Any:
    x, axes, keep = call.data(values), call.axes(), bool(call.option("keepdims", 1))
    if not axes and call.option("noop_with_empty_axes", 0):
        return x
    axes = axes or list(range(call.extra, len(call.source)))
    if call.batch[call.node.inputs[0]] in axes:
        raise call.node.refused(f"it must not reduce the batch, axis {call.batch[call.node.inputs[0]]}; name other "
                                "axes")
    function = {"ReduceMean": x.mean, "ReduceMax": x.amax, "ReduceSum": x.sum}[call.node.op]
    return function(tuple(axes), keepdim=keep)
