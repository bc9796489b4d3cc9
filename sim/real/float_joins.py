"""Joins of branches in float64, what a second direction is made of, and both as parts of a chain of layers."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Reals
from circulant.sim.real.float_recurrent_layers import Gru, Lstm, Rnn
from circulant.sim.real.products import Tap, ignore
from circulant.sim.shape.flows import stepwise
from circulant.sim.shape.graph import Node, linked
from circulant.sim.shape.recurrent import check_directions
from circulant.sim.shape.sequences import Lengths, backward
from circulant.sim.shape.window import Grid

__all__ = ["Add", "Bidirectional", "Concat", "Residual", "Reverse"]


@dataclass(frozen=True, eq=False)
class Add:
    """y = Σ x_i, or max(0, …), of vectors, steps or images alike.

    Parameters:
        count: of the x_i.
    """

    name: str
    inputs: int
    count: int = 2
    relu: bool = False

    kind = "add"

    @property
    def outputs(self) -> int:
        return self.inputs

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of the vectors of each source."""
        return (self.inputs,) * self.count

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore) -> Reals:
        y = np.asarray(sum(values))
        y = np.maximum(y, 0.0) if self.relu else y
        tap(f"{self.name}.y", y)
        return y


@dataclass(frozen=True, eq=False)
class Concat:
    """The values of the first source, behind them those of the next.

    Parameters:
        sizes: values of the vectors of each source.
    """

    name: str
    sizes: tuple[int, ...]

    kind = "concat"

    @property
    def inputs(self) -> int:
        return sum(self.sizes)

    @property
    def outputs(self) -> int:
        return sum(self.sizes)

    def __call__(self, values: Sequence[Reals], tap: Tap = ignore) -> Reals:
        tap(f"{self.name}.y", y := np.concatenate(values, axis=-1))
        return y


@dataclass(frozen=True, eq=False)
class Reverse:
    """The steps of each sequence from its last to its first; padding stays behind them."""

    name: str
    inputs: int

    kind = "reverse"
    returns = "sequence"

    @property
    def outputs(self) -> int:
        return self.inputs

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        return backward(x, lengths)


@dataclass(frozen=True, eq=False)
class Residual:
    """y = body(x) + shortcut(x), or max(0, …), as a part of a chain of layers; no layer stands for x itself.

    Parameters:
        grid: of the images that come; None for vectors, and steps of sequences.
    """

    name: str
    inputs: int
    grid: Grid | None
    body: tuple[Any, ...]
    shortcut: tuple[Any, ...]
    relu: bool = False

    kind = "residual"

    @property
    def outputs(self) -> int:
        return next((int(chain[-1].outputs) for chain in (self.body, self.shortcut) if chain), self.inputs)

    def nodes(self, source: str) -> list[Node]:
        """Both branches and their sum.

        Raises:
            Refusal: as `stepwise`.
        """
        body, shortcut = (linked(chain, source) for chain in (self.body, self.shortcut))
        if self.grid is None:
            stepwise(self.name, [node.layer.kind for node in (*body, *shortcut)])
        ends = tuple(branch[-1].name if branch else source for branch in (body, shortcut))
        return [*body, *shortcut, Node(Add(self.name, self.outputs, relu=self.relu), ends)]


@dataclass(frozen=True, eq=False)
class Bidirectional:
    """Two recurrent layers over a whole sequence, one from its first step on and one from its last, as torch.nn.GRU has
    them: a part of a chain of layers.

    Parameters:
        forward, backward: called ``<name>.forward`` and ``<name>.backward``. Their outputs stand side by side; where
            they return the last one, that of the backward layer belongs to the first step.
    """

    name: str
    forward: Gru | Lstm | Rnn
    backward: Gru | Lstm | Rnn

    kind = "bidirectional"

    def __post_init__(self) -> None:
        check_directions(self.name, self.forward, self.backward)

    @property
    def inputs(self) -> int:
        return self.forward.inputs

    @property
    def outputs(self) -> int:
        """Length of what comes out, both directions together."""
        return self.forward.outputs + self.backward.outputs

    @property
    def returns(self) -> str:
        return self.forward.returns

    def nodes(self, source: str) -> list[Node]:
        """Both directions side by side: the backward one takes the sequence reversed, and gives it back so."""
        nodes = [Node(self.forward, (source,)), Node(Reverse(f"{self.name}.reversed", self.inputs), (source,)),
                 Node(self.backward, (f"{self.name}.reversed",))]
        if self.returns == "sequence":
            nodes.append(Node(Reverse(f"{self.name}.restored", self.backward.outputs), (self.backward.name,)))
        sizes = (self.forward.outputs, self.backward.outputs)
        return [*nodes, Node(Concat(self.name, sizes), (self.forward.name, nodes[-1].name))]
