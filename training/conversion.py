"""From a trained torch model to the network that the hardware obeys."""
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.network import Network
from circulant.sim.passes.bitwidths import Widths
from circulant.sim.public import public
from circulant.sim.quantize import quantize as quantization
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.capture.record import numbers_of, parts
from circulant.training.capture.trace import capture, finite, inputs_of, typed
from circulant.training.neutral.building import Builder
from circulant.training.neutral.graph import Output
from circulant.training.neutral.lowering import lower
from circulant.training.neutral.making import LONGEST

__all__ = ["export", "reference"]

COMPARED = 64
"""Images on which the reference is compared with torch."""

TOLERANCE = 1e-6
"""Greatest difference of the reference from torch in double precision, relative to the greatest output."""

SINGLE = 1e-4
"""The same from what is computed in single precision."""


@public(more=Widths)
def export(model: nn.Module, sample_inputs: ArrayLike | Tensor | tuple[Any, ...] | Mapping[str, Any], *,
           lengths: ArrayLike | Tensor | None = None, weight_bits: int = 12, activation_bits: int = 16,
           name: str | None = None, **widths: Any) -> Network:
    """The golden model of a torch model, its formats fitted to sample inputs; those that quantizers of the model say
    stay as they are.

    Parameters:
        sample_inputs: (N, T, inputs), (N, inputs) or (N, channels, height, width), like the data to come; the
            calibration. Of a model with several inputs a tuple of those of each, or a dictionary by name.
        lengths: (N,), the steps of each sequence where they differ; the network then asks for those of its inputs, too.
        widths: further fields of `circulant.sim.quantize.quantize.Widths`.

    Raises:
        Refusal: as `reference` and `circulant.sim.quantize.quantize.quantize`.
    """
    known = np.asarray(lengths.detach().cpu()) if isinstance(lengths, Tensor) else lengths
    exact, lowered, sample = _converted(model, sample_inputs, name)
    grids = {path: WeightGrid(form) for path, form in lowered.grids.items()}
    widths = {"grids": grids, "formats": lowered.formats} | widths
    return quantization.quantize(exact, sample, lengths=known, weight_bits=weight_bits,
                                 activation_bits=activation_bits, **widths)


@public
def reference(model: nn.Module, sample_inputs: ArrayLike | Tensor | tuple[Any, ...] | Mapping[str, Any], *,
              name: str | None = None) -> Model:
    """The mathematics of a torch model in evaluation mode, which stays as it is.

    `circulant.training.inspect` says of any model what of it exports; docs/models.md lists it. Matrices under
    `BlockCirculant` keep their block size, others are dense (1). Where no last step is taken, the last recurrent layer
    returns "sequence" and the network gives an output for each step. Where there are several inputs they are called as
    those of its ``forward``; outputs come in the order of the model. A module ``encoder.gru`` of two layers becomes
    ``encoder_gru_l0`` and ``encoder_gru_l1``.

    Raises:
        Refusal: everything that cannot be converted, at once; a sample that is empty, not finite, or of the wrong
            shape; weights that are not finite.
    """
    return _converted(model, sample_inputs, name)[0]


def _converted(model: nn.Module, sample: Any, name: str | None) -> tuple[Model, Builder, Any]:
    """The mathematics of a model, the formats that its quantizers say, and the sample as the former takes it."""
    kind = parametrize.type_before_parametrizations(model).__name__
    model = clone(model).cpu().double().eval()
    bad = finite(model)
    samples = inputs_of(model, sample)
    given = {name: _sample(each) for name, each in samples.items()}
    tensors = {name: typed(model, each, torch.float64) for name, each in samples.items()}
    graph, report = capture(model, tensors)
    report.require_exportable()
    assert graph is not None
    if bad:
        raise Refusal(f"Weights must be finite, but {', '.join(bad)} hold NaN or infinity; train again with a lower "
                      "learning rate")
    name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()[:LONGEST]
    lowered = lower(graph)
    result = lowered.model(name)
    _compare(model, result, list(tensors.values()), graph.outputs)
    _compare_longer(model, result, list(tensors.values()), graph.outputs)
    values = {each.name: array for each, array in zip(result.inputs, given.values(), strict=True)}
    return result, lowered, values if len(values) > 1 else next(iter(values.values()))


def _sample(inputs: ArrayLike | Tensor) -> NDArray[np.float64]:
    """Sample inputs as an array, checked."""
    array = np.asarray(inputs.detach().cpu().double() if isinstance(inputs, Tensor) else inputs, np.float64)
    if array.ndim < 2 or not array.size:
        raise Refusal("Sample inputs must have the shape (N, T, inputs) or (N, inputs) and be not empty, not "
                      f"{array.shape}; give a few representative samples")
    if not np.isfinite(array).all():
        raise Refusal("Sample inputs must be finite, but hold NaN or infinity; clean them first")
    return array


