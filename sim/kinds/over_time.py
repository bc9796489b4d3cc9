"""The maximum, the mean or the last of the steps of a sequence, value by value: one vector of a whole sequence."""
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Format, Integers, Reals, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Choice
from circulant.sim.passes import bases
from circulant.sim.passes.errors import monotone
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMATS
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverSequences, SameSize
from circulant.sim.shape.recurrent import check_state
from circulant.sim.shape.sequences import Lengths, valid

__all__ = ["COUNT_BITS", "KIND", "STEPS", "FloatOverTime", "OverTime"]

MODES = ("max", "mean", "last")

COUNT_BITS = 16
"""Bits of the number of steps that a mean counts."""

STEPS = (1 << COUNT_BITS) - 1
"""Steps that a mean is taken over at the most: those behind them change nothing."""


class _Shape(OverSequences, SameSize):
    kind = "over_time"
    returns = "last"

    mode: str

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise Refusal(f"Layer {self.name!r} must take the 'max', the 'mean' or the 'last' of the steps, not "
                          f"{self.mode!r}; choose one")


@dataclass(frozen=True, eq=False)
class OverTime(_Shape, GoldenLayer):
    """Sequences (N, T, inputs) to vectors (N, inputs): the greatest value of all steps, their mean, or the last one.

    A mean is the sum of the first `STEPS` steps, divided by their number exactly and rounded half-up, then saturated:
    ⌊(2 S 2^s + n) / 2n⌋ for the sum S of n steps, s bits to the left of the argument's binary point.

    Parameters:
        mode: "max" or "last", which keep the format, or "mean".

    Raises:
        Refusal: when the mode is unknown, another mode changes its format, or a mean's format is so fine that its sums
            leave 63 bits, or so coarse that it holds nothing of the argument.
    """

    name: str
    inputs: int
    mode: str
    input_format: Format
    output_format: Format

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode != "mean" and self.input_format != self.output_format:
            raise Refusal(f"Layer {self.name!r}: what is no mean must keep the {self.input_format}, not give "
                          f"{self.output_format}; quantize it again")
        fits = self.sum_bits + abs(self.lift) + 2 <= 62
        if self.mode == "mean" and not (fits and -self.lift < self.input_format.width):
            raise Refusal(f"Layer {self.name!r}: the mean of values in the {self.input_format} cannot be made in the "
                          f"{self.output_format}; choose binary points nearer to each other")

    @property
    def lift(self) -> int:
        """Fraction bits that the result has beyond those of the argument."""
        return self.output_format.frac - self.input_format.frac

    @property
    def sum_bits(self) -> int:
        """Bits of the sum of as many steps as are counted; those of a value where nothing is summed up."""
        return self.input_format.width + (COUNT_BITS if self.mode == "mean" else 0)

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        seen = np.ones(x.shape[:2], bool) if lengths is None else valid(lengths, x.shape[1])
        return self.finished(self._finished(*self._steps(x, seen, *self.initial(len(x)))), record)

    def initial(self, count: int) -> tuple[Integers, Integers]:
        """The state that ``count`` sequences start from: greatest values or sums (N, inputs), steps counted (N, 1)."""
        return np.zeros((count, self.inputs), np.int64), np.zeros((count, 1), np.int64)

    def run(self, x: Integers, state: Any = None) -> tuple[Integers, tuple[Integers, Integers]]:
        start = self.initial(len(x))
        for part, rule in zip(state or start, start, strict=True):
            check_state(self.name, part, rule)
        state = self._steps(x, np.ones(x.shape[:2], bool), *(state or start))
        return self._finished(*state), state

    def _steps(self, x: Integers, seen: NDArray[np.bool_], values: Integers,
                   steps: Integers) -> tuple[Integers, Integers]:
        """The state behind the steps of x that are ``seen`` (N, T), the first ones of each sequence."""
        if self.mode == "max":
            new = np.where(seen[..., None], x, self.input_format.lo).max(1)
            values = np.where(steps > 0, np.maximum(values, new), new)
        elif self.mode == "last":
            values = np.where(seen.any(1, keepdims=True), _last(x, seen), values)
        else:
            seen = seen & (np.arange(x.shape[1]) < STEPS - steps)
            values = values + (x * seen[..., None]).sum(1)
        return values, np.minimum(steps + seen.sum(1, keepdims=True), STEPS)

    def _finished(self, values: Integers, steps: Integers) -> Integers:
        if self.mode != "mean":
            return values
        divisor = steps << max(0, -self.lift)
        return np.asarray(saturate((2 * (values << max(0, self.lift)) + divisor) // (2 * divisor),
                                   self.output_format.width))


def _last(x: NDArray[Any], seen: NDArray[np.bool_]) -> NDArray[Any]:
    """(N, inputs) of the last step of x (N, T, inputs) that is seen."""
    return np.asarray(x[np.arange(len(x)), seen.sum(1) - 1])


@dataclass(frozen=True, eq=False)
class FloatOverTime(_Shape, FloatLayer):
    """The greatest value of all steps of a sequence, their mean, or the last one: see `OverTime`.

    Parameters:
        mode: "max", "mean" or "last".
    """

    name: str
    inputs: int
    mode: str

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        seen = np.ones(x.shape[:2], bool) if lengths is None else valid(lengths, x.shape[1])
        if self.mode == "max":
            y = np.where(seen[..., None], x, -np.inf).max(1)
        elif self.mode == "last":
            y = _last(x, seen)
        else:
            seen = seen[:, :STEPS]
            y = np.where(seen[..., None], x[:, :STEPS], 0).sum(1) / seen.sum(1, keepdims=True)
        tap(f"{self.name}.y", y)
        return np.asarray(y)


@bases.quantize_layer.register
def _(layer: FloatOverTime, input: Format, peaks: Peaks, bits: Widths) -> OverTime:
    mean = peaks.fit(bits.value, f"{layer.name}.y") if layer.mode == "mean" else input
    return OverTime(layer.name, layer.inputs, layer.mode, input_format=input, output_format=mean)


bases.quantize_layer_like.register(OverTime, same_formats)


@bases.bitwidth_fields.register
def _(layer: OverTime) -> list[str]:
    return ["output_bits"] if layer.mode == "mean" else []


@bases.layer_worst_cases.register
def _(layer: OverTime, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", peak


bases.propagate.register(OverTime, monotone)


KIND = Kind(OverTime, FloatOverTime, {"mode": Choice(MODES), **FORMATS})
