"""The neutral graph: what a model computes, without torch's modules and without its ways of writing the same thing.

A node has inputs by name, so branches, sums and several readers fit. Each kind has classes of its own.
"""
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from torch import Tensor

__all__ = ["Constant", "Graph", "Input", "Move", "Node", "Output"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One operation. A ReLU behind it becomes part of it where it has a field ``relu``.

    Parameters:
        name: differs from that of every other node; the path of a module where it is one.
        kind: what the user wrote: "Conv2d", "add".
        shape: of the result, None for the axis of the batch.

    Members:
        stepwise: whether it gives vectors step by step, where it gives no single vector.
        over_images: whether it moves a window over images, and so takes nothing else.
        single: whether it works on each value by itself.
    """

    stepwise: ClassVar[bool] = False
    single: ClassVar[bool] = False
    over_images: ClassVar[bool] = False

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

    def exchanged(self) -> "Node | None":
        """The node with rows and columns of its images exchanged; None where it gives no images of images."""
        return None

    def causal(self, steps: int) -> "Node | None":
        """The convolution that gives the first so many outputs of this one, of steps, and knows no later ones; None
        where there is none."""
        return None

    def turned(self, **fields: Any) -> Self:
        """The node with rows and columns of its result exchanged, and with other fields."""
        batch, channels, height, width = self.shape
        return replace(self, shape=(batch, channels, width, height), **fields)

    def scaled(self, scale: Tensor, shift: Tensor) -> "Node | None":
        """The node with the scale and shift behind it, for all channels or for each, as a part of its own; None where
        it has no weight for each channel."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Input(Node):
    """The data.

    Parameters:
        axes: for each axis of a sample that of the data, where these are others.
        given: the shape of a sample as the data has it then.
    """

    axes: tuple[int, ...] = ()
    given: tuple[int, ...] = ()

    def exchanged(self) -> Node:
        return self.turned(axes=(0, 2, 1), given=self.sizes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Constant(Node):
    """Numbers that stand among values, such as zeros around them; only a `Move` takes it."""

    values: Tensor


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
