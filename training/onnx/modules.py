"""The modules of nodes with weights or windows."""
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from circulant.training.models.quantizer import Quantizer, set_grids
from circulant.training.onnx.graph import RECURRENT, OnnxGraph, OnnxNode
from circulant.training.onnx.recurrent import grids, recurrent

__all__ = ["bias_behind", "made", "padding_of"]

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
    if node.op == "LayerNormalization":
        return _layer_norm(graph, node)
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


def padding_of(graph: OnnxGraph, node: OnnxNode) -> tuple[int, ...] | None:
    """The zeros of a Pad that alone a convolution takes, which pads by itself: those before each axis, and behind."""
    users = [user.op for user in graph.users(node.outputs[0])]
    if node.op != "Pad" or users != ["Conv"] or node.attributes.get("mode", "constant") != "constant":
        return None
    given, value, axes = (np.asarray(graph.constants[name]) if name in graph.constants else None
                          for name in (*node.inputs, "", "", "")[1:4])
    rank = len(graph.shapes[node.inputs[0]])
    pads = np.zeros((2, rank), int)
    given = np.asarray(node.attributes.get("pads", given))
    pads[:, range(rank) if axes is None else axes] = given.reshape(2, -1)
    value = node.attributes.get("value", 0 if value is None else value)
    return None if np.any(value) or pads[:, :2].any() or (pads < 0).any() else tuple(pads[:, 2:].reshape(-1).tolist())


def _pads(graph: OnnxGraph, node: OnnxNode, kernel: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The padding of each axis, which is alike on both sides, or as good as that where no window reaches the end; or
    the zeros in front of a causal convolution over time, and that it is one."""
    options, rank = node.attributes, len(kernel)
    strides, gaps = (options.get(name, [1] * rank) for name in ("strides", "dilations"))
    spans = [(size - 1) * gap + 1 for size, gap in zip(kernel, gaps, strict=True)]
    sizes, results = (graph.shapes[name][2:] for name in (node.inputs[0], node.outputs[0]))
    auto, pads = options.get("auto_pad", "NOTSET"), list(options.get("pads", [0] * 2 * rank))
    if auto != "NOTSET":
        due = [0 if auto == "VALID" else max(0, (result - 1) * stride + span - size)
               for result, stride, span, size in zip(results, strides, spans, sizes, strict=True)]
        before = [(each + (auto == "SAME_LOWER")) // 2 for each in due]
        pads = [*before, *(each - first for each, first in zip(due, before, strict=True))]
    source = next((each for each in graph.nodes if node.inputs[0] in each.outputs), None)
    if source is not None and (more := padding_of(graph, source)):
        pads = [a + b for a, b in zip(pads, more, strict=True)]
        sizes = graph.shapes[source.inputs[0]][2:]
    if node.op == "Conv" and rank == 1 and kernel[0] > 1 and pads == [spans[0] - 1, 0]:
        return (spans[0] - 1,), True
    if min(results) < 1:
        raise node.refused(f"its windows {list(kernel)} must fit into the images, which are {list(sizes)}; give "
                           "larger ones")
    if any((size + 2 * pad - span) // stride + 1 != result for size, pad, span, stride, result in zip(
            sizes, pads, spans, strides, results, strict=False)):
        raise node.refused("ceil_mode=1 adds windows beyond the edge; leave it out" if options.get("ceil_mode") else
                           f"its padding must be alike on both sides, not {pads}; pad both sides")
    return tuple(pads[:rank]), False


def _windowed(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    """A convolution or a pooling."""
    options, rank = node.attributes, _rank(graph, node)
    dilation = tuple(options.get("dilations", [1] * rank))
    weight = _constant(graph, node, 1) if node.op == "Conv" else np.zeros(0)  # (outputs, inputs / groups, …)
    kernel = weight.shape[2:] if node.op == "Conv" else tuple(options["kernel_shape"])
    pads, causal = _pads(graph, node, kernel)
    stride = tuple(options.get("strides", [1] * rank))
    if node.op == "Conv":
        bias = _constant(graph, node, 2) if len(node.inputs) > 2 and node.inputs[2] else np.zeros(len(weight))
        groups = int(options.get("group", 1))
        kind: Any = {1: nn.Conv1d, 2: nn.Conv2d}[rank]
        module = _filled(kind(weight.shape[1] * groups, len(weight), kernel, stride=stride, dilation=dilation,
                              groups=groups, padding=(0,) if causal else pads), weight=weight, bias=bias)
        set_grids(module, grids(graph, node, {1: {"weight": weight}}))
        return nn.Sequential(nn.ConstantPad1d((pads[0], 0), 0.0), module) if causal else module
    if any(2 * pad > size for pad, size in zip(pads, kernel, strict=True)):
        raise node.refused(f"its padding must be at most half of its windows {list(kernel)}, not {list(pads)}; pad "
                           "less")
    if node.op == "MaxPool":
        pool: nn.Module = getattr(nn, f"MaxPool{rank}d")(kernel, stride, pads, dilation)
        return pool
    if set(dilation) != {1}:
        raise node.refused(f"dilations={list(dilation)} of an average are not supported; let windows have no gaps")
    counts = bool(options.get("count_include_pad", 0)) or not any(pads)
    mean: nn.Module = getattr(nn, f"AvgPool{rank}d")(kernel, stride, pads, count_include_pad=counts)
    return mean


def _batch_norm(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    if node.attributes.get("training_mode", 0):
        raise node.refused("training_mode=1 takes the statistics of each batch; export it for inference")
    scale, shift, mean, variance = (_constant(graph, node, number) for number in range(1, 5))
    kind: Any = nn.BatchNorm2d if len(graph.shapes[node.inputs[0]]) == 4 else nn.BatchNorm1d
    if len(graph.shapes[node.inputs[0]]) > 4:
        raise node.refused("it must take vectors, or images of one or two axes; reshape them")
    epsilon = node.attributes.get("epsilon", 1e-5)
    return _filled(kind(len(scale), eps=epsilon), weight=scale, bias=shift, running_mean=mean, running_var=variance)


def _layer_norm(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    rank, axis = len(graph.shapes[node.inputs[0]]), node.attributes.get("axis", -1)
    if axis % rank != rank - 1:
        raise node.refused(f"it must normalise the last axis alone, not those from {axis} on; flatten them")
    scale = _constant(graph, node, 1)
    shift = _constant(graph, node, 2) if len(node.inputs) > 2 else np.zeros(len(scale))
    return _filled(nn.LayerNorm(len(scale), eps=node.attributes.get("epsilon", 1e-5)), weight=scale, bias=shift)


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
