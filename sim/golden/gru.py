"""A GRU layer in integers, with the reset gate after the recurrent matrix or before it.

    r = sigmoid(W_r x + U_r h + b_r)                    h of the step before
    z = sigmoid(W_z x + U_z h + b_z)
    n = tanh(W_n x + b_in + r * (U_n h + b_hn))         after: torch.nn.GRU, cuDNN
    n = tanh(W_n x + U_n (r * h) + b_n)                 before: Cho et al. 2014, E-RNN
    h = n + z * (h - n)

In place of the tanh there may be a ReLU, as in RNNoise; h then goes as far as calibration data show.

A sum over two vectors is made in the spectral domain and rounded once; that of the two products with r between them is
made of pre-activations.
"""
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import (
    Arrays,
    activations,
    layer_arrays,
    layer_fields,
    product_arrays,
    product_fields,
    read_product,
    read_pwl,
    reader,
)
from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import (
    RESETS,
    check_formats,
    check_matrices,
    check_reset,
    check_returns,
    padded,
)
from circulant.sim.shape.state_layer import StateLayer

__all__ = ["GATES", "RESETS", "Gru"]

GATES = ("r", "z", "n")
"""Gates in torch's order; the rows of `Gru.gates` are the first two."""


@dataclass(frozen=True, eq=False)
class Gru(StateLayer):
    """A GRU over sequences that starts from h = 0.

    All products have one block size and give pre-activations of one format; r, z, n and r * h share that of h.

    Parameters:
        returns: "last" for the last state, "sequence" for that of every step.
        reset: "after" or "before".
        gates: its rows are r, z, each padded to whole blocks on its own; its parts are those of x and of h.
        candidate: "after": W_n, of x, with b_in. "before": W_n and U_n, of x and of r * h.
        candidate_recurrent: "after": U_n, of h, with b_hn. "before": None.
        tanh: of the candidate; its function may also be its hard form, or a ReLU.

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

    def _step(self, spectra: Integers, h: Integers, record: Recorder | None) -> Integers:
        """The next state (k, q, N) from the spectra of x and the state."""
        width, one, blocks = self.output_format.width, self.output_format.frac, h.shape[1]
        spectra_h = self.gates.parts[1].spectra(h)
        sums = self._at_once.sums(spectra, spectra_h)
        rows = self._at_once.values(sums, spent=record is None)
        gates = self.sigmoid(rows[:, :2 * blocks])
        r, z = gates[:, :blocks], gates[:, blocks:]
        if isinstance(self.candidate, JointProduct):
            kept = saturate(round_shift(r * h, one), width)
            spectra_kept = self.candidate.parts[1].spectra(kept)
            behind = self.candidate.sums(spectra, spectra_kept)
            argument = self.candidate.values(behind, spent=record is None)
        else:
            kept, spectra_kept, behind = h, spectra_h, sums[:, 2 * blocks:]
            argument = round_shift(r * rows[:, 3 * blocks:], one)
            argument += rows[:, 2 * blocks:3 * blocks]
        n = self.tanh(saturate(argument, self.pre_format.width, out=argument))
        following = round_shift(z * (h - n), one)
        following += n
        batch_layout.clear(saturate(following, width, out=following), self.hidden)
        if record is not None:
            self._show(record, sums[:, :2 * blocks], behind, (h, spectra_h), (kept, spectra_kept))
            record.vector(f"{self.name}.tanh.input", argument, self.hidden, self.pre_format)
            for tensor, values in (("r", r), ("z", z), ("n", n), ("h", following)):
                record.vector(f"{self.name}.{tensor}", values, self.hidden, self.output_format)
        return following

    def _show(self, record: Recorder, gates: np.ndarray, behind: np.ndarray, *taken: tuple[Integers, Integers]) -> None:
        """The sums of the gates and of the candidate's products, the vectors that are multiplied, and their spectra."""
        part, size = self.gates.parts[1], self.hidden
        for role, (vector, spectra) in zip(("recurrent_product", "candidate_recurrent"), taken, strict=True):
            record.vector(f"{self.name}.{role}.input", vector, size, part.input)
            record.spectral(f"{self.name}.{role}.spectrum", spectra, part.spectrum)
        record.product(f"{self.name}.gates", self.gates, gates, size, gates=2)
        names = ["candidate"] if self.reset == "before" else ["candidate_input", "candidate_recurrent"]
        products = [self.candidate] if self.reset == "before" else list(self._candidate_parts)
        for name, product, sums in zip(names, products, np.split(behind, len(names), axis=1), strict=True):
            record.product(f"{self.name}.{name}", product, sums, size)

    @cached_property
    def _at_once(self) -> JointProduct:
        """Rows that x and h give together: the gates and, behind them, both parts of a candidate that needs no gate."""
        if isinstance(self.candidate, JointProduct):
            return self.gates
        parts, row_shifts = [], tuple[int, ...]()
        for each in (self.gates.parts[0], *self._candidate_parts):
            row_shifts += each.row_shifts or (0,) * len(each.weights)
        for n, gates in enumerate(self.gates.parts):
            matrix = self._candidate_parts[n]
            nothing = np.zeros((len(matrix.weights), *gates.weights.shape[1:]), np.int64)
            weights = [gates.weights, *((matrix.weights, nothing) if n == 0 else (nothing, matrix.weights))]
            bias = [gates.bias, *(part.bias * (n == 0) for part in self._candidate_parts)]
            weight = Format(max(gates.weight.width, matrix.weight.width), gates.weight.frac)
            parts.append(replace(gates, weights=np.concatenate(weights), bias=np.concatenate(bias), weight=weight,
                                 row_shifts=row_shifts))
        return JointProduct(tuple(parts))


layer_arrays.register(Gru, product_arrays)


@activations.register
def _(layer: Gru) -> dict[str, Pwl]:
    return {"sigmoid": layer.sigmoid, "tanh": layer.tanh}


@layer_fields.register
def _(layer: Gru) -> dict[str, Any]:
    return {**product_fields(layer), "hidden": layer.hidden, "returns": layer.returns, "reset": layer.reset}


@reader(Gru.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Gru:
    of_x, of_h, x, h = (read_product(entry, arrays, role) for role in (
        "input_product", "recurrent_product", "candidate_input", "candidate_recurrent"))
    before = entry["reset"] == "before"
    return Gru(entry["name"], entry["inputs"], entry["hidden"], returns=entry["returns"], reset=entry["reset"],
               gates=JointProduct((of_x, of_h)), candidate=JointProduct((x, h)) if before else x,
               candidate_recurrent=None if before else h, sigmoid=read_pwl(entry, arrays, "sigmoid"),
               tanh=read_pwl(entry, arrays, "tanh"))
