"""The graph of an ONNX file for one size of its inputs: nodes that depend on the data, and the values of all others."""
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper, reference, shape_inference
from onnx.reference.op_run import OpRun

from circulant.sim.files.files import read_bytes, reason
from circulant.sim.refusal import Refusal
from circulant.training.onnx.nodes import RECURRENT, OnnxGraph, OnnxNode, Shape
from circulant.training.onnx.quantizers import Quantizers, computed
from circulant.training.onnx.together import together

__all__ = ["evaluated", "load"]

LARGEST = 1 << 30
"""Bytes of a file at the most."""

VALUES = 1 << 28
"""Values of a tensor at the most, for so many samples as the file says, or two."""

MOVES = ("Identity", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
"""Operators that leave constants on their grid."""

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""Types of numbers that are rounded; all others wrap around, or are no numbers."""

STEPWISE = ("Identity", "Cast", "Clip", "MatMul", "Add", "Sub", "Mul", "Div", "Relu", "Tanh", "Sigmoid")
"""Operators that leave the axes of steps and of the batch where they are."""

class BatchNormalization(OpRun):
    """The operator of ONNX in inference; that of the package takes statistics of the batch before opset 14."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: Any = None, **options: Any
             ) -> tuple[Any]:
        shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
        scale, bias, mean, variance = (np.reshape(each, shape) for each in (scale, bias, mean, variance))
        deviation = np.sqrt(variance + (1e-5 if epsilon is None else epsilon))
        return ((scale * (x - mean) / deviation + bias).astype(x.dtype),)


def evaluated(graph: OnnxGraph, x: NDArray[Any], batch: int) -> NDArray[Any] | None:
    """The output for inputs x, of both the batch first, by the reference of the ``onnx`` package; None where that
    lacks an operator, or would take a tanh for the ReLU of a GRU, or lacks an affine one.

    Parameters:
        batch: the axis of the batch in the output.
    """
    if any({"Relu", "Affine"} & {*node.attributes.get("activations", ())} for node in graph.nodes):
        return None
    rows = list(x) if graph.batch is None else [np.moveaxis(x, 0, graph.batch)]
    try:
        evaluator: Any = reference.ReferenceEvaluator(graph.proto, new_ops=[BatchNormalization])
        found = [np.asarray(evaluator.run([graph.output], {graph.input: row})[0]) for row in rows]
    except (NotImplementedError, RuntimeError):
        return None
    return np.stack(found) if graph.batch is None else np.moveaxis(found[0], batch, 0)


