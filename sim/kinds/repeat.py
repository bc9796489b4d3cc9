"""A vector repeated for as many steps as a sequence has, as decoders of autoencoders take it."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMAT, SIZE
from circulant.sim.shape.layer import Held, SameSize
from circulant.sim.shape.sequences import Lengths, valid

__all__ = ["KIND", "FloatRepeat", "Repeat"]


FORMATS = "counted_format", "input_format"


class _Shape(Held, SameSize):
    kind = "repeat"
    counts = True

    counted: int

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.counted, self.inputs


def _repeated(values: Sequence[Any], lengths: Lengths | None) -> Any:
    steps, vectors = values
    y = np.repeat(vectors[:, None], steps.shape[1], axis=1)
    return y if lengths is None else np.where(valid(lengths, steps.shape[1])[..., None], y, 0)


@dataclass(frozen=True, eq=False)
class Repeat(_Shape, GoldenLayer):
    """The vectors (N, inputs) of the second source for each step of the sequences (N, T, counted) of the first one,
    whose values nobody looks at: (N, T, inputs).

    Parameters:
        counted: values of a step of the sequences.
        counted_format: theirs.
    """

    name: str
    inputs: int
    counted: int
    counted_format: Format
    input_format: Format

    @property
    def input_formats(self) -> tuple[Format, ...]:
        return self.counted_format, self.input_format

    @property
    def output_format(self) -> Format:
        return self.input_format

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None,
                 lengths: Lengths | None = None) -> Integers:
        return np.asarray(_repeated(values, lengths))


@dataclass(frozen=True, eq=False)
class FloatRepeat(_Shape, FloatLayer):
    """The vectors of the second source for each step of the sequences of the first one, see `Repeat`."""

    name: str
    inputs: int
    counted: int

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        return np.asarray(_repeated(values, lengths))


@bases.quantize_layer.register
def _(layer: FloatRepeat, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Repeat:
    return Repeat(layer.name, layer.inputs, layer.counted, *input)


bases.quantize_layer_like.register(Repeat, same_formats)


@bases.propagate.register
def _(layer: Repeat, exact: FloatRepeat, trace: bases.Trace, known: Sequence[bases.Known]) -> bases.Known:
    golden, shift, rest = (_repeated(parts, None) for parts in zip(*known, strict=True))
    return golden, shift, rest


KIND = Kind(Repeat, FloatRepeat, {"counted": SIZE, **dict.fromkeys(FORMATS, FORMAT)})
