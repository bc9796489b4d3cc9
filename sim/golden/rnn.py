"""A plain recurrent layer in integers, torch.nn.RNN (Elman 1990).

    h = f(W x + U h + b)        h of the step before; f is a tanh or a ReLU
"""
from dataclasses import dataclass
from typing import Any

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Integers
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
from circulant.sim.shape.recurrent import check_formats, check_matrices, check_returns, padded
from circulant.sim.shape.state_layer import StateLayer

__all__ = ["Rnn"]


@dataclass(frozen=True, eq=False)
class Rnn(StateLayer):
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

    def _step(self, spectra: Integers, h: Integers, record: Recorder | None) -> Integers:
        recurrent = self.gates.parts[1]
        spectra_h = recurrent.spectra(h)
        sums = self.gates.sums(spectra, spectra_h)
        following = self.tanh(self.gates.values(sums, spent=record is None))
        batch_layout.clear(following, self.hidden)
        if record is not None:
            record.vector(f"{self.name}.recurrent_product.input", h, self.hidden, recurrent.input)
            record.spectral(f"{self.name}.recurrent_product.spectrum", spectra_h, recurrent.spectrum)
            record.product(f"{self.name}.gates", self.gates, sums, self.hidden)
            record.vector(f"{self.name}.h", following, self.hidden, self.output_format)
        return following


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