def load(path: str | Path, sample: Sequence[int] | None = None, *, quantizers: bool = True, output: str | None = None
         ) -> OnnxGraph:
    """Read a file.

    Parameters:
        sample: the shape of inputs, the batch first; None where the file says all but the batch. With an axis more
            than the file has, the file takes one sample.
        quantizers: whether those of the file say formats.
        output: the one to keep of several.

    Raises:
        Refusal: for a file that is no ONNX model, has several inputs or outputs, does not say a size, or says one that
            no memory holds; as `Quantizers`.
    """
    try:
        data = read_bytes(Path(path), LARGEST)
    except OSError as error:
        raise Refusal(f"{path} must be a file that can be read, but it cannot be ({reason(error)}); give another"
                      ) from None
    try:
        model = onnx.load_model_from_string(data)
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf and the checker raise kinds of their own
        raise Refusal(f"{path} must be a valid ONNX model, but it is not ({str(error).splitlines()[0][:200]}); export "
                      "it again") from None
    for dim in (dim for each in (*model.graph.input, *model.graph.output) for dim in each.type.tensor_type.shape.dim):
        if dim.dim_value < 0:  # As some exporters write that it is open.
            dim.Clear()
    del model.graph.value_info[:]  # What an exporter says of tensors, weights included, is inferred again.
    _require_small(path, _inferred(shape_inference.infer_shapes(model, data_prop=True).graph))  # Before it is computed.
    taken_out = Quantizers(model, keep=quantizers)
    graph = model.graph
    known = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    inputs = [each for each in graph.input if each.name not in known]
    given, outputs = ", ".join(each.name for each in inputs), {each.name: each for each in graph.output}
    if len(inputs) != 1:
        raise Refusal(f"{path} must have one input, not {len(inputs)} ({given}); export the model without states, and "
                      "with other inputs as constants")
    if len(outputs) != 1 and output not in outputs:
        raise Refusal(f"Of {path} one output must be named, not {output!r}: {', '.join(outputs)}; import it with "
                      "--output NAME (in Python output=NAME)")
    for each in [each for each in outputs.values() if output is not None and each.name != output]:
        graph.output.remove(each)
    if not graph.output:
        raise Refusal(f"{path} has no output {output!r}, only {', '.join(outputs)}; leave it out")
    needed, kept = {graph.output[0].name}, list[NodeProto]()
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.insert(0, node)
    del graph.node[:]
    graph.node.extend(kept)
    taken = inputs[0]
    dims = [dim.dim_value or None for dim in taken.type.tensor_type.shape.dim]
    batch = None if sample is not None and len(sample) == len(dims) + 1 else _batch_axis(graph, taken.name)
    shape = _concrete(path, dims, sample, batch)
    _require_small(path, {taken.name: shape})
    for dim, size in zip(taken.type.tensor_type.shape.dim, shape, strict=True):
        dim.Clear()
        dim.dim_value = size
    graph.output[0].type.tensor_type.ClearField("shape")
    found = _folded(path, model, taken.name, shape, known)
    if graph.output[0].name in found.constants:
        raise Refusal(f"{path} must have an output that depends on its input, not {graph.output[0].name!r}, which is "
                      "constant; export the output that counts")
    shapes = found.shapes if batch is not None else {name: (2, *sizes) for name, sizes in found.shapes.items()}
    taken_out.grids.update({name: taken_out.grids[source] for name, source in found.moved.items()
                            if source in taken_out.grids})
    integers = frozenset(each.name for each in (taken, *found.graph.value_info, *found.graph.output)
                         if each.type.tensor_type.elem_type not in FLOATS)
    nodes = together(found.nodes, found.constants, graph.output[0].name)
    return OnnxGraph(graph.name or Path(path).stem, taken.name, graph.output[0].name, batch, nodes=nodes,
                     constants=found.constants, shapes=shapes, integers=integers, ranges=taken_out.ranges,
                     grids=taken_out.grids, proto=model, open_axes=frozenset(
                         n + (batch is None or (batch or 0) > n) for n, size in enumerate(dims) if size is None))


def _batch_axis(graph: GraphProto, name: str) -> int:
    """The axis of the batch in the input: 1 where a recurrent node takes it, in which steps come first, else 0."""
    taken = {name}
    for node in graph.node:
        if node.op_type in RECURRENT and node.input[0] in taken:
            return 0 if any(each.name == "layout" and each.i for each in node.attribute) else 1
        if node.op_type in STEPWISE and taken & set(node.input):
            taken.update(node.output)
    return 0


def _concrete(path: str | Path, dims: Sequence[int | None], sample: Sequence[int] | None, batch: int | None) -> Shape:
    """The shape of the input: that of the file, or of the sample where it is open there; an open batch is of two."""
    sizes: list[int | None] = [None] * len(dims) if sample is None else [*sample[1:]]
    if sample is not None and batch is not None:
        sizes.insert(batch, None)
    if len(sizes) != len(dims) or any(a and b and a != b for a, b in zip(dims, sizes, strict=True)):
        raise Refusal(f"{path} takes inputs of the shape {_words(dims)}, not {_words(sizes)}; rearrange the axes of "
                      "the data")
    shape = [a or b for a, b in zip(dims, sizes, strict=True)]
    if batch is not None and batch < len(shape):
        shape[batch] = shape[batch] or 2
    if None in shape:
        raise Refusal(f"{path} must say the size of every axis but the batch, or data must, but its input is "
                      f"{_words(dims)}; give data of that shape")
    return tuple(size for size in shape if size is not None)


