"""From float64 to integers in the formats that another network has, so that both fit the same circuit."""
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from circulant.sim.arith.activation import activation_names
from circulant.sim.arith.circulant import JointProduct, Product, pad
from circulant.sim.arith.fixed import Format, Reals
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Network
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.scale import Scale
from circulant.sim.golden.structure import check_structure
from circulant.sim.quantize.assemble import assemble_gru, assemble_lstm
from circulant.sim.quantize.formats import Spectral
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal

__all__ = ["quantize_like"]


def quantize_like(model: float_model.Model, rule: Network) -> Network:
    """The golden model of ``model`` in the formats and with the activation tables of ``rule``.

    Weights and biases must fit these formats. What comes of the data may saturate where that of ``rule`` would not:
    `circulant.sim.error.ranges.analyse` tells.

    Raises:
        Refusal: when the two are not of the same structure, or a weight or a bias does not fit.
    """
    given, due = (_kinds(each.layers) for each in (model, rule))
    if given != due:
        raise Refusal(f"Network {model.name!r} must have the layers of {rule.name!r}, {due}, not {given}; quantize it "
                      "with formats of its own")
    layers = tuple(_layer(layer, like) for layer, like in zip(model.layers, rule.layers, strict=True))
    network = Network(model.name, model.inputs, model.sequence, layers, model.shape, rule.ragged)
    check_structure(rule, network)
    return network


def _kinds(layers: Iterable[Any]) -> list[Any]:
    """Of each layer; of a residual sum those of its branches behind it."""
    found: list[Any] = []
    for layer in layers:
        found.append(layer.kind)
        if layer.kind == Residual.kind:
            found += [_kinds(chain) for chain in layer.branches.values()]
    return found


def _layer(layer: float_model.Layer, rule: Layer) -> Layer:
    if isinstance(rule, Pool | Flatten):
        return replace(rule, name=layer.name)
    if isinstance(layer, float_model.Residual):
        assert isinstance(rule, Residual)
        body, shortcut = (tuple(_layer(*pair) for pair in zip(chain, rule.branches[side], strict=True))
                          for side, chain in layer.branches.items())
        return replace(rule, name=layer.name, body=body, shortcut=shortcut)
    if isinstance(layer, float_model.Bidirectional):
        assert isinstance(rule, Bidirectional)
        forward, backward = (_layer(each, like) for each, like in
                             ((layer.forward, rule.forward), (layer.backward, rule.backward)))
        assert isinstance(forward, Gru | Lstm) and isinstance(backward, Gru | Lstm)
        return Bidirectional(layer.name, forward, backward)
    assert isinstance(layer,
                      float_model.Linear | float_model.Gru | float_model.Lstm | float_model.Conv | float_model.Scale)
    if isinstance(rule, Gru | Lstm) and isinstance(layer, float_model.Gru | float_model.Lstm):
        due, found = (rule.sigmoid.function, rule.tanh.function), activation_names(layer.hard)
        if due != found:
            raise Refusal(f"Layer {layer.name!r} must have the activations {' and '.join(due)} of the other network, "
                          f"not {' and '.join(found)}; quantize it with formats of its own")
    for what, form, values in _numbers(layer, rule):
        _check(layer.name, what, form, values)
    if isinstance(layer, float_model.Linear):
        assert isinstance(rule, Linear)
        product = _product(layer.weight, layer.bias, rule.product)
        return Linear(layer.name, layer.inputs, layer.outputs, product, layer.relu)
    if isinstance(layer, float_model.Conv):
        assert isinstance(rule, Conv)
        return replace(rule, name=layer.name, product=_product(layer.matrix, layer.bias, rule.product))
    if isinstance(layer, float_model.Scale):
        assert isinstance(rule, Scale)
        return replace(rule, name=layer.name, scale=rule.factor.quantize(layer.scale),
                       shift=rule.output_format.quantize(layer.shift))
    if isinstance(layer, float_model.Gru):
        assert isinstance(rule, Gru)
        return assemble_gru(layer, _shared(rule.gates), rule.pre_format, rule.sigmoid, rule.tanh)
    assert isinstance(rule, Lstm)
    projection = None
    if layer.projection is not None and rule.projection is not None:
        projection = _product(layer.projection, np.zeros(layer.outputs), rule.projection)
    return assemble_lstm(layer, _shared(rule.gates), rule.pre_format, projection, rule.peephole_format, rule.cell,
                         (rule.sigmoid, rule.tanh, rule.tanh_cell))


def _product(weight: Reals, bias: Reals, rule: Product) -> Product:
    return Product(rule.weight.quantize(float_model.spectra(weight)),
                   rule.output.quantize(pad(bias, weight.shape[0] * weight.shape[-1])), rule.weight, rule.input,
                   rule.spectrum, rule.product, rule.output, rule.twiddle_bits)


def _shared(gates: JointProduct) -> Spectral:
    parts, first = gates.parts, gates.parts[0]
    return Spectral(tuple(part.input for part in parts), tuple(part.spectrum for part in parts),
                    tuple(part.weight for part in parts), first.product, first.twiddle_bits)


def _numbers(layer: float_model.Linear | float_model.Gru | float_model.Lstm | float_model.Conv | float_model.Scale,
             rule: Any) -> Iterator[tuple[str, Format, Reals]]:
    """What becomes integers of a layer: name, format, values."""
    if isinstance(layer, float_model.Linear | float_model.Conv):
        weight = layer.weight if isinstance(layer, float_model.Linear) else layer.matrix
        yield "weights", rule.product.weight, float_model.spectra(weight)
        yield "biases", rule.product.output, layer.bias
        return
    if isinstance(layer, float_model.Scale):
        yield "factors", rule.factor, layer.scale
        yield "shifts", rule.output_format, layer.shift
        return
    x, h = rule.gates.parts
    yield "input weights", x.weight, float_model.spectra(layer.weight_ih)
    yield "recurrent weights", h.weight, float_model.spectra(layer.weight_hh)
    apart = isinstance(layer, float_model.Gru) and layer.reset == "after"
    gates = slice(0, 2) if apart else slice(None)
    yield "biases", rule.pre_format, (layer.bias_ih + layer.bias_hh)[gates]
    if apart:
        yield "biases of the candidate", rule.pre_format, np.stack([layer.bias_ih[2], layer.bias_hh[2]])
    if isinstance(layer, float_model.Lstm):
        if layer.projection is not None and rule.projection is not None:
            yield "projection", rule.projection.weight, float_model.spectra(layer.projection)
        if layer.peephole is not None:
            yield "peepholes", rule.peephole_format, layer.peephole


def _check(name: str, what: str, form: Format, values: Reals) -> None:
    """See that no value is further from its integer than rounding brings it, but for the last one of the format."""
    error = np.abs(form.real(form.quantize(values)) - values)
    if (error > form.step).any():
        raise Refusal(f"The {what} of layer {name!r} must fit the {form} of the other network, but they reach "
                      f"{np.abs(values).max():.4g}; quantize first the network that has the greater ones")
