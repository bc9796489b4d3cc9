"""Normalisations over the features of each vector."""
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from circulant.sim.kinds.norm import FloatNorm
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.neutral.streams import as_numpy
from circulant.training.onnx import OnnxGraph, OnnxNode, constant, filled, module_of, of_onnx

__all__ = ["Norm"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Norm(Node):
    """A normalisation over the last axis: see `circulant.sim.kinds.norm.FloatNorm`."""

    mode: str
    gain: Tensor
    shift: Tensor
    epsilon: float
    stepwise: ClassVar[bool] = True


@of_torch(nn.LayerNorm, nn.RMSNorm)
def _captured(call: Call) -> Value:
    source, module = call.tensor, call.module
    if source.batch == source.rank - 1 or len(module.normalized_shape) != 1:
        raise Unsupported("it must normalise the features, the last axis alone; give it their number")
    size, mode = module.normalized_shape[0], "layer" if isinstance(module, nn.LayerNorm) else "rms"
    weight, bias = module.weight, getattr(module, "bias", None)
    epsilon = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    return call.emit(Norm, (source,), source.batch, mode=mode, epsilon=float(epsilon),
                     gain=torch.ones(size) if weight is None else weight.detach(),
                     shift=torch.zeros(size) if bias is None else bias.detach())


@lowered.register
def _(node: Norm, to: Builder) -> Stream | None:
    source = to.taken(node)
    if source.form.flow is None:
        return None
    gain, shift = as_numpy(node.gain), as_numpy(node.shift)
    return to.give(node.name, "norm", source, lambda name, flow: FloatNorm(
        name, flow.size, node.mode, gain, shift, epsilon=node.epsilon), source.form)


def _module(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    rank, axis = len(graph.shapes[node.inputs[0]]), node.attributes.get("axis", -1)
    if axis % rank != rank - 1:
        raise node.refused(f"it must normalise the last axis alone, not those from {axis} on; flatten them")
    scale = constant(graph, node, 1)
    shift = constant(graph, node, 2) if len(node.inputs) > 2 else np.zeros(len(scale))
    return filled(nn.LayerNorm(len(scale), eps=node.attributes.get("epsilon", 1e-5)), weight=scale, bias=shift)


of_onnx("LayerNormalization", module=_module, batched=False, becomes="`LayerNorm`", conditions="over the last axis")(
    module_of)
