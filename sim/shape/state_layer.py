"""Golden recurrent layers: how they pass through time, whatever their gates compute."""
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.circulant import JointProduct
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.shape.recurrent import check_state, through
from circulant.sim.shape.sequences import Lengths, counts

__all__ = ["RecurrentLayer", "StateLayer"]


class RecurrentLayer(ABC):
    """A layer over sequences whose gates are one joint product, of the input and of its own output.

    Members:
        gates: its parts are the matrices over the input and over the output of the step before.
        returns: "last" for the last output, "sequence" for that of every step.
    """

    name: str
    inputs: int
    returns: str
    gates: JointProduct

    @property
    def input_format(self) -> Format:
        return self.gates.parts[0].input

    @property
    def output_format(self) -> Format:
        """The format of the output and of the gates."""
        return self.gates.parts[1].input

    @property
    def pre_format(self) -> Format:
        """The format of the pre-activations."""
        return self.gates.output

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        """(N, T, inputs) to (N, outputs), or to (N, T, outputs) when the layer returns the sequence.

        Parameters:
            lengths: in descending order; None where all sequences have T steps.
        """
        return self.run(x, record=record, lengths=lengths)[0]

    @abstractmethod
    def run(self, x: Integers, state: Any = None, record: Recorder | None = None,
            lengths: Lengths | None = None) -> tuple[Integers, Any]:
        """Outputs of sequences (N, T, inputs) that go on from a state, and the last state."""


class StateLayer(RecurrentLayer):
    """A recurrent layer whose only state is its output, h."""

    hidden: int

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    def initial(self, count: int) -> Integers:
        """The state (N, hidden) that ``count`` sequences start from."""
        return np.zeros((count, self.hidden), np.int64)

    def run(self, x: Integers, state: Integers | None = None, record: Recorder | None = None,
            lengths: Lengths | None = None) -> tuple[Integers, Integers]:
        """Outputs of sequences (N, T, inputs) that go on from a state (N, hidden), and the last state."""
        start = self.initial(len(x))
        if state is not None:
            check_state(self.name, state, start)
            start = state
        of_x, of_h = self.gates.parts
        vectors = batch_layout.spread(x, of_x.columns, of_x.block_size)
        spectra = of_x.spectra(vectors)

        def step(t: int, h: Integers) -> tuple[Integers, ...]:
            driven = spectra[:, :, t, :h.shape[-1]]
            if record is not None:
                record.vector(f"{self.name}.input_product.input", vectors[:, :, t, :h.shape[-1]], self.inputs,
                              self.input_format)
                record.spectral(f"{self.name}.input_product.spectrum", driven, of_x.spectrum)
            return (self._step(driven, h, record),)

        first = batch_layout.spread(start, of_h.columns, of_h.block_size)
        y, (h,) = through(step, counts(lengths, *x.shape[:2]), (first,), self.returns)
        return batch_layout.rows(y, self.hidden), batch_layout.rows(h, self.hidden)

    def step(self, x: Integers, h: Integers) -> Integers:
        """The next state (N, hidden) from x (N, inputs) and the state."""
        return self.run(x[:, None], h)[1]

    @abstractmethod
    def _step(self, spectra: Integers, h: Integers, record: Recorder | None) -> Integers:
        """The next state (k, q, N) from the spectra of x and the state."""
