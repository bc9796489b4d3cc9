"""An LSTM layer in integers: torch.nn.LSTM, with a projection, and with the peepholes of Sak et al. 2014.

    i = sigmoid(W_ix x + W_iy y + p_i * c + b_i)        y and c of the step before
    f = sigmoid(W_fx x + W_fy y + p_f * c + b_f)
    g = tanh(W_gx x + W_gy y + b_g)
    c = f * c + i * g
    o = sigmoid(W_ox x + W_oy y + p_o * c + b_o)        c of this step
    m = o * tanh(c)
    y = W_ym m, or m without a projection
"""
from dataclasses import dataclass

import numpy as np

from circulant.sim.activation import Pwl
from circulant.sim.circulant import JointProduct, Product
from circulant.sim.fixed import Format, Integers, round_shift, rounding_bits, saturate
from circulant.sim.refusal import Refusal

__all__ = ["GATES", "PEEPHOLES", "Lstm"]

GATES = ("i", "f", "g", "o")
PEEPHOLES = ("i", "f", "o")


@dataclass(frozen=True, eq=False)
class Lstm:
    """An LSTM over sequences that starts from y = 0, c = 0.

    The rows of ``gates`` are i, f, g, o, each padded to whole blocks on its own; its parts are those of x and of y.

    Parameters:
        outputs: length of y: that of the projection, else ``hidden``.
        returns: "last" for the last y, "sequence" for that of every step.
        projection: m to y; None without one.
        peephole: weights (3, hidden) of i, f, o, integers of the format ``peephole_format``; None without them.
        cell: format of c.
        sigmoid, tanh: of pre-activations; tanh_cell: of c. Their values, m and y have one format.

    Raises:
        Refusal: when sizes or formats contradict each other, or a product of gate and state could leave int64.
    """

    name: str
    inputs: int
    hidden: int
    outputs: int
    returns: str
    gates: JointProduct
    projection: Product | None
    peephole: Integers | None
    peephole_format: Format
    cell: Format
    sigmoid: Pwl
    tanh: Pwl
    tanh_cell: Pwl

    kind = "lstm"

    def __post_init__(self) -> None:
        if self.returns not in ("last", "sequence"):
            raise Refusal(f"Layer {self.name!r} must return 'last' or 'sequence', not {self.returns!r}; choose one")
        self._check_sizes()
        pre, state = self.gates.output, self.output_format
        rules = [("sigmoid's argument", self.sigmoid.input, pre), ("tanh's argument", self.tanh.input, pre),
                 ("argument of the cell's tanh", self.tanh_cell.input, self.cell),
                 ("sigmoid's value", self.sigmoid.output, state), ("tanh's value", self.tanh.output, state),
                 ("value of the cell's tanh", self.tanh_cell.output, state)]
        if self.projection is not None:
            rules += [("projection's argument", self.projection.input, state),
                      ("projection's value", self.projection.output, state)]
        for what, given, rule in rules:
            if given != rule:
                raise Refusal(f"Layer {self.name!r}: the {what} must have the {rule}, not {given}; quantize it again")
        widest = max(rounding_bits(state.width + self.cell.width, state.frac) + 1,
                     rounding_bits(2 * state.width, 2 * state.frac - self.cell.frac) + 1,
                     rounding_bits(self.peephole_format.width + self.cell.width, self._peephole_shift) + 1)
        if widest > 63:
            raise Refusal(f"Layer {self.name!r}: the products of a gate must fit into 63 bits, but with the "
                          f"cell {self.cell} and the state {state} they do not; choose narrower ones")

    def _check_sizes(self) -> None:
        k = self.gates.block_size

        def padded(size: int) -> int:
            return -(-size // k) * k

        given = (self.gates.rows, *(part.columns for part in self.gates.parts))
        rule = (4 * padded(self.hidden), padded(self.inputs), padded(self.outputs))
        if given != rule:
            raise Refusal(f"Layer {self.name!r}: the gates of {self.hidden} hidden units need {rule[0]} rows and "
                          f"columns for x and y {rule[1:]}, not {given[0]} and {given[1:]}; export it again")
        if self.projection is None and self.outputs != self.hidden:
            raise Refusal(f"Layer {self.name!r} without a projection must give its {self.hidden} hidden units, not "
                          f"{self.outputs}; export it again")
        if self.peephole is not None and self.peephole.shape != (3, self.hidden):
            raise Refusal(f"Layer {self.name!r}: the peepholes must have the shape {(3, self.hidden)}, not "
                          f"{self.peephole.shape}; export it again")
        if self.projection is not None:
            k = self.projection.block_size
            size = (padded(self.outputs), padded(self.hidden))
            if (self.projection.rows, self.projection.columns) != size:
                raise Refusal(f"Layer {self.name!r}: the projection of {self.hidden} hidden units to {self.outputs} "
                              f"must be {size[0]}x{size[1]} in blocks of {k}, not {self.projection.rows}x"
                              f"{self.projection.columns}; export it again")

    @property
    def products(self) -> dict[str, Product]:
        parts = {"input_product": self.gates.parts[0], "recurrent_product": self.gates.parts[1]}
        return parts | ({} if self.projection is None else {"projection": self.projection})

    @property
    def input_format(self) -> Format:
        return self.gates.parts[0].input

    @property
    def output_format(self) -> Format:
        """That of y, of m and of the gates."""
        return self.gates.parts[1].input

    @property
    def pre_format(self) -> Format:
        """That of the pre-activations."""
        return self.gates.output

    @property
    def _peephole_shift(self) -> int:
        return self.peephole_format.frac + self.cell.frac - self.pre_format.frac

    def __call__(self, x: Integers) -> Integers:
        """(N, T, inputs) to (N, outputs), or to (N, T, outputs) when the layer returns the sequence."""
        y, c = np.zeros((x.shape[0], self.outputs), np.int64), np.zeros((x.shape[0], self.hidden), np.int64)
        ys = np.empty((*x.shape[:2], self.outputs), np.int64)
        for t in range(x.shape[1]):
            y, c = self.step(x[:, t], y, c)
            ys[:, t] = y
        return ys if self.returns == "sequence" else y

    def step(self, x: Integers, y: Integers, c: Integers) -> tuple[Integers, Integers]:
        """The next y (N, outputs) and c (N, hidden) from x (N, inputs), y and c."""
        pre = self.gates(x, y).reshape(len(x), 4, -1)[..., :self.hidden]
        one = self.output_format.frac
        i, f = self.sigmoid(self._peeked(pre[:, 0], 0, c)), self.sigmoid(self._peeked(pre[:, 1], 1, c))
        g = self.tanh(pre[:, 2])
        new = round_shift(i * g, 2 * one - self.cell.frac)
        c = np.asarray(saturate(round_shift(f * c, one) + new, self.cell.width))
        o = self.sigmoid(self._peeked(pre[:, 3], 2, c))
        m = np.asarray(saturate(round_shift(o * self.tanh_cell(c), one), self.output_format.width))
        return (m if self.projection is None else self.projection(m)[..., :self.outputs]), c

    def _peeked(self, pre: Integers, gate: int, c: Integers) -> Integers:
        """The pre-activations of a gate with what it sees of c."""
        if self.peephole is None:
            return pre
        seen = round_shift(self.peephole[gate] * c, self._peephole_shift)
        return np.asarray(saturate(pre + seen, self.pre_format.width))
