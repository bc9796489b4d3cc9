"""The sum of vectors, steps or images (He et al. 2016), with or without a ReLU behind it."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Flag
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends
from circulant.sim.passes.files import joined_formats, read_joined
from circulant.sim.passes.formats import Peaks, Widths, no_finer
from circulant.sim.passes.layer import Arrays, FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import JOINED
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Join, SameSize

__all__ = ["KIND", "Add", "FloatAdd"]


class _Shape(Join, SameSize):
    kind = "add"
    alike = stepwise = True


@dataclass(frozen=True, eq=False)
class Add(_Shape, GoldenLayer):
    """y = Σ x_i, or max(0, …): exact, then rounded half-up and saturated.

    Parameters:
        inputs: values of a vector, channels of an image.
        input_formats: of what the sources give.
        output_format: of the sum.

    Raises:
        Refusal: when the sum could leave int64.
    """

    name: str
    inputs: int
    input_formats: tuple[Format, ...]
    output_format: Format
    relu: bool = False

    def __post_init__(self) -> None:
        frac = max(form.frac for form in self.input_formats)
        bits = max(form.width + frac - form.frac for form in self.input_formats) + (len(self.input_formats) - 1
                                                                                    ).bit_length()
        if rounding_bits(bits, frac - self.output_format.frac) > 63:
            raise Refusal(f"Layer {self.name!r}: the sum must fit into 63 bits, but with the branches "
                          f"{' and '.join(map(str, self.input_formats))} and the value {self.output_format} it does "
                          "not; choose narrower ones, or binary points nearer to each other")

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.inputs,) * len(self.input_formats)

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None) -> Integers:
        frac = max(form.frac for form in self.input_formats)
        total = sum(side << frac - form.frac for side, form in zip(values, self.input_formats, strict=True))
        y = requantize(np.asarray(total), frac, self.output_format)
        if self.relu:
            y = np.maximum(y, 0)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return np.asarray(y)


@dataclass(frozen=True, eq=False)
class FloatAdd(_Shape, FloatLayer):
    """y = Σ x_i, or max(0, …), of vectors, steps or images alike.

    Parameters:
        count: of the x_i.
    """

    name: str
    inputs: int
    count: int = 2
    relu: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.inputs,) * self.count

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore) -> Reals:
        y = np.asarray(sum(values))
        y = np.maximum(y, 0.0) if self.relu else y
        tap(f"{self.name}.y", y)
        return y


@bases.layer_fields.register
def _(layer: Add) -> dict[str, Any]:
    return {**joined_formats(layer), "relu": layer.relu}


def _read(entry: dict[str, Any], arrays: Arrays) -> Add:
    return Add(entry["name"], entry["inputs"], *read_joined(entry), relu=entry["relu"])


@bases.quantize_layer.register
def _(layer: FloatAdd, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Add:
    output = peaks.fit(bits.value, f"{layer.name}.y")
    if bits.whole:
        output = no_finer(output, max(form.frac for form in input))
    return Add(layer.name, layer.inputs, input, output, layer.relu)


bases.quantize_layer_like.register(Add, same_formats)


@bases.bitwidth_fields.register
def _(layer: Add) -> list[str]:
    return ["output_bits"]


@bases.layer_worst_cases.register
def _(layer: Add, peak: Sequence[float], steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", sum(peak)


@bases.propagate.register
def _(layer: Add, exact: FloatAdd, trace: bases.Trace, known: Sequence[bases.Known]) -> bases.Known:
    low, high = (sum(both) for both in zip(*(ends(*each) for each in known), strict=True))
    return between(layer, known, np.asarray(low), np.asarray(high))


KIND = Kind(Add, FloatAdd, _read, {"relu": Flag(), **JOINED})
