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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl, activation_names
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers, Reals, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Choice
from circulant.sim.kinds import cell
from circulant.sim.kinds.cell import FloatStateCell, Real, StateLayer
from circulant.sim.passes import bases, products, ranges
from circulant.sim.passes.error_propagation import PropagatedError, Rows, Step
from circulant.sim.passes.formats import Peaks, Spectral, Widths, table
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.products import Tap
from circulant.sim.passes.quantizing import check_fit
from circulant.sim.passes.rules import CANDIDATE, GATED, PRODUCT
from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import RESETS, check_formats, check_matrices, check_reset, check_returns, padded

__all__ = ["GATES", "KIND", "RESETS", "FloatGru", "Gru", "GruShare"]


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
    tables = ("r", "z", "n")

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

    def _step(self, spectra: Integers, state: tuple[Integers, ...], record: Recorder | None) -> tuple[Integers, ...]:
        (h,), width, one = state, self.output_format.width, self.output_format.frac
        blocks = h.shape[1]
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
        return (following,)

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
            weights = [gates.weights, *((matrix.weights, self._foreign(nothing)) if n == 0 else (
                nothing, matrix.weights))]
            bias = [gates.bias, *(part.bias * (n == 0) for part in self._candidate_parts)]
            weight = Format(max(gates.weight.width, matrix.weight.width), gates.weight.frac)
            parts.append(replace(gates, weights=np.concatenate(weights), bias=np.concatenate(bias), weight=weight,
                                 row_shifts=row_shifts))
        return JointProduct(tuple(parts))

    def _foreign(self, nothing: Integers) -> Integers:
        """The weights of the state's part of the candidate for what comes in."""
        return nothing


