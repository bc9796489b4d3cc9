"""The Linear: a matrix over the last axis."""
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn
from torch.nn import functional

from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.shape.window import Flow
from circulant.training.blocks.approximate import first_of, forward, integers_of, product_of, rows_of, through
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.kinds.matrix import Matrix, weights_of
from circulant.training.models.quantizer import set_grids
from circulant.training.neutral import Builder, Call, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.neutral.streams import Form, as_numpy
from circulant.training.onnx import OnnxGraph, OnnxNode, constant, filled, grids, module_of, of_onnx

__all__ = ["Linear", "bias_behind", "dense"]

GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


@dataclass(frozen=True, eq=False, kw_only=True)
class Linear(Matrix):
    """A matrix over the last axis."""

    stepwise: ClassVar[bool] = True
    features: ClassVar[int] = -1


def dense(call: Call, source: Value, weight: Tensor, bias: Tensor, *, part: str = "", relu: bool = False) -> Value:
    """The value of a node for a dense matrix (rows, columns) times vectors.

    Parameters:
        part: as of `Call.emit`.
    """
    constraint = BlockCirculant(len(weight), weight.shape[1], 1)
    return call.emit(Linear, (source,), 0, part=part, shape=(None, len(weight)), first=constraint.right_inverse(weight),
                     constraint=constraint, bias=bias, relu=relu)


@of_torch(nn.Linear, stepwise=True)
def _captured(call: Call) -> Value:
    source = call.tensor
    if source.batch == source.rank - 1:
        raise Unsupported("it must work on the features, not on the batch; move the axes")
    return call.emit(Linear, (source,), source.batch, **weights_of(call.module))


@lowered.register
def _(node: Linear, to: Builder) -> Stream | None:
    source, rows = to.taken(node), node.constraint.rows
    if source.form.flow is None:
        return None
    sequence, weight, bias = source.form.flow.sequence, as_numpy(node.first)[0], as_numpy(node.bias)
    if node.constraint.block_size == 1 and node.grid is None and (found := to.unmoved(node, source)):
        source, moved = found
        weight, bias = (weight[..., 0] @ moved.weight)[..., None], bias + weight[..., 0] @ moved.bias
    made = to.give(node.name, "linear", source, lambda name, flow: FloatLinear(
        name, flow.size, rows, weight=weight, bias=bias, relu=node.relu),
        Form.of(Flow(rows, sequence=sequence), *source.form.shape[:-1]))
    to.note_grid(made.name, {node.constraint.block_size}, product=node.grid)
    return made


@forward.register(nn.Linear)
def _(module: Any, layer: Any, x: Tensor) -> Tensor:
    product = product_of(layer.product, first_of(module, "weight", module.weight), [module.bias])
    return through(functional.linear(x, module.weight, module.bias), rows_of(
        product, layer.outputs, integers_of(product, x)))


def bias_behind(graph: OnnxGraph, node: OnnxNode) -> OnnxNode | None:
    """The addition of a vector of constants that alone takes what a MatMul gives: its bias."""
    users = graph.users(node.outputs[0])
    if node.op != "MatMul" or len(users) != 1 or users[0].op != "Add" or graph.output == node.outputs[0]:
        return None
    other = [name for name in users[0].inputs if name != node.outputs[0]]
    size = graph.shapes[node.outputs[0]][-1]
    known = other and other[0] in graph.constants and graph.constants[other[0]].size == size
    return users[0] if known and graph.constants[other[0]].shape[-1] == size else None


def _module(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    options = GEMM | node.attributes
    if options["transA"]:
        raise node.refused("transA=1 is not supported; transpose its input")
    weight = constant(graph, node, 1) * options["alpha"]
    if weight.ndim != 2:
        raise node.refused(f"its weights must be a matrix, not of {weight.ndim} axes; replace it by one for each")
    weight = weight if options["transB"] else weight.T  # (outputs, inputs)
    bias = np.zeros(len(weight))
    if behind := bias_behind(graph, node):
        name = next(name for name in behind.inputs if name != node.outputs[0])
        bias = np.asarray(graph.constants[name], np.float64).reshape(-1)
    elif len(node.inputs) > 2 and node.inputs[2]:
        rows = np.broadcast_to(constant(graph, node, 2) * options["beta"], graph.shapes[node.outputs[0]])
        rows = rows.reshape(-1, len(weight))
        if not np.array_equal(rows, rows[:1].repeat(len(rows), 0), equal_nan=True):
            raise node.refused("its bias must be the same for all samples of a batch; give it one row")
        bias = rows[0]
    module = filled(nn.Linear(weight.shape[1], len(weight)), weight=weight, bias=bias)
    set_grids(module, grids(graph, node, {1: {"weight": weight}}))
    return module


of_onnx("Gemm", "MatMul", module=_module, batched=False, becomes="`Linear`, an `Add` of a vector behind it its bias",
        conditions="weights are constants of the file; no `transA`")(module_of)
