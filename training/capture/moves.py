"""Nodes that only move values. Each value is followed, and its new place tells what the moves mean."""
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from circulant.sim.kinds.flatten import ORDERS, flattened
from circulant.sim.shape.window import Flow
from circulant.training.capture.graph import Node

__all__ = ["MOVES", "arrival", "flattening", "numbered", "unchanged"]

MOVES = ("reshape", "permute")

Values = NDArray[np.int64]


def numbered(node: Node) -> Values:
    """The values that a node gives for a sample, each its own number."""
    sizes = [size for size in node.shape if size is not None]
    return np.arange(math.prod(sizes)).reshape(sizes)


def arrival(source: Node, moves: Sequence[Node]) -> Values:
    """The values of a node behind the moves."""
    axis = source.shape.index(None)
    values = np.expand_dims(numbered(source), axis)
    for node in moves:
        if node.op == "permute":
            values = values.transpose(node.options["order"])
        else:
            values = values.reshape([1 if size is None else size for size in node.shape])
        axis = node.shape.index(None)
    return np.take(values, 0, axis)


def unchanged(values: Values) -> bool:
    """Whether values are in the order in which they were numbered."""
    return np.array_equal(values.reshape(-1), np.arange(values.size))


def flattening(values: Values, flow: Flow) -> tuple[str, bool] | None:
    """The order, and whether each row becomes a step, in which these are the values of images (channels, …)."""
    assert flow.grid is not None
    pixels = np.moveaxis(np.arange(values.size).reshape(flow.size, *flow.grid), 0, -1)[None]
    for rows, order in itertools.product((False, True), ORDERS):
        if np.array_equal(flattened(pixels, order, rows=rows)[0], values):
            return order, rows
    return None
