"""The class that a network names: the place of the largest output."""
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.passes.layer import GoldenLayer, Kind
from circulant.sim.passes.rules import FORMAT
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverVectors

__all__ = ["KIND", "Argmax"]


@dataclass(frozen=True, eq=False)
class Argmax(OverVectors, GoldenLayer):
    """Vectors (..., inputs) to their places of the largest value (..., 1), counted from 0; of equals the lowest place.

    The output's format just holds the last place: a bit for the sign, which is never set, and no fraction.

    Raises:
        Refusal: when there are not at least two values to choose from.
    """

    name: str
    inputs: int
    input_format: Format

    kind = "argmax"

    def __post_init__(self) -> None:
        if self.inputs < 2:
            raise Refusal(f"Layer {self.name!r} must choose from at least two values, not {self.inputs}; leave argmax "
                          "out")

    @property
    def outputs(self) -> int:
        return 1

    @property
    def output_format(self) -> Format:
        return Format(1 + (self.inputs - 1).bit_length(), 0)

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        return self.finished(np.argmax(x, axis=-1, keepdims=True).astype(np.int64), record)


KIND = Kind(Argmax, None, {"input_format": FORMAT})
