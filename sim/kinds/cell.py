"""Cells: recurrent layers with matrices, how they pass through time whatever their gates compute, and what the passes
over a GRU, an LSTM and a plain recurrent layer have in common."""
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import FUNCTIONS, Pwl, activation_names, exact_function
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.segments import fit_lines
from circulant.sim.arith.trace import Recorder
from circulant.sim.kinds.matrix import PRODUCT_FIELDS, twiddle_fields
from circulant.sim.passes import bases
from circulant.sim.passes.error_propagation import PropagatedError, Rows, Step
from circulant.sim.passes.formats import Peaks, Spectral, Widths, no_finer, spectral, table
from circulant.sim.passes.layer import FloatLayer, GoldenLayer
from circulant.sim.passes.products import Tap, check, check_first_columns, ignore, spectra
from circulant.sim.passes.quantizing import check_fit, grid_of
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverSequences
from circulant.sim.shape.recurrent import check_nonlinearity, check_one_block_size, check_returns, check_state, padded
from circulant.sim.shape.sequences import Ended, Lengths, counts

__all__ = ["FloatCell", "FloatStateCell", "Real", "RecurrentLayer", "StateLayer", "bend", "check_like", "formats_like",
           "gate_rows", "input_formats", "joint", "over_time", "state_format"]

Real = Callable[[str], Reals]
"""From the name of a tensor within its layer to its golden values (N, …) at a step."""


class RecurrentLayer(OverSequences, GoldenLayer):
    """A layer over sequences whose gates are one joint product, of the input and of its own output.

    Members:
        gates: its parts are the matrices over the input and over the output of the step before.
        returns: "last" for the last output, "sequence" for that of every step.
    """

    recurrent = True
    gates: JointProduct

    @property
    def input_format(self) -> Format:
        return self.gates.parts[0].input

    @property
    def output_format(self) -> Format:
        """The format of the output and of the gates."""
        return self.gates.parts[1].input

    @property
    def pre_format(self) -> Format:
        """The format of the pre-activations."""
        return self.gates.output

    def __call__(self, x: Integers, record: Recorder | None = None, lengths: Lengths | None = None) -> Integers:
        """(N, T, inputs) to (N, outputs), or to (N, T, outputs) when the layer returns the sequence.

        Parameters:
            lengths: in descending order; None where all sequences have T steps.
        """
        return self.run(x, record=record, lengths=lengths)[0]

    @abstractmethod
    def run(self, x: Integers, state: Any = None, record: Recorder | None = None,
            lengths: Lengths | None = None) -> tuple[Integers, Any]:
        """Outputs of sequences (N, T, inputs) that go on from a state, and the last state."""

    def _through(self, x: Integers, state: tuple[Integers, ...] | None, start: tuple[Integers, ...],
                 record: Recorder | None, lengths: Lengths | None) -> tuple[Integers, tuple[Integers, ...]]:
        """The same for a state of several parts (N, size), or for None and the one to start from."""
        for given, rule in zip(state or start, start, strict=True):
            check_state(self.name, given, rule)
        of_x = self.gates.parts[0]
        k = of_x.block_size
        vectors = batch_layout.spread(x, of_x.columns, k)
        spectra = of_x.spectra(vectors)

        def step(t: int, *state: Integers) -> tuple[Integers, ...]:
            count = state[0].shape[-1]
            driven = spectra[:, :, t, :count]
            if record is not None:
                record.vector(f"{self.name}.input_product.input", vectors[:, :, t, :count], self.inputs,
                              self.input_format)
                record.spectral(f"{self.name}.input_product.spectrum", driven, of_x.spectrum)
            return self._step(driven, state, record)

        first = tuple(batch_layout.spread(part, padded(part.shape[1], k), k) for part in state or start)
        y, last = _through_time(step, counts(lengths, *x.shape[:2]), first, self.returns)
        return batch_layout.rows(y, self.outputs), tuple(batch_layout.rows(part, rule.shape[1])
                                                         for part, rule in zip(last, start, strict=True))

    @abstractmethod
    def _step(self, spectra: Integers, state: tuple[Integers, ...], record: Recorder | None) -> tuple[Integers, ...]:
        """The next state, each part of it (k, q, N), from the spectra of x and the state; the first is the output."""


