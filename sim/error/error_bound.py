"""How far golden outputs may be from the mathematics along given sequences: a bound, derived and not measured.

The states err by e, and a step turns that into J·e + s ± q: J is the step's derivative where the golden model stands;
s is what the roundings of weights and the tables of activations do to the vectors at hand, which is known; q bounds
what is not: the roundings of numbers, and how the derivative changes within the error. Hence

    e(T) = Σ_t J(T)·…·J(t+1)·(s(t) ± q(t))

lies within Σ_t |J(T)·…·J(t+1)|·q(t) of what s alone would make of it. The products of the derivatives keep their signs,
without which the bound would grow with every step. `PropagatedError` carries J, s and q through a step:

    W x + b       W·J,                W·s + (M̂ − W)x,    |W|q and the roundings of the product (`sim.error.bounds`)
    a·b           a·J_b + b·J_a,      a·s_b + b·s_a,     |a|q_b + |b|q_a + |e_a||e_b|, half a step
    f(a)          f'(a)·J_a,          f'(a)·s_a + τ,     f'(a)·q_a + max|f''|·e_a²/2

where τ is how far the table is from f at that argument. No error is greater than a function's range. All holds as long
as nothing saturates but the values of tables.
"""
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Reals
from circulant.sim.error.error_propagation import PropagatedError, Rows, Step
from circulant.sim.error.image_error import Known, Trace, propagate
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import PEEPHOLES, Lstm
from circulant.sim.golden.network import Network
from circulant.sim.golden.reduce.argmax import Argmax
from circulant.sim.golden.rnn import Rnn
from circulant.sim.real import float_recurrent_layers as recurrent
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.flows import JOINS, check_data

__all__ = ["error_bound"]

Real = Callable[[str], Reals]
"""From the name of a tensor within its layer to its golden values (N, …) at this step."""


def error_bound(network: Network, model: Model, x: ArrayLike, *, lengths: ArrayLike | None = None) -> Reals:
    """The greatest |golden − mathematics| of each output for real inputs (N, T, inputs), (N, inputs) or images.

    Parameters:
        model: what ``network`` was quantized from.
        lengths: (N,), the steps of each sequence; None where all have T. Beyond them the bound is 0.

    Raises:
        Refusal: as `Network.run`; when the network ends with a choice, something saturates, or the network is not that
            of the model.
    """
    if any(layer.kind == Argmax.kind for layer in network.layers):
        raise Refusal(f"The bound must be of numbers, but network {network.name!r} ends with a choice of the largest; "
                      "give the network without it")
    if [layer.name for layer in network.layers] != [layer.name for layer in model.layers]:
        raise Refusal(f"The model must be what network {network.name!r} was quantized from, with its layers "
                      f"{[layer.name for layer in network.layers]}, not {[layer.name for layer in model.layers]}; give "
                      "that one")
    exact = check_data(f"Inputs of network {network.name!r}", x, network.flow, network.shape)
    every = network.lengths(exact, lengths)
    if every is None:
        return _bounds(network, model, x, exact)
    found = np.zeros((*exact.shape[:2 if network.per_step else 1], network.end.size))
    alike = replace(network, ragged=False)
    for steps in np.unique(every):
        some, part = every == steps, exact[every == steps, :steps]
        bounds = _bounds(alike, model, part, part)
        found[(some, slice(steps)) if network.per_step else some] = bounds
    return found


def _bounds(network: Network, model: Model, x: ArrayLike, exact: Reals) -> Reals:
    """The bounds for samples of one size; ``exact`` are they as `check_data` gives them."""
    trace = network.run(x, trace=True).trace
    _check_saturation(network, trace)
    form = network.input_format
    values = form.real(form.quantize(exact))
    start: Known = values, values - exact, np.zeros_like(exact)
    references = {layer.name: layer for layer in model.layers}

    def step(layer: Layer, known: Sequence[Known]) -> Known:
        return propagate(layer, references[layer.name], trace, known if layer.kind in JOINS else known[0])

    _, shift, rest = network.walk({network.entry.name: start}, step)[network.exit]
    return np.abs(shift) + rest


def _check_saturation(network: Network, trace: Trace) -> None:
    positive = {f"{layer.name}.product.output" for layer in network.layers
                if layer.kind in (Linear.kind, Conv.kind) and layer.relu}
    tables = {f"{layer.name}.y" for layer in network.layers if layer.kind == "activation"}
    for name, tensor in trace.items():
        kind = name.rpartition(".")[2]
        if name in tables or kind in ("r", "z", "n", "i", "f", "g", "o", "sums") or name.endswith(
                ("_product.input", ".product.input", "candidate_input.input")):
            continue  # values of tables; what was seen before it became an input
        lowest = tensor.format.lo if name not in positive else -(1 << 62)
        if ((tensor.integers >= tensor.format.hi) | (tensor.integers <= lowest)).any():
            raise Refusal(f"The bound of golden's error holds where nothing saturates, but {name} reaches the end of "
                          f"its format {tensor.format}; calibrate with these inputs, or choose wider formats")


