"""From float64 to integers: layer by layer, in formats that hold what calibration data exercises."""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.activation import FUNCTIONS, Pwl, activation_names
from circulant.sim.arith.circulant import Product, pad
from circulant.sim.arith.fixed import Format, Reals, fit
from circulant.sim.arith.segments import fit_lines
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
from circulant.sim.golden.reduce.argmax import Argmax
from circulant.sim.golden.reduce.over_time import OverTime
from circulant.sim.golden.reverse import Reverse
from circulant.sim.golden.rnn import Rnn
from circulant.sim.golden.scale import Scale
from circulant.sim.quantize.assemble import assemble_gru, assemble_lstm, assemble_rnn
from circulant.sim.quantize.formats import HEADROOM, Peaks, Widths, no_finer, product, spectral, table, whole_product
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.flows import JOINS, check_data
from circulant.sim.shape.graph import Node
from circulant.sim.shape.kinds import unknown
from circulant.sim.shape.recurrent import check_one_block_size
from circulant.sim.shape.sequences import check_lengths

__all__ = ["HEADROOM", "Peaks", "Widths", "calibrate", "grid_of", "grids", "matrices", "quantize", "quantize_layer"]

CELLS = ("gru", "lstm", "rnn")
"""Kinds of layers whose gates and outputs have one format."""

BEHIND = {"input_product": "candidate_input", "recurrent_product": "candidate_recurrent"}
"""The product that has the last rows of a matrix, by that which has the first ones."""


def calibrate(model: float_model.Model, calibration: ArrayLike, lengths: ArrayLike | None = None) -> Peaks:
    """Ranges that `quantize` needs of calibration data; they take far longer than the rest, and serve all widths.

    Parameters:
        lengths: (N,), the steps of each sequence; None where all are valid.

    Raises:
        Refusal: when the data is empty, not finite, or of the wrong shape; as `check_lengths`.
    """
    data = check_data("Calibration data", calibration, model.flow, model.shape)
    if not np.isfinite(data).all():
        raise Refusal("Calibration data must be finite, but it holds NaN or infinity; clean it first")
    return Peaks(model, data, None if lengths is None else check_lengths("Calibration data", lengths, data.shape))


def quantize(model: float_model.Model, calibration: ArrayLike | Peaks, *, lengths: ArrayLike | None = None,
             **widths: Any) -> Network:
    """The golden model of ``model``: integer spectra, and formats that hold what ``calibration`` exercises.

    Parameters:
        calibration: (N, T, inputs), (N, inputs) or (N, *shape), like the data to come, or what `calibrate` found of it.
        lengths: (N,), the steps of each sequence; with them the network is `ragged <Network>`.
        widths: the fields of `Widths`.

    Raises:
        Refusal: when a width is out of range, or names what the network does not have; as `calibrate`.
    """
    bits = Widths(**widths)
    peaks = calibration if isinstance(calibration, Peaks) else calibrate(model, calibration, lengths)
    whole, states = _whole(model, bits), _states(model, peaks, bits)

    def made(layer: float_model.Layer, given: Sequence[_Made]) -> _Made:
        own = bits.of(layer.name)
        own = replace(own, whole=own.whole or layer.name in whole)
        forms = [each.form for each in given]
        if layer.name in states:
            golden: Layer = _one_way(layer, forms[0], states[layer.name], peaks, own)
        else:
            golden = quantize_layer(layer, tuple(forms) if layer.kind in JOINS else forms[0], peaks, own)
        return _Made(golden.output_format, golden)

    first = next((bits.formats[node.name] for node in model.readers[model.entry.name] if node.name in bits.formats),
                 None) or fit(peaks.input, bits.input)
    found = model.walk({model.entry.name: _Made(first)}, made, every=True)
    layers = [found[node.name].layer for node in model.nodes]
    bits.check_names([path for layer in layers if layer.kind != "reverse" for path in (layer.name, *matrices(layer))])
    nodes = tuple(Node(layer, node.sources) for layer, node in zip(layers, model.nodes, strict=True))
    return Network(model.name, model.inputs, nodes, model.outputs, ragged=peaks.ragged)


