"""Layers in float64, as they come out of training: every product is the definition, a dense matrix times a vector."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith import fft
from circulant.sim.arith.activation import activation_names, exact_function
from circulant.sim.arith.circulant import dense, pack, pad
from circulant.sim.arith.fixed import Reals
from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import check_directions, check_nonlinearity, check_reset, check_returns
from circulant.sim.shape.reduction import STEPS, check_mode
from circulant.sim.shape.sequences import Ended, Lengths, backward, counts, valid

__all__ = ["Activation", "Bidirectional", "Gru", "Linear", "Lstm", "OverTime", "Rnn", "Tap", "ignore", "spectra"]

Tap = Callable[[str, Reals], None]
"""Called with the name and the values of every tensor on the way: "gru.recurrent_product.output", …"""


def ignore(name: str, values: Reals) -> None:
    """The tap of somebody who only wants the outputs."""


def spectra(blocks: Reals) -> Reals:
    """Packed real spectra (…, k) of real blocks (…, k), in the order of `sim.arith.fft`."""
    return pack(np.fft.rfft(blocks, axis=-1), blocks.shape[-1])


def _product(name: str, bias: Reals, tap: Tap, parts: dict[str, tuple[Reals, Reals]]) -> Reals:
    """Σ W x + b (…, groups, rows) for bias (groups, rows), and by name first columns (groups, p, q, k) and x.

    Its tensors are shown to ``tap``: x and spectrum of every part; the spectral sum where all have one block size.
    """
    y, sums = np.asarray(bias), []
    for part, (weight, x) in parts.items():
        groups, p, q, k = weight.shape
        flat, blocks = weight.reshape(groups * p, q, k), pad(x, q * k).reshape(*x.shape[:-1], q, k)
        rows = blocks.reshape(*x.shape[:-1], -1) @ dense(flat).T
        y = y + rows.reshape(*x.shape[:-1], groups, p * k)[..., :bias.shape[1]]
        if tap is not ignore:
            tap(f"{part}.input", x)
            spectrum = np.fft.rfft(blocks)
            tap(f"{part}.spectrum", pack(spectrum, k))
            bins = np.moveaxis(spectrum, -1, 0).reshape(spectrum.shape[-1], -1, q)  # A matrix product for each bin.
            found = bins @ np.fft.rfft(flat, axis=-1).transpose(2, 1, 0)
            sums.append(pack(np.moveaxis(found, 0, -1).reshape(*x.shape[:-1], groups * p, -1), k))
    if sums and len({each.shape for each in sums}) == 1:
        tap(f"{name}.product", np.asarray(sum(sums)))
    tap(f"{name}.output", y[..., 0, :] if len(bias) == 1 else y)
    return y


def _functions(hard: bool, nonlinearity: str = "tanh") -> tuple[Callable[[Reals], Reals], Callable[[Reals], Reals]]:
    """Sigmoid and tanh, or their hard forms, or ReLU for the latter."""
    sigmoid, tanh = activation_names(hard, nonlinearity)
    return exact_function(sigmoid), exact_function(tanh)


def _check(name: str, **tensors: tuple[Reals, tuple[int, ...]]) -> None:
    for field, (given, rule) in tensors.items():
        if given.shape != rule:
            raise Refusal(f"Layer {name!r}: {field} must have the shape {rule}, not {given.shape}; export it again")
        if not np.isfinite(given).all():
            raise Refusal(f"Layer {name!r}: {field} must be finite, but it holds NaN or infinity; train again with a "
                          "lower learning rate")


def _check_first_columns(name: str, **matrices: tuple[Reals, tuple[int, ...]]) -> None:
    """Check first columns (…, p, q, k) of matrices (…, rows, columns)."""
    for field, (weight, (*groups, rows, columns)) in matrices.items():
        k = fft.check_block_size(int(weight.shape[-1]))
        _check(name, **{field: (weight, (*groups, -(-rows // k), -(-columns // k), k))})


@dataclass(frozen=True, eq=False)
class Linear:
    """y = W x + b, or max(0, W x + b).

    Parameters:
        weight: first columns (p, q, k), p·k ≥ outputs and q·k ≥ inputs.
        bias: (outputs,).
        relu: whether negative outputs become zero.
    """

    name: str
    inputs: int
    outputs: int
    weight: Reals
    bias: Reals
    relu: bool = False

    kind = "linear"

    def __post_init__(self) -> None:
        _check_first_columns(self.name, weight=(self.weight, (self.outputs, self.inputs)))
        _check(self.name, bias=(self.bias, (self.outputs,)))

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        name = f"{self.name}.product"
        y = _product(name, self.bias[None], tap, {name: (self.weight[None], x)})[..., 0, :]
        if self.relu:
            tap(f"{self.name}.y", y := np.maximum(y, 0.0))
        return y


@dataclass(frozen=True, eq=False)
class Activation:
    """y = f(x) for each value of vectors, sequences or images.

    Parameters:
        function, parameters: f, see `sim.arith.activation.exact_function`.
    """

    name: str
    inputs: int
    function: str
    parameters: tuple[float, ...] = ()

    kind = "activation"

    def __post_init__(self) -> None:
        exact_function(self.function, self.parameters)

    @property
    def outputs(self) -> int:
        return self.inputs

    def exact(self, x: Reals) -> Reals:
        """f of each value."""
        return exact_function(self.function, self.parameters)(x)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        tap(f"{self.name}.y", y := self.exact(x))
        return y


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
        _check_first_columns(self.name, weight_ih=(self.weight_ih, (3, self.hidden, self.inputs)),
                             weight_hh=(self.weight_hh, (3, self.hidden, self.hidden)))
        _check(self.name, bias_ih=(self.bias_ih, (3, self.hidden)), bias_hh=(self.bias_hh, (3, self.hidden)))
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
        return _product(f"{self.name}.{name}", bias[gates], tap, {
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
        _check_first_columns(self.name, weight_ih=(self.weight_ih, (4, self.hidden, self.inputs)),
                             weight_hh=(self.weight_hh, (4, self.hidden, self.outputs)))
        _check(self.name, bias_ih=(self.bias_ih, (4, self.hidden)), bias_hh=(self.bias_hh, (4, self.hidden)))
        if self.projection is not None:
            _check_first_columns(self.name, projection=(self.projection, (self.outputs, self.hidden)))
        elif self.outputs != self.hidden:
            raise Refusal(f"Layer {self.name!r} without a projection must give its {self.hidden} hidden units, not "
                          f"{self.outputs}; export it again")
        if self.peephole is not None:
            _check(self.name, peephole=(self.peephole, (3, self.hidden)))
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
        gates = _product(f"{self.name}.gates", self.bias_ih + self.bias_hh, tap, {
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
            y = _product(name, np.zeros((1, self.outputs)), tap, {name: (self.projection[None], m)})[:, 0]
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
        _check_first_columns(self.name, weight_ih=(self.weight_ih, (1, self.hidden, self.inputs)),
                             weight_hh=(self.weight_hh, (1, self.hidden, self.hidden)))
        _check(self.name, bias_ih=(self.bias_ih, (1, self.hidden)), bias_hh=(self.bias_hh, (1, self.hidden)))
        check_returns(self.name, self.returns)
        check_nonlinearity(self.name, self.nonlinearity)

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        h, ended = np.zeros((x.shape[0], self.hidden)), Ended(0)
        states = np.zeros((*x.shape[:2], self.hidden))
        _, bend = _functions(False, self.nonlinearity)
        for t, n in enumerate(counts(lengths, *x.shape[:2])):
            h, = ended.cut((h,), n)
            rows = _product(f"{self.name}.gates", self.bias_ih + self.bias_hh, tap, {
                f"{self.name}.input_product": (self.weight_ih, x[:n, t]),
                f"{self.name}.recurrent_product": (self.weight_hh, h)})
            h = states[:n, t] = bend(rows[:, 0])
            tap(f"{self.name}.h", h)
        return states if self.returns == "sequence" else ended.whole((h,))[0]


@dataclass(frozen=True, eq=False)
class Bidirectional:
    """Two recurrent layers over a whole sequence, one from its first step on and one from its last: see torch.nn.GRU.

    Parameters:
        forward, backward: called ``<name>.forward`` and ``<name>.backward``. Their outputs stand side by side; where
            they return the last one, that of the backward layer belongs to the first step.
    """

    name: str
    forward: Gru | Lstm | Rnn
    backward: Gru | Lstm | Rnn

    kind = "bidirectional"

    def __post_init__(self) -> None:
        check_directions(self.name, self.forward, self.backward)

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

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        ahead, back = self.forward(x, tap, lengths), self.backward(backward(x, lengths), tap, lengths)
        return np.concatenate([ahead, backward(back, lengths) if self.returns == "sequence" else back], axis=-1)


@dataclass(frozen=True, eq=False)
class OverTime:
    """The greatest value of all steps of a sequence, or their mean: see `sim.golden.reduce.over_time.OverTime`.

    Parameters:
        mode: "max" or "mean".
    """

    name: str
    inputs: int
    mode: str

    kind = "over_time"
    returns = "last"

    def __post_init__(self) -> None:
        check_mode(self.name, self.mode)

    @property
    def outputs(self) -> int:
        return self.inputs

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        seen = np.ones(x.shape[:2], bool) if lengths is None else valid(lengths, x.shape[1])
        if self.mode == "max":
            y = np.where(seen[..., None], x, -np.inf).max(1)
        else:
            seen = seen[:, :STEPS]
            y = np.where(seen[..., None], x[:, :STEPS], 0).sum(1) / seen.sum(1, keepdims=True)
        tap(f"{self.name}.y", y)
        return np.asarray(y)
