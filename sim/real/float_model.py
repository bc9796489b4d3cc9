"""The mathematics: networks in float64, as they come out of training; their layers stand in `sim.real.float_layers`.

Golden integers are compared with these within a derived bound; hardware never is.
"""
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals
from circulant.sim.real.float_image_layers import Conv, Flatten, Pool, Residual, Scale
from circulant.sim.real.float_layers import Activation, Bidirectional, Linear, OverTime
from circulant.sim.real.float_recurrent_layers import Gru, Lstm, Rnn
from circulant.sim.real.products import Tap, ignore, spectra
from circulant.sim.shape.chain import chained, check_chain, check_data, entry
from circulant.sim.shape.sequences import Lengths, check_lengths, descending
from circulant.sim.shape.window import Flow

__all__ = ["Activation", "Bidirectional", "Conv", "Flatten", "Gru", "Layer", "Linear", "Lstm", "Model", "OverTime",
           "Pool", "Residual", "Rnn", "Scale", "Tap", "spectra"]

Layer = Linear | Gru | Lstm | Rnn | Bidirectional | Conv | Pool | Flatten | Scale | Activation | Residual | OverTime


@dataclass(frozen=True, eq=False)
class Model:
    """A chain of layers over vectors (N, inputs) or, with ``sequence``, over sequences (N, T, inputs).

    Parameters:
        shape: of a sample as it comes; empty where samples come as vectors or sequences. To a first layer that takes
            images it is an image, (channels, height, width) or (channels, length), and ``inputs`` are its channels; to
            another one it is a vector of all values.

    Raises:
        Refusal: as `check_chain`.
    """

    name: str
    inputs: int
    sequence: bool
    layers: tuple[Layer, ...]
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_chain(self.name, self.flow, self.layers)

    @property
    def flow(self) -> Flow:
        """The flow that the first layer takes."""
        return entry(self.name, self.inputs, self.sequence, self.shape, self.layers)

    def run(self, x: ArrayLike, tap: Tap = ignore, *, lengths: ArrayLike | None = None) -> Reals:
        """Outputs (N, outputs), or (N, T, outputs) where the last state is never taken.

        Parameters:
            lengths: (N,), the steps of each sequence; None where all have T. Outputs beyond them are 0, and ``tap``
                sees the longest sequence first, of each step those alone that have it.

        Raises:
            Refusal: as `check_data` and `check_lengths`.
        """
        what = f"Inputs of network {self.name!r}"
        values = check_data(what, x, self.flow, self.shape)
        if lengths is None:
            return self.compute(values, tap)
        steps = check_lengths(what, lengths, values.shape)
        order = descending(steps)
        found = self.compute(values[order, :int(steps.max())], tap, steps[order])
        outputs = np.zeros((len(found), *(values.shape[1:2] if found.ndim == 3 else ()), found.shape[-1]))
        outputs[order, :found.shape[1]] = found
        return outputs

    def compute(self, values: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        """Outputs for inputs as `check_data` gives them, with lengths the longest first and cut behind it."""
        found: Reals = chained(self.layers, values, tap, lengths)
        return found
