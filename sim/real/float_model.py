"""The mathematics: networks in float64, as they come out of training; their layers stand in `sim.real.float_layers`.

Golden integers are compared with these within a derived bound; hardware never is.
"""
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals
from circulant.sim.real.float_image_layers import Conv, Flatten, Pool, Scale
from circulant.sim.real.float_joins import Add, Bidirectional, Concat, Residual, Reverse
from circulant.sim.real.float_layers import Activation, Linear, OverTime
from circulant.sim.real.float_recurrent_layers import Gru, Lstm, Rnn
from circulant.sim.real.products import Tap, ignore, spectra
from circulant.sim.shape.flows import check_data
from circulant.sim.shape.graph import Graph, computed
from circulant.sim.shape.sequences import Lengths, check_lengths, descending

__all__ = ["Activation", "Add", "Bidirectional", "Concat", "Conv", "Flatten", "Gru", "Layer", "Linear", "Lstm", "Model",
           "OverTime", "Pool", "Residual", "Reverse", "Rnn", "Scale", "Stage", "Tap", "spectra"]

Layer = Linear | Gru | Lstm | Rnn | Conv | Pool | Flatten | Scale | Activation | OverTime | Add | Concat | Reverse

Stage = Layer | Bidirectional | Residual
"""The parts of a chain of layers."""


@dataclass(frozen=True, eq=False, repr=False)
class Model(Graph):
    """A graph of layers in float64."""

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
        found: Reals = computed(self, {self.entry.name: values}, tap, lengths)[self.exit]
        return found
