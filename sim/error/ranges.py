"""How far every tensor of a golden model reaches: on data, at worst, and against its format."""
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Tensor
from circulant.sim.error.bounds import bins, matrix
from circulant.sim.golden.activation import Activation
from circulant.sim.golden.add import Add
from circulant.sim.golden.concat import Concat
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Network
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.reduce.argmax import Argmax
from circulant.sim.golden.reduce.over_time import OverTime
from circulant.sim.golden.reverse import Reverse
from circulant.sim.golden.rnn import Rnn
from circulant.sim.golden.scale import Scale
from circulant.sim.real.float_model import Model
from circulant.sim.shape.kinds import unknown

__all__ = ["Range", "analyse", "layer_worst_cases", "worst_cases"]


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

    def as_json(self) -> dict[str, Any]:
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

    def step(layer: Layer, peaks: Sequence[float]) -> float:
        found.update(layer_worst_cases(layer, sum(peaks) if layer.kind == "add" else max(peaks), steps))
        return _reach(layer.output_format)

    network.walk({each.name: _reach(network.formats[each.name]) for each in network.inputs}, step)
    return found


def _reach(form: Format) -> float:
    return -form.lo * form.step


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


@singledispatch
def layer_worst_cases(layer: Layer, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    """By tensor of a layer the greatest magnitude for inputs up to a peak, for sums up to a peak of a join."""
    raise unknown(layer, "analysed")


@layer_worst_cases.register
def _(layer: Linear | Conv, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield from _vector(f"{layer.name}.product", layer.product, peak)
    yield from (sums := _sums(f"{layer.name}.product", [(layer.product, peak)]))
    if layer.relu:
        yield f"{layer.name}.y", sums[-1][1]


@layer_worst_cases.register
def _(layer: Pool | OverTime | Add | Concat, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", peak


@layer_worst_cases.register
def _(layer: Scale, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", float((np.abs(layer.factor.real(layer.scale)) * peak
                                    + np.abs(layer.output_format.real(layer.shift))).max())


@layer_worst_cases.register
def _(layer: Activation, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    """No function turns around: it takes its extremes at the ends."""
    yield f"{layer.name}.y", float(np.abs(layer.table.exact(np.array([-peak, peak]))).max())


@layer_worst_cases.register
def _(layer: Flatten | Reverse | Argmax, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    return iter(())


def _vector(name: str, product: Product, peak: float) -> Iterator[tuple[str, float]]:
    """A vector and its spectrum."""
    yield f"{name}.input", peak
    yield f"{name}.spectrum", product.block_size * peak


def _sums(name: str, parts: Iterable[tuple[Product, float]]) -> list[tuple[str, float]]:
    """The sums of products of vectors up to a peak, and the rows with their bias."""
    spectral, rows = np.zeros(1), np.zeros(1)
    for product, peak in parts:
        weights = product.weight.real(product.weights)  # As the format has them, whatever the shifts of the rows are.
        spectral = spectral + np.abs(bins(weights)).sum(1) * product.block_size * peak
        rows = rows + np.abs(matrix(product)).sum(1) * peak + np.abs(product.output.real(product.bias))
    return [(f"{name}.sums", float(spectral.max())), (f"{name}.product", float(spectral.max())),
            (f"{name}.output", float(rows.max()))]


@layer_worst_cases.register
def _(layer: Gru, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    gate, n = _reached(layer.sigmoid), _reached(layer.tanh)
    h = min(n, -layer.output_format.lo * layer.output_format.step)
    for role, product in layer.products.items():
        if role != "candidate_input":
            yield from _vector(f"{layer.name}.{role}", product, peak if role == "input_product" else h)
    yield from _sums(f"{layer.name}.gates", zip(layer.gates.parts, (peak, h), strict=True))
    driven, recurrent = layer.products["candidate_input"], layer.products["candidate_recurrent"]
    if layer.reset == "before":
        both = _sums(f"{layer.name}.candidate", [(driven, peak), (recurrent, h)])
        yield from both
        yield f"{layer.name}.tanh.input", both[-1][1]
    else:
        of_x = _sums(f"{layer.name}.candidate_input", [(driven, peak)])
        of_h = _sums(f"{layer.name}.candidate_recurrent", [(recurrent, h)])
        yield from (*of_x, *of_h, (f"{layer.name}.tanh.input", of_x[-1][1] + gate * of_h[-1][1]))
    yield from ((f"{layer.name}.{tensor}", value) for tensor, value in (("r", gate), ("z", gate), ("n", n), ("h", h)))


@layer_worst_cases.register
def _(layer: Rnn, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    h = min(_reached(layer.tanh), _reach(layer.output_format))
    for role, product in layer.products.items():
        yield from _vector(f"{layer.name}.{role}", product, peak if role == "input_product" else h)
    yield from _sums(f"{layer.name}.gates", zip(layer.gates.parts, (peak, h), strict=True))
    yield f"{layer.name}.h", h


@layer_worst_cases.register
def _(layer: Lstm, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    """c can grow with every step."""
    gate, g = _reached(layer.sigmoid), _reached(layer.tanh)
    c, m = steps * gate * g, gate * _reached(layer.tanh_cell)
    projected = [] if layer.projection is None else _sums(f"{layer.name}.projection", [(layer.projection, m)])
    y = projected[-1][1] if projected else m
    y_kept = min(y, -layer.output_format.lo * layer.output_format.step)
    for role, product in layer.products.items():
        yield from _vector(f"{layer.name}.{role}", product, {"input_product": peak, "projection": m}.get(role, y_kept))
    gates = _sums(f"{layer.name}.gates", zip(layer.gates.parts, (peak, y_kept), strict=True))
    seen = 0.0 if layer.peephole is None else float(np.abs(layer.peephole_format.real(layer.peephole)).max())
    yield from (*gates, *projected, (f"{layer.name}.sigmoid.input", gates[-1][1] + seen * c))
    yield from ((f"{layer.name}.{tensor}", gate) for tensor in ("i", "f", "o"))
    yield from ((f"{layer.name}.{tensor}", value) for tensor, value in (("g", g), ("c", c), ("m", m), ("y", y)))


def _reached(pwl: Pwl) -> float:
    """The greatest magnitude of a table: a line takes it at an end of its segment."""
    return float(np.abs(pwl.output.real(pwl(pwl.ends))).max())