def _through_time(step: Callable[..., tuple[Integers, ...]], steps: Sequence[int], state: tuple[Integers, ...],
                  returns: str) -> tuple[Integers, tuple[Integers, ...]]:
    """The outputs (k, q, N) of the last step or (k, q, T, N) of all, and the state behind them.

    Parameters:
        step: from step number and state to the next state, each part of it (k, q, n); the first one is the output.
        steps: how many sequences have each step; they are the first ones. Outputs of the others are 0.
    """
    shape, ended = (*state[0].shape[:2], len(steps), state[0].shape[2]), Ended(-1)
    every = np.zeros(shape, np.int64) if returns == "sequence" else None
    for t, count in enumerate(steps):
        state = step(t, *ended.cut(state, count))
        if every is not None:
            every[:, :, t, :count] = state[0]
    state = ended.whole(state)
    return (state[0] if every is None else every), state


class OfState(OverSequences):
    """A recurrent layer whose only state is its output, h."""

    hidden: int

    @property
    def outputs(self) -> int:
        """Length of what comes out: the state."""
        return self.hidden


class StateLayer(OfState, RecurrentLayer):
    """The same in integers."""

    def initial(self, count: int) -> Integers:
        """The state (N, hidden) that ``count`` sequences start from."""
        return np.zeros((count, self.hidden), np.int64)

    def run(self, x: Integers, state: Integers | None = None, record: Recorder | None = None,
            lengths: Lengths | None = None) -> tuple[Integers, Integers]:
        """Outputs of sequences (N, T, inputs) that go on from a state (N, hidden), and the last state."""
        y, (h,) = self._through(x, None if state is None else (state,), (self.initial(len(x)),), record, lengths)
        return y, h

    def step(self, x: Integers, h: Integers) -> Integers:
        """The next state (N, hidden) from x (N, inputs) and the state."""
        return self.run(x[:, None], h)[1]


class FloatCell(OverSequences, FloatLayer):
    """A recurrent layer with matrices in float64.

    Members:
        gates: how many it has.
        weight_ih, weight_hh: first columns (gates, P, q, k) over what comes in and over what comes out; each matrix has
            its own k.
        bias_ih, bias_hh: (gates, hidden).
        returns: "last" or "sequence".
        hard: whether the gates are torch's Hardsigmoid and Hardtanh.
        nonlinearity: "tanh", "relu" or "identity", of a GRU's candidate and of a plain recurrent layer.
    """

    recurrent = True
    gates: ClassVar[int]
    hard: bool = False
    nonlinearity: str = "tanh"

    hidden: int
    weight_ih: Reals
    weight_hh: Reals
    bias_ih: Reals
    bias_hh: Reals

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight_ih=(self.weight_ih, (self.gates, self.hidden, self.inputs)),
                            weight_hh=(self.weight_hh, (self.gates, self.hidden, self.outputs)))
        rule = (self.gates, self.hidden)
        check(self.name, bias_ih=(self.bias_ih, rule), bias_hh=(self.bias_hh, rule))
        check_returns(self.name, self.returns)
        check_nonlinearity(self.name, self.nonlinearity)

    def __call__(self, x: Reals, tap: Tap = ignore, lengths: Lengths | None = None) -> Reals:
        state, ended = tuple(np.zeros((len(x), size)) for size in self.states), Ended(0)
        every = np.zeros((*x.shape[:2], self.outputs))
        for t, n in enumerate(counts(lengths, *x.shape[:2])):
            state = self._step(x[:n, t], ended.cut(state, n), tap)
            every[:n, t] = state[0]
        return every if self.returns == "sequence" else ended.whole(state)[0]

    @abstractmethod
    def _step(self, x: Reals, state: tuple[Reals, ...], tap: Tap) -> tuple[Reals, ...]:
        """The next state; its first part is the output."""

    @property
    def states(self) -> tuple[int, ...]:
        """Lengths of the parts of the state."""
        return (self.hidden,)

    @property
    def bias(self) -> Reals:
        """(gates, hidden), of both."""
        return self.bias_ih + self.bias_hh

    @property
    def block_sizes(self) -> dict[str, int]:
        """By matrix."""
        return {"input": self.weight_ih.shape[-1], "recurrent": self.weight_hh.shape[-1]}

    @property
    def beyond(self) -> tuple[str, ...]:
        """Tensors of the state that may leave -1 to 1."""
        return ()

    @property
    def functions(self) -> tuple[Callable[[Reals], Reals], Callable[[Reals], Reals]]:
        """Sigmoid and tanh, or their hard forms, or another one for the latter."""
        sigmoid, tanh = activation_names(self.hard, self.nonlinearity)
        return exact_function(sigmoid), exact_function(tanh)


