"""Flows between the layers of a network: what each has to take of those before it, and what data may come.

The rules are the same for a model in float64 and for its golden network.
"""
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow, pixels

__all__ = ["check_all", "check_data", "entry"]


def entry(name: str, inputs: int, sequence: bool, shape: tuple[int, ...], layers: Sequence[Any]) -> Flow:
    """The flow that comes to the first layer, which is images where that takes them, or the one behind activations.

    Raises:
        Refusal: when the values of a sample of this shape are not those that the layer takes.
    """
    first = next((layer for layer in layers if layer.kind != "activation"), None)
    images = bool(shape) and getattr(first, "grid", None) is not None
    whole = shape[0] if images else math.prod(shape)
    if shape and sequence and whole % inputs == 0 and len(shape) <= 3:
        return Flow(inputs, sequence=True)
    if shape and (sequence or whole != inputs or len(shape) > 3 or (images and len(shape) < 2)):
        raise Refusal(f"The shape of a sample of network {name!r} must be that of its {inputs} inputs, not {shape}; "
                      "leave it out for sequences")
    if images:
        return Flow(inputs, (shape[1], shape[2] if len(shape) > 2 else 1))
    return Flow(inputs, sequence=sequence)


def check_all(what: str, inputs: Sequence[Any], data: Mapping[str, ArrayLike]) -> dict[str, Reals]:
    """The data of several inputs as `check_data` gives it, by name.

    Parameters:
        inputs: of a network.

    Raises:
        Refusal: when some are missing or others there, as `check_data`, and when there are not as many samples of each.
    """
    names = [each.name for each in inputs]
    if set(data) != set(names):
        raise Refusal(f"{what} must be of {', '.join(names)}, not of {', '.join(data)}; give those of each input by "
                      "its name")
    found = {each.name: check_data(f"{what} {each.name!r}" if len(names) > 1 else what, data[each.name], each.flow,
                                   each.shape, each.axes) for each in inputs}
    if len({len(each) for each in found.values()}) > 1:
        raise Refusal(f"{what} must be as many samples of each input, not "
                      f"{', '.join(str(len(each)) for each in found.values())}; give the same of all")
    return found


def check_data(what: str, data: ArrayLike, flow: Flow, shape: tuple[int, ...] = (), axes: tuple[int, ...] = ()
               ) -> Reals:
    """The data (N, T, size) of sequences or (N, size) of vectors as an array, that of images pixel by pixel.

    Parameters:
        flow: what the data is.
        shape: of a sample as the data have it, where that is neither the vector nor the sequence; that of an image is
            (channels, height, width) or (channels, length), and axes of one element may be left out.
        axes: see `circulant.sim.shape.graph.Input`.

    Raises:
        Refusal: when it is empty or of another shape.
    """
    values = np.asarray(data, np.float64)
    given, inputs, sequence = values.shape[1:], flow.size, flow.sequence
    if flow.grid is not None:
        if not values.size or [size for size in given if size > 1] != [size for size in shape if size > 1]:
            raise Refusal(f"{what} must have the shape (N, {', '.join(map(str, shape))}) and be not empty, not "
                          f"{values.shape}; rearrange the axes")
        if axes:
            values = values.reshape(len(values), *shape).transpose(0, *(axis + 1 for axis in axes))
            shape = tuple(shape[axis] for axis in axes)
        return pixels(values, shape)
    if axes and values.ndim == 3 and values.shape[1] == inputs and values.size:
        return values.swapaxes(1, 2)
    if axes:
        raise Refusal(f"{what} must have the shape (N, {inputs}, T) and be not empty, not {values.shape}; rearrange "
                      "the axes")
    if shape and values.ndim > 1 and values.size and given == shape:
        values = values.reshape(len(values), -1, inputs) if sequence else values.reshape(len(values), -1)
    if values.ndim != 2 + sequence or values.shape[-1] != inputs or not values.size:
        words = f"(N, T, {inputs})" if sequence else f"(N, {inputs})"
        words = f"{words} or (N, {', '.join(map(str, shape))})" if shape else words
        raise Refusal(f"{what} must have the shape {words} and be not empty, not {values.shape}; rearrange the axes")
    return values
