"""h = h + z · (x − h), value by value: the state of minGRU and minLSTM (arXiv 2410.01201), whose gates know x only."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, round_shift, rounding_bits, saturate
from circulant.sim.files.schema import Listing
from circulant.sim.kinds.scan import FloatScan, Scan, between_steps
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMAT
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Join
from circulant.sim.shape.window import Flow

__all__ = ["KIND", "Blend", "FloatBlend"]


class _Shape(Join):
    kind = "blend"
    alike = True

    inputs: int

    @property
    def sizes(self) -> tuple[int, int]:
        return self.inputs, self.inputs

    def following(self, flows: Sequence[Flow]) -> Flow:
        if not flows[0].sequence:
            raise Refusal(f"Layer {self.name!r} needs sequences, but what comes before gives one vector; let the "
                          "layers before return the whole sequence")
        return super().following(flows)


@dataclass(frozen=True, eq=False)
class Blend(_Shape, Scan):
    """h = sat(h + round(z · (x − h))): z and x are the sources, in this order; the difference is exact.

    Raises:
        Refusal: when a sum could leave int64.
    """

    name: str
    inputs: int
    input_formats: tuple[Format, Format]
    output_format: Format

    searched = ("state_bits",)

    def __post_init__(self) -> None:
        gate, given = self.input_formats
        apart = 1 + max(form.width + shift for form, shift in zip(
            (given, self.output_format), self.shifts, strict=True))
        if rounding_bits(gate.width + apart, self.rounding) + 1 > 62:
            raise Refusal(f"Layer {self.name!r}: its sums must fit into 62 bits, but with the sources "
                          f"{gate} and {given} and the state {self.output_format} they do not; choose narrower ones, "
                          "or binary points nearer to each other")

    @property
    def shifts(self) -> tuple[int, int]:
        """Places by which x and h are shifted to the left before their difference."""
        fracs = self.input_formats[1].frac, self.output_format.frac
        return max(fracs) - fracs[0], max(fracs) - fracs[1]

    @property
    def rounding(self) -> int:
        """Bits by which the product is shifted."""
        return self.input_formats[0].frac + self.shifts[1]

    def follow(self, state: Integers, *values: Integers) -> Integers:
        z, x = values
        moved = round_shift(z * ((x << self.shifts[0]) - (state << self.shifts[1])), self.rounding)
        return np.asarray(saturate(state + moved, self.output_format.width))


@dataclass(frozen=True, eq=False)
class FloatBlend(_Shape, FloatScan):
    """h = h + z · (x − h), from 0 on: see `Blend`."""

    name: str
    inputs: int

    def follow(self, state: Reals, *values: Reals) -> Reals:
        z, x = values
        return state + z * (x - state)


@bases.quantize_layer.register
def _(layer: FloatBlend, input: tuple[Format, Format], peaks: Peaks, bits: Widths) -> Blend:
    return Blend(layer.name, layer.inputs, input, peaks.fit(bits.state, f"{layer.name}.y"))


bases.quantize_layer_like.register(Blend, same_formats)


@bases.layer_worst_cases.register
def _(layer: Blend, peak: Sequence[float], steps: int) -> Iterator[tuple[str, float]]:
    """With z from 0 to 1 no further than x; else |h| grows by |1 − z| at each step."""
    gate, given = peak
    yield f"{layer.name}.y", given if gate <= 1 else given * gate * min(1e300, (1 + gate) ** min(steps, 300))


bases.propagate.register(Blend, between_steps)


KIND = Kind(Blend, FloatBlend, {"input_formats": Listing(FORMAT, 2, 2), "output_format": FORMAT})
