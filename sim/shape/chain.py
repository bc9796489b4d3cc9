"""Layers in a row: what each has to take of the one before, what data may come, and how they are called in turn.

The rules are the same for a model in float64 and for its golden network.
"""
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals
from circulant.sim.refusal import Refusal
from circulant.sim.shape.kinds import within
from circulant.sim.shape.sequences import Lengths, flat, padded_again
from circulant.sim.shape.window import Flow, pixels

__all__ = ["IMAGES", "RECURRENT", "STEPWISE", "chained", "check_chain", "check_data", "entry", "flows"]

LONGEST = 100
"""Characters of the name of a network or a layer, of which file names and identifiers are made."""

LAYER_NAME = rf"[A-Za-z0-9_]{{1,{LONGEST}}}"

RECURRENT = ("bidirectional", "gru", "lstm", "over_time", "rnn")
"""Kinds of layers that take a sequence."""

IMAGES = ("conv", "flatten", "pool", "residual")
"""Kinds of layers that take images; a residual sum also takes vectors."""

STEPWISE = ("activation", "linear", "residual", "scale")
"""Kinds of layers that take each vector of a sequence by itself."""


def check_chain(name: str, start: Flow, layers: Sequence[Any]) -> Flow:
    """Check that each layer, of a model or of its golden network, takes what the one before gives; returns the end.

    Raises:
        Refusal: when it does not, when two layers share a name or one cannot be part of a file's and of an
            identifier, or when there is none.
    """
    if not isinstance(name, str) or len(name) > LONGEST:
        raise Refusal(f"The name of a network must be a text of at most {LONGEST} characters, not "
                      f"{str(name)[:20]!r}… of {len(str(name))}; shorten it")
    if not layers:
        raise Refusal(f"Network {name!r} must have at least one layer, not none; add a GRU or a Linear")
    names: set[str] = set()
    for layer in layers:
        for one in _names(layer):
            if not re.fullmatch(LAYER_NAME, one):
                raise Refusal(f"The name of a layer must be at most {LONGEST} letters, digits and '_', not "
                              f"{one[:40]!r}{'…' * (len(one) > 40)} in network {name!r}; rename it")
            if one in names:
                raise Refusal(f"The layers of network {name!r} must have different names, but two are called "
                              f"{one!r}; rename one")
            names.add(one)
        start = _following(layer, start)
    return start


def _names(layer: Any) -> list[str]:
    """The names of a layer and of those in its branches; both directions are called after their layer."""
    branches = within(layer) if layer.kind == "residual" else ()
    return [layer.name, *(name for each in branches for name in _names(each))]


def _following(layer: Any, flow: Flow) -> Flow:
    """The flow that a layer gives for what comes before it."""
    if layer.inputs != flow.size:
        raise Refusal(f"Layer {layer.name!r} must take the {flow.size} values that come before it, not "
                      f"{layer.inputs}; give it that size")
    if layer.kind in RECURRENT:
        if not flow.sequence:
            raise Refusal(f"Layer {layer.name!r} needs a sequence, but what comes before gives one vector; let the "
                          "layer before return the whole sequence")
        return Flow(layer.outputs, sequence=layer.returns == "sequence")
    if layer.kind in IMAGES:
        if layer.grid is None and flow.grid is None:
            return _summed(layer, flow)
        if layer.grid != flow.grid:
            if layer.grid is None:
                raise Refusal(f"Layer {layer.name!r} must take vectors, not the {flow} that come before it; export the "
                              "network again")
            raise Refusal(f"Layer {layer.name!r} must take the {flow} that come before it, not images of "
                          f"{layer.grid[0]} x {layer.grid[1]}; export the network again")
        if layer.kind == "flatten":
            return Flow(layer.outputs, sequence=layer.rows)
        if layer.kind != "residual":
            return Flow(layer.outputs, layer.output_grid)
        return _summed(layer, flow)
    if layer.kind in ("linear", "argmax") and flow.grid is not None:
        raise Refusal(f"Layer {layer.name!r} must take vectors, not the {flow} that come before it; flatten them, or "
                      "use a convolution of kernel 1")
    return Flow(layer.outputs, flow.grid, flow.sequence)


def _summed(layer: Any, flow: Flow) -> Flow:
    """The flow that both branches of a residual sum give."""
    ends = []
    for chain in layer.branches.values():
        end = flow
        for each in chain:
            if layer.grid is None and each.kind not in STEPWISE:
                raise Refusal(f"Layer {layer.name!r}: the branches of a sum of vectors must be made of layers that "
                              f"take each vector by itself, {', '.join(STEPWISE)}, not {each.kind}; take it out of the "
                              "sum")
            end = _following(each, end)
        ends.append(end)
    if ends[0] != ends[1]:
        raise Refusal(f"Layer {layer.name!r}: both branches must give the same, not {ends[0]} and {ends[1]}; "
                      "export the network again")
    return ends[0]


def flows(start: Flow, layers: Sequence[Any]) -> list[Flow]:
    """The flow that comes to each layer of a chain, and last the one that the chain gives."""
    found = [start]
    for layer in layers:
        found.append(_following(layer, found[-1]))
    return found


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


def check_data(what: str, data: ArrayLike, flow: Flow, shape: tuple[int, ...] = ()) -> Reals:
    """The data (N, T, size) of sequences or (N, size) of vectors as an array, that of images pixel by pixel.

    Parameters:
        flow: what the data is.
        shape: of a sample as the data have it, where that is neither the vector nor the sequence; that of an image is
            (channels, height, width) or (channels, length), and axes of one element may be left out.

    Raises:
        Refusal: when it is empty or of another shape.
    """
    values = np.asarray(data, np.float64)
    given, inputs, sequence = values.shape[1:], flow.size, flow.sequence
    if flow.grid is not None:
        if not values.size or [size for size in given if size > 1] != [size for size in shape if size > 1]:
            raise Refusal(f"{what} must have the shape (N, {', '.join(map(str, shape))}) and be not empty, not "
                          f"{values.shape}; rearrange the axes")
        return pixels(values, shape)
    if shape and values.ndim > 1 and values.size and given == shape:
        values = values.reshape(len(values), -1, inputs) if sequence else values.reshape(len(values), -1)
    if values.ndim != 2 + sequence or values.shape[-1] != inputs or not values.size:
        axes = f"(N, T, {inputs})" if sequence else f"(N, {inputs})"
        axes = f"{axes} or (N, {', '.join(map(str, shape))})" if shape else axes
        raise Refusal(f"{what} must have the shape {axes} and be not empty, not {values.shape}; rearrange the axes")
    return values


def chained(layers: Sequence[Any], values: Any, observer: Any, lengths: Lengths | None = None) -> Any:
    """The outputs of layers in a row, golden ones or those of a model; beyond the end of a sequence they are 0.

    Parameters:
        observer: the second argument of every layer: what is shown its tensors.
        lengths: of sequences (N, T, …), in descending order; None where all have T steps.
    """
    for layer in layers:
        if lengths is None:
            values = layer(values, observer)
        elif layer.kind in RECURRENT:
            values = layer(values, observer, lengths)
            lengths = lengths if layer.returns == "sequence" else None
        else:
            values = padded_again(layer(flat(values, lengths), observer), lengths, values.shape[1])
    return values
