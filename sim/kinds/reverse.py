"""Sequences from their last step to their first."""
from dataclasses import dataclass
from typing import Any

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMAT
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverSequences, SameSize
from circulant.sim.shape.sequences import Lengths, backward

__all__ = ["KIND", "FloatReverse", "Reverse"]


class _Shape(OverSequences, SameSize):
    kind = "reverse"
    keeps = True
    returns = "sequence"


@dataclass(frozen=True, eq=False)
class Reverse(_Shape, GoldenLayer):
    """The steps of each sequence from its last to its first; padding stays behind them."""

    name: str
    inputs: int
    input_format: Format

    @property
    def output_format(self) -> Format:
        return self.input_format

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        return backward(x, lengths)

    def run(self, x: Integers, state: Any = None) -> tuple[Integers, Any]:
        raise Refusal(f"A sequence can be continued piece by piece if all layers run forward, but layer "
                      f"{self.name.partition('.')[0]!r} is bidirectional; run whole sequences")


@dataclass(frozen=True, eq=False)
class FloatReverse(_Shape, FloatLayer):
    """The steps of each sequence from its last to its first; padding stays behind them."""

    name: str
    inputs: int

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        return backward(x, lengths)


@bases.quantize_layer.register
def _(layer: FloatReverse, input: Format, peaks: Peaks, bits: Widths) -> Reverse:
    return Reverse(layer.name, layer.inputs, input)


bases.quantize_layer_like.register(Reverse, same_formats)


@bases.propagate.register
def _(layer: Reverse, exact: FloatReverse, trace: bases.Trace, known: bases.Known) -> bases.Known:
    golden, shift, rest = (part[:, ::-1] for part in known)
    return golden, shift, rest


KIND = Kind(Reverse, FloatReverse, {"input_format": FORMAT})