def _require_small(path: str | Path, shapes: Mapping[str, Shape]) -> None:
    """Check that no tensor is so large that to compute it once takes the memory of the machine.

    Raises:
        Refusal: naming the first that is.
    """
    for name, shape in shapes.items():
        if math.prod(shape) > VALUES or min(shape, default=0) < 0:
            raise Refusal(f"{path} must have tensors of at most {VALUES:,} values, and no negative size, but {name!r} "
                          f"is {_words(shape)}; export it with the sizes of real data")


def _inferred(graph: GraphProto) -> dict[str, Shape]:
    """The shapes that inference has found, by the names of tensors; 0 for a size that it has not."""
    return {each.name: tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
            for each in (*graph.value_info, *graph.output) if each.type.tensor_type.HasField("shape")}


def _words(dims: Sequence[int | None]) -> str:
    return f"({', '.join('any' if dim is None else str(dim) for dim in dims)})"


def _folded(path: str | Path, model: Any, input: str, shape: Shape, known: dict[str, NDArray[Any]]) -> "_Folded":
    """Nodes that depend on the data. Sizes that inference does not know may follow from what the last one made
    computable.

    Raises:
        Refusal: when shapes contradict each other.
    """
    left, moved = onnx.ModelProto(), dict[str, str]()
    left.CopyFrom(model)
    while True:
        found = _Folded(shape_inference.infer_shapes(left, data_prop=True), input, shape, known)
        moved |= found.moved
        if len(found.left) == len(left.graph.node):
            break
        known = found.constants
        del left.graph.node[:]
        left.graph.node.extend(found.left)
        taken = {name for node in found.left for name in node.input} - {each.name for each in left.graph.initializer}
        left.graph.initializer.extend(numpy_helper.from_array(known[name], name) for name in sorted(taken & set(known)))
    try:
        final = shape_inference.infer_shapes(left, strict_mode=True, data_prop=True)
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise Refusal(f"{path}: the shapes of its nodes contradict each other for inputs {shape} ({said}); export it "
                      "again, or give data of the right shape") from None
    _require_small(path, _inferred(final.graph))
    found = _Folded(final, input, shape, known)
    found.moved = moved
    return found


class _Folded:
    """Walks the nodes, and computes those that do not depend on the data.

    Members:
        left: the other nodes.
        moved: by constant the one that it is with its values at other places.
    """

    def __init__(self, model: Any, input: str, shape: Shape, known: dict[str, NDArray[Any]]) -> None:
        self.constants, self.nodes, self.left = dict(known), list[OnnxNode](), list[NodeProto]()
        self.shapes: dict[str, Shape] = {input: shape}
        self.moved: dict[str, str] = {}
        self.graph = model.graph
        inferred = _inferred(model.graph)
        for node in model.graph.node:
            made = self._constant(node, model.opset_import)
            if made is not None:
                self.constants.update(zip(node.output, made, strict=False))
                if node.op_type in MOVES:
                    self.moved[node.output[0]] = self.moved.get(node.input[0], node.input[0])
                continue
            self.left.append(node)
            attributes = {each.name: _plain(each) for each in node.attribute}
            self.nodes.append(OnnxNode(node.name, node.op_type, tuple(node.input), tuple(node.output), attributes))
            self.shapes |= {name: inferred[name] for name in node.output if name in inferred}

    def _constant(self, node: NodeProto, opsets: Any) -> list[NDArray[Any]] | None:
        """The values of a node, or None where they depend on the data."""
        given = [name for name in node.input if name]
        if node.op_type == "Shape" and 0 not in self.shapes.get(given[0], (0,)):
            ends = {each.name: each.i for each in node.attribute}
            return [np.array(self.shapes[given[0]][ends.get("start", 0):ends.get("end")], np.int64)]
        if any(name not in self.constants for name in given):
            return None
        return computed(node, self.constants, opsets)


def _plain(attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [each.decode() if isinstance(each, bytes) else each for each in value] if hasattr(
        value, "__iter__") and not isinstance(value, str) else value
