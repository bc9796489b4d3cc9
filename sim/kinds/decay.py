"""h = a · h + x, value by value: a diagonal linear recurrence with real coefficients, as that of an S4D or LRU without
rotation (arXiv 2206.11893, 2303.06349)."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, requantize, rounding_bits
from circulant.sim.kinds.scan import FloatScan, Scan, between_steps
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.products import check
from circulant.sim.passes.quantizing import check_fit
from circulant.sim.passes.rules import FORMAT, FORMATS
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverSequences

__all__ = ["KIND", "Decay", "FloatDecay"]


@dataclass(frozen=True, eq=False)
class Decay(Scan, OverSequences):
    """h = sat(round(a · h + x)): the sum is exact.

    Parameters:
        factors: a, integers (inputs,) of the format ``factor``.

    Raises:
        Refusal: when an integer lies beyond its format, or a sum could leave int64.
    """

    name: str
    inputs: int
    factors: Integers
    factor: Format
    input_format: Format
    output_format: Format

    searched = ("weight_bits", "state_bits")
    vector = "factors"

    kind = "decay"
    terms = 1
    """Products that are summed up for a value, each with a factor of its own for each value."""

    @property
    def weights(self) -> tuple[Integers, ...]:
        """The arrays of factors."""
        return (self.factors,)

    def __post_init__(self) -> None:
        for a in self.weights:
            if a.shape != (self.inputs // self.terms,) or a.min() < self.factor.lo or a.max() > self.factor.hi:
                raise Refusal(f"Layer {self.name!r}: the factors must be {self.inputs // self.terms} integers of "
                              f"{self.factor.width} bits, not {a.shape} from {a.min()} to {a.max()}; quantize it again")
        kept, given = self.shifts
        bits = 1 + max(self.factor.width + self.output_format.width + kept + self.terms - 1,
                       self.input_format.width + given)
        if rounding_bits(bits, self.rounding) > 62:
            raise Refusal(f"Layer {self.name!r}: its sums must fit into 62 bits, but with the argument "
                          f"{self.input_format}, the factor {self.factor} and the state {self.output_format} they do "
                          "not; choose narrower ones, or binary points nearer to each other")

    @property
    def shifts(self) -> tuple[int, int]:
        """Places by which a · h and x are shifted to the left before their sum."""
        fracs = self.factor.frac + self.output_format.frac, self.input_format.frac
        return max(fracs) - fracs[0], max(fracs) - fracs[1]

    @property
    def rounding(self) -> int:
        """Bits by which the sum is shifted."""
        return self.shifts[1] + self.input_format.frac - self.output_format.frac

    def driven(self, state: Integers) -> Integers:
        """The products with the state, which need no rounding."""
        return self.factors * state

    def follow(self, state: Integers, *values: Integers) -> Integers:
        kept, given = self.shifts
        return np.asarray(requantize((self.driven(state) << kept) + (values[0] << given), self.rounding
                                     + self.output_format.frac, self.output_format))


@dataclass(frozen=True, eq=False)
class FloatDecay(FloatScan, OverSequences):
    """h = a · h + x, from 0 on.

    Parameters:
        factors: a, (inputs,), from -1 to 1.

    Raises:
        Refusal: when a factor is beyond, since such a state grows without end.
    """

    name: str
    inputs: int
    factors: Reals

    kind = "decay"

    def __post_init__(self) -> None:
        check(self.name, factors=(self.factors, (self.inputs,)))
        if np.abs(self.factors).max() > 1:
            raise Refusal(f"Layer {self.name!r}: its factors must be from -1 to 1, not up to "
                          f"{np.abs(self.factors).max():.6g}, since its state would grow without end; give it others")

    def follow(self, state: Reals, *values: Reals) -> Reals:
        return self.factors * state + values[0]


@bases.quantize_layer.register
def _(layer: FloatDecay, input: Format, peaks: Peaks, bits: Widths) -> Decay:
    """A factor near 1 must not become 1: its format ends at 1, and saturates below it."""
    factor = Format(bits.weight_bits, bits.weight_bits - 1)
    return Decay(layer.name, layer.inputs, factor.quantize(layer.factors), factor, input_format=input,
                 output_format=peaks.fit(bits.state, f"{layer.name}.y"))


@bases.quantize_layer_like.register
def _(rule: Decay, layer: FloatDecay) -> Decay:
    check_fit(layer.name, [("factors", rule.factor, layer.factors)])
    return replace(rule, name=layer.name, factors=rule.factor.quantize(layer.factors))


@bases.layer_bits.register
def _(layer: Decay) -> int:
    return layer.inputs * layer.factor.width


@bases.layer_worst_cases.register
def _(layer: Decay, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    a = np.abs(layer.factor.real(layer.factors)).max()
    yield f"{layer.name}.y", float(peak * (steps if a == 1 else (1 - a ** steps) / (1 - a)))


bases.propagate.register(Decay, between_steps)


KIND = Kind(Decay, FloatDecay, {"factor": FORMAT, **FORMATS}, arrays={"factors": 1})
