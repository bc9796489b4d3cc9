"""The modules of nodes with weights or windows."""
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from circulant.training.models.quantizer import Quantizer, set_grids
from circulant.training.onnx.graph import RECURRENT, OnnxGraph, OnnxNode
from circulant.training.onnx.recurrent import grids, recurrent

__all__ = ["bias_behind", "made"]

DEFAULTS = {"Gemm": {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}, "BatchNormalization": {"epsilon": 1e-5}}


def made(graph: OnnxGraph, node: OnnxNode) -> nn.Module | None:
    """The module of a node, with its weights; None where it has none.

    Raises:
        Refusal: when its weights are no constants, or it has what torch has not.
    """
    if found := graph.range(node):
        return Quantizer(found.low, found.high, found.frac)
    if graph.batch is None and (node.op in (*RECURRENT, "Conv", "BatchNormalization") or "Pool" in node.op):
        raise node.refused("it must take a batch, for which the file has no axis; give data with the axes of the file, "
                           "the batch first")
    if node.op in RECURRENT:
        return recurrent(graph, node)
    if node.op in ("Gemm", "MatMul"):
        return _linear(graph, node)
    if node.op in ("Conv", "MaxPool", "AveragePool"):
        return _windowed(graph, node)
    if node.op in ("GlobalAveragePool", "GlobalMaxPool"):
        kind = ("Avg" if "Average" in node.op else "Max") + f"Pool{_rank(graph, node)}d"
        pool: nn.Module = getattr(nn, f"Adaptive{kind}")(1)
        return pool
    return _batch_norm(graph, node) if node.op == "BatchNormalization" else None


def bias_behind(graph: OnnxGraph, node: OnnxNode) -> OnnxNode | None:
    """The addition of a vector of constants that alone takes what a MatMul gives: its bias."""
    users = graph.users(node.outputs[0])
    if node.op != "MatMul" or len(users) != 1 or users[0].op != "Add" or graph.output == node.outputs[0]:
        return None
    other = [name for name in users[0].inputs if name != node.outputs[0]]
    size = graph.shapes[node.outputs[0]][-1]
    known = other and other[0] in graph.constants and graph.constants[other[0]].size == size
    return users[0] if known and graph.constants[other[0]].shape[-1] == size else None


def _constant(graph: OnnxGraph, node: OnnxNode, number: int) -> NDArray[Any]:
    name = node.inputs[number]
    if name not in graph.constants:
        raise node.refused("its weights must be constants of the file, not computed from the data; export it for "
                           "inference")
    return np.asarray(graph.constants[name], np.float64)


def _linear(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    options = {**DEFAULTS["Gemm"], **node.attributes}
    if options["transA"]:
        raise node.refused("transA=1 is not supported; transpose its input")
    weight = _constant(graph, node, 1) * options["alpha"]
    if weight.ndim != 2:
        raise node.refused(f"its weights must be a matrix, not of {weight.ndim} axes; replace it by one for each")
    weight = weight if options["transB"] else weight.T  # (outputs, inputs)
    bias = np.zeros(len(weight))
    if behind := bias_behind(graph, node):
        name = next(name for name in behind.inputs if name != node.outputs[0])
        bias = np.asarray(graph.constants[name], np.float64).reshape(-1)
    elif len(node.inputs) > 2 and node.inputs[2]:
        rows = np.broadcast_to(_constant(graph, node, 2) * options["beta"], graph.shapes[node.outputs[0]])
        rows = rows.reshape(-1, len(weight))
        if not (rows == rows[0]).all():
            raise node.refused("its bias must be the same for all samples of a batch; give it one row")
        bias = rows[0]
    module = _filled(nn.Linear(weight.shape[1], len(weight)), weight=weight, bias=bias)
    set_grids(module, grids(graph, node, {1: {"weight": weight}}))
    return module


def _windowed(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    """A convolution or a pooling."""
    options, rank = node.attributes, _rank(graph, node)
    if options.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise node.refused(f"auto_pad={options['auto_pad']} is not supported; export it with its padding as numbers")
    pads = tuple(options.get("pads", [0] * 2 * rank))
    if pads[:rank] != pads[rank:]:
        raise node.refused(f"its padding must be alike on both sides, not {list(pads)}; pad both sides")
    more: dict[str, Any] = {"stride": tuple(options.get("strides", [1] * rank)), "padding": pads[:rank]}
    dilation = tuple(options.get("dilations", [1] * rank))
    if node.op == "Conv":
        weight = _constant(graph, node, 1)  # (outputs, inputs / groups, …)
        bias = _constant(graph, node, 2) if len(node.inputs) > 2 and node.inputs[2] else np.zeros(len(weight))
        groups = int(options.get("group", 1))
        kind: Any = {1: nn.Conv1d, 2: nn.Conv2d}[rank]
        module = _filled(kind(weight.shape[1] * groups, len(weight), weight.shape[2:], dilation=dilation, groups=groups,
                              **more), weight=weight, bias=bias)
        set_grids(module, grids(graph, node, {1: {"weight": weight}}))
        return module
    if node.op == "AveragePool" and set(dilation) != {1}:
        raise node.refused(f"dilations={list(dilation)} of an average are not supported; let windows have no gaps")
    kernel = tuple(options["kernel_shape"])
    more |= {"ceil_mode": bool(options.get("ceil_mode", 0))}
    if node.op == "MaxPool":
        pool: nn.Module = getattr(nn, f"MaxPool{rank}d")(kernel, dilation=dilation, **more)
        return pool
    counts = bool(options.get("count_include_pad", 0)) or not any(pads)
    mean: nn.Module = getattr(nn, f"AvgPool{rank}d")(kernel, count_include_pad=counts, **more)
    return mean


def _batch_norm(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    if node.attributes.get("training_mode", 0):
        raise node.refused("training_mode=1 takes the statistics of each batch; export it for inference")
    scale, shift, mean, variance = (_constant(graph, node, number) for number in range(1, 5))
    kind: Any = nn.BatchNorm2d if len(graph.shapes[node.inputs[0]]) == 4 else nn.BatchNorm1d
    epsilon = node.attributes.get("epsilon", 1e-5)
    return _filled(kind(len(scale), eps=epsilon), weight=scale, bias=shift, running_mean=mean, running_var=variance)


def _rank(graph: OnnxGraph, node: OnnxNode) -> int:
    """Axes of an image."""
    rank = len(graph.shapes[node.inputs[0]]) - 2
    if rank not in (1, 2):
        raise node.refused(f"it must take images of one or two axes, not of {rank}; reshape them")
    return rank


def _filled(module: nn.Module, **values: NDArray[Any]) -> nn.Module:
    with torch.no_grad():
        for name, value in values.items():
            getattr(module, name).copy_(torch.tensor(value.copy()))
    return module
