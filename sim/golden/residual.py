"""The sum of what two chains of layers make of the same images, vectors or steps, seen as one stage of a network."""
from dataclasses import dataclass
from typing import Any

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.add import Add
from circulant.sim.shape.graph import Node, linked
from circulant.sim.shape.window import Grid

__all__ = ["Residual"]


@dataclass(frozen=True, eq=False)
class Residual:
    """y = body(x) + shortcut(x), or max(0, …), see `circulant.sim.kinds.add.Add`.

    Parameters:
        inputs: channels, or values of a vector.
        grid: of the images that come; None for vectors, and steps of sequences.
        body, shortcut: stages; none stands for x itself.
        output_format: of the sum.
    """

    name: str
    inputs: int
    grid: Grid | None
    body: tuple[Any, ...]
    shortcut: tuple[Any, ...]
    input_format: Format
    output_format: Format
    relu: bool = False

    kind = "residual"
    keeps = False

    @property
    def branches(self) -> dict[str, tuple[Any, ...]]:
        return {"body": self.body, "shortcut": self.shortcut}

    @property
    def within(self) -> tuple[Any, ...]:
        """The stages of both branches."""
        return *self.body, *self.shortcut

    @property
    def outputs(self) -> int:
        return next((int(chain[-1].outputs) for chain in self.branches.values() if chain), self.inputs)

    @property
    def formats(self) -> tuple[Format, Format]:
        """The formats of what the two branches give."""
        body, shortcut = (chain[-1].output_format if chain else self.input_format for chain in self.branches.values())
        return body, shortcut

    def nodes(self, source: str) -> list[Node]:
        """Both branches and their sum."""
        body, shortcut = (linked(chain, source) for chain in self.branches.values())
        ends = tuple(branch[-1].name if branch else source for branch in (body, shortcut))
        return [*body, *shortcut, Node(Add(self.name, self.outputs, self.formats, self.output_format, self.relu), ends)]
