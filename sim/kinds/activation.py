"""A function of each value as a layer of its own: sigmoid, tanh, their hard forms, ReLU, a clip, SiLU and its kin."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from circulant.sim.arith.activation import FUNCTIONS, Pwl, exact_function
from circulant.sim.arith.curves import TURNS
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.segments import fit_lines
from circulant.sim.arith.trace import Recorder
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends, monotone
from circulant.sim.passes.formats import Peaks, Widths, table
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.rules import ACTIVATION
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import SameSize

__all__ = ["KIND", "Activation", "FloatActivation"]


@dataclass(frozen=True, eq=False)
class Activation(SameSize, GoldenLayer):
    """y = f(x) for each value of vectors, sequences or images.

    Parameters:
        table: f, with the formats of what comes and of what is given.
    """

    name: str
    inputs: int
    table: Pwl

    kind = "activation"
    searched = ("output_bits",)
    stepwise = True
    tables = ("y",)

    @property
    def input_format(self) -> Format:
        return self.table.input

    @property
    def output_format(self) -> Format:
        return self.table.output

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        return self.finished(self.table(x), record)


@dataclass(frozen=True, eq=False)
class FloatActivation(SameSize, FloatLayer):
    """y = f(x) for each value of vectors, sequences or images.

    Parameters:
        function, parameters: f, see `sim.arith.activation.exact_function`.
    """

    name: str
    inputs: int
    function: str
    parameters: tuple[float, ...] = ()

    kind = "activation"
    stepwise = True

    def __post_init__(self) -> None:
        exact_function(self.function, self.parameters)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        tap(f"{self.name}.y", y := exact_function(self.function, self.parameters)(x))
        return y


@bases.activations.register
def _(layer: Activation) -> dict[str, Pwl]:
    return {"table": layer.table}


@bases.quantize_layer.register
def _(layer: FloatActivation, input: Format, peaks: Peaks, bits: Widths) -> Activation:
    """Values from -1 to 1 where the function is one of gates."""
    if form := bits.formats.get(layer.name):
        made = fit_lines(layer.function, layer.parameters, input, form)
    elif layer.function in FUNCTIONS:
        made = table(layer.function, input, Format(bits.output, bits.output - 1), bits)
    else:
        made = fit_lines(layer.function, layer.parameters, input, peaks.fit(bits.output, f"{layer.name}.y"))
    return Activation(layer.name, layer.inputs, made)


@bases.quantize_layer_like.register
def _(rule: Activation, layer: FloatActivation) -> Activation:
    due, found = ((rule.table.function, rule.table.parameters), (layer.function, layer.parameters))
    if due != found:
        raise Refusal(f"Layer {layer.name!r} must have the activation {due[0]}{due[1] or ''} of the other network, not "
                      f"{found[0]}{found[1] or ''}; quantize it with formats of its own")
    return replace(rule, name=layer.name)


@bases.layer_worst_cases.register
def _(layer: Activation, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    """The greatest magnitude is at an end, or where the function turns around."""
    turn = np.clip(TURNS.get(layer.table.function, peak), -peak, peak)
    yield f"{layer.name}.y", float(np.abs(layer.table.exact(np.array([-peak, turn, peak]))).max())


@bases.propagate.register
def _(layer: Activation, exact: FloatActivation, trace: bases.Trace, known: bases.Known) -> bases.Known:
    if layer.table.function not in TURNS:
        return monotone(layer, exact, trace, known)
    low, high = ends(*known)
    turn = np.clip(TURNS[layer.table.function], low, high)
    return between(layer, known, exact(turn), np.maximum(exact(low), exact(high)))


@bases.arguments.register
def _(layer: Activation, trace: bases.Trace) -> Iterator[tuple[str, Pwl, Integers]]:
    """Values of the tensor before it, where the layer is not the first."""
    names = list(trace)
    at = names.index(f"{layer.name}.y")
    if at and trace[names[at - 1]].format == layer.input_format:
        yield layer.name, layer.table, trace[names[at - 1]].integers


KIND = Kind(Activation, FloatActivation, {"table": ACTIVATION})
