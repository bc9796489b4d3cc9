"""Two recurrent layers over the same sequence, one from its first step on and one from its last, seen as one stage of
a network."""
from dataclasses import dataclass

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.reverse import Reverse
from circulant.sim.kinds.rnn import Rnn
from circulant.sim.shape.graph import Node
from circulant.sim.shape.recurrent import Directions, check_directions, check_formats

__all__ = ["Bidirectional"]


@dataclass(frozen=True, eq=False)
class Bidirectional(Directions):
    """The outputs of both directions side by side, those of the forward layer first, as torch.nn.GRU has them.

    Parameters:
        forward, backward: called ``<name>.forward`` and ``<name>.backward``. Both take one format and give one. Where
            they return the last output, that of the backward layer belongs to the first step.

    Raises:
        Refusal: when the two layers or their formats do not fit together.
    """

    name: str
    forward: Gru | Lstm | Rnn
    backward: Gru | Lstm | Rnn

    def __post_init__(self) -> None:
        check_directions(self.name, self.forward, self.backward)
        check_formats(self.name, [("backward layer's argument", self.backward.input_format, self.forward.input_format),
                                  ("backward layer's value", self.backward.output_format, self.forward.output_format)])

    @property
    def products(self) -> dict[str, Product]:
        return {f"{direction}.{role}": product for direction, layer in self.directions.items()
                for role, product in layer.products.items()}

    @property
    def directions(self) -> dict[str, Gru | Lstm | Rnn]:
        return {"forward": self.forward, "backward": self.backward}

    @property
    def within(self) -> tuple[Gru | Lstm | Rnn, ...]:
        """The layers that it is made of."""
        return self.forward, self.backward

    @property
    def input_format(self) -> Format:
        return self.forward.input_format

    @property
    def output_format(self) -> Format:
        return self.forward.output_format

    def nodes(self, source: str) -> list[Node]:
        """Both directions side by side: the backward one takes the sequence reversed, and gives it back so."""
        form, back = self.input_format, f"{self.name}.backward"
        nodes = [Node(self.forward, (source,)), Node(Reverse(f"{self.name}.reversed", self.inputs, form), (source,)),
                 Node(self.backward, (f"{self.name}.reversed",))]
        if self.returns == "sequence":
            nodes.append(Node(Reverse(f"{self.name}.restored", self.backward.outputs, self.output_format), (back,)))
        sizes, given = (self.forward.outputs, self.backward.outputs), self.output_format
        return [*nodes, Node(Concat(self.name, sizes, (given, given), given), (self.forward.name, nodes[-1].name))]
