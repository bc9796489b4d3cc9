"""A plain recurrent layer in integers, torch.nn.RNN (Elman 1990).

    h = f(W x + U h + b)        h of the step before; f is a tanh or a ReLU
"""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import (
    Arrays,
    activations,
    layer_arrays,
    layer_fields,
    product_arrays,
    product_fields,
    read_product,
    read_pwl,
    reader,
)
from circulant.sim.shape.recurrent import check_formats, check_matrices, check_returns, check_state, padded, through
from circulant.sim.shape.sequences import Lengths, counts

__all__ = ["Rnn"]


@dataclass(frozen=True, eq=False)
class Rnn:
    """A plain recurrent layer over sequences that starts from h = 0.

    Parameters:
        returns: "last" for the last state, "sequence" for that of every step.
        gates: the one joint product, whose parts are W, of x and with the bias, and U, of h.
        tanh: f, whose function may also be a ReLU.

    Raises:
        Refusal: when sizes or formats contradict each other.
    """

    name: str
    inputs: int
    hidden: int
    returns: str
    gates: JointProduct
    tanh: Pwl

    kind = "rnn"

    def __post_init__(self) -> None:
        check_returns(self.name, self.returns)
        k = self.gates.block_size
        x, h = padded(self.inputs, k), padded(self.hidden, k)
        check_matrices(self.name, {"gates": self.gates},
                       {vector: [part] for vector, part in zip("xh", self.gates.parts, strict=False)},
                       {"gates": (h, x, h)})
        check_formats(self.name, [("tanh's argument", self.tanh.input, self.pre_format),
                                  ("tanh's value", self.tanh.output, self.output_format)])

    @property
    def products(self) -> dict[str, Product]:
        return {"input_product": self.gates.parts[0], "recurrent_product": self.gates.parts[1]}

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    @property
    def input_format(self) -> Format:
        return self.gates.parts[0].input

    @property
    def output_format(self) -> Format:
        """The format of the state."""
        return self.gates.parts[1].input

    @property
    def pre_format(self) -> Format:
        """The format of the pre-activations."""
        return self.gates.output

    def initial(self, count: int) -> Integers:
        """The state (N, hidden) that ``count`` sequences start from."""
        return np.zeros((count, self.hidden), np.int64)

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        """(N, T, inputs) to (N, hidden), or to (N, T, hidden) when the layer returns the sequence.

        Parameters:
            lengths: in descending order; None where all sequences have T steps.
        """
        return self.run(x, record=record, lengths=lengths)[0]

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
            spectra_h = of_h.spectra(h)
            sums = self.gates.sums(driven, spectra_h)
            following = self.tanh(self.gates.values(sums, spent=record is None))
            batch_layout.clear(following, self.hidden)
            if record is not None:
                for role, part, vector, spectrum, size in (
                        ("input_product", of_x, vectors[:, :, t, :h.shape[-1]], driven, self.inputs),
                        ("recurrent_product", of_h, h, spectra_h, self.hidden)):
                    record.vector(f"{self.name}.{role}.input", vector, size, part.input)
                    record.spectral(f"{self.name}.{role}.spectrum", spectrum, part.spectrum)
                record.product(f"{self.name}.gates", self.gates, sums, self.hidden)
                record.vector(f"{self.name}.h", following, self.hidden, self.output_format)
            return (following,)

        first = batch_layout.spread(start, of_h.columns, of_h.block_size)
        y, (h,) = through(step, counts(lengths, *x.shape[:2]), (first,), self.returns)
        return batch_layout.rows(y, self.hidden), batch_layout.rows(h, self.hidden)


layer_arrays.register(Rnn, product_arrays)


@activations.register
def _(layer: Rnn) -> dict[str, Pwl]:
    return {"tanh": layer.tanh}


@layer_fields.register
def _(layer: Rnn) -> dict[str, Any]:
    return {**product_fields(layer), "hidden": layer.hidden, "returns": layer.returns}


@reader(Rnn.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Rnn:
    of_x, of_h = (read_product(entry, arrays, role) for role in ("input_product", "recurrent_product"))
    return Rnn(entry["name"], entry["inputs"], entry["hidden"], returns=entry["returns"],
               gates=JointProduct((of_x, of_h)), tanh=read_pwl(entry, arrays, "tanh"))
