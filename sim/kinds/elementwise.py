"""Joins that combine values of the same place in vectors, steps or images: what sums, products and maxima share."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Flag, Listing, Rule
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends
from circulant.sim.passes.formats import Peaks, Widths, no_finer
from circulant.sim.passes.layer import FloatLayer, GoldenLayer
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMAT, JOINED
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Join, SameSize

__all__ = ["PAIR", "SEVERAL", "Elementwise", "FloatElementwise", "Places"]

SEVERAL: dict[str, Rule] = {"relu": Flag(), **JOINED}
"""The members of an entry with two sources or more."""

PAIR: dict[str, Rule] = {"relu": Flag(), "input_formats": Listing(FORMAT, 2, 2), "output_format": FORMAT}
"""The members of one with two sources."""


class Places(Join, SameSize):
    """The part of such a kind that says how values are combined, and how far that reaches.

    Members:
        aligned: whether values are brought to one binary point before they are combined.
        pair: whether it takes two sources, no more.
        chooses: whether each value that it gives is one of those that it takes.
    """

    alike = stepwise = True
    aligned: ClassVar[bool] = True
    pair: ClassVar[bool] = False
    chooses: ClassVar[bool] = False

    @staticmethod
    def combined(values: Sequence[Any]) -> Any:
        """Integers from integers, reals from reals; of what is no maximum, signals from signals."""
        raise NotImplementedError

    @classmethod
    def extremes(cls, low: Sequence[Reals], high: Sequence[Reals]) -> tuple[Reals, Reals]:
        """The least and greatest that it makes of values between two ends; here of what grows with each of them."""
        return np.asarray(cls.combined(low)), np.asarray(cls.combined(high))

    @classmethod
    def bits(cls, widths: Sequence[int]) -> int:
        """Bits of what it makes of values of these widths."""
        return max(widths) + (0 if cls.chooses else (len(widths) - 1).bit_length())

    @classmethod
    def reach(cls, peaks: Sequence[float]) -> float:
        """The greatest magnitude for values up to these."""
        return max(peaks) if cls.chooses else sum(peaks)

    @classmethod
    def point(cls, fracs: Sequence[int]) -> int:
        """Fraction bits of what it makes of values with these."""
        return max(fracs) if cls.aligned else sum(fracs)

    def _check(self, count: int) -> None:
        if self.pair and count != 2:
            raise Refusal(f"Layer {self.name!r}: a {self.kind} must have two sources, not {count}; split it")


@dataclass(frozen=True, eq=False)
class Elementwise(Places, GoldenLayer):
    """y = f(x_0, x_1, …), or max(0, …): exact, then rounded half-up and saturated.

    Parameters:
        inputs: values of a vector, channels of an image.
        input_formats: of what the sources give.
        output_format: of y.

    Raises:
        Refusal: when it has more sources than its kind takes, or f could leave int64.
    """

    name: str
    inputs: int
    input_formats: tuple[Format, ...]
    output_format: Format
    relu: bool = False

    def __post_init__(self) -> None:
        self._check(len(self.input_formats))
        widths = [form.width + shift for form, shift in zip(self.input_formats, self.shifts, strict=True)]
        if rounding_bits(self.bits(widths), self.frac - self.output_format.frac) > 63:
            what = "sum" if self.kind == "add" else self.kind
            raise Refusal(f"Layer {self.name!r}: the {what} must fit into 63 bits, but with the branches "
                          f"{' and '.join(map(str, self.input_formats))} and the value {self.output_format} it does "
                          "not; choose narrower ones, or binary points nearer to each other")

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.inputs,) * len(self.input_formats)

    @property
    def frac(self) -> int:
        """Fraction bits of f, before it is rounded."""
        return self.point([form.frac for form in self.input_formats])

    @property
    def shifts(self) -> tuple[int, ...]:
        """Places by which the values of each source are shifted to the left before."""
        return tuple(self.frac - form.frac if self.aligned else 0 for form in self.input_formats)

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None) -> Integers:
        exact = self.combined([side << shift for side, shift in zip(values, self.shifts, strict=True)])
        return self.finished(requantize(np.asarray(exact), self.frac, self.output_format), record)


@dataclass(frozen=True, eq=False)
class FloatElementwise(Places, FloatLayer):
    """y = f(x_0, x_1, …), or max(0, …), of vectors, steps or images alike.

    Members:
        golden: the class in integers.

    Parameters:
        count: of the x_i.

    Raises:
        Refusal: when it has more sources than its kind takes.
    """

    golden: ClassVar[type[Elementwise]]
    name: str
    inputs: int
    count: int = 2
    relu: bool = False

    def __post_init__(self) -> None:
        self._check(self.count)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.inputs,) * self.count

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore) -> Reals:
        y = np.asarray(self.combined(values))
        y = np.maximum(y, 0.0) if self.relu else y
        tap(f"{self.name}.y", y)
        return y


@bases.quantize_layer.register
def _(layer: FloatElementwise, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Elementwise:
    kind = layer.golden
    if kind.chooses and len(set(input)) == 1:
        return kind(layer.name, layer.inputs, input, input[0], layer.relu)
    output = peaks.fit(bits.value, f"{layer.name}.y")
    if bits.whole:
        output = no_finer(output, kind.point([form.frac for form in input]))
    return kind(layer.name, layer.inputs, input, output, layer.relu)


bases.quantize_layer_like.register(Elementwise, same_formats)


@bases.bitwidth_fields.register
def _(layer: Elementwise) -> list[str]:
    return [] if layer.chooses and set(layer.input_formats) == {layer.output_format} else ["output_bits"]


@bases.layer_worst_cases.register
def _(layer: Elementwise, peak: Sequence[float], steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", layer.reach(peak)


@bases.propagate.register
def _(layer: Elementwise, exact: FloatElementwise, trace: bases.Trace, known: Sequence[bases.Known]) -> bases.Known:
    low, high = zip(*(ends(*each) for each in known), strict=True)
    return between(layer, known, *layer.extremes(low, high))
