"""A plain recurrent layer in integers, torch.nn.RNN (Elman 1990).

    h = f(W x + U h + b)        h of the step before; f is a tanh, a ReLU, or nothing: a linear state space
"""
from collections.abc import Iterator
from dataclasses import dataclass

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl, activation_names
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.kinds import cell
from circulant.sim.kinds.cell import FloatStateCell, Real, StateLayer
from circulant.sim.passes import bases, ranges
from circulant.sim.passes.error_propagation import PropagatedError, Step
from circulant.sim.passes.formats import Peaks, Spectral, Widths
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.products import Tap, product
from circulant.sim.passes.rules import CANDIDATE, RECURRENT
from circulant.sim.shape.recurrent import check_formats, check_matrices, check_returns, padded

__all__ = ["KIND", "FloatRnn", "Rnn"]


@dataclass(frozen=True, eq=False)
class Rnn(StateLayer):
    """A plain recurrent layer over sequences that starts from h = 0.

    Parameters:
        returns: "last" for the last state, "sequence" for that of every step.
        gates: the one joint product, whose parts are W, of x and with the bias, and U, of h.
        tanh: f, whose function may also be a ReLU or the identity.

    Raises:
        Refusal: when sizes or formats contradict each other.
    """

    name: str
    inputs: int
    hidden: int
    returns: str
    gates: JointProduct
    tanh: Pwl

    kind = "rnn"

    def __post_init__(self) -> None:
        check_returns(self.name, self.returns)
        k = self.gates.block_size
        x, h = padded(self.inputs, k), padded(self.hidden, k)
        check_matrices(self.name, {"gates": self.gates},
                       {vector: [part] for vector, part in zip("xh", self.gates.parts, strict=False)},
                       {"gates": (h, x, h)})
        check_formats(self.name, [("tanh's argument", self.tanh.input, self.pre_format),
                                  ("tanh's value", self.tanh.output, self.output_format)])

    @property
    def products(self) -> dict[str, Product]:
        return {"input_product": self.gates.parts[0], "recurrent_product": self.gates.parts[1]}

    def _step(self, spectra: Integers, state: tuple[Integers, ...], record: Recorder | None) -> tuple[Integers, ...]:
        (h,), recurrent = state, self.gates.parts[1]
        spectra_h = recurrent.spectra(h)
        sums = self.gates.sums(spectra, spectra_h)
        following = self.tanh(self.gates.values(sums, spent=record is None))
        batch_layout.clear(following, self.hidden)
        if record is not None:
            record.vector(f"{self.name}.recurrent_product.input", h, self.hidden, recurrent.input)
            record.spectral(f"{self.name}.recurrent_product.spectrum", spectra_h, recurrent.spectrum)
            record.product(f"{self.name}.gates", self.gates, sums, self.hidden)
            record.vector(f"{self.name}.h", following, self.hidden, self.output_format)
        return (following,)


@dataclass(frozen=True, eq=False)
class FloatRnn(FloatStateCell):
    """torch.nn.RNN: see `Rnn`."""

    nonlinearity: str = "tanh"

    kind = "rnn"
    gates = 1

    @property
    def beyond(self) -> tuple[str, ...]:
        return () if self.nonlinearity == "tanh" else ("h",)

    def _step(self, x: Reals, state: tuple[Reals, ...], tap: Tap) -> tuple[Reals, ...]:
        rows = product(f"{self.name}.gates", self.bias, tap, {
            f"{self.name}.input_product": (self.weight_ih, x),
            f"{self.name}.recurrent_product": (self.weight_hh, state[0])})
        tap(f"{self.name}.h", h := self.functions[1](rows[:, 0]))
        return (h,)


@bases.activations.register
def _(layer: Rnn) -> dict[str, Pwl]:
    return {"tanh": layer.tanh}


@bases.quantize_layer.register
def _(layer: FloatRnn, input: Format, peaks: Peaks, bits: Widths) -> Rnn:
    state = cell.state_format(layer, peaks, bits)
    pre = peaks.fit(bits.output, f"{layer.name}.gates.output", bias=layer.bias, clip=bits.output_clip)
    shared = cell.input_formats(layer, input, state, peaks, bits, sums=["gates"])
    _, tanh = activation_names(False, layer.nonlinearity)
    return _made(layer, shared, pre, cell.bend(tanh, pre, state, bits))


@bases.quantize_layer_like.register
def _(rule: Rnn, layer: FloatRnn) -> Rnn:
    cell.check_like(rule, layer)
    return _made(layer, cell.formats_like(rule), rule.pre_format, rule.tanh)


def _made(layer: FloatRnn, shared: Spectral, pre: Format, tanh: Pwl) -> Rnn:
    return Rnn(layer.name, layer.inputs, layer.hidden, returns=layer.returns, gates=cell.joint(shared, layer, pre),
               tanh=tanh)


@bases.layer_worst_cases.register
def _(layer: Rnn, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    h = min(ranges.reached(layer.tanh), ranges.reach(layer.output_format))
    for role, matrix in layer.products.items():
        yield from ranges.vector(f"{layer.name}.{role}", matrix, peak if role == "input_product" else h)
    yield from ranges.sums(f"{layer.name}.gates", zip(layer.gates.parts, (peak, h), strict=True))
    yield f"{layer.name}.h", h


@bases.propagate.register
def _(layer: Rnn, exact: FloatRnn, trace: bases.Trace, known: bases.Known) -> bases.Known:
    rows = cell.gate_rows(layer, exact, "h")["h"]

    def advance(step: Step, real: Real, given: PropagatedError, *before: PropagatedError) -> list[PropagatedError]:
        argument = real("gates.output")
        return [step.renamed(real("h"), step.bent(layer.tanh, argument, step.product(argument, rows, given, *before)))]

    return cell.over_time(layer, [("h", layer.hidden)], trace, known, advance)


@bases.arguments.register
def _(layer: Rnn, trace: bases.Trace) -> Iterator[tuple[str, Pwl, Integers]]:
    yield f"{layer.name}.tanh", layer.tanh, trace[f"{layer.name}.gates.output"].integers


def _made_of(name: str, inputs: int, *, hidden: int, returns: str, input_product: Product, recurrent_product: Product,
             tanh: Pwl) -> Rnn:
    return Rnn(name, inputs, hidden, returns=returns, gates=JointProduct((input_product, recurrent_product)), tanh=tanh)


KIND = Kind(Rnn, FloatRnn, {**RECURRENT, "tanh": CANDIDATE}, make=_made_of)
