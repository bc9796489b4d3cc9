"""Recurrent layers in float64, as they come out of training."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith.activation import activation_names, exact_function
from circulant.sim.arith.fixed import Reals
from circulant.sim.real.products import Tap, check, check_first_columns, ignore, product
from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import check_nonlinearity, check_reset, check_returns
from circulant.sim.shape.sequences import Ended, Lengths, counts

__all__ = ["Gru", "Lstm", "Rnn"]


def _functions(hard: bool, nonlinearity: str = "tanh") -> tuple[Callable[[Reals], Reals], Callable[[Reals], Reals]]:
    """Sigmoid and tanh, or their hard forms, or ReLU for the latter."""
    sigmoid, tanh = activation_names(hard, nonlinearity)
    return exact_function(sigmoid), exact_function(tanh)


@dataclass(frozen=True, eq=False)
class Gru:
    """torch.nn.GRU, or the older form with the reset gate before the matrix: the equations stand in `sim.golden.gru`.

    Parameters:
        weight_ih, weight_hh: first columns (3, P, q, k) of the gates r, z, n; each matrix has its own k.
        bias_ih, bias_hh: (3, hidden).
        returns: "last" or "sequence".
        reset: "after" or "before" the recurrent matrix.
        hard: whether the gates are torch's Hardsigmoid and Hardtanh.
        nonlinearity: of the candidate, "tanh" or "relu".
    """

    name: str
    inputs: int
    hidden: int
    weight_ih: Reals
    weight_hh: Reals
    bias_ih: Reals
    bias_hh: Reals
    returns: str = "last"
    reset: str = "after"
    hard: bool = False
    nonlinearity: str = "tanh"

    kind = "gru"

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight_ih=(self.weight_ih, (3, self.hidden, self.inputs)),
                             weight_hh=(self.weight_hh, (3, self.hidden, self.hidden)))
        check(self.name, bias_ih=(self.bias_ih, (3, self.hidden)), bias_hh=(self.bias_hh, (3, self.hidden)))
        check_returns(self.name, self.returns)
        check_reset(self.name, self.reset)
        check_nonlinearity(self.name, self.nonlinearity)

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        h, ended = np.zeros((x.shape[0], self.hidden)), Ended(0)
        states = np.zeros((*x.shape[:2], self.hidden))
        bias = self.bias_ih + self.bias_hh
        squash, bend = _functions(self.hard, self.nonlinearity)
        for t, n in enumerate(counts(lengths, *x.shape[:2])):
            h, = ended.cut((h,), n)
            gates = self._rows("gates", slice(0, 2), bias, tap, input_product=x[:n, t], recurrent_product=h)
            r, z = squash(gates[:, 0]), squash(gates[:, 1])
            new = bend(before := self._candidate(x[:n, t], h, r, tap))
            h = states[:n, t] = new + z * (h - new)
            for tensor, values in (("tanh.input", before), ("r", r), ("z", z), ("n", new), ("h", h)):
                tap(f"{self.name}.{tensor}", values)
        return states if self.returns == "sequence" else ended.whole((h,))[0]

    def _candidate(self, x: Reals, h: Reals, r: Reals, tap: Tap) -> Reals:
        """The pre-activations of n."""
        n = slice(2, 3)
        if self.reset == "before":
            bias = self.bias_ih + self.bias_hh
            return self._rows("candidate", n, bias, tap, candidate_input=x, candidate_recurrent=r * h)[:, 0]
        driven = self._rows("candidate_input", n, self.bias_ih, tap, candidate_input=x)[:, 0]
        return driven + r * self._rows("candidate_recurrent", n, self.bias_hh, tap, candidate_recurrent=h)[:, 0]

    def _rows(self, name: str, gates: slice, bias: Reals, tap: Tap, **parts: Reals) -> Reals:
        """The pre-activations (N, gates, hidden) of some gates from the vectors of their parts."""
        return product(f"{self.name}.{name}", bias[gates], tap, {
            f"{self.name}.{part}": ((self.weight_ih if "input" in part else self.weight_hh)[gates], vector)
            for part, vector in parts.items()})


@dataclass(frozen=True, eq=False)
class Lstm:
    """torch.nn.LSTM, also with a projection, and with the peepholes of Sak et al. 2014: see `sim.golden.lstm`.

    Parameters:
        outputs: length of y: that of the projection, else ``hidden``.
        weight_ih, weight_hh: first columns (4, P, q, k) of the gates i, f, g, o, over x and over y.
        bias_ih, bias_hh: (4, hidden).
        projection: first columns (P, q, k) from m to y, or None.
        peephole: (3, hidden), what i, f, o see of c, or None.
        returns: "last" or "sequence".
        hard: whether the gates are torch's Hardsigmoid and Hardtanh.
    """

    name: str
    inputs: int
    hidden: int
    outputs: int
    weight_ih: Reals
    weight_hh: Reals
    bias_ih: Reals
    bias_hh: Reals
    projection: Reals | None = None
    peephole: Reals | None = None
    returns: str = "last"
    hard: bool = False

    kind = "lstm"

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight_ih=(self.weight_ih, (4, self.hidden, self.inputs)),
                             weight_hh=(self.weight_hh, (4, self.hidden, self.outputs)))
        check(self.name, bias_ih=(self.bias_ih, (4, self.hidden)), bias_hh=(self.bias_hh, (4, self.hidden)))
        if self.projection is not None:
            check_first_columns(self.name, projection=(self.projection, (self.outputs, self.hidden)))
        elif self.outputs != self.hidden:
            raise Refusal(f"Layer {self.name!r} without a projection must give its {self.hidden} hidden units, not "
                          f"{self.outputs}; export it again")
        if self.peephole is not None:
            check(self.name, peephole=(self.peephole, (3, self.hidden)))
        check_returns(self.name, self.returns)

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        y, c = np.zeros((x.shape[0], self.outputs)), np.zeros((x.shape[0], self.hidden))
        ys, ended = np.zeros((*x.shape[:2], self.outputs)), Ended(0)
        for t, n in enumerate(counts(lengths, *x.shape[:2])):
            y, c = ended.cut((y, c), n)
            y, c = self._step(x[:n, t], y, c, tap)
            ys[:n, t] = y
        return ys if self.returns == "sequence" else ended.whole((y, c))[0]

    def _step(self, x: Reals, y: Reals, c: Reals, tap: Tap) -> tuple[Reals, Reals]:
        gates = product(f"{self.name}.gates", self.bias_ih + self.bias_hh, tap, {
            f"{self.name}.input_product": (self.weight_ih, x), f"{self.name}.recurrent_product": (self.weight_hh, y)})
        peephole = np.zeros((3, self.hidden)) if self.peephole is None else self.peephole
        before_i, before_f = gates[:, 0] + peephole[0] * c, gates[:, 1] + peephole[1] * c
        squash, bend = _functions(self.hard)
        i, f, g = squash(before_i), squash(before_f), bend(gates[:, 2])
        c = f * c + i * g
        before_o = gates[:, 3] + peephole[2] * c
        o = squash(before_o)
        m = o * bend(c)
        y = m
        if self.projection is not None:
            name = f"{self.name}.projection"
            y = product(name, np.zeros((1, self.outputs)), tap, {name: (self.projection[None], m)})[:, 0]
        tap(f"{self.name}.sigmoid.input", np.stack([before_i, before_f, before_o], axis=1))
        for tensor, values in (("i", i), ("f", f), ("g", g), ("o", o), ("c", c), ("m", m), ("y", y)):
            tap(f"{self.name}.{tensor}", values)
        return y, c


@dataclass(frozen=True, eq=False)
class Rnn:
    """torch.nn.RNN: see `sim.golden.rnn`.

    Parameters:
        weight_ih, weight_hh: first columns (1, P, q, k), over x and over h.
        bias_ih, bias_hh: (1, hidden).
        returns: "last" or "sequence".
        nonlinearity: "tanh" or "relu".
    """

    name: str
    inputs: int
    hidden: int
    weight_ih: Reals
    weight_hh: Reals
    bias_ih: Reals
    bias_hh: Reals
    returns: str = "last"
    nonlinearity: str = "tanh"

    kind = "rnn"
    hard = False

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight_ih=(self.weight_ih, (1, self.hidden, self.inputs)),
                             weight_hh=(self.weight_hh, (1, self.hidden, self.hidden)))
        check(self.name, bias_ih=(self.bias_ih, (1, self.hidden)), bias_hh=(self.bias_hh, (1, self.hidden)))
        check_returns(self.name, self.returns)
        check_nonlinearity(self.name, self.nonlinearity)

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        h, ended = np.zeros((x.shape[0], self.hidden)), Ended(0)
        states = np.zeros((*x.shape[:2], self.hidden))
        _, bend = _functions(False, self.nonlinearity)
        for t, n in enumerate(counts(lengths, *x.shape[:2])):
            h, = ended.cut((h,), n)
            rows = product(f"{self.name}.gates", self.bias_ih + self.bias_hh, tap, {
                f"{self.name}.input_product": (self.weight_ih, x[:n, t]),
                f"{self.name}.recurrent_product": (self.weight_hh, h)})
            h = states[:n, t] = bend(rows[:, 0])
            tap(f"{self.name}.h", h)
        return states if self.returns == "sequence" else ended.whole((h,))[0]