def state_format(layer: FloatCell, peaks: Peaks, bits: Widths) -> Format:
    """The format of gates and of what comes out: the one given, or from -1 to 1, or further where a tensor goes."""
    unit = bits.formats.get(layer.name) or Format(bits.state, bits.state - 1)
    if not layer.beyond or layer.name in bits.formats:
        return unit
    return no_finer(peaks.fit(bits.state, *(f"{layer.name}.{tensor}" for tensor in layer.beyond)), unit.frac)


def input_formats(layer: FloatCell, input: Format, state: Format, peaks: Peaks, bits: Widths, *, sums: Sequence[str],
                  again: Sequence[str] = ()) -> Spectral:
    """The formats that both matrices share.

    Parameters:
        sums: names of the sums of their products.
        again: further products that take the output of the step before.

    Raises:
        Refusal: when their block sizes differ.
    """
    check_one_block_size(layer.name, layer.block_sizes)
    return spectral(layer.name, peaks, bits, sums, [(("input_product",), layer.weight_ih, input),
                                                    (("recurrent_product", *again), layer.weight_hh, state)])


def joint(shared: Spectral, layer: FloatCell, pre: Format) -> JointProduct:
    """The product of all gates."""
    return JointProduct((shared.part(layer.weight_ih, layer.bias, pre, 0), shared.part(layer.weight_hh, None, pre, 1)))


def bend(function: str, pre: Format, state: Format, bits: Widths) -> Pwl:
    """The table of a tanh, or of what stands in its place."""
    return table(function, pre, state, bits) if function in FUNCTIONS else fit_lines(function, (), pre, state)


def formats_like(rule: RecurrentLayer) -> Spectral:
    """The formats that both matrices of a golden layer share."""
    parts, first = rule.gates.parts, rule.gates.parts[0]
    return Spectral(tuple(part.input for part in parts), tuple(part.spectrum for part in parts),
                    tuple(grid_of(rule, role) for role in ("input_product", "recurrent_product")), first.product,
                    twiddle_bits=first.twiddle_bits, multiplier=first.multiplier)


def check_like(rule: RecurrentLayer, layer: FloatCell, gates: slice = slice(None)) -> None:
    """
    Parameters:
        gates: those that have one sum, and so one bias.

    Raises:
        Refusal: when the activations are not those of the rule, or weights or biases do not fit its formats.
    """
    found = dict(zip(("sigmoid", "tanh"), activation_names(layer.hard, layer.nonlinearity), strict=True))
    due = found | {role: pwl.function for role, pwl in bases.activations(rule).items() if role in found}
    if due != found:
        raise Refusal(f"Layer {layer.name!r} must have the activations {' and '.join(due.values())} of the other "
                      f"network, not {' and '.join(found.values())}; quantize it with formats of its own")
    check_fit(layer.name, [(what, grid_of(rule, role), spectra(weight).reshape(-1, *weight.shape[-2:]))
                           for what, role, weight in (
                               ("input weights", "input_product", layer.weight_ih),
                               ("recurrent weights", "recurrent_product", layer.weight_hh))])
    check_fit(layer.name, [("biases", rule.pre_format, layer.bias[gates])])


