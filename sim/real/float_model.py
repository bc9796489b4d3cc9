"""The mathematics: networks in float64, as they come out of training, and the parts of a chain of layers.

Golden integers are compared with these within a derived bound; hardware never is.
"""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.cell import FloatCell
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.passes.layer import FloatLayer
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.shape.flows import check_all, check_data
from circulant.sim.shape.graph import Graph, Node, computed, linked
from circulant.sim.shape.recurrent import Directions, check_directions
from circulant.sim.shape.sequences import Lengths, check_lengths, descending
from circulant.sim.shape.window import Grid

__all__ = ["Bidirectional", "Model", "Residual", "Stage"]


@dataclass(frozen=True, eq=False, repr=False)
class Model(Graph):
    """A graph of layers in float64."""

    def run(self, x: ArrayLike | Mapping[str, ArrayLike], tap: Tap = ignore, *, lengths: ArrayLike | None = None
            ) -> Any:
        """Outputs (N, outputs), or (N, T, outputs) where the last state is never taken; of several outputs those of
        each by name.

        Parameters:
            x: of a model with several inputs those of each by name; no lengths then.
            lengths: (N,), the steps of each sequence; None where all have T. Outputs beyond them are 0, and ``tap``
                sees the longest sequence first, of each step those alone that have it.

        Raises:
            Refusal: as `check_data` and `check_lengths`.
        """
        what = f"Inputs of network {self.name!r}"
        if self.many and lengths is None:
            given = check_all(what, self.inputs, x if isinstance(x, Mapping) else {self.entry.name: x})
            every = computed(self, given, tap)
            return every if len(every) > 1 else every[self.exit]
        assert not isinstance(x, Mapping)
        values = check_data(what, x, self.flow, self.shape, self.entry.axes)
        if lengths is None:
            return self.compute(values, tap)
        steps = check_lengths(what, lengths, values.shape)
        order = descending(steps)
        found = self.compute(values[order, :int(steps.max())], tap, steps[order])
        outputs = np.zeros((len(found), *(values.shape[1:2] if found.ndim == 3 else ()), found.shape[-1]))
        outputs[order, :found.shape[1]] = found
        return outputs

    def compute(self, values: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        """Outputs for inputs as `check_data` gives them, with lengths the longest first and cut behind it."""
        found: Reals = computed(self, {self.entry.name: values}, tap, lengths)[self.exit]
        return found


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
        """Both branches and their sum."""
        body, shortcut = (linked(chain, source) for chain in (self.body, self.shortcut))
        ends = tuple(branch[-1].name if branch else source for branch in (body, shortcut))
        return [*body, *shortcut, Node(FloatAdd(self.name, self.outputs, relu=self.relu), ends)]


@dataclass(frozen=True, eq=False)
class Bidirectional(Directions):
    """Two recurrent layers over a whole sequence, one from its first step on and one from its last, as torch.nn.GRU has
    them: a part of a chain of layers.

    Parameters:
        forward, backward: called ``<name>.forward`` and ``<name>.backward``. Their outputs stand side by side; where
            they return the last one, that of the backward layer belongs to the first step.
    """

    name: str
    forward: FloatCell
    backward: FloatCell

    def __post_init__(self) -> None:
        check_directions(self.name, self.forward, self.backward)

    def nodes(self, source: str) -> list[Node]:
        """Both directions side by side: the backward one takes the sequence reversed, and gives it back so."""
        nodes = [Node(self.forward, (source,)), Node(FloatReverse(f"{self.name}.reversed", self.inputs), (source,)),
                 Node(self.backward, (f"{self.name}.reversed",))]
        if self.returns == "sequence":
            nodes.append(Node(FloatReverse(f"{self.name}.restored", self.backward.outputs), (self.backward.name,)))
        sizes = (self.forward.outputs, self.backward.outputs)
        return [*nodes, Node(FloatConcat(self.name, sizes), (self.forward.name, nodes[-1].name))]


Stage = FloatLayer | Bidirectional | Residual
"""The parts of a chain of layers."""
