"""From a trained torch model to the network that the hardware obeys."""
import re
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim import quantize as quantization
from circulant.sim.network import Network
from circulant.sim.reference import Gru, Linear, Model
from circulant.sim.refusal import Refusal
from circulant.training.clone import clone
from circulant.training.constraint import Matrix, constraint_of
from circulant.training.graph import Step, chain

__all__ = ["export", "reference"]

TOLERANCE = 1e-6
"""Greatest difference of the reference from torch in double precision, relative to the greatest output."""


def export(model: nn.Module, sample_inputs: ArrayLike | Tensor, *, weight_bits: int = 12, activation_bits: int = 16,
           name: str | None = None, **widths: int) -> Network:
    """The golden model of a torch model, its formats fitted to sample inputs.

    Parameters:
        sample_inputs: (N, T, inputs) or (N, inputs), like the data to come; the calibration.
        widths: further fields of `circulant.sim.quantize.Widths`.

    Raises:
        Refusal: as `reference` and `circulant.sim.quantize.quantize`.
    """
    sample = _sample(sample_inputs)
    return quantization.quantize(reference(model, sample, name=name), sample, weight_bits=weight_bits,
                                 activation_bits=activation_bits, **widths)


def reference(model: nn.Module, sample_inputs: ArrayLike | Tensor, *, name: str | None = None) -> Model:
    """The mathematics of a torch model in evaluation mode, which stays as it is.

    Supported: a chain of torch.nn.GRU (batch_first, one direction, any number of layers), the last step of one
    (``out[:, -1]`` or ``h_n[-1]``), torch.nn.Linear, Dropout and Identity. Matrices under `BlockCirculant` keep their
    block size, others are dense (1). Where no last step is taken, the last GRU returns "sequence" and the network gives
    an output for each step. A module ``encoder.gru`` of two layers becomes ``encoder_gru_l0`` and ``encoder_gru_l1``.

    Raises:
        Refusal: everything that cannot be converted, at once; a sample that is empty, not finite, or of the wrong
            shape; weights that are not finite.
    """
    sample = _sample(sample_inputs)
    kind = parametrize.type_before_parametrizations(model).__name__
    model = clone(model).cpu().double().eval()
    steps = chain(model, sequence=sample.ndim == 3)
    bad = [where for where, value in model.state_dict().items() if not torch.isfinite(value).all()]
    if bad:
        raise Refusal(f"Weights must be finite, but {', '.join(bad)} hold NaN or infinity; train again with a lower "
                      "learning rate")
    wanted = _inputs(steps[0].module)
    if sample.shape[-1] != wanted:
        raise Refusal(f"Sample inputs must have {wanted} features, the inputs of the model, on their last axis, not "
                      f"the shape {sample.shape}; rearrange the axes")
    with torch.no_grad():
        parts = [part for step in steps for part in _layers(step)]
    layers = tuple(_make(title, fields) for title, (_, fields) in zip(_names(parts), parts, strict=True))
    result = Model(name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower(), wanted, sample.ndim == 3, layers)
    _compare(model, result, sample)
    return result


def _sample(inputs: ArrayLike | Tensor) -> NDArray[np.float64]:
    """Sample inputs as an array, checked."""
    array = np.asarray(inputs.detach().cpu() if isinstance(inputs, Tensor) else inputs, np.float64)
    if array.ndim not in (2, 3) or not array.size:
        raise Refusal("Sample inputs must have the shape (N, T, inputs) or (N, inputs) and be not empty, not "
                      f"{array.shape}; give a few samples like the data to come")
    if not np.isfinite(array).all():
        raise Refusal("Sample inputs must be finite, but hold NaN or infinity; clean them first")
    return array


def _inputs(module: nn.Module) -> int:
    assert isinstance(module, nn.Linear | nn.GRU)
    return module.in_features if isinstance(module, nn.Linear) else module.input_size


def _layers(step: Step) -> list[tuple[str, dict[str, Any]]]:
    """The reference layers of one step of the chain: paths, and fields."""
    module = step.module
    if isinstance(module, nn.Linear):
        m, n = module.out_features, module.in_features
        bias = np.zeros(m) if module.bias is None else _numpy(module.bias)
        return [(step.path, {"inputs": n, "outputs": m, "weight": _first_columns(Matrix(module, "weight", 1, m, n))[0],
                             "bias": bias})]
    assert isinstance(module, nn.GRU)
    found: list[tuple[str, dict[str, Any]]] = []
    hidden = module.hidden_size
    for level in range(module.num_layers):
        inputs = hidden if level else module.input_size
        last = step.last and level == module.num_layers - 1
        fields: dict[str, Any] = {"inputs": inputs, "hidden": hidden, "returns": "last" if last else "sequence"}
        for side, columns in (("ih", inputs), ("hh", hidden)):
            fields[f"weight_{side}"] = _first_columns(Matrix(module, f"weight_{side}_l{level}", 3, hidden, columns))
            bias = _numpy(getattr(module, f"bias_{side}_l{level}")) if module.bias else np.zeros(3 * hidden)
            fields[f"bias_{side}"] = bias.reshape(3, hidden)
        found.append((f"{step.path}.l{level}" if module.num_layers > 1 else step.path, fields))
    return found


def _make(name: str, fields: dict[str, Any]) -> Linear | Gru:
    return Gru(name=name, **fields) if "hidden" in fields else Linear(name=name, **fields)


def _first_columns(matrix: Matrix) -> NDArray[np.float64]:
    """First columns (groups, p, q, k) of a weight; k = 1 where it is dense."""
    if constraint_of(matrix):
        chains: Any = matrix.module.parametrizations
        return _numpy(chains[matrix.tensor].original)
    return _numpy(matrix.weight).reshape(matrix.groups, matrix.rows, matrix.columns, 1)


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _names(parts: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Names of letters, digits and underscores, that start with a letter and differ from one another."""
    names: list[str] = []
    for path, fields in parts:
        name = re.sub(r"\W", "_", path, flags=re.ASCII).strip("_")
        if not name[:1].isalpha():
            name = f"{'gru' if 'hidden' in fields else 'linear'}_{name}".rstrip("_")
        others = (f"{name}_{i}" for i in range(2, len(parts) + 2))
        names.append(name if name not in names else next(other for other in others if other not in names))
    return names


def _compare(model: nn.Module, result: Model, sample: NDArray[np.float64]) -> None:
    """Check that the reference computes what torch computes; ``model`` is in double precision.

    Raises:
        AssertionError: when they differ by more than `TOLERANCE`; the conversion is wrong then.
    """
    with torch.no_grad(), parametrize.cached():
        wanted = model(torch.from_numpy(sample)).numpy()
    got = result.run(sample)
    if got.shape != wanted.shape:
        raise AssertionError(f"The converted model gives the shape {got.shape}, but torch gives {wanted.shape}")
    worst = float(np.abs(got - wanted).max()) / max(float(np.abs(wanted).max()), 1e-30)
    if not worst <= TOLERANCE:
        raise AssertionError(f"The converted model differs from torch by {worst:.2g} of the greatest output")
