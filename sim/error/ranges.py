"""How far every tensor of a golden model reaches: on data, at worst, and against its format."""
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Tensor
from circulant.sim.document import Document
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import layer_worst_cases
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.passes.ranges import reach
from circulant.sim.real.float_model import Model

__all__ = ["Range", "analyse", "worst_cases"]


@dataclass(frozen=True)
class Range:
    """One tensor; sums whose rows have shifts are taken as their format has them, 2^shift times as great as they are.

    Parameters:
        lo, hi: real values, the least and the greatest that were seen.
        worst: greatest magnitude that the format of the inputs and the integers of the weights allow, before it is
            saturated; beyond the format it says that saturation is possible.
        count, ends: values seen, and how many of them stand at an end of the format: no fewer than were saturated.
        sqnr: signal to quantization noise in dB against the model in float64; None without a model, or where nothing
            or no noise was seen.
        bits: how many values take 0, 1, 2, … bits of the format without the sign.
    """

    name: str
    format: Format
    lo: float
    hi: float
    worst: float
    count: int
    ends: int
    sqnr: float | None
    bits: tuple[int, ...]

    def as_json(self) -> Document:
        return {"name": self.name, "format": self.format.as_json(), "lo": self.lo, "hi": self.hi, "worst": self.worst,
                "count": self.count, "ends": self.ends, "sqnr_db": self.sqnr, "bits": list(self.bits)}


def analyse(network: Network, x: ArrayLike, model: Model | None = None, *,
            lengths: ArrayLike | None = None) -> list[Range]:
    """The ranges of all tensors for real inputs x (N, T, inputs) or (N, inputs), in the order of computation.

    Parameters:
        model: what ``network`` was quantized from.
        lengths: (N,), the steps of each sequence; None where all have T.

    Raises:
        Refusal: as `Network.run`.
    """
    trace = network.run(x, lengths=lengths, trace=True).trace
    exact = {} if model is None else _taps(model, x, lengths)
    steps = (np.shape(x)[1] if lengths is None else int(np.max(lengths))) if network.sequence else 1
    worst = worst_cases(network, steps)
    return [_range(name, tensor, worst[name], exact.get(_tap(name))) for name, tensor in trace.items()]


def worst_cases(network: Network, steps: int = 1) -> dict[str, float]:
    """By tensor the greatest magnitude that any inputs of so many steps can cause, but for roundings on the way."""
    found: dict[str, float] = {}

    def step(layer: GoldenLayer, peaks: Sequence[float]) -> float:
        found.update(layer_worst_cases(layer, layer.argument(peaks), steps))
        return reach(layer.output_format)

    network.walk({each.name: reach(network.formats[each.name]) for each in network.inputs}, step)
    return found


def _range(name: str, tensor: Tensor, worst: float, exact: list[Reals] | None) -> Range:
    values, form = tensor.integers, tensor.format
    real = form.real(values)
    sqnr = None
    if exact is not None:
        reference = np.stack(exact, axis=1) if exact[0].ndim < values.ndim else np.concatenate(exact)
        if tensor.row_shifts:
            reference = np.ldexp(reference, np.array(tensor.row_shifts)[:, None])
        signal, noise = float(np.sum(reference ** 2)), float(np.sum((real - reference) ** 2))
        sqnr = 10 * math.log10(signal / noise) if signal and noise else None
    return Range(name, format=form, lo=float(real.min()), hi=float(real.max()), worst=worst, count=values.size,
                 ends=int(np.sum((values == form.lo) | (values == form.hi))), sqnr=sqnr, bits=_bits(values, form.width))


def _bits(values: Integers, width: int) -> tuple[int, ...]:
    """How many integers take 0, 1, …, width - 1 bits besides the sign; ~x takes those of a negative x."""
    magnitude = np.where(values < 0, ~values, values).astype(np.float64)
    taken = np.frexp(magnitude)[1]  # exact below 2**53, and a bound above
    return tuple(np.bincount(np.minimum(taken, width - 1).reshape(-1), minlength=width).tolist())


def _taps(model: Model, x: ArrayLike, lengths: ArrayLike | None) -> dict[str, list[Reals]]:
    seen: dict[str, list[Reals]] = {}
    model.run(x, lambda name, values: seen.setdefault(name, []).append(values), lengths=lengths)
    return seen


def _tap(name: str) -> str:
    """The tap that sees a tensor: exact sums are those before they are rounded."""
    return name.removesuffix(".sums") + ".product" if name.endswith(".sums") else name
