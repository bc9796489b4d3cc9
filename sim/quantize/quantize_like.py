"""From float64 to integers in the formats that another network has, so that both fit the same circuit."""
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from circulant.sim.arith.activation import activation_names
from circulant.sim.arith.circulant import Product, pad
from circulant.sim.arith.fixed import Format, Reals, fit
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.activation import Activation
from circulant.sim.golden.add import Add
from circulant.sim.golden.concat import Concat
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Network
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.reduce.over_time import OverTime
from circulant.sim.golden.reverse import Reverse
from circulant.sim.golden.rnn import Rnn
from circulant.sim.golden.scale import Scale
from circulant.sim.quantize.assemble import assemble_gru, assemble_lstm, assemble_rnn
from circulant.sim.quantize.formats import Spectral
from circulant.sim.quantize.quantize import BEHIND, grid_of
from circulant.sim.quantize.structure import check_structure, wiring
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Graph, Node
from circulant.sim.shape.kinds import unknown

__all__ = ["quantize_layer_like", "quantize_like"]

SATURATES = 4
"""How many times what a format that holds all values loses may be lost where some saturate: the matrices of a recurrent
layer share their binary points, so that not each of them has the best."""

Numbers = tuple[str, Format | WeightGrid, Reals]
"""Tensors that become integers: name, format, values."""


def quantize_like(model: float_model.Model, rule: Network) -> Network:
    """The golden model of ``model`` in the formats and with the activation tables of ``rule``.

    Weights and biases must fit these formats. What comes of the data may saturate where that of ``rule`` would not:
    `circulant.sim.error.ranges.analyse` tells.

    Raises:
        Refusal: when the two are not of the same structure, or a weight or a bias does not fit.
    """
    given, due = wiring(model), wiring(rule)
    if given != due:
        raise Refusal(f"Network {model.name!r} must have the layers of {rule.name!r}, {_kinds(rule)}, not "
                      f"{_kinds(model)}; quantize it with formats of its own")
    nodes = tuple(Node(quantize_layer_like(like, layer), node.sources)
                  for like, layer, node in zip(rule.layers, model.layers, model.nodes, strict=True))
    network = Network(model.name, model.inputs, nodes, model.outputs, ragged=rule.ragged)
    check_structure(rule, network)
    return network


def _kinds(graph: Graph) -> list[str]:
    return [layer.kind for layer in graph.layers]


@singledispatch
def quantize_layer_like(rule: Layer, layer: Any) -> Any:
    """A golden layer of a float layer of the same kind.

    Parameters:
        rule: has the formats and activation tables.

    Raises:
        Refusal: when a weight or a bias does not fit.
    """
    raise unknown(rule, "quantized")


@quantize_layer_like.register
def _(rule: Pool | Flatten | OverTime | Add | Concat | Reverse, layer: Any) -> Layer:
    return replace(rule, name=layer.name)


@quantize_layer_like.register
def _(rule: Activation, layer: Any) -> Layer:
    due, found = ((rule.table.function, rule.table.parameters), (layer.function, layer.parameters))
    if due != found:
        raise Refusal(f"Layer {layer.name!r} must have the activation {due[0]}{due[1] or ''} of the other network, not "
                      f"{found[0]}{found[1] or ''}; quantize it with formats of its own")
    return replace(rule, name=layer.name)


@quantize_layer_like.register
def _(rule: Linear, layer: Any) -> Layer:
    _check(layer.name, _numbers(layer.weight, layer.bias, rule.product))
    return Linear(layer.name, layer.inputs, layer.outputs, _product(layer.weight, layer.bias, rule.product), layer.relu)


@quantize_layer_like.register
def _(rule: Conv, layer: Any) -> Layer:
    _check(layer.name, _numbers(layer.matrix, layer.bias, rule.product))
    return replace(rule, name=layer.name, product=_product(layer.matrix, layer.bias, rule.product))


@quantize_layer_like.register
def _(rule: Scale, layer: Any) -> Layer:
    _check(layer.name, [("factors", rule.factor, layer.scale), ("shifts", rule.output_format, layer.shift)])
    return replace(rule, name=layer.name, scale=rule.factor.quantize(layer.scale),
                   shift=rule.output_format.quantize(layer.shift))


