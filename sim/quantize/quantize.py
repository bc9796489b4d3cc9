"""From float64 to integers: layer by layer, in formats that hold what calibration data exercises."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Format, fit
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.network import Network
from circulant.sim.kinds.cell import FloatCell, state_format
from circulant.sim.passes.bases import factors, matrices, quantize_layer
from circulant.sim.passes.formats import HEADROOM, Peaks, Widths
from circulant.sim.passes.layer import FloatLayer
from circulant.sim.passes.quantizing import grid_of
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.flows import check_all
from circulant.sim.shape.graph import Node
from circulant.sim.shape.sequences import check_lengths

__all__ = ["HEADROOM", "Peaks", "Widths", "calibrate", "grids", "quantize"]

def calibrate(model: float_model.Model, calibration: ArrayLike | Mapping[str, ArrayLike],
              lengths: ArrayLike | None = None) -> Peaks:
    """Ranges that `quantize` needs of calibration data; they take far longer than the rest, and serve all widths.

    Parameters:
        calibration: of a model with several inputs those of each by its name.
        lengths: (N,), the steps of each sequence; None where all are valid.

    Raises:
        Refusal: when the data is empty, not finite, or of the wrong shape; as `check_lengths`.
    """
    given = calibration if isinstance(calibration, Mapping) else {model.entry.name: calibration}
    data = check_all("Calibration data", model.inputs, given)
    if not all(np.isfinite(each).all() for each in data.values()):
        raise Refusal("Calibration data must be finite, but it holds NaN or infinity; clean it first")
    return Peaks(model, data, None if lengths is None else check_lengths(
        "Calibration data", lengths, data[model.leading.name].shape))


def quantize(model: float_model.Model, calibration: ArrayLike | Mapping[str, ArrayLike] | Peaks, *,
             lengths: ArrayLike | None = None, **widths: Any) -> Network:
    """The golden model of ``model``: integer spectra, and formats that hold what ``calibration`` exercises.

    Parameters:
        calibration: (N, T, inputs), (N, inputs) or (N, *shape), like the data to come, or what `calibrate` found of it;
            of a model with several inputs those of each by its name.
        lengths: (N,), the steps of each sequence; with them the network is `ragged <Network>`.
        widths: the fields of `Widths`.

    Raises:
        Refusal: when a width is out of range, or names what the network does not have; as `calibrate`.
    """
    bits = Widths(**widths)
    peaks = calibration if isinstance(calibration, Peaks) else calibrate(model, calibration, lengths)
    whole, states = _whole(model, bits), _states(model, peaks, bits)

    def made(layer: FloatLayer, given: Sequence[_Made]) -> _Made:
        own = bits.of(layer.name)
        own = replace(own, whole=own.whole or layer.name in whole, formats={**own.formats, **states})
        golden = quantize_layer(layer, layer.argument(tuple(each.form for each in given)), peaks, own)
        return _Made(golden.output_format, golden)

    found = model.walk({name: _Made(next(
        (bits.formats[node.name] for node in model.readers[name] if node.name in bits.formats), None)
        or fit(peak, bits.input)) for name, peak in peaks.inputs.items()}, made, every=True)
    layers = [found[node.name].layer for node in model.nodes]
    bits.check_names([path for layer in layers if layer.kind != "reverse" for path in (
        layer.name, *matrices(layer), *factors(layer))])
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
    found = {name: state_format(node.layer, peaks, bits.of(name)) for name, node in nodes.items()
             if isinstance(node.layer, FloatCell)}
    for node in model.nodes:
        if node.layer.kind == "concat":
            ends = [nodes[source].sources[0] if source in nodes and nodes[source].layer.kind == "reverse" else source
                    for source in node.sources]
            if all(end in found for end in ends):
                coarse = min((found[end] for end in ends), key=lambda form: form.frac)
                found.update(dict.fromkeys(ends, coarse))
    return found


def grids(network: Network) -> dict[str, WeightGrid]:
    """The values of the weights of each matrix, and of vectors of `factors`, by path, for `Widths.grids` of a network
    with weights on these values.

    Of a recurrent layer the block rows are those of all gates, one behind the other.
    """
    return {path: grid_of(layer, path.rpartition(".")[2]) for layer in network.layers for path in matrices(layer)} | {
        path: WeightGrid(form) for layer in network.layers for path, form in factors(layer).items()}
