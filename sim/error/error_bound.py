"""How far golden outputs may be from the mathematics along given sequences: a bound, derived and not measured.

The states err by e, and a step turns that into J·e + s ± q: J is the step's derivative where the golden model stands;
s is what the roundings of weights and the tables of activations do to the vectors at hand, which is known; q bounds
what is not: the roundings of numbers, and how the derivative changes within the error. Hence

    e(T) = Σ_t J(T)·…·J(t+1)·(s(t) ± q(t))

lies within Σ_t |J(T)·…·J(t+1)|·q(t) of what s alone would make of it. The products of the derivatives keep their signs,
without which the bound would grow with every step. `PropagatedError` carries J, s and q through a step:

    W x + b       W·J,                W·s + (M̂ − W)x,    |W|q and the roundings of the product (`sim.passes.bounds`)
    a·b           a·J_b + b·J_a,      a·s_b + b·s_a,     |a|q_b + |b|q_a + |e_a||e_b|, half a step
    f(a)          f'(a)·J_a,          f'(a)·s_a + τ,     f'(a)·q_a + max|f''|·e_a²/2

where τ is how far the table is from f at that argument. No error is greater than a function's range. All holds as long
as nothing saturates but the values of tables.
"""
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.network import Network
from circulant.sim.kinds.argmax import Argmax
from circulant.sim.passes.bases import Known, Trace, propagate
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.flows import check_all, check_data
from circulant.sim.shape.graph import computed

__all__ = ["error_bound"]

def error_bound(network: Network, model: Model, x: ArrayLike | Mapping[str, ArrayLike], *,
                lengths: ArrayLike | None = None) -> Any:
    """The greatest |golden − mathematics| of each value for real inputs (N, T, inputs), (N, inputs) or images; of
    several outputs by name.

    Parameters:
        x: of a network with several inputs those of each by its name; no lengths then.
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
    if network.many and lengths is None:
        given = x if isinstance(x, Mapping) else {network.entry.name: x}
        every = _bounds(network, model, check_all(f"Inputs of network {network.name!r}", network.inputs, given))
        return every if len(every) > 1 else every[network.exit]
    assert not isinstance(x, Mapping)
    exact = check_data(f"Inputs of network {network.name!r}", x, network.flow, network.shape, network.entry.axes)
    known = network.lengths(exact, lengths)
    if known is None:
        return _of_one(network, model, exact)
    found = np.zeros((*exact.shape[:2 if network.per_step else 1], network.end.size))
    alike = replace(network, ragged=False)
    for steps in np.unique(known):
        some, part = known == steps, exact[known == steps, :steps]
        bounds = _of_one(alike, model, part)
        found[(some, slice(steps)) if network.per_step else some] = bounds
    return found


def _of_one(network: Network, model: Model, exact: Reals) -> Reals:
    return _bounds(network, model, {network.entry.name: exact})[network.exit]


def _bounds(network: Network, model: Model, exact: Mapping[str, Reals]) -> dict[str, Reals]:
    """The bounds by output for samples of one size, as `check_data` gives them."""
    start: dict[str, Known] = {}
    record = Recorder()
    for name, each in exact.items():
        values = network.formats[name].real(network.formats[name].quantize(each))
        start[name] = values, values - each, np.zeros_like(each)
    computed(network, {name: network.formats[name].quantize(each) for name, each in exact.items()}, record)
    trace = record.tensors
    _check_saturation(network, trace)
    references = {layer.name: layer for layer in model.layers}

    def step(layer: GoldenLayer, known: Sequence[Known]) -> Known:
        return propagate(layer, references[layer.name], trace, layer.argument(known))

    return {name: np.abs(shift) + rest for name, (_, shift, rest) in network.walk(start, step).items()}


def _check_saturation(network: Network, trace: Trace) -> None:
    positive = {f"{layer.name}.product.output" for layer in network.layers if layer.relu}
    tables = {f"{layer.name}.{tensor}" for layer in network.layers for tensor in layer.tables}
    for name, tensor in trace.items():
        if name in tables or name.endswith((".sums", "_product.input", ".product.input", "candidate_input.input")):
            continue  # values of tables; what was seen before it became an input
        lowest = tensor.format.lo if name not in positive else -(1 << 62)
        if ((tensor.integers >= tensor.format.hi) | (tensor.integers <= lowest)).any():
            raise Refusal(f"The bound of golden's error holds where nothing saturates, but {name} reaches the end of "
                          f"its format {tensor.format}; calibrate with these inputs, or choose wider formats")
