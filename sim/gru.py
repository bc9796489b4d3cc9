"""A GRU layer as torch.nn.GRU and cuDNN define it, the reset gate after the matrix, in integers.

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
    z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
    n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
    h = n + z * (h - n)
"""
from dataclasses import dataclass

import numpy as np

from circulant.sim.activation import Pwl
from circulant.sim.circulant import Product
from circulant.sim.fixed import Format, Integers, round_shift, rounding_bits, saturate
from circulant.sim.refusal import Refusal

__all__ = ["GATES", "Gru"]

GATES = ("r", "z", "n")


@dataclass(frozen=True, eq=False)
class Gru:
    """A GRU over sequences that starts from h = 0.

    The rows of both products are the gates r, z, n, each padded to whole blocks on its own. Both products give
    pre-activations of one format; the gates r, z and n share the format of the state h.

    Parameters:
        returns: "last" for the last state, "sequence" for that of every step.

    Raises:
        Refusal: when sizes or formats contradict each other, or a product of gate and state could leave int64.
    """

    name: str
    inputs: int
    hidden: int
    returns: str
    input_product: Product
    recurrent_product: Product
    sigmoid: Pwl
    tanh: Pwl

    kind = "gru"

    def __post_init__(self) -> None:
        if self.returns not in ("last", "sequence"):
            raise Refusal(f"Layer {self.name!r} must return 'last' or 'sequence', not {self.returns!r}; choose one")
        for role, product, columns in (("input", self.input_product, self.inputs),
                                       ("recurrent", self.recurrent_product, self.hidden)):
            k = product.block_size
            size = (3 * -(-self.hidden // k) * k, -(-columns // k) * k)
            if (product.rows, product.columns) != size:
                raise Refusal(f"Layer {self.name!r}: the {role} matrix for {self.inputs} inputs and {self.hidden} "
                              f"hidden units must be {size[0]}x{size[1]} in blocks of {k}, not {product.rows}x"
                              f"{product.columns}; export it again")
        pre, state = self.input_product.output, self.recurrent_product.input
        for what, given, rule in (("recurrent pre-activation", self.recurrent_product.output, pre),
                                  ("sigmoid's argument", self.sigmoid.input, pre),
                                  ("tanh's argument", self.tanh.input, pre),
                                  ("sigmoid's value", self.sigmoid.output, state),
                                  ("tanh's value", self.tanh.output, state)):
            if given != rule:
                raise Refusal(f"Layer {self.name!r}: the {what} must have the {rule}, not {given}; quantize it again")
        if rounding_bits(state.width + max(pre.width, state.width + 1), state.frac) + 1 > 63:
            raise Refusal(f"Layer {self.name!r}: the products of a gate must fit into 63 bits, but with the "
                          f"pre-activation {pre} and the state {state} they do not; choose narrower ones")

    @property
    def products(self) -> dict[str, Product]:
        return {"input_product": self.input_product, "recurrent_product": self.recurrent_product}

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    @property
    def input_format(self) -> Format:
        return self.input_product.input

    @property
    def output_format(self) -> Format:
        """That of the state and of the gates."""
        return self.recurrent_product.input

    @property
    def pre_format(self) -> Format:
        """That of the pre-activations."""
        return self.input_product.output

    def __call__(self, x: Integers) -> Integers:
        """(N, T, inputs) to (N, hidden), or to (N, T, hidden) when the layer returns the sequence."""
        h = np.zeros((x.shape[0], self.hidden), np.int64)
        driven = self._gates(self.input_product, x)  # (N, T, 3, hidden)
        states = np.empty((*x.shape[:2], self.hidden), np.int64)
        for t in range(x.shape[1]):
            h = states[:, t] = self.step(driven[:, t], h)
        return states if self.returns == "sequence" else h

    def step(self, driven: Integers, h: Integers) -> Integers:
        """The next state (N, hidden) from the input's pre-activations (N, 3, hidden) and the state (N, hidden)."""
        recurrent = self._gates(self.recurrent_product, h)
        width, one = self.pre_format.width, self.output_format.frac
        r = self.sigmoid(saturate(driven[:, 0] + recurrent[:, 0], width))
        z = self.sigmoid(saturate(driven[:, 1] + recurrent[:, 1], width))
        n = self.tanh(saturate(driven[:, 2] + round_shift(r * recurrent[:, 2], one), width))
        return np.asarray(saturate(n + round_shift(z * (h - n), one), self.output_format.width))

    def _gates(self, product: Product, x: Integers) -> Integers:
        """(…, columns) to the pre-activations (…, 3, hidden)."""
        return product(x).reshape(*x.shape[:-1], 3, -1)[..., :self.hidden]
