"""The mathematics: networks in float64, as they come out of training; their layers stand in `sim.reals`.

Golden integers are compared with these within a derived bound; hardware never is.
"""
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.fixed import Reals
from circulant.sim.reals import Bidirectional, Gru, Linear, Lstm, Tap, ignore, spectra
from circulant.sim.refusal import Refusal

__all__ = ["RECURRENT", "Bidirectional", "Gru", "Layer", "Linear", "Lstm", "Model", "Tap", "check_chain", "check_data",
           "check_shape", "spectra"]

Layer = Linear | Gru | Lstm | Bidirectional

RECURRENT = ("bidirectional", "gru", "lstm")
"""Kinds of layers that take a sequence."""


def check_chain(name: str, inputs: int, sequence: bool, layers: Sequence[Any]) -> None:
    """Check that each layer, of a model or of its golden network, takes what the one before gives.

    Raises:
        Refusal: when it does not, when two layers share a name, or when there is none.
    """
    if not layers:
        raise Refusal(f"Network {name!r} must have at least one layer, not none; add a GRU or a Linear")
    names = set()
    for layer in layers:
        if layer.name in names:
            raise Refusal(f"The layers of network {name!r} must have different names, but two are called "
                          f"{layer.name!r}; rename one")
        names.add(layer.name)
        if layer.inputs != inputs:
            raise Refusal(f"Layer {layer.name!r} must take the {inputs} values that come before it, not "
                          f"{layer.inputs}; give it that size")
        if layer.kind in RECURRENT:
            if not sequence:
                raise Refusal(f"Layer {layer.name!r} needs a sequence, but what comes before gives one vector; let the "
                              "layer before return the whole sequence")
            sequence = layer.returns == "sequence"
        inputs = layer.outputs


def check_shape(name: str, inputs: int, sequence: bool, shape: tuple[int, ...]) -> None:
    """
    Raises:
        Refusal: when the values of a sample are not those of a vector.
    """
    if shape and (sequence or math.prod(shape) != inputs):
        raise Refusal(f"The shape of a sample of network {name!r} must be that of its {inputs} inputs, not {shape}; "
                      "leave it out for sequences")


def check_data(what: str, data: ArrayLike, inputs: int, sequence: bool, shape: tuple[int, ...] = ()) -> Reals:
    """The data (N, T, inputs) of sequences or (N, inputs) of vectors as an array.

    Parameters:
        shape: of a sample, where a vector is all values of an array of several axes; data may come in this shape too.

    Raises:
        Refusal: when it is empty or of another shape.
    """
    values = np.asarray(data, np.float64)
    if shape and values.ndim > 1 and values.size and values.shape[1:] == shape:
        values = values.reshape(len(values), -1)
    if values.ndim != 2 + sequence or values.shape[-1] != inputs or not values.size:
        axes = f"(N, T, {inputs})" if sequence else f"(N, {inputs})"
        axes = f"{axes} or (N, {', '.join(map(str, shape))})" if shape else axes
        raise Refusal(f"{what} must have the shape {axes} and be not empty, not {values.shape}; rearrange the axes")
    return values


@dataclass(frozen=True, eq=False)
class Model:
    """A chain of layers over vectors (N, inputs) or, with ``sequence``, over sequences (N, T, inputs).

    Parameters:
        shape: of a sample as it comes, (channels, height, width) of an image, where a vector is all its values; empty
            where samples come as vectors or sequences.

    Raises:
        Refusal: as `check_chain`.
    """

    name: str
    inputs: int
    sequence: bool
    layers: tuple[Layer, ...]
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_chain(self.name, self.inputs, self.sequence, self.layers)
        check_shape(self.name, self.inputs, self.sequence, self.shape)

    def run(self, x: ArrayLike, tap: Tap = ignore) -> Reals:
        """Outputs (N, outputs), or (N, T, outputs) where the last state is never taken.

        Raises:
            Refusal: as `check_data`.
        """
        values = check_data(f"Inputs of network {self.name!r}", x, self.inputs, self.sequence, self.shape)
        for layer in self.layers:
            values = layer(values, tap)
        return values
