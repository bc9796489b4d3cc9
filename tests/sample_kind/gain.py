"""A sample kind: a gain, which doubles each value. All that sim knows of it stands in this file."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.rules import FORMAT
from circulant.sim.shape.layer import SameSize

__all__ = ["KIND", "FloatGain", "Gain"]


@dataclass(frozen=True, eq=False)
class Gain(SameSize, GoldenLayer):
    """y = 2 x: the same integers, with the binary point a place further right."""

    name: str
    inputs: int
    input_format: Format

    kind = "gain"

    @property
    def output_format(self) -> Format:
        return Format(self.input_format.width, self.input_format.frac - 1)

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        if record is not None:
            record.values(f"{self.name}.y", x, self.output_format)
        return x


@dataclass(frozen=True, eq=False)
class FloatGain(SameSize, FloatLayer):
    """y = 2 x."""

    name: str
    inputs: int

    kind = "gain"

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        tap(f"{self.name}.y", y := 2 * x)
        return y


@bases.quantize_layer.register
def _(layer: FloatGain, input: Format, peaks: Peaks, bits: Widths) -> Gain:
    return Gain(layer.name, layer.inputs, input)


@bases.quantize_layer_like.register
def _(rule: Gain, layer: FloatGain) -> Gain:
    return replace(rule, name=layer.name)


@bases.bitwidth_fields.register
def _(layer: Gain) -> list[str]:
    return []


@bases.layer_worst_cases.register
def _(layer: Gain, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", 2 * peak


@bases.propagate.register
def _(layer: Gain, exact: FloatGain, trace: bases.Trace, known: bases.Known) -> bases.Known:
    return between(layer, known, *(2 * end for end in ends(*known)))


KIND = Kind(Gain, FloatGain, {"input_format": FORMAT})
