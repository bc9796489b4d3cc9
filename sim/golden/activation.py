"""A function of each value as a layer of its own: sigmoid, tanh, their hard forms, ReLU, leaky ReLU, a clip."""
from dataclasses import dataclass
from typing import Any

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import (
    Arrays,
    activations,
    layer_arrays,
    layer_fields,
    product_arrays,
    product_fields,
    read_pwl,
    reader,
)

__all__ = ["Activation"]


@dataclass(frozen=True, eq=False)
class Activation:
    """y = f(x) for each value of vectors, sequences or images.

    Parameters:
        table: f, with the formats of what comes and of what is given.
    """

    name: str
    inputs: int
    table: Pwl

    kind = "activation"

    @property
    def outputs(self) -> int:
        return self.inputs

    @property
    def products(self) -> dict[str, Product]:
        return {}

    @property
    def input_format(self) -> Format:
        return self.table.input

    @property
    def output_format(self) -> Format:
        return self.table.output

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        y = self.table(x)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return y


@activations.register
def _(layer: Activation) -> dict[str, Pwl]:
    return {"table": layer.table}


layer_arrays.register(Activation, product_arrays)

layer_fields.register(Activation, product_fields)


@reader(Activation.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Activation:
    return Activation(entry["name"], entry["inputs"], read_pwl(entry, arrays, "table"))
