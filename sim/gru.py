"""A GRU layer in integers, with the reset gate after the recurrent matrix or before it.

    r = sigmoid(W_r x + U_r h + b_r)                    h of the step before
    z = sigmoid(W_z x + U_z h + b_z)
    n = tanh(W_n x + b_in + r * (U_n h + b_hn))         after: torch.nn.GRU, cuDNN
    n = tanh(W_n x + U_n (r * h) + b_n)                 before: Cho et al. 2014, E-RNN
    h = n + z * (h - n)

A sum over two vectors is made in the spectral domain and rounded once; that of the two products with r between them is
made of pre-activations.
"""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.activation import Pwl
from circulant.sim.circulant import JointProduct, Product
from circulant.sim.fixed import Format, Integers, round_shift, rounding_bits, saturate
from circulant.sim.recurrent import (
    RESETS,
    check_formats,
    check_matrices,
    check_reset,
    check_returns,
    check_state,
    padded,
    through,
)
from circulant.sim.refusal import Refusal

__all__ = ["GATES", "RESETS", "Gru"]

GATES = ("r", "z", "n")
"""Gates in torch's order; the rows of `Gru.gates` are the first two."""


@dataclass(frozen=True, eq=False)
class Gru:
    """A GRU over sequences that starts from h = 0.

    All products have one block size and give pre-activations of one format; r, z, n and r * h share that of h.

    Parameters:
        returns: "last" for the last state, "sequence" for that of every step.
        reset: "after" or "before".
        gates: its rows are r, z, each padded to whole blocks on its own; its parts are those of x and of h.
        candidate: "after": W_n, of x, with b_in. "before": W_n and U_n, of x and of r * h.
        candidate_recurrent: "after": U_n, of h, with b_hn. "before": None.

    Raises:
        Refusal: when sizes or formats contradict each other, or a product of gate and state could leave int64.
    """

    name: str
    inputs: int
    hidden: int
    returns: str
    reset: str
    gates: JointProduct
    candidate: Product | JointProduct
    candidate_recurrent: Product | None
    sigmoid: Pwl
    tanh: Pwl

    kind = "gru"

    def __post_init__(self) -> None:
        check_returns(self.name, self.returns)
        self._check_form()
        k = self.gates.block_size
        x, h = padded(self.inputs, k), padded(self.hidden, k)
        check_matrices(
            self.name, self._matrices,
            {vector: [self.gates.parts[n], self._candidate_parts[n]] for n, vector in enumerate(("x", "h"))},
            {"gates": (2 * h, x, h), "candidate": (h, x) if self.reset == "after" else (h, x, h),
             "candidate_recurrent": (h, h)})
        pre, state = self.pre_format, self.output_format
        check_formats(self.name, [
            *((f"{role.replace('_', ' ')}'s value", matrix.output, pre) for role, matrix in self._matrices.items()),
            ("sigmoid's argument", self.sigmoid.input, pre), ("tanh's argument", self.tanh.input, pre),
            ("sigmoid's value", self.sigmoid.output, state), ("tanh's value", self.tanh.output, state)])
        if rounding_bits(state.width + max(pre.width, state.width + 1), state.frac) + 1 > 63:
            raise Refusal(f"Layer {self.name!r}: the products of a gate must fit into 63 bits, but with the "
                          f"pre-activation {pre} and the state {state} they do not; choose narrower ones")

    def _check_form(self) -> None:
        check_reset(self.name, self.reset)
        joint, recurrent = isinstance(self.candidate, JointProduct), self.candidate_recurrent is not None
        if (joint, recurrent) != (self.reset == "before", self.reset == "after"):
            needs = "a product of x and one of h" if self.reset == "after" else "one joint product of x and r * h"
            given = f"{'a joint one' if joint else 'one of x'} and {'one' if recurrent else 'none'} of h"
            raise Refusal(f"Layer {self.name!r} with the reset gate {self.reset} the matrix needs {needs} for its "
                          f"candidate, not {given}; export it again")
        for role, matrix in self._matrices.items():
            if isinstance(matrix, JointProduct) and len(matrix.parts) != 2:
                raise Refusal(f"Layer {self.name!r}: the {role} must be a product of two vectors, not of "
                              f"{len(matrix.parts)}; export it again")

    @property
    def _matrices(self) -> dict[str, Product | JointProduct]:
        own: dict[str, Product | JointProduct] = {"gates": self.gates, "candidate": self.candidate}
        return own if self.candidate_recurrent is None else own | {"candidate_recurrent": self.candidate_recurrent}

    @property
    def _candidate_parts(self) -> tuple[Product, Product]:
        """W_n and U_n."""
        if isinstance(self.candidate, JointProduct):
            return self.candidate.parts[0], self.candidate.parts[1]
        assert self.candidate_recurrent is not None
        return self.candidate, self.candidate_recurrent

    @property
    def products(self) -> dict[str, Product]:
        x, h = self._candidate_parts
        return {"input_product": self.gates.parts[0], "recurrent_product": self.gates.parts[1],
                "candidate_input": x, "candidate_recurrent": h}

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    @property
    def input_format(self) -> Format:
        return self.gates.parts[0].input

    @property
    def output_format(self) -> Format:
        """That of the state and of the gates."""
        return self.gates.parts[1].input

    @property
    def pre_format(self) -> Format:
        """That of the pre-activations."""
        return self.gates.output

    def initial(self, count: int) -> Integers:
        """The state (N, hidden) that ``count`` sequences start from."""
        return np.zeros((count, self.hidden), np.int64)

    def __call__(self, x: Integers) -> Integers:
        """(N, T, inputs) to (N, hidden), or to (N, T, hidden) when the layer returns the sequence."""
        return self.run(x)[0]

    def run(self, x: Integers, state: Integers | None = None) -> tuple[Integers, Integers]:
        """What the call gives for sequences (N, T, inputs) that go on from a state (N, hidden), and the last state."""
        start = self.initial(len(x))
        if state is not None:
            check_state(self.name, state, start)
            start = state
        return through(lambda t, h: self.step(x[:, t], h), lambda h: h, x.shape[1], start, self.returns)

    def step(self, x: Integers, h: Integers) -> Integers:
        """The next state (N, hidden) from x (N, inputs) and the state."""
        width, one = self.pre_format.width, self.output_format.frac
        pre = self.gates(x, h).reshape(len(x), 2, -1)[..., :self.hidden]
        r, z = self.sigmoid(pre[:, 0]), self.sigmoid(pre[:, 1])
        if isinstance(self.candidate, JointProduct):
            n = self.tanh(self._cut(self.candidate(x, saturate(round_shift(r * h, one), self.output_format.width))))
        else:
            recurrent = self._cut(self._candidate_parts[1](h))
            n = self.tanh(saturate(self._cut(self.candidate(x)) + round_shift(r * recurrent, one), width))
        return np.asarray(saturate(n + round_shift(z * (h - n), one), self.output_format.width))

    def _cut(self, rows: Any) -> Integers:
        """The rows of hidden units, without those that pad the last block."""
        return np.asarray(rows[..., :self.hidden])
