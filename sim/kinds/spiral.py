"""h = λ · h + x, pair by pair: a diagonal linear recurrence with complex coefficients, as that of an LRU or S4D
(arXiv 2303.06349, 2206.11893). The values of a vector are real and imaginary parts in turn."""
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.kinds.decay import Decay
from circulant.sim.kinds.scan import FloatScan
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.products import check
from circulant.sim.passes.quantizing import check_fit
from circulant.sim.passes.rules import FORMAT, FORMATS
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverSequences

__all__ = ["KIND", "FloatSpiral", "Spiral"]


def _turned(factors: NDArray[Any], turns: NDArray[Any], state: NDArray[Any]) -> NDArray[Any]:
    """(factors + i · turns) times the pairs of a state (N, inputs)."""
    re, im = state[:, ::2], state[:, 1::2]
    return np.stack((factors * re - turns * im, turns * re + factors * im), -1).reshape(state.shape)


def _complex(values: Reals) -> NDArray[np.complex128]:
    """Pairs of values as numbers."""
    return np.asarray(values[..., ::2] + 1j * values[..., 1::2])


@dataclass(frozen=True, eq=False)
class Spiral(Decay):
    """h = sat(round(λ · h + x)) of each pair, λ = factors + i · turns: the sums are exact.

    Parameters:
        factors, turns: real and imaginary parts of λ, integers (inputs / 2,) of the format ``factor``.

    Raises:
        Refusal: as `Decay`, and when the inputs are no pairs.
    """

    turns: Integers

    kind = "spiral"
    terms = 2

    def __post_init__(self) -> None:
        _check_pairs(self.name, self.inputs)
        super().__post_init__()

    @property
    def weights(self) -> tuple[Integers, ...]:
        return self.factors, self.turns

    def driven(self, state: Integers) -> Integers:
        return _turned(self.factors, self.turns, state)


@dataclass(frozen=True, eq=False)
class FloatSpiral(FloatScan, OverSequences):
    """h = λ · h + x of each pair, from 0 on.

    Parameters:
        factors, turns: real and imaginary parts of λ, (inputs / 2,).

    Raises:
        Refusal: when the inputs are no pairs, or |λ| is above 1, since such a state grows without end.
    """

    name: str
    inputs: int
    factors: Reals
    turns: Reals

    kind = "spiral"

    def __post_init__(self) -> None:
        _check_pairs(self.name, self.inputs)
        check(self.name, factors=(self.factors, (self.inputs // 2,)), turns=(self.turns, (self.inputs // 2,)))
        if (most := np.hypot(self.factors, self.turns).max()) > 1:
            raise Refusal(f"Layer {self.name!r}: the magnitude of its factors must be 1 at the most, not {most:.6g}, "
                          "since its state would grow without end; give it others")

    def follow(self, state: Reals, *values: Reals) -> Reals:
        return _turned(self.factors, self.turns, state) + values[0]


def _check_pairs(name: str, inputs: int) -> None:
    if inputs % 2:
        raise Refusal(f"Layer {name!r} must take pairs of real and imaginary parts, not {inputs} values; give it an "
                      "even number")


@bases.quantize_layer.register
def _(layer: FloatSpiral, input: Format, peaks: Peaks, bits: Widths) -> Spiral:
    factor = Format(bits.weight_bits, bits.weight_bits - 1)
    return Spiral(layer.name, layer.inputs, factor.quantize(layer.factors), factor, input_format=input,
                  output_format=peaks.fit(bits.state, f"{layer.name}.y"), turns=factor.quantize(layer.turns))


@bases.quantize_layer_like.register
def _(rule: Spiral, layer: FloatSpiral) -> Spiral:
    check_fit(layer.name, [("factors", rule.factor, layer.factors), ("turns", rule.factor, layer.turns)])
    return replace(rule, name=layer.name, factors=rule.factor.quantize(layer.factors),
                   turns=rule.factor.quantize(layer.turns))


@bases.layer_worst_cases.register
def _(layer: Spiral, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    a = float(np.hypot(*map(layer.factor.real, layer.weights)).max())
    yield f"{layer.name}.y", float(2 ** 0.5 * peak * (steps if a == 1 else (1 - a ** steps) / (1 - a)))


@bases.propagate.register
def _(layer: Spiral, exact: FloatSpiral, trace: bases.Trace, known: bases.Known) -> bases.Known:
    """The outputs, whose error turns and shrinks as the state does: a known part, and a disk of each pair around it."""
    x, shift, rest = known
    golden = layer.output_format.real(layer(layer.input_format.quantize(x)))
    factor, reach = exact.factors + 1j * exact.turns, np.abs(_complex(rest))
    before = np.concatenate((np.zeros_like(golden[:, :1]), golden[:, :-1]), 1)
    apart = _complex(golden) - factor * _complex(before) - _complex(x) + _complex(shift)
    for t in range(1, golden.shape[1]):
        apart[:, t] += factor * apart[:, t - 1]
        reach[:, t] += np.abs(factor) * reach[:, t - 1]
    center = np.stack((apart.real, apart.imag), -1).reshape(golden.shape)
    return golden, center, np.repeat(reach, 2, -1)


KIND = Kind(Spiral, FloatSpiral, {"factor": FORMAT, **FORMATS}, arrays={"factors": 1, "turns": 1})
