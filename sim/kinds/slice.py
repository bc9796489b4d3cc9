"""A range of the values of each vector, step or pixel: chunks and splits are several of them."""
from dataclasses import dataclass

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Int
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMAT, SIZE
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Layer

__all__ = ["KIND", "FloatSlice", "Slice"]


class _Range(Layer):
    kind = "slice"
    stepwise = True

    first: int
    size: int

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.first + self.size <= self.inputs:
            raise Refusal(f"Layer {self.name!r}: the range must lie within the {self.inputs} values that come, not "
                          f"begin at {self.first} and have {self.size}; correct it")

    @property
    def outputs(self) -> int:
        return self.size


@dataclass(frozen=True, eq=False)
class Slice(_Range, GoldenLayer):
    """The values ``first`` … ``first + size − 1`` of what comes.

    Parameters:
        block: values of a block that comes where its source is an input of the network; of a circuit, not of a file.

    Raises:
        Refusal: when there are not so many.
    """

    name: str
    inputs: int
    first: int
    size: int
    input_format: Format
    block: int = 1

    @property
    def output_format(self) -> Format:
        return self.input_format

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        return x[..., self.first:self.first + self.size]


@dataclass(frozen=True, eq=False)
class FloatSlice(_Range, FloatLayer):
    """The values ``first`` … ``first + size − 1`` of what comes.

    Raises:
        Refusal: when there are not so many.
    """

    name: str
    inputs: int
    first: int
    size: int

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        return x[..., self.first:self.first + self.size]


@bases.quantize_layer.register
def _(layer: FloatSlice, input: Format, peaks: Peaks, bits: Widths) -> Slice:
    return Slice(layer.name, layer.inputs, layer.first, layer.size, input)


bases.quantize_layer_like.register(Slice, same_formats)


@bases.propagate.register
def _(layer: Slice, exact: FloatSlice, trace: bases.Trace, known: bases.Known) -> bases.Known:
    golden, shift, rest = (part[..., layer.first:layer.first + layer.size] for part in known)
    return golden, shift, rest


KIND = Kind(Slice, FloatSlice, {"first": Int(0, 1 << 24), "size": SIZE, "input_format": FORMAT})