@propagate.register
def _(layer: Linear, exact: Any, trace: Trace, known: Known) -> Known:
    size = known[0].shape[-1]
    step = Step(*np.zeros((2, known[0].size // size, 0)))
    y = trace[f"{layer.name}.product.output"]
    golden = y.format.real(y.integers)
    rows = Rows.of(layer.outputs, (layer.product, exact.weight, layer.inputs))
    near = step.product(golden.reshape(-1, layer.outputs), rows,
                        step.given(*(part.reshape(-1, size) for part in known)))
    if not layer.relu:
        return golden, near.shift.reshape(golden.shape), near.rest.reshape(golden.shape)
    # A ReLU brings nothing further apart; what is known of the error is lost where a sign may be another one.
    most, sure = near.most.reshape(golden.shape), np.abs(golden) > near.most.reshape(golden.shape)
    return (np.maximum(golden, 0), np.where(sure, near.shift.reshape(golden.shape) * (golden > 0), 0),
            np.where(sure, near.rest.reshape(golden.shape) * (golden > 0), most))


@propagate.register
def _(layer: Gru, exact: Any, trace: Trace, known: Known) -> Known:
    rows = _gate_rows(layer, exact, "rz")
    x, h = ((layer.products[role], weight[2], size) for role, weight, size in zip(
        ("candidate_input", "candidate_recurrent"), (exact.weight_ih, exact.weight_hh),
        (layer.inputs, layer.outputs), strict=True))
    if layer.reset == "before":
        rows["n"] = Rows.of(layer.hidden, x, h)
    else:
        rows |= {"x": Rows.of(layer.hidden, x), "h": Rows.of(layer.hidden, h)}

    def advance(step: Step, real: Real, given: PropagatedError, *before: PropagatedError) -> list[PropagatedError]:
        return [_gru(layer, rows, step, real, given, *before)]

    return _over_time(layer, [("h", layer.hidden)], trace, known, advance)


@propagate.register
def _(layer: Rnn, exact: Any, trace: Trace, known: Known) -> Known:
    rows = _gate_rows(layer, exact, "h")["h"]

    def advance(step: Step, real: Real, given: PropagatedError, *before: PropagatedError) -> list[PropagatedError]:
        argument = real("gates.output")
        return [step.renamed(real("h"), step.bent(layer.tanh, argument, step.product(argument, rows, given, *before)))]

    return _over_time(layer, [("h", layer.hidden)], trace, known, advance)


@propagate.register
def _(layer: Lstm, exact: Any, trace: Trace, known: Known) -> Known:
    rows = _gate_rows(layer, exact, "ifgo")
    if layer.projection is not None:
        rows["y"] = Rows.of(layer.outputs, (layer.projection, exact.projection, layer.hidden))

    def advance(step: Step, real: Real, given: PropagatedError, *before: PropagatedError) -> list[PropagatedError]:
        y, c = before
        return _lstm(layer, exact, rows, step, real=real, x=given, y=y, c=c)

    return _over_time(layer, [("y", layer.outputs), ("c", layer.hidden)], trace, known, advance)


def _over_time(layer: Gru | Lstm | Rnn, states: list[tuple[str, int]], trace: Trace, known: Known,
               advance: Callable[..., list[PropagatedError]]) -> Known:
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


def _gate_rows(layer: Gru | Lstm | Rnn, exact: recurrent.Gru | recurrent.Lstm | recurrent.Rnn,
               gates: str) -> dict[str, Rows]:
    """By gate."""
    sizes = (layer.inputs, layer.outputs)
    return {gate: Rows.of(layer.hidden, *(
        (_gate(part, n, len(gates)), weight[n], size)
        for part, weight, size in zip(layer.gates.parts, (exact.weight_ih, exact.weight_hh), sizes, strict=True)))
        for n, gate in enumerate(gates)}


def _gru(layer: Gru, rows: dict[str, Rows], step: Step, real: Real, x: PropagatedError,
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


def _lstm(layer: Lstm, exact: recurrent.Lstm, rows: dict[str, Rows], step: Step, real: Real, x: PropagatedError,
          y: PropagatedError, c: PropagatedError) -> list[PropagatedError]:
    pre, state, cell = layer.pre_format.step, layer.output_format.step, layer.cell.step
    before = {gate: step.product(values, rows[gate], x, y)
              for gate, values in zip("ifgo", np.moveaxis(real("gates.output"), 1, 0), strict=True)}

    def gate(name: str, seen: PropagatedError) -> PropagatedError:
        number, argument = PEEPHOLES.index(name), before[name]
        if exact.peephole is not None and layer.peephole is not None:
            weight = layer.peephole_format.real(layer.peephole[number])
            off = weight - exact.peephole[number]
            known = step.given(*(np.broadcast_to(part, seen.value.shape) for part in (weight, off, np.zeros_like(off))))
            argument += step.times(known, seen, pre)
        return step.renamed(real(name), step.bent(layer.sigmoid, real("sigmoid.input")[:, number], argument))

    i, f = gate("i", c), gate("f", c)
    g = step.renamed(real("g"), step.bent(layer.tanh, before["g"].value, before["g"]))
    new = step.renamed(real("c"), step.times(f, c, cell) + step.times(i, g, cell))
    m = step.renamed(real("m"), step.times(gate("o", new), step.bent(layer.tanh_cell, new.value, new), state))
    return [m if layer.projection is None else step.product(real("y"), rows["y"], m), new]