@dataclass(frozen=True, eq=False)
class FloatStateCell(OfState, FloatCell):
    """A cell in float64 whose only state is its output, h."""

    name: str
    inputs: int
    hidden: int
    weight_ih: Reals
    weight_hh: Reals
    bias_ih: Reals
    bias_hh: Reals
    returns: str = "last"


@bases.bitwidth_fields.register
def _(layer: RecurrentLayer) -> list[str]:
    return [*PRODUCT_FIELDS, "state_bits", *twiddle_fields(layer)]


def over_time(layer: RecurrentLayer, states: list[tuple[str, int]], trace: bases.Trace, known: bases.Known,
              advance: Callable[..., list[PropagatedError]]) -> bases.Known:
    """The outputs of a recurrent layer: products of the steps' derivatives are kept from each step before on.

    Parameters:
        states: names and sizes; the first is the output.
        advance: from a step, its tensors, its input and the states before it to the states behind it.
    """
    x, shift, rest = known
    count, size = len(x), sum(n for _, n in states)
    center, reach = np.zeros((count, size)), np.zeros((count, size))
    ways, rests = np.zeros((count, 0, size, size)), np.zeros((count, 0, size))
    found: list[tuple[Reals, Reals]] = []
    for t in range(x.shape[1]):
        def real(tensor: str, t: int = t) -> Reals:
            seen = trace[f"{layer.name}.{tensor}"]
            return seen.format.real(seen.integers[:, t]) if t >= 0 else np.zeros(seen.integers[:, 0].shape)

        step = Step(center, reach)
        given = step.given(x[:, t], shift[:, t], rest[:, t])
        before = [step.state(real(name, t - 1), sum(n for _, n in states[:at])) for at, (name, _) in enumerate(states)]
        after = advance(step, real, given, *before)
        slope, add, new = (np.concatenate([getattr(part, what) for part in after], 1)
                           for what in ("slope", "shift", "rest"))
        center = np.einsum("nis,ns->ni", slope, center) + add
        ways = np.concatenate([slope[:, None] @ ways, np.broadcast_to(np.eye(size), (count, 1, size, size))], 1)
        rests = np.concatenate([rests, new[:, None]], 1)
        reach = np.einsum("ntij,ntj->ni", np.abs(ways), rests)
        found.append((center[:, :layer.outputs], reach[:, :layer.outputs]))
    golden = trace[f"{layer.name}.{states[0][0]}"]
    values = golden.format.real(golden.integers)
    if layer.returns == "last":
        return values[:, -1], *found[-1]
    return values, np.stack([one for one, _ in found], 1), np.stack([one for _, one in found], 1)


def _gate(product: Product, gate: int, gates: int) -> Product:
    """The rows of one gate."""
    count, k = len(product.weights) // gates, product.block_size
    rows = slice(gate * count, (gate + 1) * count)
    return replace(product, weights=product.weights[rows], bias=product.bias[rows.start * k:rows.stop * k],
                   row_shifts=product.row_shifts[rows])


def gate_rows(layer: RecurrentLayer, exact: FloatCell, gates: str) -> dict[str, Rows]:
    """The rows of the joint product by gate."""
    sizes = (layer.inputs, layer.outputs)
    return {gate: Rows.of(exact.hidden, *(
        (_gate(part, n, len(gates)), weight[n], size)
        for part, weight, size in zip(layer.gates.parts, (exact.weight_ih, exact.weight_hh), sizes, strict=True)))
        for n, gate in enumerate(gates)}
