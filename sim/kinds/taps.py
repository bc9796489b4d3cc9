"""The vectors of this step and of earlier ones side by side: with a linear layer behind it a causal convolution over
time (WaveNet, arXiv 1609.03499), whose matrix at each tap is block-circulant over the channels."""
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from circulant.sim.shape.layer import OverSequences
from circulant.sim.shape.recurrent import check_state
from circulant.sim.shape.sequences import Lengths, valid

__all__ = ["KIND", "FloatTaps", "Taps"]

MOST = 1 << 16
"""Steps back at the most."""


class _Shape(OverSequences):
    kind = "taps"
    returns = "sequence"

    taps: int
    dilation: int
    width: int

    def __post_init__(self) -> None:
        spare = self.width - self.inputs
        if self.taps < 2 or self.dilation < 1 or self.reach > MOST:
            raise Refusal(f"Layer {self.name!r} must have two taps or more, and reach back from 1 to {MOST} steps, "
                          f"not {self.taps} with a dilation of {self.dilation}; change its kernel")
        if not 0 <= spare < self.width & -self.width:
            raise Refusal(f"Layer {self.name!r}: a tap of {self.inputs} values must be filled up to whole blocks of a "
                          f"power of two, not to {self.width} values; export it again")

    @property
    def outputs(self) -> int:
        return self.taps * self.width

    @property
    def reach(self) -> int:
        """Steps from the newest tap back to the oldest."""
        return (self.taps - 1) * self.dilation

    def _beside(self, x: NDArray[Any], past: NDArray[Any]) -> NDArray[Any]:
        """(N, T, outputs), the oldest tap first, from x (N, T, inputs) and the ``reach`` vectors before it."""
        every, steps = np.concatenate((past, x), axis=1), x.shape[1]
        filled = np.concatenate((every, np.zeros((*every.shape[:2], self.width - self.inputs), every.dtype)), axis=2)
        return np.concatenate([filled[:, n * self.dilation:n * self.dilation + steps] for n in range(self.taps)],
                              axis=2)

    def beside(self, x: NDArray[Any], lengths: Lengths | None = None) -> NDArray[Any]:
        """The same where nothing came before, 0 beyond the end of a sequence."""
        y = self._beside(x, np.zeros((len(x), self.reach, self.inputs), x.dtype))
        return y if lengths is None else np.where(valid(lengths, x.shape[1])[..., None], y, 0)


@dataclass(frozen=True, eq=False)
class Taps(_Shape, GoldenLayer):
    """y_t = (x_{t − (taps − 1) · dilation}, …, x_{t − dilation}, x_t), zeros before the sequence begins.

    Parameters:
        width: values of a tap, those of x and zeros.

    Raises:
        Refusal: when there are too few taps, they reach too far, or the width is no multiple of a power of two above
            what fills it up.
    """

    name: str
    inputs: int
    taps: int
    dilation: int
    width: int
    input_format: Format

    @property
    def output_format(self) -> Format:
        return self.input_format

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        return self.beside(x, lengths)

    def initial(self, count: int) -> Integers:
        """The vectors (N, reach, inputs) before ``count`` sequences."""
        return np.zeros((count, self.reach, self.inputs), np.int64)

    def run(self, x: Integers, state: Any = None) -> tuple[Integers, Integers]:
        past = self.initial(len(x)) if state is None else state
        check_state(self.name, past, self.initial(len(x)))
        return self._beside(x, past), np.concatenate((past, x), axis=1)[:, -self.reach:]


@dataclass(frozen=True, eq=False)
class FloatTaps(_Shape, FloatLayer):
    """The vectors of this step and of earlier ones side by side: see `Taps`."""

    name: str
    inputs: int
    taps: int
    dilation: int
    width: int

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        return self.beside(x, lengths)


@bases.quantize_layer.register
def _(layer: FloatTaps, input: Format, peaks: Peaks, bits: Widths) -> Taps:
    return Taps(layer.name, layer.inputs, layer.taps, layer.dilation, width=layer.width,
                input_format=input)


bases.quantize_layer_like.register(Taps, same_formats)


@bases.propagate.register
def _(layer: Taps, exact: FloatTaps, trace: bases.Trace, known: bases.Known) -> bases.Known:
    golden, shift, rest = map(layer.beside, known)
    return golden, shift, rest


KIND = Kind(Taps, FloatTaps, {"taps": Int(2, MOST + 1), "dilation": Int(1, MOST), "width": SIZE,
                                     "input_format": FORMAT})
