"""Sigmoid, tanh and their hard forms on integers: a line for each segment of the argument.

Two tables give the lines. "pwl": segments of any length, as few as an error bound allows, each with its minimax line.
"lut": values at equal distances, and straight lines between them. `sim.arith.segments` fits both.
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from circulant.sim.arith.curves import CURVES
from circulant.sim.arith.fixed import Format, Integers, Reals, round_shift, rounding_bits, saturate
from circulant.sim.document import Document
from circulant.sim.refusal import Refusal

__all__ = ["FUNCTIONS", "LINES", "METHODS", "Pwl", "activation_names", "exact_function", "hard_sigmoid", "hard_tanh",
           "sigmoid"]


def sigmoid(x: Reals) -> Reals:
    return 0.5 * (1 + np.tanh(0.5 * x))


def hard_sigmoid(x: Reals) -> Reals:
    """torch.nn.Hardsigmoid: x / 6 + 1/2, from 0 to 1."""
    return np.clip(x / 6 + 0.5, 0, 1)


def hard_tanh(x: Reals) -> Reals:
    """torch.nn.Hardtanh: x, from -1 to 1."""
    return np.clip(x, -1, 1)


FUNCTIONS: dict[str, Callable[[Reals], Reals]] = {
    "sigmoid": sigmoid, "tanh": np.tanh, "hard_sigmoid": hard_sigmoid, "hard_tanh": hard_tanh}



def relu(x: Reals) -> Reals:
    return np.maximum(x, 0.0)


def leaky_relu(x: Reals, slope: float) -> Reals:
    """torch.nn.LeakyReLU: x, below zero slope · x."""
    return np.where(x < 0, slope * x, x)


def clip(x: Reals, low: float, high: float) -> Reals:
    """torch.nn.Hardtanh from low to high; ReLU6 is that from 0 to 6."""
    return np.clip(x, low, high)


LINES: dict[str, tuple[Callable[..., Reals], int]] = {
    "relu": (relu, 0), "identity": (np.asarray, 0), "leaky_relu": (leaky_relu, 1), "clip": (clip, 2), **CURVES}
"""Functions of a few straight lines, and smooth ones, without a limit of their own; how many parameters each has."""

METHODS = ("pwl", "lut")


def exact_function(name: str, parameters: Sequence[float] = ()) -> Callable[[Reals], Reals]:
    """The function of a name in `FUNCTIONS` or `LINES`.

    Raises:
        Refusal: when there is none of that name, it has another number of parameters, or they turn it around.
    """
    if name in FUNCTIONS and not parameters:
        return FUNCTIONS[name]
    if name not in LINES or len(parameters) != LINES[name][1]:
        known = [*FUNCTIONS, *(f"{each} with {count} parameters" for each, (_, count) in LINES.items())]
        raise Refusal(f"An activation must be one of {', '.join(known)}, not {name!r} with {len(parameters)}; choose "
                      "one of them")
    if name == "leaky_relu" and not 0 <= parameters[0] <= 1:
        raise Refusal(f"The slope of a leaky ReLU must be from 0 to 1, not {parameters[0]!r}; choose another one")
    if name in CURVES and not all(parameter > 0 for parameter in parameters):
        raise Refusal(f"Parameters of {name} must be greater than 0, not {tuple(parameters)!r}; choose others")
    if name == "clip" and not parameters[0] < parameters[1]:
        raise Refusal(f"The ends of a clip must ascend, not be {parameters[0]!r} and {parameters[1]!r}; exchange them")
    return partial(_called, LINES[name][0], tuple(parameters))


def _called(function: Callable[..., Reals], parameters: tuple[float, ...], x: Reals) -> Reals:
    return function(x, *parameters)


def activation_names(hard: bool, nonlinearity: str = "tanh") -> tuple[str, str]:
    """The functions of gates and of what they let pass, by name: sigmoid and tanh or their hard forms, or another
    nonlinearity for the latter."""
    sigmoid, tanh = ("hard_sigmoid", "hard_tanh") if hard else ("sigmoid", "tanh")
    return sigmoid, tanh if nonlinearity == "tanh" else nonlinearity


TABLE_BITS = 18
"""Arguments of this width or less are looked up: all values take 2 MiB at the most."""


@dataclass(frozen=True, eq=False)
class Pwl:
    """Lines over segments of the argument x, which is clipped to ±2**reach: ``slope[s] · u + base[s]``, rounded half-up
    once, saturated. u is x itself in a "pwl", the place x - start[s] in a "lut".

    Parameters:
        function: of `FUNCTIONS` or `LINES`.
        method: of `METHODS`.
        reach: log2 of the greatest argument; the value stays outside of it.
        input, output: formats of argument and value.
        slope_format, base_format: of the integers ``slope`` and ``base``.
        start: (segments,) the least argument of each segment, ascending integers of the format ``input``. A "lut" has
            a power of two of equal segments, 2 or more.
        parameters: of a function of `LINES`.

    Raises:
        Refusal: when the tables or formats contradict each other, or a sum could leave int64.
    """

    function: str
    method: str
    reach: int
    input: Format
    output: Format
    slope_format: Format
    base_format: Format
    start: Integers
    slope: Integers
    base: Integers
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        exact_function(self.function, self.parameters)
        name, count = f"{self.function}'s table", len(self.start)
        if self.input_bits > 62:
            raise Refusal(f"The argument of {self.function} must have at most 62 bits, but with {self.input.frac} "
                          f"fraction bits and a reach of 2**{self.reach} it has {self.input_bits}; fit its table again")
        if self.input_bits < 2:
            raise Refusal(f"The argument of {self.function} must have at least {1 - self.reach} fraction bits within a "
                          f"reach of 2**{self.reach}, not {self.input.frac}; choose a greater width")
        half = 1 << self.input_bits - 1
        if not count or self.start[0] != -half or self.start.min() < -half or self.start.max() >= half or (
                np.diff(self.start) < 1).any():
            raise Refusal(f"The segments of {name} must ascend from {-half} and start below {half}, but they do not; "
                          "fit it again")
        for what, values, form in (("slope", self.slope, self.slope_format), ("base", self.base, self.base_format)):
            if len(values) != count or values.min() < form.lo or values.max() > form.hi:
                raise Refusal(f"{name} must have {count} values of {what} in the {form}, but it has {len(values)} from "
                              f"{values.min(initial=0)} to {values.max(initial=0)}; fit it again")
        if self.method == "lut" and (count < 2 or count & count - 1 or (np.diff(self.start) * count != 2 * half).any()):
            raise Refusal(f"A look-up table of {self.function} must have a power of two of equal segments, from 2 to "
                          f"{2 * half}, not {count}; fit it again")
        if self.lift < 0 or self._bits > 63:
            raise Refusal(f"The sums of {self.function} must fit into 63 bits and hold its bases, but with the "
                          f"argument {self.input}, the slope {self.slope_format} and the base {self.base_format} they "
                          "do not; choose narrower ones, or more fraction bits of the slope")

    @property
    def exact(self) -> Callable[[Reals], Reals]:
        """The function that the lines stand for."""
        return exact_function(self.function, self.parameters)

    @property
    def segments(self) -> int:
        return len(self.start)

    @property
    def input_bits(self) -> int:
        """Width of the argument after it is clipped to the reach."""
        return self.input.frac + self.reach + 1

    @property
    def cell_bits(self) -> int:
        """Low bits of the argument that no start of a segment has: those above are a cell, which lies in one segment.

        A "lut" has as many cells as segments.
        """
        ends = [start & -start for start in self.start.tolist() if start]
        return min([self.input_bits - 1, *(end.bit_length() - 1 for end in ends)])

    @property
    def cells(self) -> list[int]:
        """The segment of each cell, from the least argument on."""
        half = 1 << self.input_bits - 1
        return (np.searchsorted(self.start, np.arange(-half, half, 1 << self.cell_bits), "right") - 1).tolist()

    @property
    def shift(self) -> int:
        """Bits by which the sum of a line is rounded."""
        return self.slope_format.frac + self.input.frac - self.output.frac

    @property
    def lift(self) -> int:
        """Bits by which a base is shifted to the left to meet the product."""
        return self.slope_format.frac + self.input.frac - self.base_format.frac

    @property
    def _bits(self) -> int:
        """Bits that hold everything on the way."""
        product, base = self.slope_format.width + self.input_bits, self.base_format.width + self.lift
        return rounding_bits(max(product, base) + 1, self.shift)

    def __call__(self, x: Integers) -> Integers:
        if self.input_bits <= TABLE_BITS:
            return np.take(self.values, np.add(x, 1 << self.input_bits - 1, dtype=np.intp), mode="clip")
        return self._computed(x)

    @cached_property
    def values(self) -> Integers:
        """Values at every argument within the reach, from the least on."""
        half = 1 << self.input_bits - 1
        return self._computed(np.arange(-half, half))

    def _computed(self, x: Integers) -> Integers:
        clipped = saturate(x, self.input_bits)
        segment = np.searchsorted(self.start, clipped, "right") - 1
        u = clipped - self.start[segment] if self.method == "lut" else clipped
        sums = self.slope[segment] * u + (self.base[segment] << self.lift)
        return np.asarray(saturate(round_shift(sums, self.shift), self.output.width))

    @property
    def ends(self) -> Integers:
        """The least and the greatest argument of each segment, (segments, 2): a line takes its extremes at them."""
        return np.stack([self.start, np.append(self.start[1:], 1 << self.input_bits - 1) - 1], axis=1)

    @property
    def max_error(self) -> float:
        """The greatest distance from the function, over every argument or, if there are more, 2**20 of them."""
        codes = np.arange(self.input.lo, self.input.hi + 1, 1 << max(0, self.input.width - 20))
        exact = self.exact(self.input.real(codes))
        return float(np.abs(self.output.real(self(codes)) - exact).max())

    def as_json(self) -> Document:
        own = {"parameters": list(self.parameters)} if self.parameters else {}
        return {"function": self.function, **own, "method": self.method, "reach": self.reach, "segments": self.segments,
                "input": self.input.as_json(), "output": self.output.as_json(), "slope": self.slope_format.as_json(),
                "base": self.base_format.as_json()}