def _compare(model: nn.Module, result: Model, sample: list[Tensor], outputs: tuple[Output, ...],
             given: list[Tensor] | None = None) -> None:
    """Check that the reference computes what torch computes; ``model`` is in double precision.

    Parameters:
        given: outputs to compare with instead of the model's, in single precision.

    Raises:
        Refusal: when only indices differ that are no integers.
        AssertionError: when they differ by more than `TOLERANCE`; the conversion is wrong then.
    """
    if any(each.flow.grid is not None for each in result.inputs):
        sample = [each[:COMPARED] for each in sample]  # Windows of images take much memory.
    with torch.no_grad(), numbers_of(torch.float64), parametrize.cached():
        wanted = given or [part for part in parts(model(*sample)) if part is not None]
    names = (each.name for each in result.inputs)
    arrays = [each.double().numpy() for each in sample]
    found = result.run(dict(zip(names, arrays, strict=True)) if len(arrays) > 1 else arrays[0])
    try:
        for name, output, tensor in zip(result.outputs, outputs, wanted, strict=True):
            _compare_output(found[name] if len(outputs) > 1 else found, tensor.movedim(output.batch, 0).numpy(), output,
                            TOLERANCE if given is None else SINGLE)
    except AssertionError:
        whole = [each.trunc() for each in sample]
        if given or not any(isinstance(each, nn.Embedding) for each in model.modules()) or all(
                map(torch.equal, sample, whole)):
            raise
        _compare(model, result, whole, outputs)  # Of integers they are equal.
        raise Refusal("The indices of a table (Embedding) must be integers, as its rows are compared with them, but "
                      "the sample has others, which torch cuts off; round them first") from None


def _compare_longer(model: nn.Module, result: Model, sample: list[Tensor], outputs: tuple[Output, ...]) -> None:
    """Check that what was captured holds for other lengths, too, with one more step of each sequence: as that of a
    model, or as that of an ONNX file which leaves the length open, whose module may be of one length.

    Raises:
        Refusal: when it does not, though the model takes such a sequence: an index or a number is that of the sample.
    """
    flows = [each.flow for each in result.inputs]
    if not any(flow.sequence for flow in flows) or any(
            each.flow.grid or (each.shape and not each.axes) for each in result.inputs):
        return
    file: Any = model if hasattr(model, "of_file") else None  # By its name, as there may be no package for files.
    few = [each[:2] for each in sample] if file is None else [
        each[torch.arange(file.taken[0]) % len(each)] for each in sample]
    steps = [2 if each.axes else 1 for each in result.inputs]
    longer = [torch.cat([each, each.narrow(axis, 0, 1)], axis) if flow.sequence else each
              for each, flow, axis in zip(few, flows, steps, strict=True)]
    given = None if file is None else file.of_file(longer[0])
    try:
        with torch.no_grad(), numbers_of(torch.float64), parametrize.cached():
            _ = given is not None or model(*longer)
    except Exception:
        return  # A model of one length says so itself.
    try:
        _compare(model, result, longer, outputs, None if given is None else [torch.from_numpy(given).double()])
    except AssertionError:
        count = next(each.shape[axis] for each, flow, axis in zip(few, flows, steps, strict=True) if flow.sequence)
        raise Refusal(f"The model must do the same with sequences of any length, as its hardware does, but {count} "
                      f"steps and {count + 1} are not alike to it; write y[:, -1] for the last step and y.mean(1) "
                      "for y.sum(1), and leave x.shape out of calculations") from None


def _compare_output(got: NDArray[np.float64], wanted: NDArray[np.float64], output: Output, tolerance: float) -> None:
    if got.size == wanted.size and (got.ndim == 2 or [size for size in wanted.shape[1:] if size > 1] == [
            size for size in got.shape[1:] if size > 1]):
        got = got.reshape(wanted.shape)
    if output.dropped:
        got = getattr(torch, output.dropped)(torch.from_numpy(got), -1).numpy()
    if got.shape != wanted.shape:
        raise AssertionError(f"The converted model gives the shape {got.shape}, but torch gives {wanted.shape}")
    worst = float(np.abs(got - wanted).max()) / max(float(np.abs(wanted).max()), 1e-30)
    if not worst <= tolerance:
        raise AssertionError(f"The converted model differs from torch by {worst:.2g} of the greatest output")
