"""Sequences from their last step to their first, in integers."""
from dataclasses import dataclass
from typing import Any

from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import Arrays, layer_arrays, layer_fields, reader
from circulant.sim.shape.sequences import Lengths, backward

__all__ = ["Reverse"]


@dataclass(frozen=True, eq=False)
class Reverse:
    """The steps of each sequence from its last to its first; padding stays behind them."""

    name: str
    inputs: int
    input_format: Format

    kind = "reverse"
    returns = "sequence"

    @property
    def outputs(self) -> int:
        return self.inputs

    @property
    def output_format(self) -> Format:
        return self.input_format

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        return backward(x, lengths)


@layer_arrays.register
def _(layer: Reverse) -> dict[str, Integers]:
    return {}


@layer_fields.register
def _(layer: Reverse) -> dict[str, Any]:
    return {"input_format": layer.input_format.as_json()}


@reader(Reverse.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Reverse:
    return Reverse(entry["name"], entry["inputs"], Format.from_json(entry["input_format"]))