@dataclass(frozen=True)
class _Made:
    """The format of what an input or a layer gives, and the golden layer."""

    form: Format
    layer: Any = None


def _whole(model: float_model.Model, bits: Widths) -> set[str]:
    """The layers in front of a quantizer, which keep all of their bits; so do those in front of a sum that does."""
    found: set[str] = set()
    for node in reversed(model.nodes):
        if node.name in bits.formats or (node.name in found and node.layer.kind == "add"):
            found.update(node.sources)
    return found


def _states(model: float_model.Model, peaks: Peaks, bits: Widths) -> dict[str, Format]:
    """The formats of recurrent layers, those that are put side by side have the coarsest of theirs."""
    nodes = {node.name: node for node in model.nodes}
    found = {name: _state(node.layer, peaks, bits.of(name)) for name, node in nodes.items()
             if node.layer.kind in CELLS}
    for node in model.nodes:
        if node.layer.kind == "concat":
            ends = [nodes[source].sources[0] if source in nodes and nodes[source].layer.kind == "reverse" else source
                    for source in node.sources]
            if all(end in found for end in ends):
                coarse = min((found[end] for end in ends), key=lambda form: form.frac)
                found.update(dict.fromkeys(ends, coarse))
    return found


@singledispatch
def matrices(layer: Layer) -> dict[str, Product]:
    """By path a product of each matrix of a layer: what has a width of its weights for itself."""
    raise unknown(layer, "quantized")


@matrices.register
def _(layer: Pool | Flatten | Scale | Activation | OverTime | Add | Concat | Reverse | Argmax) -> dict[str, Product]:
    return {}


@matrices.register
def _(layer: Linear | Conv | Gru | Lstm | Rnn) -> dict[str, Product]:
    return {f"{layer.name}.{role}": product for role, product in layer.products.items()
            if not role.startswith("candidate_")}


def grids(network: Network) -> dict[str, WeightGrid]:
    """The values of each matrix's weights by its path, for `Widths.grids` of a network with weights on these values.

    Of a recurrent layer the block rows are those of all gates, one behind the other.
    """
    return {path: grid_of(layer, path.rpartition(".")[2]) for layer in network.layers
            for path in matrices(layer)}


def grid_of(layer: Any, role: str) -> WeightGrid:
    """The values of the weights of a matrix of a layer; behind the rows of the gates of a GRU are its candidate's."""
    rows = [layer.products[role], *filter(None, [layer.products.get(BEHIND.get(role, ""))])]
    shifts = tuple(shift for each in rows for shift in each.row_shifts or (0,) * len(each.weights))
    return WeightGrid(rows[0].weight, shifts if any(shifts) else ())


@singledispatch
def quantize_layer(layer: float_model.Layer, input: Any, peaks: Peaks, bits: Widths) -> Layer:
    """The golden layer that takes values of a format.

    Parameters:
        input: the format; of a join those of its sources.
        peaks: what calibration data exercises.
        bits: widths of the layer.
    """
    raise unknown(layer, "quantized")


