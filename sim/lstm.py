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
from circulant.sim.recurrent import check_formats, check_matrices, check_returns, check_state, padded, through
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
        check_returns(self.name, self.returns)
        self._check_sizes()
        pre, state = self.gates.output, self.output_format
        rules = [("sigmoid's argument", self.sigmoid.input, pre), ("tanh's argument", self.tanh.input, pre),
                 ("argument of the cell's tanh", self.tanh_cell.input, self.cell),
                 ("sigmoid's value", self.sigmoid.output, state), ("tanh's value", self.tanh.output, state),
                 ("value of the cell's tanh", self.tanh_cell.output, state)]
        if self.projection is not None:
            rules += [("projection's argument", self.projection.input, state),
                      ("projection's value", self.projection.output, state)]
        check_formats(self.name, rules)
        widest = max(rounding_bits(state.width + self.cell.width, state.frac) + 1,
                     rounding_bits(2 * state.width, 2 * state.frac - self.cell.frac) + 1,
                     rounding_bits(self.peephole_format.width + self.cell.width, self._peephole_shift) + 1)
        if widest > 63:
            raise Refusal(f"Layer {self.name!r}: the products of a gate must fit into 63 bits, but with the "
                          f"cell {self.cell} and the state {state} they do not; choose narrower ones")

    def _check_sizes(self) -> None:
        if self.projection is None and self.outputs != self.hidden:
            raise Refusal(f"Layer {self.name!r} without a projection must give its {self.hidden} hidden units, not "
                          f"{self.outputs}; export it again")
        if self.peephole is not None and self.peephole.shape != (3, self.hidden):
            raise Refusal(f"Layer {self.name!r}: the peepholes must have the shape {(3, self.hidden)}, not "
                          f"{self.peephole.shape}; export it again")
        k = self.gates.block_size
        x, y, m = (padded(size, k) for size in (self.inputs, self.outputs, self.hidden))
        matrices: dict[str, Product | JointProduct] = {"gates": self.gates}
        check_matrices(self.name, matrices if self.projection is None else matrices | {"projection": self.projection},
                       {"x": [self.gates.parts[0]]}, {"gates": (4 * m, x, y), "projection": (y, m)})

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

    def initial(self, count: int) -> tuple[Integers, Integers]:
        """The states y (N, outputs) and c (N, hidden) that ``count`` sequences start from."""
        return np.zeros((count, self.outputs), np.int64), np.zeros((count, self.hidden), np.int64)

    def __call__(self, x: Integers) -> Integers:
        """(N, T, inputs) to (N, outputs), or to (N, T, outputs) when the layer returns the sequence."""
        return self.run(x)[0]

    def run(self, x: Integers, state: tuple[Integers, Integers] | None = None
            ) -> tuple[Integers, tuple[Integers, Integers]]:
        """What the call gives for sequences (N, T, inputs) that go on from a state (y, c), and the last state."""
        start = self.initial(len(x))
        if state is not None:
            for given, rule in zip(state, start, strict=True):
                check_state(self.name, given, rule)
            start = state
        return through(lambda t, state: self.step(x[:, t], *state), lambda state: state[0], x.shape[1], start,
                       self.returns)

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
