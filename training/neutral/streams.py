"""Streams of values between layers: each value is followed, and its place tells what moves of axes mean."""
import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from circulant.sim.kinds.flatten import ORDERS, flattened
from circulant.sim.shape.window import Flow, Grid

__all__ = ["Form", "Places", "Stream", "as_numpy", "flattening", "grid_of", "joined", "unchanged"]

Places = NDArray[np.int64]


@dataclass(eq=False)
class Form:
    """Form of streams, one object for all those that only functions of single values lie between.

    Parameters:
        flow: None until the first layer that takes the values of a sample says it.
        shape: (size,) of a vector, (steps, size) of a sequence, (channels, height, width) or (channels, length).
    """

    flow: Flow | None = None
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, flow: Flow, steps: int = 0) -> "Form":
        """The form of a flow.

        Parameters:
            steps: of a sequence.
        """
        before, behind = (steps,) if flow.sequence else (), flow.grid or ()
        return cls(flow, (*before, flow.size, *behind))

    def become(self, at: Places, *, images: bool) -> bool:
        """Take the form in which the values of a sample come to a layer; whether there is one."""
        if at.ndim not in ((2, 3) if images else (1, 2)) or not unchanged(at):
            return False
        self.shape = at.shape
        self.flow = Flow(at.shape[0], grid_of(at.shape)) if images else Flow(at.shape[-1], sequence=at.ndim == 2)
        return True


@dataclass(eq=False)
class Stream:
    """Stream of the values that a layer of the reference gives.

    Parameters:
        name: of the layer or the input.
        order: for each place of the stream, in the order of its form, which value of the node stands there.
        parts: the streams that a layer must put side by side first; none of most.
    """

    name: str
    form: Form
    order: Places
    parts: tuple["Stream", ...] = field(default=())

    def at(self, places: Places) -> Places:
        """The places of the stream at which values of the node stand."""
        found = np.empty_like(self.order)
        found[self.order] = np.arange(self.order.size)
        return found[places]

    def moved(self, places: Places) -> "Stream | None":
        """The stream of a function of each of these values; None where they are not all values, each once."""
        at = self.at(places).reshape(-1)
        if at.size != self.order.size or (not unchanged(at) and not np.array_equal(np.sort(at), np.arange(at.size))):
            return None
        order = np.empty_like(at)
        order[at] = np.arange(at.size)
        return Stream(self.name, self.form, order, self.parts)


def grid_of(shape: tuple[int, ...]) -> Grid:
    """Height and width of images (channels, height, width), or (channels, length)."""
    return shape[1], shape[2] if len(shape) > 2 else 1


def as_numpy(tensor: Tensor) -> NDArray[np.float64]:
    """The numbers of a tensor, in double precision."""
    return np.asarray(tensor.detach().cpu().double().numpy())


def unchanged(at: Places) -> bool:
    """Whether values come in the order of their stream."""
    return np.array_equal(at.reshape(-1), np.arange(at.size))


def flattening(at: Places, flow: Flow) -> tuple[str, bool] | None:
    """The order, and whether each row becomes a step, in which these are the values of images (channels, …)."""
    assert flow.grid is not None
    pixels = np.moveaxis(np.arange(flow.size * math.prod(flow.grid)).reshape(flow.size, *flow.grid), 0, -1)[None]
    for rows, order in itertools.product((False, True), ORDERS):
        if np.array_equal(flattened(pixels, order, rows=rows)[0], at):
            return order, rows
    return None


def joined(name: str, parts: list[Stream]) -> Stream | None:
    """Streams side by side; None where they have not one form."""
    first, orders, offset = parts[0].form, [], 0
    if first.flow is None:
        return None
    axis = 0 if first.flow.grid else len(first.shape) - 1
    for part in parts:
        flow, shape = part.form.flow, list(part.form.shape)
        shape[axis:axis + 1] = first.shape[axis:axis + 1]
        if flow is None or (flow.grid, flow.sequence) != (first.flow.grid, first.flow.sequence) or (
                tuple(shape) != first.shape):
            return None
        orders.append(part.order.reshape(part.form.shape) + offset)
        offset += part.order.size
    every = np.concatenate(orders, axis)
    flow = Flow(every.shape[axis], first.flow.grid, first.flow.sequence)
    return Stream(name, Form(flow, every.shape), every.reshape(-1), tuple(parts))