@quantize_layer.register
def _(layer: float_model.Linear, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    matrix = _product(layer, layer.weight, input, peaks, bits)
    return Linear(layer.name, layer.inputs, layer.outputs, matrix, layer.relu)


@quantize_layer.register
def _(layer: float_model.Conv, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    matrix = _product(layer, layer.matrix, input, peaks, bits)
    return Conv(layer.name, layer.inputs, layer.outputs, grid=layer.grid, window=layer.window, product=matrix,
                relu=layer.relu)


@quantize_layer.register
def _(layer: float_model.Pool, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    mean = peaks.fit(bits.value, f"{layer.name}.y") if layer.mode == "average" else input
    return Pool(layer.name, layer.inputs, layer.grid, window=layer.window, mode=layer.mode, input_format=input,
                output_format=mean)


@quantize_layer.register
def _(layer: float_model.OverTime, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    mean = peaks.fit(bits.value, f"{layer.name}.y") if layer.mode == "mean" else input
    return OverTime(layer.name, layer.inputs, layer.mode, input_format=input, output_format=mean)


@quantize_layer.register
def _(layer: float_model.Flatten, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    return Flatten(layer.name, layer.inputs, layer.grid, order=layer.order, rows=layer.rows, input_format=input)


@quantize_layer.register
def _(layer: float_model.Scale, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    factor = fit(float(np.abs(layer.scale).max()), bits.weight_bits)
    output = peaks.fit(bits.value, f"{layer.name}.y", bias=layer.shift)
    return Scale(layer.name, layer.inputs, factor.quantize(layer.scale), output.quantize(layer.shift), factor=factor,
                 input_format=input, output_format=output, relu=layer.relu)


@quantize_layer.register
def _(layer: float_model.Activation, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    """Values from -1 to 1 where the function is one of gates."""
    if form := bits.formats.get(layer.name):
        made = fit_lines(layer.function, layer.parameters, input, form)
    elif layer.function in FUNCTIONS:
        made = table(layer.function, input, Format(bits.output, bits.output - 1), bits)
    else:
        made = fit_lines(layer.function, layer.parameters, input, peaks.fit(bits.output, f"{layer.name}.y"))
    return Activation(layer.name, layer.inputs, made)


@quantize_layer.register
def _(layer: float_model.Add, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Layer:
    output = peaks.fit(bits.value, f"{layer.name}.y")
    if bits.whole:
        output = no_finer(output, max(form.frac for form in input))
    return Add(layer.name, layer.inputs, input, output, layer.relu)


@quantize_layer.register
def _(layer: float_model.Concat, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Layer:
    """The format of the sources where they have one, else one that holds all of their values."""
    output = input[0] if len(set(input)) == 1 else no_finer(peaks.fit(bits.value, f"{layer.name}.y"),
                                                           max(form.frac for form in input))
    return Concat(layer.name, layer.sizes, input, output)


@quantize_layer.register
def _(layer: float_model.Reverse, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    return Reverse(layer.name, layer.inputs, input)


@quantize_layer.register
def _(layer: float_model.Gru | float_model.Lstm | float_model.Rnn, input: Format, peaks: Peaks, bits: Widths) -> Layer:
    return _one_way(layer, input, _state(layer, peaks, bits), peaks, bits)


def _product(layer: float_model.Linear | float_model.Conv, weight: Reals, input: Format, peaks: Peaks,
             bits: Widths) -> Product:
    """The product with first columns (p, q, k) and the layer's bias."""
    p, _, k = weight.shape
    name = f"{layer.name}.product"
    seen = f"{layer.name}.y" if layer.relu else f"{name}.output"
    bias = pad(layer.bias, p * k)
    if bits.whole and k == 1 and bits.of(name).weight_scale == "matrix":
        return whole_product(name, weight, bias=bias, input=input, seen=seen, peaks=peaks, bits=bits)
    output = peaks.fit(bits.output, seen, bias=layer.bias, clip=bits.output_clip)
    return product(name, weight, bias=bias, input=input, output=output, peaks=peaks, bits=bits)


@singledispatch
def _one_way(layer: Any, input: Format, state: Format, peaks: Peaks,
             bits: Widths) -> Gru | Lstm | Rnn:
    """The golden layer whose gates and outputs have the format ``state``."""
    raise unknown(layer, "quantized")


def _state(layer: float_model.Gru | float_model.Lstm | float_model.Rnn, peaks: Peaks, bits: Widths) -> Format:
    """The format of gates and of what comes out: from -1 to 1, or further where a projection or a ReLU goes further."""
    unit = Format(bits.state, bits.state - 1)
    if getattr(layer, "nonlinearity", "tanh") == "relu":
        seen = ("n", "h") if layer.kind == "gru" else ("h",)
        return no_finer(peaks.fit(bits.state, *(f"{layer.name}.{each}" for each in seen)), unit.frac)
    if getattr(layer, "projection", None) is None:
        return unit
    return no_finer(peaks.fit(bits.state, f"{layer.name}.y"), unit.frac)


def _block_sizes(layer: float_model.Gru | float_model.Lstm | float_model.Rnn) -> dict[str, int]:
    return {"input": layer.weight_ih.shape[-1], "recurrent": layer.weight_hh.shape[-1]}


@_one_way.register
def _(layer: float_model.Gru, input: Format, state: Format, peaks: Peaks, bits: Widths) -> Gru:
    check_one_block_size(layer.name, _block_sizes(layer))
    merged, after = layer.bias_ih + layer.bias_hh, layer.reset == "after"
    sums = ("gates", "candidate_input", "candidate_recurrent") if after else ("gates", "candidate")
    pre = peaks.fit(bits.output, *(f"{layer.name}.{name}.output" for name in sums), f"{layer.name}.tanh.input",
                    bias=np.stack([merged, layer.bias_ih, layer.bias_hh] if after else [merged]), clip=bits.output_clip)
    shared = spectral(layer.name, peaks, bits, sums, [
        (("input_product",), layer.weight_ih, input),
        (("recurrent_product", "candidate_recurrent"), layer.weight_hh, state)])
    sigmoid, tanh = activation_names(layer.hard, layer.nonlinearity)
    return assemble_gru(layer, shared, pre, table(sigmoid, pre, state, bits), _bend(tanh, pre, state, bits))


def _bend(function: str, pre: Format, state: Format, bits: Widths) -> Pwl:
    """The table of a tanh, or of a ReLU in its place."""
    return table(function, pre, state, bits) if function in FUNCTIONS else fit_lines(function, (), pre, state)


@_one_way.register
def _(layer: float_model.Rnn, input: Format, state: Format, peaks: Peaks, bits: Widths) -> Rnn:
    check_one_block_size(layer.name, _block_sizes(layer))
    pre = peaks.fit(bits.output, f"{layer.name}.gates.output", bias=layer.bias_ih + layer.bias_hh,
                    clip=bits.output_clip)
    shared = spectral(layer.name, peaks, bits, ("gates",), [
        (("input_product",), layer.weight_ih, input), (("recurrent_product",), layer.weight_hh, state)])
    _, tanh = activation_names(False, layer.nonlinearity)
    return assemble_rnn(layer, shared, pre, _bend(tanh, pre, state, bits))


@_one_way.register
def _(layer: float_model.Lstm, input: Format, state: Format, peaks: Peaks, bits: Widths) -> Lstm:
    own = {} if layer.projection is None else {"projection": layer.projection.shape[-1]}
    check_one_block_size(layer.name, _block_sizes(layer) | own)
    bias, name = layer.bias_ih + layer.bias_hh, layer.name
    pre = peaks.fit(bits.output, f"{name}.gates.output", f"{name}.sigmoid.input", bias=bias, clip=bits.output_clip)
    cell = peaks.fit(bits.cell, f"{name}.c")
    shared = spectral(name, peaks, bits, ("gates",), [
        (("input_product",), layer.weight_ih, input), (("recurrent_product",), layer.weight_hh, state)])
    projection = None
    if layer.projection is not None:
        rows = np.zeros(layer.projection.shape[0] * layer.projection.shape[2])
        projection = product(f"{name}.projection", layer.projection, bias=rows, input=state, output=state, peaks=peaks,
                             bits=bits)
    peephole = fit(0.0 if layer.peephole is None else float(np.abs(layer.peephole).max()), bits.weight_bits)
    sigmoid, tanh = activation_names(layer.hard)
    tables = table(sigmoid, pre, state, bits), table(tanh, pre, state, bits), table(tanh, cell, state, bits)
    return assemble_lstm(layer, shared, pre=pre, projection=projection, peephole=peephole, cell=cell, tables=tables)
