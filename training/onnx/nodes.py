"""The graph of an ONNX file, as `circulant.training.onnx.graph` reads it; needs no ``onnx`` package."""
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Format
from circulant.sim.refusal import Refusal

__all__ = ["RECURRENT", "Grid", "OnnxGraph", "OnnxNode", "Range", "Shape"]

RECURRENT = ("LSTM", "GRU", "RNN")

WIDEST = 18
"""Bits of a weight."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Range:
    """Values of a quantizer: integers from low to high, times 2^-frac."""

    low: int
    high: int
    frac: int


@dataclass(frozen=True)
class Grid:
    """Constants that are integers of at least ``width`` bits, times 2^-frac."""

    frac: int
    width: int = 2

    def format(self, values: NDArray[Any]) -> Format | None:
        """The format that holds all values exactly, or None where no format of weights does."""
        integers = np.ldexp(np.asarray(values, np.float64), self.frac)
        reach = int(max(integers.max(initial=0), -integers.min(initial=0) - 1))
        width = max(2, self.width, reach.bit_length() + 1)
        return Format(width, self.frac) if (integers == np.rint(integers)).all() and width <= WIDEST else None


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """An operation that depends on the data.

    Parameters:
        name: differs from that of every other node.
        attributes: by name, as plain values and arrays.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]

    def refused(self, why: str) -> Refusal:
        """The refusal of this node: a rule that it breaks, and the way out."""
        return Refusal(f"Node {self.name!r} ({self.op}) of the ONNX file cannot be imported: {why}")


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A graph of one input and one output.

    Parameters:
        nodes: those that depend on the data, in an order in which they can be computed.
        constants: the values of everything else.
        batch: the axis of the batch in the file's input; None where the file takes one sample without such an axis.
        shapes: of what depends on the data, the batch included, in front where the file has none.
        integers: what is of a type of integers, of that.
        ranges: by output those of nodes that stand for quantizers of values.
        grids: those of constants behind quantizers.
        proto: the model itself, without them.
        open_axes: those of the input, the batch first, whose size the file leaves open.
    """

    name: str
    input: str
    output: str
    batch: int | None
    nodes: tuple[OnnxNode, ...]
    constants: dict[str, NDArray[Any]]
    shapes: dict[str, Shape]
    integers: frozenset[str]
    ranges: dict[str, Range]
    grids: dict[str, Grid]
    proto: Any
    open_axes: frozenset[int] = frozenset()

    def users(self, tensor: str) -> list[OnnxNode]:
        """The nodes that take a tensor."""
        return [node for node in self.nodes if tensor in node.inputs]

    def source(self, node: OnnxNode) -> OnnxNode | None:
        """The node that gives the first input of another one, if any does."""
        return next((each for each in self.nodes if node.inputs[0] in each.outputs), None)
