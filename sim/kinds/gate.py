"""The product of each step of a sequence, or each pixel of an image, with one vector: a gate for each channel, as in
squeeze and excitation (Hu et al. 2018)."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.kinds.elementwise import PAIR
from circulant.sim.kinds.product import FloatProduct, Product
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.shape.layer import Held
from circulant.sim.shape.sequences import Lengths, valid

__all__ = ["KIND", "FloatGate", "Gate"]


class _Shape(Held):
    kind = "gate"
    over_images = True


def _held(values: Sequence[Any]) -> list[Any]:
    """The steps or pixels (N, …, size), and the vectors (N, size) with as many axes."""
    steps, vectors = values
    return [steps, vectors.reshape(len(vectors), *(1,) * (steps.ndim - 2), vectors.shape[-1])]


class Gate(_Shape, Product):
    """y_t = x_t · v, or max(0, …): the first source gives the x_t, the second v."""

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None,
                 lengths: Lengths | None = None) -> Integers:
        y = super().__call__(_held(values), record)
        return y if lengths is None else np.where(valid(lengths, y.shape[1])[..., None], y, 0)


class FloatGate(_Shape, FloatProduct):
    """y_t = x_t · v, or max(0, …): the first source gives the x_t, the second v."""

    golden = Gate

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        y = super().__call__(_held(values), tap)
        return y if lengths is None else np.where(valid(lengths, y.shape[1])[..., None], y, 0.0)


@bases.propagate.register
def _(layer: Gate, exact: FloatGate, trace: bases.Trace, known: Sequence[bases.Known]) -> bases.Known:
    low, high = (_held(each) for each in zip(*(ends(*each) for each in known), strict=True))
    return between(layer, known, *layer.extremes(low, high))


KIND = Kind(Gate, FloatGate, PAIR)
