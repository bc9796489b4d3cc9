"""Recurrent layers without gates: tanh, ReLU or linear."""
from typing import Any

from torch import nn

from circulant.sim.kinds.rnn import FloatRnn
from circulant.training.kinds.cell import Fields, RecurrentKind, register
from circulant.training.kinds.step import CellStep
from circulant.training.models.cells import LinearRnn
from circulant.training.neutral import Value
from circulant.training.onnx import OnnxNode


def _layer(name: str, module: Any, suffix: str, fields: Fields) -> FloatRnn:
    return FloatRnn(name, nonlinearity=module.nonlinearity, **fields)


def _module_of(node: OnnxNode) -> type[nn.Module]:
    options = node.attributes
    ways = 1 + (options.get("direction", "forward") == "bidirectional")
    linear = list(options.get("activations", ())) == ["Affine"] * ways and not any(options.get("activation_beta", ()))
    return LinearRnn if linear and list(options.get("activation_alpha", ())) == [1.0] * ways else nn.RNN


def _step(step: CellStep) -> Value:
    return step.function("", step.both("sum"), step.module.nonlinearity)


register(RecurrentKind("rnn", (nn.RNN, LinearRnn), _layer, cell=nn.RNNCell, step=_step, order=(0,), functions=["Tanh"],
                       module_of=_module_of, rectified=(nn.RNN,)))
