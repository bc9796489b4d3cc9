"""Scans: layers over sequences whose state is a value for each of theirs, so that no matrix waits for it."""
from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.passes import bases
from circulant.sim.passes.layer import FloatLayer, GoldenLayer
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.shape.layer import Layer, SameSize
from circulant.sim.shape.recurrent import check_state
from circulant.sim.shape.sequences import Lengths, valid

__all__ = ["FloatScan", "Scan", "between_steps"]


class _Steps(SameSize, Layer):
    """A scan gives a vector for each step."""

    whole = True
    returns = "sequence"

    def _each(self, values: Any) -> Sequence[Any]:
        """Values of each source, also where there is one."""
        return values if self.joins else (values,)

    @abstractmethod
    def follow(self, state: Any, *values: Any) -> Any:
        """The state behind a step."""

    def _through(self, values: Any, state: Any) -> tuple[Any, Any]:
        """The states (N, T, inputs) behind all steps of what comes, and the last one."""
        every, sources = [], self._each(values)
        for t in range(sources[0].shape[1]):
            state = self.follow(state, *(each[:, t] for each in sources))
            every.append(state)
        return np.stack(every, axis=1), state

    def _masked(self, values: Any, dtype: Any, lengths: Lengths | None) -> Any:
        first = self._each(values)[0]
        y, _ = self._through(values, np.zeros((len(first), self.inputs), dtype))
        return y if lengths is None else np.where(valid(lengths, first.shape[1])[..., None], y, 0)


class Scan(_Steps, GoldenLayer):
    """A scan in integers: h, which starts at 0, is the output."""

    output_format: Format

    def __call__(self, x: Any, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        return self.finished(self._masked(x, np.int64, lengths), record)

    def initial(self, count: int) -> Integers:
        """The state (N, inputs) that ``count`` sequences start from."""
        return np.zeros((count, self.inputs), np.int64)

    def run(self, x: Any, state: Any = None) -> tuple[Integers, Integers]:
        start = self.initial(len(self._each(x)[0]))
        check_state(self.name, start if state is None else state, start)
        return self._through(x, start if state is None else state)


class FloatScan(_Steps, FloatLayer):
    """A scan in float64."""

    def __call__(self, x: Any, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        y = self._masked(x, np.float64, lengths)
        tap(f"{self.name}.y", y)
        return np.asarray(y)


def between_steps(layer: Scan, exact: FloatScan, trace: bases.Trace, known: Any) -> bases.Known:
    """The outputs of a scan whose step is linear in each of its arguments: it takes its ends at theirs."""
    every: list[bases.Known] = list(known) if layer.joins else [known]
    values = [form.quantize(each[0]) for form, each in zip(layer.taken, every, strict=True)]
    golden = layer.output_format.real(layer(layer.argument(values)))
    low = high = np.zeros(golden[:, 0].shape)
    lows, highs = [], []
    for t in range(golden.shape[1]):
        sides = [(g[:, t] - s[:, t] - r[:, t], g[:, t] - s[:, t] + r[:, t]) for g, s, r in every]
        corners = np.stack([exact.follow(h, *ends) for h in (low, high) for ends in product(*sides)])
        low, high = corners.min(0), corners.max(0)
        lows.append(low)
        highs.append(high)
    low, high = np.stack(lows, axis=1), np.stack(highs, axis=1)
    return golden, golden - (low + high) / 2, (high - low) / 2
