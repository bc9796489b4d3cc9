"""Vectors, steps or pixels side by side."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Listing
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends
from circulant.sim.passes.formats import Peaks, Widths, no_finer
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import JOINED, SIZE
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Join

__all__ = ["KIND", "Concat", "FloatConcat"]


class _Shape(Join):
    kind = "concat"

    @property
    def inputs(self) -> int:
        return sum(self.sizes)

    @property
    def outputs(self) -> int:
        return sum(self.sizes)


@dataclass(frozen=True, eq=False)
class Concat(_Shape, GoldenLayer):
    """The values of the first source, behind them those of the next: each rounded half-up and saturated to one format.

    Parameters:
        sizes: values of the vectors of each source.
        input_formats: of what the sources give.
        block: values of a block that comes where all sources are inputs of the network; of a circuit, not of a file.

    Raises:
        Refusal: when a value could leave int64.
    """

    name: str
    sizes: tuple[int, ...]
    input_formats: tuple[Format, ...]
    output_format: Format
    block: int = 1

    def __post_init__(self) -> None:
        for form in self.input_formats:
            if rounding_bits(form.width, form.frac - self.output_format.frac) > 63:
                raise Refusal(f"Layer {self.name!r}: values of the {form} must fit into 63 bits when they become "
                              f"{self.output_format}, but they do not; choose formats nearer to each other")

    @property
    def rounds(self) -> bool:
        """Whether a source has another format than the output."""
        return any(form != self.output_format for form in self.input_formats)

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None) -> Integers:
        parts = [requantize(part, form.frac, self.output_format)
                 for part, form in zip(values, self.input_formats, strict=True)]
        y = np.concatenate(parts, axis=-1)
        if record is not None and self.rounds:
            record.values(f"{self.name}.y", y, self.output_format)
        return y


@dataclass(frozen=True, eq=False)
class FloatConcat(_Shape, FloatLayer):
    """The values of the first source, behind them those of the next.

    Parameters:
        sizes: values of the vectors of each source.
    """

    name: str
    sizes: tuple[int, ...]

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore) -> Reals:
        tap(f"{self.name}.y", y := np.concatenate(values, axis=-1))
        return y


@bases.quantize_layer.register
def _(layer: FloatConcat, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Concat:
    """The format of the sources where they have one, else one that holds all of their values."""
    output = input[0] if len(set(input)) == 1 else no_finer(peaks.fit(bits.value, f"{layer.name}.y"),
                                                           max(form.frac for form in input))
    return Concat(layer.name, layer.sizes, input, output)


bases.quantize_layer_like.register(Concat, same_formats)


@bases.bitwidth_fields.register
def _(layer: Concat) -> list[str]:
    return ["output_bits"] if layer.rounds else []


@bases.layer_worst_cases.register
def _(layer: Concat, peak: Sequence[float], steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", max(peak)


@bases.propagate.register
def _(layer: Concat, exact: FloatConcat, trace: bases.Trace, known: Sequence[bases.Known]) -> bases.Known:
    if layer.rounds:
        low, high = (np.concatenate(both, -1) for both in zip(*(ends(*each) for each in known), strict=True))
        return between(layer, known, low, high)
    golden, shift, rest = (np.concatenate(parts, -1) for parts in zip(*known, strict=True))
    return golden, shift, rest


KIND = Kind(Concat, FloatConcat, {"sizes": Listing(SIZE, 2, 64), **JOINED})
