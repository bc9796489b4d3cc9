"""Two recurrent layers over the same sequence, one from its first step on and one from its last, in integers."""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.rnn import Rnn
from circulant.sim.golden.serial import Arrays, layer_arrays, layer_as_json, layer_fields, layer_from_json, reader
from circulant.sim.shape.recurrent import check_directions, check_formats
from circulant.sim.shape.sequences import Lengths, backward

__all__ = ["Bidirectional"]


@dataclass(frozen=True, eq=False)
class Bidirectional:
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

    kind = "bidirectional"

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
    def inputs(self) -> int:
        return self.forward.inputs

    @property
    def outputs(self) -> int:
        """Length of what comes out, both directions together."""
        return self.forward.outputs + self.backward.outputs

    @property
    def returns(self) -> str:
        return self.forward.returns

    @property
    def input_format(self) -> Format:
        return self.forward.input_format

    @property
    def output_format(self) -> Format:
        return self.forward.output_format

    def initial(self, count: int) -> tuple[Any, Any]:
        """The states of both directions that ``count`` sequences start from."""
        return self.forward.initial(count), self.backward.initial(count)

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        """(N, T, inputs) to (N, outputs), or to (N, T, outputs) when the layers return the sequence.

        Parameters:
            lengths: in descending order; None where all sequences have T steps.
        """
        return self.run(x, record=record, lengths=lengths)[0]

    def run(self, x: Integers, state: tuple[Any, Any] | None = None, record: Recorder | None = None,
            lengths: Lengths | None = None) -> tuple[Integers, tuple[Any, Any]]:
        """Outputs of whole sequences (N, T, inputs) whose directions start from a state, and the last state.

        The backward layer starts behind the last step: pieces of a sequence do not make up the whole one.
        """
        start = self.initial(len(x)) if state is None else state
        ahead, first = self.forward.run(x, start[0], record, lengths)
        back, second = self.backward.run(backward(x, lengths), start[1], record, lengths)
        if self.returns == "sequence":
            back = backward(back, lengths)
        return np.concatenate([ahead, back], axis=-1), (first, second)


@layer_arrays.register
def _(layer: Bidirectional) -> dict[str, Integers]:
    return layer_arrays(layer.forward) | layer_arrays(layer.backward)


@layer_fields.register
def _(layer: Bidirectional) -> dict[str, Any]:
    return {direction: layer_as_json(each) for direction, each in layer.directions.items()}


@reader(Bidirectional.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Bidirectional:
    return Bidirectional(entry["name"], *(layer_from_json(entry[way], arrays) for way in ("forward", "backward")))
