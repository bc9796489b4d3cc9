"""ONNX's own tests as cases: each is imported right, or refused."""
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from circulant.sim.error.error_bound import error_bound
from circulant.sim.refusal import Refusal
from circulant.training import export, from_onnx
from circulant.training.conversion import reference

KINDS = ("Add", "AveragePool", "BatchNormalization", "Celu", "Clip", "Concat", "Conv", "DequantizeLinear", "Div",
         "Dropout", "Elu", "Expand", "Flatten", "GRU", "Gather", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool",
         "HardSigmoid", "HardSwish", "Identity", "LSTM", "LayerNormalization", "LeakyRelu", "LogSoftmax", "MatMul",
         "MaxPool", "Mish", "Mul", "PRelu", "Pad", "QuantizeLinear", "RNN", "ReduceMax", "ReduceMean", "ReduceSum",
         "Relu", "Reshape", "Selu", "Sigmoid", "Slice", "Softmax", "Softplus", "Softsign", "Split", "Squeeze", "Sub",
         "Tanh", "Tile", "Transpose", "Unsqueeze", "Where")
"""Operators whose node tests are cases."""

FLOAT32 = 1e-5
"""Error of a test's own expected outputs, relative to the greatest of them: they are computed in float32."""


@dataclass(frozen=True)
class Case:
    """A test of ONNX.

    Parameters:
        model: whose only input is the data; all else are constants.
        x: the data.
        expected: by output.
    """

    name: str
    model: Any
    x: NDArray[Any]
    expected: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: "right", "refused", "wrong" or "tracebacks", and why."""

    name: str
    outcome: str
    reason: str = ""


def node_cases() -> Iterator[Case]:
    """Tests of single nodes of `KINDS`, those of functions written out again left out. The first input is the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Expected outputs divide by zero, for example.
        tests: Iterable[Any] = load_model_tests(kind="node")
    for test in tests:
        if "_expanded" not in test.name and {node.op_type for node in test.model.graph.node} <= set(KINDS):
            given, expected = test.data_sets[0]
            yield _case(test.name, test.model, list(given), list(expected))


def converted_cases() -> Iterator[Case]:
    """Models that torch's first exporter wrote."""
    for test in sorted(load_model_tests(kind="pytorch-converted"), key=lambda test: test.name):
        folder = Path(test.model_dir or "")
        given, expected = ([numpy_helper.to_array(onnx.load_tensor(path)) for path in sorted(
            (folder / "test_data_set_0").glob(f"{side}_*.pb"))] for side in ("input", "output"))
        yield _case(test.name, onnx.load(folder / "model.onnx"), given, expected)


def _case(name: str, model: Any, given: list[Any], expected: list[Any]) -> Case:
    held, kept = onnx.ModelProto(), {each.name for each in model.graph.initializer}
    held.CopyFrom(model)
    taken = [each for each in held.graph.input if each.name not in kept]
    for value, array in list(zip(taken, given, strict=True))[1:]:
        if isinstance(array, np.ndarray | np.generic):
            held.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
            held.graph.input.remove(value)
    x = given[0] if isinstance(given[0], np.ndarray) else np.zeros(0)
    return Case(name, held, x, {each.name: np.asarray(array) for each, array in zip(
        held.graph.output, expected, strict=True) if isinstance(array, np.ndarray)})


def judged(case: Case) -> Outcome:
    """Outcome of a case: integers within the derived bound of what ONNX expects, for each output.

    The tests do not say which axis is that of the batch: the first one, else the second one, else none, if their data
    is one sample.
    """
    if not case.expected or not case.x.size or case.x.dtype.kind == "O":
        return Outcome(case.name, "refused", "its inputs or outputs are no tensors of numbers")
    refusals = []
    for batch in (0, 1, None) if case.x.ndim > 1 else (None,):
        try:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                far = [_far(case, name, Path(folder) / "net.onnx", batch) for name in case.expected]
        except Refusal as refusal:
            refusals.append(str(refusal))
            continue
        except AssertionError as error:
            return Outcome(case.name, "wrong", str(error))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            return Outcome(case.name, "tracebacks",
                           f"{type(error).__name__} in {place.filename}:{place.lineno}: {error}")
        wrong = next(filter(None, far), "")
        return Outcome(case.name, "wrong" if wrong else "right", wrong)
    return Outcome(case.name, "refused", refusals[0])


def imported(case: Case, output: str, path: Path, batch: int | None) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """The module of one output of a case, written to ``path``; its data and what is expected of it, the batch first.

    Parameters:
        batch: its axis in the data; None where the data is one sample.

    Raises:
        Refusal: as `from_onnx`, and when the batch of the file is another axis.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for each in [each for each in model.graph.output if each.name != output]:
        model.graph.output.remove(each)
    onnx.save(model, path)
    wanted, x = case.expected[output].astype(np.float64), case.x
    x = x[None] if batch is None else np.moveaxis(x, batch, 0)
    module: Any = from_onnx(path, x)
    if module.batch != batch:
        raise Refusal(f"the batch is axis {module.batch} of its input, not {batch}")
    return module, x, wanted[None] if batch is None else np.moveaxis(wanted, module.batch_of_output, 0)


def _far(case: Case, output: str, path: Path, batch: int | None) -> str:
    """Words for an output that is beyond its bound, or nothing."""
    module, x, wanted = imported(case, output, path, batch)
    with torch.no_grad():
        got = module(torch.tensor(x.astype(np.float32))).numpy().astype(np.float64)
    if got.shape != wanted.shape:
        return f"{output}: the shape {got.shape}, expected {wanted.shape}"
    slack = FLOAT32 * max(1.0, float(np.abs(wanted).max(initial=0)))
    if not np.allclose(got, wanted, rtol=0, atol=10 * slack, equal_nan=True):
        return f"{output}: imported as another function, off by {np.abs(got - wanted).max():.3g}"
    network, exact = export(module, x.astype(np.float64)), reference(module, x.astype(np.float64))
    bound = error_bound(network, exact, x.astype(np.float64))
    integers, real = network.run(x).real, exact.run(x.astype(np.float64))
    beyond = np.abs(integers - real) - np.broadcast_to(bound, real.shape)
    if beyond.max() > 0:
        return f"{output}: {beyond.max():.3g} beyond its bound"
    # What is dropped at the end is no part of the integers; the module with it was compared above.
    return "" if real.size == wanted.size else f"{output}: {real.size} values, expected {wanted.size}"
