"""The mathematics: networks in float64, as they come out of training.

Golden integers are compared with these within a derived bound; hardware never is. Every product is the definition, a
dense circulant matrix times a vector.
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim import fft
from circulant.sim.activation import sigmoid
from circulant.sim.circulant import dense, pack, pad
from circulant.sim.fixed import Reals
from circulant.sim.refusal import Refusal

__all__ = ["Gru", "Linear", "Model", "Tap", "check_chain", "check_data", "spectra"]

Tap = Callable[[str, Reals], None]
"""Called with the name and the values of every tensor on the way: "gru.recurrent_product.output", …"""


def _ignore(name: str, values: Reals) -> None:
    """The tap of somebody who only wants the outputs."""


def spectra(blocks: Reals) -> Reals:
    """Packed real spectra (…, k) of real blocks (…, k), in the order of `sim.fft`."""
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
        if tap is not _ignore:
            tap(f"{part}.input", x)
            tap(f"{part}.spectrum", spectra(blocks))
            sums.append(pack(np.einsum("pqf,...qf->...pf", np.fft.rfft(flat, axis=-1), np.fft.rfft(blocks)), k))
    if sums and len({each.shape for each in sums}) == 1:
        tap(f"{name}.product", np.asarray(sum(sums)))
    tap(f"{name}.output", y[..., 0, :] if len(bias) == 1 else y)
    return y


def _check(name: str, **tensors: tuple[Reals, tuple[int, ...]]) -> None:
    for field, (given, rule) in tensors.items():
        if given.shape != rule:
            raise Refusal(f"Layer {name!r}: {field} must have the shape {rule}, not {given.shape}; export it again")
        if not np.isfinite(given).all():
            raise Refusal(f"Layer {name!r}: {field} must be finite, but it holds NaN or infinity; train again with a "
                          "lower learning rate")


@dataclass(frozen=True, eq=False)
class Linear:
    """y = W x + b.

    Parameters:
        weight: first columns (p, q, k), p·k ≥ outputs and q·k ≥ inputs.
        bias: (outputs,).
    """

    name: str
    inputs: int
    outputs: int
    weight: Reals
    bias: Reals

    kind = "linear"

    def __post_init__(self) -> None:
        k = fft.check_block_size(int(self.weight.shape[-1]))
        _check(self.name, bias=(self.bias, (self.outputs,)),
               weight=(self.weight, (-(-self.outputs // k), -(-self.inputs // k), k)))

    def __call__(self, x: Reals, tap: Tap = _ignore) -> Reals:
        name = f"{self.name}.product"
        return _product(name, self.bias[None], tap, {name: (self.weight[None], x)})[..., 0, :]


@dataclass(frozen=True, eq=False)
class Gru:
    """torch.nn.GRU, or the older form with the reset gate before the matrix: the equations stand in `sim.gru`.

    Parameters:
        weight_ih, weight_hh: first columns (3, P, q, k) of the gates r, z, n; each matrix has its own k.
        bias_ih, bias_hh: (3, hidden).
        returns: "last" or "sequence".
        reset: "after" or "before" the recurrent matrix.
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

    kind = "gru"

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden

    def __post_init__(self) -> None:
        for field, weight, columns in (("weight_ih", self.weight_ih, self.inputs),
                                       ("weight_hh", self.weight_hh, self.hidden)):
            k = fft.check_block_size(int(weight.shape[-1]))
            _check(self.name, **{field: (weight, (3, -(-self.hidden // k), -(-columns // k), k))})
        _check(self.name, bias_ih=(self.bias_ih, (3, self.hidden)), bias_hh=(self.bias_hh, (3, self.hidden)))
        if self.returns not in ("last", "sequence"):
            raise Refusal(f"Layer {self.name!r} must return 'last' or 'sequence', not {self.returns!r}; choose one")
        if self.reset not in ("after", "before"):
            raise Refusal(f"Layer {self.name!r} must reset 'after' or 'before' the matrix, not {self.reset!r}; choose "
                          "one")

    def __call__(self, x: Reals, tap: Tap = _ignore) -> Reals:
        h = np.zeros((x.shape[0], self.hidden))
        states = np.empty((*x.shape[:2], self.hidden))
        bias = self.bias_ih + self.bias_hh
        for t in range(x.shape[1]):
            gates = self._rows("gates", slice(0, 2), bias, tap, input_product=x[:, t], recurrent_product=h)
            r, z = sigmoid(gates[:, 0]), sigmoid(gates[:, 1])
            n = np.tanh(before := self._candidate(x[:, t], h, r, tap))
            h = states[:, t] = n + z * (h - n)
            for tensor, values in (("tanh.input", before), ("r", r), ("z", z), ("n", n), ("h", h)):
                tap(f"{self.name}.{tensor}", values)
        return states if self.returns == "sequence" else h

    def _candidate(self, x: Reals, h: Reals, r: Reals, tap: Tap) -> Reals:
        """What n is the tanh of."""
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


RECURRENT = ("gru", "lstm")
"""Kinds of layers that take a sequence."""


def check_chain(name: str, inputs: int, sequence: bool, layers: Sequence[Any]) -> None:
    """Check that each layer, of a model or of its golden network, takes what the one before gives.

    Raises:
        Refusal: when it does not, when two layers share a name, or when there is none.
    """
    if not layers:
        raise Refusal(f"Network {name!r} must have at least one layer, not none; add a GRU or a Linear")
    names = set()
    for layer in layers:
        if layer.name in names:
            raise Refusal(f"The layers of network {name!r} must have different names, but two are called "
                          f"{layer.name!r}; rename one")
        names.add(layer.name)
        if layer.inputs != inputs:
            raise Refusal(f"Layer {layer.name!r} must take the {inputs} values that come before it, not "
                          f"{layer.inputs}; give it that size")
        if layer.kind in RECURRENT:
            if not sequence:
                raise Refusal(f"Layer {layer.name!r} needs a sequence, but what comes before gives one vector; let the "
                              "layer before return the whole sequence")
            sequence = layer.returns == "sequence"
        inputs = layer.outputs


def check_data(what: str, data: ArrayLike, inputs: int, sequence: bool) -> Reals:
    """The data (N, T, inputs) of sequences or (N, inputs) of vectors as an array.

    Raises:
        Refusal: when it is empty or of another shape.
    """
    values = np.asarray(data, np.float64)
    if values.ndim != 2 + sequence or values.shape[-1] != inputs or not values.size:
        axes = f"(N, T, {inputs})" if sequence else f"(N, {inputs})"
        raise Refusal(f"{what} must have the shape {axes} and be not empty, not {values.shape}; rearrange the axes")
    return values


@dataclass(frozen=True, eq=False)
class Model:
    """A chain of layers over vectors (N, inputs) or, with ``sequence``, over sequences (N, T, inputs).

    Raises:
        Refusal: as `check_chain`.
    """

    name: str
    inputs: int
    sequence: bool
    layers: tuple[Linear | Gru, ...]

    def __post_init__(self) -> None:
        check_chain(self.name, self.inputs, self.sequence, self.layers)

    def run(self, x: ArrayLike, tap: Tap = _ignore) -> Reals:
        """Outputs (N, outputs), or (N, T, outputs) where the last state is never taken.

        Raises:
            Refusal: as `check_data`.
        """
        values = check_data(f"Inputs of network {self.name!r}", x, self.inputs, self.sequence)
        for layer in self.layers:
            values = layer(values, tap)
        return values
