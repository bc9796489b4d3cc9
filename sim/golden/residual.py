"""The sum of what two chains of layers make of the same images (He et al. 2016), with a ReLU behind it or not."""
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Grid

if TYPE_CHECKING:
    from circulant.sim.golden.layers import Layer

__all__ = ["Residual"]


@dataclass(frozen=True, eq=False)
class Residual:
    """y = body(x) + shortcut(x), or max(0, …), rounded half-up and saturated.

    Parameters:
        inputs: channels.
        grid: of the images that come.
        body, shortcut: layers; no layer stands for x itself. That they fit is checked by `sim.shape.chain.check_chain`.
        output_format: of the sum.

    Raises:
        Refusal: when the sum could leave int64.
    """

    name: str
    inputs: int
    grid: Grid
    body: tuple["Layer", ...]
    shortcut: tuple["Layer", ...]
    input_format: Format
    output_format: Format
    relu: bool = False

    kind = "residual"

    def __post_init__(self) -> None:
        frac = max(form.frac for form in self.formats)
        bits = max(form.width + frac - form.frac for form in self.formats) + 1
        if rounding_bits(bits, frac - self.output_format.frac) > 63:
            raise Refusal(f"Layer {self.name!r}: the sum must fit into 63 bits, but with the branches "
                          f"{self.formats[0]} and {self.formats[1]} and the value {self.output_format} it does not; "
                          "choose narrower ones, or binary points nearer to each other")

    @property
    def branches(self) -> dict[str, tuple["Layer", ...]]:
        return {"body": self.body, "shortcut": self.shortcut}

    @property
    def outputs(self) -> int:
        return next((chain[-1].outputs for chain in self.branches.values() if chain), self.inputs)

    @property
    def formats(self) -> tuple[Format, Format]:
        """Of what the two branches give."""
        body, shortcut = (chain[-1].output_format if chain else self.input_format for chain in self.branches.values())
        return body, shortcut

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        sides = []
        for chain in self.branches.values():
            values = x
            for layer in chain:
                values = layer(values, record)
            sides.append(values)
        frac = max(form.frac for form in self.formats)
        first, second = (side << frac - form.frac for side, form in zip(sides, self.formats, strict=True))
        y = requantize(first + second, frac, self.output_format)
        if self.relu:
            y = np.maximum(y, 0)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return np.asarray(y)
