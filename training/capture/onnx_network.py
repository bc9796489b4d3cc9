"""An ONNX graph as a torch module: nodes with weights become modules of torch, all others functions of it."""
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from circulant.sim.files.files import reason
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.kinds.registry import KINDS
from circulant.training.onnx.call import OnnxCall
from circulant.training.onnx.graph import evaluated, load
from circulant.training.onnx.nodes import OnnxGraph, OnnxNode
from circulant.training.onnx.operators import OPERATORS, WAYS_OUT, made

__all__ = ["KINDS", "OnnxNetwork", "from_onnx"]

TOLERANCE = 1e-4
"""Greatest difference from the reference of the ``onnx`` package, in float32, relative to the greatest output."""


NAMED = 3
"""Operators that a refusal names, and nodes of each."""


class OnnxNetwork(nn.Module):
    """The function of an ONNX graph. Modules are called after their nodes; see docs/onnx.md for what is known.

    Members:
        taken: the shape of inputs that the file, or the sample, said.

    Raises:
        Refusal: naming the operators that are not known, the commonest first; as the nodes themselves.
    """

    def __init__(self, graph: OnnxGraph) -> None:
        super().__init__()
        _check_operators(graph)
        self._graph = graph
        self._input, self._output, self._steps = graph.input, graph.output, list[tuple[OnnxNode, str, OnnxCall]]()
        shape = list(graph.shapes[graph.input])
        self.taken = (shape.pop(graph.batch or 0), *shape)
        self.batch, batch = graph.batch, {graph.input: graph.batch or 0}
        for node in graph.nodes:
            name, module = "", made(graph, node)
            if module is not None:
                name = self._free(node)
                self.add_module(name, module)
            call = OnnxCall(node, graph, batch)
            self._steps.append((node, name, call))
            call.follow_batch()
        self.batch_of_output = batch[graph.output]
        before = graph.shapes.get(graph.output, ())[:self.batch_of_output]
        if graph.batch == 0 and math.prod(before) > 1:
            raise Refusal(f"The output {graph.output!r} of the ONNX file must have the batch first, as its input has, "
                          f"but it comes behind axes of {', '.join(map(str, before))}; transpose it in the model")

    def of_file(self, x: Tensor) -> NDArray[Any] | None:
        """The outputs of the file itself for sequences of another length, as many as it takes, by the reference of the
        ``onnx`` package; None where it says their length, does not take these, or that lacks an operator."""
        if 1 not in self._graph.open_axes:
            return None
        try:
            return evaluated(self._graph, x.numpy().astype(np.float32), self.batch_of_output)
        except Exception:  # Of numpy, where shapes in the file are those of one length.
            return None

    def _free(self, node: OnnxNode) -> str:
        """A name for a node's module that no other one has."""
        name = re.sub(r"\W", "_", node.name, flags=re.ASCII).strip("_").lower()
        name = name if name[:1].isalpha() else f"{node.op.lower()}_{name}".rstrip("_")
        names = {each for each, _ in self.named_children()} | set(dir(nn.Module))
        return next(each for n in range(len(names) + 1) if (each := f"{name}_{n}" if n else name) not in names)

    def forward(self, x: Tensor) -> Tensor:
        """The output for inputs x; the batch comes first in both, wherever it is in the file."""
        values: dict[str, Tensor] = {self._input: x.movedim(0, self.batch) if self.batch else x}
        for node, name, call in self._steps:
            results = OPERATORS[node.op].run(call, getattr(self, name) if name else None, values)
            values.update(zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=False))
        found: Tensor = values[self._output]
        return found.movedim(self.batch_of_output, 0) if self.batch_of_output else found


def _check_operators(graph: OnnxGraph) -> None:
    """
    Raises:
        Refusal: naming nodes whose operator is not known, those of the commonest operators first, or a node that
            computes with integers.
    """
    unknown: dict[str, list[str]] = {}
    for node in graph.nodes:
        if node.op not in OPERATORS:
            unknown.setdefault(node.op, []).append(repr(node.name))
    if unknown:
        common = sorted(unknown.items(), key=lambda each: -len(each[1]))
        named = [f"{op} ({', '.join(names[:NAMED])}{f' and {len(names) - NAMED} more' * (len(names) > NAMED)})"
                 for op, names in common[:NAMED]]
        more = f", and {len(common) - NAMED} further operators" * (len(common) > NAMED)
        ways = [WAYS_OUT[op] for op, _ in common[:NAMED] if op in WAYS_OUT] or ["replace them before the export"]
        raise Refusal(f"Nodes of the ONNX file must be of the operators of docs/onnx.md, not {', '.join(named)}{more}; "
                      f"{', '.join(ways)}")
    for node in graph.nodes:
        if node.outputs[0] in graph.integers and not OPERATORS[node.op].keeps:
            raise node.refused("it must compute with floating-point numbers, as integers wrap around; cast its inputs")


@public
def from_onnx(path: str | Path, sample_inputs: ArrayLike | None = None, *, quantizers: bool = True,
              output: str | None = None) -> nn.Module:
    """The torch module of an ONNX file.

    It is inspected, compressed, trained and exported like any other. Its function was compared with that of the
    reference evaluator of the ``onnx`` package, where that knows all of its operators.

    Parameters:
        sample_inputs: a few inputs, the batch first; asked for where the file leaves a size open beside the batch, and
            where it has no axis for the batch, which is the axis that these have more.
        quantizers: whether the quantizers of the file say the formats of `export`. Without them values are only clipped
            to their ranges, and weights have the values of the file.
        output: the name of the one to keep, of a file with several.

    Raises:
        Refusal: for a damaged file, shapes that contradict each other, nodes that are not known or have options that
            are not, quantizers that do not fit, all of them by name.
    """
    sample = None if sample_inputs is None else np.asarray(sample_inputs, np.float32)
    graph = load(path, None if sample is None else sample.shape, quantizers=quantizers, output=output)
    model = OnnxNetwork(graph)
    model.eval()
    x = _like(sample, model.taken)
    try:
        with torch.no_grad():
            got = model(torch.tensor(x.copy())).numpy()
        wanted = evaluated(graph, x, model.batch_of_output)
    except Refusal:
        raise
    except Exception as error:  # What numpy and torch raise for windows and indices that no tensor has.
        raise Refusal(f"{path} must be computable for inputs {x.shape}, but it is not ({reason(error)}); export it "
                      "again") from None
    if not np.isfinite(got).all():
        raise Refusal(f"{path} must give finite outputs, but gives NaN or infinity for inputs {x.shape}; train again, "
                      "or pass other sample_inputs")
    if wanted is not None and (got.shape != wanted.shape or np.abs(got - wanted).max() > TOLERANCE * max(
            1e-30, float(np.abs(wanted).max()))):
        raise AssertionError(f"The module of {path} differs from the file's own function; the import is wrong")
    return model


def _like(sample: NDArray[Any] | None, shape: tuple[int, ...]) -> NDArray[Any]:
    """Inputs of a shape: of the sample as many as its batch takes, else random ones."""
    if sample is not None and len(sample) >= shape[0]:
        return sample[:shape[0]]
    return np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)