@dataclass(frozen=True, eq=False)
class GruShare(Gru):
    """Some cells of a GRU that resets after its matrix: the states of the others come in beside x, a step late. It is
    of a circuit, not of a file.

    Parameters:
        candidate: W_n of all that comes in, with zeros for these states.
        candidate_recurrent: U_n of the own state, with b_hn.
        candidate_others: U_n of all that comes in, with zeros for x.
        at: columns of the first block of x.
        x: values of x, whole blocks.
    """

    candidate_others: Product
    at: int
    x: int

    @property
    def products(self) -> dict[str, Product]:
        """The parts of W_n and U_n without the zeros."""
        whole, others = super().products, self.candidate_others
        before, k = self.at == 0, self.gates.block_size
        driven = replace(whole["candidate_input"],
                         weights=whole["candidate_input"].weights[:, self.at:self.at + self.x // k])
        rest = np.s_[:, self.x // k:] if before else np.s_[:, :self.at]
        return {**whole, "candidate_input": driven, "candidate_others": replace(others, weights=others.weights[rest])}

    @property
    def others_at(self) -> int:
        """Columns of the first block of the others' states."""
        return 0 if self.at else self.x // self.gates.block_size

    def _foreign(self, nothing: Integers) -> Integers:
        return self.candidate_others.weights


@dataclass(frozen=True, eq=False)
class FloatGru(FloatStateCell):
    """torch.nn.GRU, or the older form with the reset gate before the matrix: the equations stand above.

    Parameters:
        weight_ih, weight_hh, bias_ih, bias_hh: of the gates r, z, n, see `FloatCell`.
        reset: "after" or "before" the recurrent matrix.
    """

    reset: str = "after"
    hard: bool = False
    nonlinearity: str = "tanh"

    kind = "gru"
    gates = 3

    @property
    def beyond(self) -> tuple[str, ...]:
        return () if self.nonlinearity == "tanh" else ("n", "h")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reset(self.name, self.reset)

    def _step(self, x: Reals, state: tuple[Reals, ...], tap: Tap) -> tuple[Reals, ...]:
        (h,), (squash, bend) = state, self.functions
        gates = self._rows("gates", slice(0, 2), self.bias, tap, input_product=x, recurrent_product=h)
        r, z = squash(gates[:, 0]), squash(gates[:, 1])
        new = bend(before := self._candidate(x, h, r, tap))
        h = new + z * (h - new)
        for tensor, values in (("tanh.input", before), ("r", r), ("z", z), ("n", new), ("h", h)):
            tap(f"{self.name}.{tensor}", values)
        return (h,)

    def _candidate(self, x: Reals, h: Reals, r: Reals, tap: Tap) -> Reals:
        """The pre-activations of n."""
        n = slice(2, 3)
        if self.reset == "before":
            return self._rows("candidate", n, self.bias, tap, candidate_input=x, candidate_recurrent=r * h)[:, 0]
        driven = self._rows("candidate_input", n, self.bias_ih, tap, candidate_input=x)[:, 0]
        return driven + r * self._rows("candidate_recurrent", n, self.bias_hh, tap, candidate_recurrent=h)[:, 0]

    def _rows(self, name: str, gates: slice, bias: Reals, tap: Tap, **parts: Reals) -> Reals:
        """The pre-activations (N, gates, hidden) of some gates from the vectors of their parts."""
        return products.product(f"{self.name}.{name}", bias[gates], tap, {
            f"{self.name}.{part}": ((self.weight_ih if "input" in part else self.weight_hh)[gates], vector)
            for part, vector in parts.items()})


@bases.activations.register
def _(layer: Gru) -> dict[str, Pwl]:
    return {"sigmoid": layer.sigmoid, "tanh": layer.tanh}


@bases.quantize_layer.register
def _(layer: FloatGru, input: Format, peaks: Peaks, bits: Widths) -> Gru:
    state, after = cell.state_format(layer, peaks, bits), layer.reset == "after"
    names = ("gates", "candidate_input", "candidate_recurrent") if after else ("gates", "candidate")
    pre = peaks.fit(bits.output, *(f"{layer.name}.{name}.output" for name in names), f"{layer.name}.tanh.input",
                    bias=np.stack([layer.bias, layer.bias_ih, layer.bias_hh] if after else [layer.bias]),
                    clip=bits.output_clip)
    shared = cell.input_formats(layer, input, state, peaks, bits, sums=names, again=["candidate_recurrent"])
    sigmoid, tanh = activation_names(layer.hard, layer.nonlinearity)
    return _made(layer, shared, pre, table(sigmoid, pre, state, bits), cell.bend(tanh, pre, state, bits))


@bases.quantize_layer_like.register
def _(rule: Gru, layer: FloatGru) -> Gru:
    after = layer.reset == "after"
    cell.check_like(rule, layer, slice(0, 2) if after else slice(None))
    if after:
        biases = np.stack([layer.bias_ih[2], layer.bias_hh[2]])
        check_fit(layer.name, [("biases of the candidate", rule.pre_format, biases)])
    return _made(layer, cell.formats_like(rule), rule.pre_format, rule.sigmoid, rule.tanh)


def _made(layer: FloatGru, shared: Spectral, pre: Format, sigmoid: Pwl, tanh: Pwl) -> Gru:
    """
    Parameters:
        shared: formats of both matrices, that of the input first.
        pre: of all pre-activations.
    """
    after = layer.reset == "after"

    def part(of: int, gates: slice, bias: Reals | None) -> Product:
        return shared.part((layer.weight_ih, layer.weight_hh)[of][gates], bias, pre, of, first=gates.start)

    first, n = slice(0, 2), slice(2, 3)
    gates = JointProduct((part(0, first, layer.bias[first]), part(1, first, None)))
    candidate: Product | JointProduct = part(0, n, layer.bias_ih[n])
    if not after:
        candidate = JointProduct((part(0, n, layer.bias[n]), part(1, n, None)))
    return Gru(layer.name, inputs=layer.inputs, hidden=layer.hidden, returns=layer.returns, reset=layer.reset,
               gates=gates, candidate=candidate,
               candidate_recurrent=part(1, n, layer.bias_hh[n]) if after else None, sigmoid=sigmoid, tanh=tanh)


@bases.layer_worst_cases.register
def _(layer: Gru, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    gate, n = ranges.reached(layer.sigmoid), ranges.reached(layer.tanh)
    h = min(n, ranges.reach(layer.output_format))
    for role, matrix in layer.products.items():
        if role != "candidate_input":
            yield from ranges.vector(f"{layer.name}.{role}", matrix, peak if role == "input_product" else h)
    yield from ranges.sums(f"{layer.name}.gates", zip(layer.gates.parts, (peak, h), strict=True))
    driven, recurrent = layer.products["candidate_input"], layer.products["candidate_recurrent"]
    if layer.reset == "before":
        both = ranges.sums(f"{layer.name}.candidate", [(driven, peak), (recurrent, h)])
        yield from both
        yield f"{layer.name}.tanh.input", both[-1][1]
    else:
        of_x = ranges.sums(f"{layer.name}.candidate_input", [(driven, peak)])
        of_h = ranges.sums(f"{layer.name}.candidate_recurrent", [(recurrent, h)])
        yield from (*of_x, *of_h, (f"{layer.name}.tanh.input", of_x[-1][1] + gate * of_h[-1][1]))
    yield from ((f"{layer.name}.{tensor}", value) for tensor, value in (("r", gate), ("z", gate), ("n", n), ("h", h)))


@bases.propagate.register
def _(layer: Gru, exact: FloatGru, trace: bases.Trace, known: bases.Known) -> bases.Known:
    rows = cell.gate_rows(layer, exact, "rz")
    x, h = ((layer.products[role], weight[2], size) for role, weight, size in zip(
        ("candidate_input", "candidate_recurrent"), (exact.weight_ih, exact.weight_hh),
        (layer.inputs, layer.outputs), strict=True))
    if layer.reset == "before":
        rows["n"] = Rows.of(layer.hidden, x, h)
    else:
        rows |= {"x": Rows.of(layer.hidden, x), "h": Rows.of(layer.hidden, h)}

    def advance(step: Step, real: Real, given: PropagatedError, *before: PropagatedError) -> list[PropagatedError]:
        return [_advanced(layer, rows, step, real, given, *before)]

    return cell.over_time(layer, [("h", layer.hidden)], trace, known, advance)


def _advanced(layer: Gru, rows: dict[str, Rows], step: Step, real: Real, x: PropagatedError,
              h: PropagatedError) -> PropagatedError:
    pre, state = layer.pre_format.step, layer.output_format.step
    r, z = (step.renamed(real(gate), step.bent(layer.sigmoid, before, step.product(before, rows[gate], x, h)))
            for gate, before in zip("rz", np.moveaxis(real("gates.output"), 1, 0), strict=True))
    if layer.reset == "before":
        kept = step.renamed(real("candidate_recurrent.input"), step.times(r, h, state))
        argument = step.product(real("candidate.output"), rows["n"], x, kept)
    else:
        recurrent = step.product(real("candidate_recurrent.output"), rows["h"], h)
        argument = step.product(real("candidate_input.output"), rows["x"], x) + step.times(r, recurrent, pre)
    n = step.renamed(real("n"), step.bent(layer.tanh, real("tanh.input"), argument))
    return n + step.times(z, h - n, state)


@bases.arguments.register
def _(layer: Gru, trace: bases.Trace) -> Iterator[tuple[str, Pwl, Integers]]:
    yield f"{layer.name}.sigmoid", layer.sigmoid, trace[f"{layer.name}.gates.output"].integers
    yield f"{layer.name}.tanh", layer.tanh, trace[f"{layer.name}.tanh.input"].integers


def _made_of(name: str, inputs: int, *, hidden: int, returns: str, reset: str, input_product: Product,
             recurrent_product: Product, candidate_input: Product, candidate_recurrent: Product, sigmoid: Pwl,
             tanh: Pwl) -> Gru:
    before = reset == "before"
    return Gru(name, inputs, hidden, returns=returns, reset=reset,
               gates=JointProduct((input_product, recurrent_product)),
               candidate=JointProduct((candidate_input, candidate_recurrent)) if before else candidate_input,
               candidate_recurrent=None if before else candidate_recurrent, sigmoid=sigmoid, tanh=tanh)


KIND = Kind(Gru, FloatGru, {**GATED, "candidate_input": PRODUCT, "candidate_recurrent": PRODUCT,
                                   "reset": Choice(RESETS), "tanh": CANDIDATE}, make=_made_of)