@quantize_layer_like.register
def _(rule: Gru, layer: Any) -> Layer:
    _check_activations(rule, layer)
    after = layer.reset == "after"
    _check(layer.name, _numbers_of_gates(rule, layer, slice(0, 2) if after else slice(None)))
    if after:
        biases = np.stack([layer.bias_ih[2], layer.bias_hh[2]])
        _check(layer.name, [("biases of the candidate", rule.pre_format, biases)])
    return assemble_gru(layer, _shared(rule), rule.pre_format, rule.sigmoid, rule.tanh)


@quantize_layer_like.register
def _(rule: Lstm, layer: Any) -> Layer:
    _check_activations(rule, layer)
    _check(layer.name, _numbers_of_gates(rule, layer, slice(None)))
    projection = None
    if layer.projection is not None and rule.projection is not None:
        _check(layer.name, [("projection", rule.projection.grid, float_model.spectra(layer.projection))])
        projection = _product(layer.projection, np.zeros(layer.outputs), rule.projection)
    if layer.peephole is not None:
        _check(layer.name, [("peepholes", rule.peephole_format, layer.peephole)])
    return assemble_lstm(layer, _shared(rule), pre=rule.pre_format, projection=projection,
                         peephole=rule.peephole_format, cell=rule.cell,
                         tables=(rule.sigmoid, rule.tanh, rule.tanh_cell))


@quantize_layer_like.register
def _(rule: Rnn, layer: Any) -> Layer:
    _check_activations(rule, layer)
    _check(layer.name, _numbers_of_gates(rule, layer, slice(None)))
    return assemble_rnn(layer, _shared(rule), rule.pre_format, rule.tanh)


def _check_activations(rule: Gru | Lstm | Rnn, layer: float_model.Gru | float_model.Lstm | float_model.Rnn) -> None:
    found = activation_names(layer.hard, getattr(layer, "nonlinearity", "tanh"))
    due = (rule.sigmoid.function if not isinstance(rule, Rnn) else found[0], rule.tanh.function)
    if due != found:
        raise Refusal(f"Layer {layer.name!r} must have the activations {' and '.join(due)} of the other network, "
                      f"not {' and '.join(found)}; quantize it with formats of its own")


def _product(weight: Reals, bias: Reals, rule: Product) -> Product:
    return Product(rule.grid.quantize(float_model.spectra(weight)),
                   bias=rule.output.quantize(pad(bias, weight.shape[0] * weight.shape[-1])), weight=rule.weight,
                   input=rule.input,
                   spectrum=rule.spectrum, product=rule.product, output=rule.output, twiddle_bits=rule.twiddle_bits,
                   row_shifts=rule.row_shifts)


def _shared(rule: Gru | Lstm | Rnn) -> Spectral:
    parts, first = rule.gates.parts, rule.gates.parts[0]
    return Spectral(tuple(part.input for part in parts), tuple(part.spectrum for part in parts),
                    tuple(grid_of(rule, role) for role in BEHIND), first.product, first.twiddle_bits)


def _numbers(weight: Reals, bias: Reals, rule: Product) -> Iterator[Numbers]:
    yield "weights", rule.grid, float_model.spectra(weight)
    yield "biases", rule.output, bias


def _numbers_of_gates(rule: Gru | Lstm | Rnn, layer: float_model.Gru | float_model.Lstm | float_model.Rnn,
                      gates: slice) -> Iterator[Numbers]:
    """The numbers of both matrices, and the biases of the gates that have one sum."""
    for what, role, weight in (("input weights", "input_product", layer.weight_ih),
                               ("recurrent weights", "recurrent_product", layer.weight_hh)):
        yield what, grid_of(rule, role), float_model.spectra(weight).reshape(-1, *weight.shape[-2:])
    yield "biases", rule.pre_format, (layer.bias_ih + layer.bias_hh)[gates]


def _check(name: str, numbers: Iterable[Numbers]) -> None:
    """Check that values fit: rounding brings each at most a step away, or few saturate in a narrow format, as one
    that loses the least in squares lets them."""
    for what, form, values in numbers:
        error = np.abs(form.real(form.quantize(values)) - values)
        if (error > form.step).any() and np.square(error).sum() > SATURATES * _least(form, values):
            raise Refusal(f"The {what} of layer {name!r} must fit the {form} of the other network, but they reach "
                          f"{np.abs(values).max():.4g}; quantize first the network that has the greater ones")


def _least(form: Format | WeightGrid, values: Reals) -> float:
    """Loss, in squares, of the finest format of this width that holds all values."""
    width = form.width if isinstance(form, Format) else form.form.width
    holds = fit(float(np.abs(values).max()), width)
    return float(np.square(holds.real(holds.quantize(values)) - values).sum())
