"""The neutral graph: what a model computes, without torch's modules and without its ways of writing the same thing.

A node has inputs by name, so branches, sums and several readers fit. It has a class of its own for each operation.
"""
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor, nn

from circulant.sim.arith.fixed import Format
from circulant.training.blocks.blocks import BlockCirculant

__all__ = ["Add", "Blend", "CausalConv", "CausalDepthwise", "Constant", "Conv", "Decay", "Depthwise", "Function",
           "Graph", "Input", "Linear", "Matrix", "Maximum", "Minimum", "Move", "Multiply", "Node", "Norm", "Output",
           "Pair", "Pool", "Recurrent", "Reduce", "Scale", "Softmax", "Subtract"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One operation.

    Parameters:
        name: differs from that of every other node; the path of a module where it is one.
        kind: what the user wrote: "Conv2d", "add".
        shape: of the result, None for the axis of the batch.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    shape: tuple[int | None, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of what it gives for one sample."""
        return tuple(size for size in self.shape if size is not None)

    @property
    def batch(self) -> int:
        """The axis of the batch."""
        return self.shape.index(None)


@dataclass(frozen=True, eq=False, kw_only=True)
class Input(Node):
    """The data.

    Parameters:
        axes: for each axis of a sample that of the data, where these are others.
        given: the shape of a sample as the data has it then.
    """

    axes: tuple[int, ...] = ()
    given: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Constant(Node):
    """Numbers that stand among values, such as zeros around them; only a `Move` takes it."""

    values: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Matrix(Node):
    """A matrix of first columns, and a bias.

    Parameters:
        first: first columns (positions, p, q, k).
        grid: the format on which the weights lie, where a quantizer says one.
    """

    first: Tensor
    constraint: BlockCirculant
    bias: Tensor
    grid: Format | None = None
    relu: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Linear(Matrix):
    """A matrix over the last axis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Conv(Matrix):
    """A matrix for each position of a window over images; the channels are axis 1.

    Parameters:
        groups: of channels, between which the matrices are zero.
    """

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Depthwise(Node):
    """A weight for each channel and position of a window over images; the channels are axis 1.

    Parameters:
        weight: (positions, channels), row by row.
        grid: as of `Matrix`.
    """

    weight: Tensor
    bias: Tensor
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    grid: Format | None = None
    relu: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalConv(Matrix):
    """A matrix for each of several steps up to the newest; the channels are axis 1, the steps axis 2."""

    dilation: int


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalDepthwise(Node):
    """A weight (taps, channels) for each channel of several steps up to the newest; axes as of `CausalConv`."""

    weight: Tensor
    bias: Tensor
    dilation: int
    relu: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Norm(Node):
    """A normalisation over the last axis: see `circulant.sim.kinds.norm.FloatNorm`."""

    mode: str
    gain: Tensor
    shift: Tensor
    epsilon: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Scale(Node):
    """A scale and shift for each channel of an axis, or one for all values where it is None: a batch normalisation that
    is not folded, arithmetic with constants."""

    scale: Tensor
    shift: Tensor
    axis: int | None
    relu: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Recurrent(Node):
    """A recurrent layer, all its layers and directions.

    Parameters:
        returns: "sequence" or "last"; with two directions the end of each.
    """

    module: nn.Module
    returns: str = "sequence"

    @property
    def ways(self) -> int:
        """Directions."""
        return 1 + bool(self.module.bidirectional)


@dataclass(frozen=True, eq=False, kw_only=True)
class Blend(Node):
    """The states h + z (x - h) behind each step of z and x: see `circulant.sim.kinds.blend.FloatBlend`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Decay(Node):
    """The states a h + x behind each step: see `circulant.sim.kinds.decay.FloatDecay`, with turns
    `circulant.sim.kinds.spiral.FloatSpiral`."""

    factors: Tensor
    turns: Tensor | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Function(Node):
    """A function of each value.

    Parameters:
        function, parameters: as `circulant.sim.arith.activation.exact_function` has them.
        format: of its values, where a quantizer says one.
    """

    function: str
    parameters: tuple[float, ...] = ()
    format: Format | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Softmax(Node):
    """A softmax over the last axis, or its logarithm."""

    log: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(Node):
    """The maximum ("max") or mean ("average") of windows over the last axes."""

    mode: str
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Node):
    """The maximum ("max") or mean ("mean") over axes.

    Parameters:
        keep: whether the axes stay as 1.
    """

    mode: str
    axes: tuple[int, ...]
    keep: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair(Node):
    """A function of two tensors of one shape, value by value."""

    relu: bool = False


class Add(Pair):
    """Their sum."""


class Subtract(Pair):
    """The first less the second."""


class Multiply(Pair):
    """Their product."""


class Maximum(Pair):
    """The greater of both."""


class Minimum(Pair):
    """The lesser of both."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Move(Node):
    """Values of other nodes at other places: what any number of views, permutations and joins come to.

    Parameters:
        places: for each value of a sample its number among those of all inputs, one behind the other.
        path: the names of the user's calls.
    """

    places: Tensor
    path: tuple[str, ...]


class Output(NamedTuple):
    """A result of a graph.

    Parameters:
        node: the name of what gives it.
        batch: its axis in what the model returns; only axes of one element come before it.
        dropped: "softmax" or "log_softmax", where the model ends with one, which the graph leaves out.
    """

    node: str
    batch: int = 0
    dropped: str = ""


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can be computed, and the results in the order of the model."""

    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]

    @property
    def ends(self) -> set[str]:
        """The names of the nodes that are results."""
        return {each.node for each in self.outputs}

    @property
    def inputs(self) -> list[Input]:
        """The inputs in the order of the model."""
        return [node for node in self.nodes if isinstance(node, Input)]

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def users(self, name: str) -> list[Node]:
        """The nodes that take the result of a node."""
        return [node for node in self.nodes if name in node.inputs]

    def alone(self, name: str) -> bool:
        """Whether one node takes the result of a node, and nothing else."""
        return len(self.users(name)) == 1 and name not in self.ends

    @property
    def pruned(self) -> "Graph":
        """The graph without nodes that no output depends on."""
        left = self.ends
        for node in reversed(self.nodes):
            left.update(node.inputs if node.name in left else ())
        return replace(self, nodes=tuple(node for node in self.nodes if node.name in left))

    def having(self, *changed: Node) -> "Graph":
        """The graph with other nodes of these names."""
        by_name = {node.name: node for node in changed}
        return replace(self, nodes=tuple(by_name.get(node.name, node) for node in self.nodes))

    def without(self, gone: Node) -> "Graph":
        """The graph without a node of one input, which takes its place."""
        def renamed(name: str) -> str:
            return gone.inputs[0] if name == gone.name else name

        outputs = tuple(each._replace(node=renamed(each.node)) for each in self.outputs)
        return replace(self, outputs=outputs, nodes=tuple(
            replace(node, inputs=tuple(map(renamed, node.inputs))) for node in self.nodes if node.name != gone.name))
