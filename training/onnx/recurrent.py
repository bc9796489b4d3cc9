"""LSTM and GRU of ONNX as modules of torch."""
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from circulant.sim.arith.fixed import Format
from circulant.training.models.cells import LinearRnn, PeepholeLstm, ResetBeforeGru
from circulant.training.models.quantizer import set_grids
from circulant.training.onnx.graph import OnnxGraph, OnnxNode

__all__ = ["grids", "recurrent"]

GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each gate in torch's order its place in ONNX: i, o, f, c there are i, f, c, o here; z, r, n are r, z, n."""

FUNCTIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def recurrent(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    """The module of a node.

    Raises:
        Refusal: when its weights contradict its sizes or each other, or it has what torch has not.
    """
    options, hidden = node.attributes, node.attributes.get("hidden_size", 0)
    direction = options.get("direction", "forward")
    if direction not in ("forward", "bidirectional"):
        raise node.refused(f"its direction must be forward or bidirectional, not {direction}; reverse the data")
    ways, gates = 1 + (direction == "bidirectional"), len(GATES[node.op])
    functions, due = list(options.get("activations", FUNCTIONS[node.op] * ways)), FUNCTIONS[node.op] * ways
    rectified = functions == [*due[:len(due) // ways - 1], "Relu"] * ways and not options.get("linear_before_reset")
    rectified = rectified and node.op != "LSTM"
    linear = node.op == "RNN" and functions == ["Affine"] * ways and not any(options.get("activation_beta", ())) and (
        list(options.get("activation_alpha", ())) == [1.0] * ways)
    if (functions != due and not rectified and not linear) or options.get("clip") or options.get("input_forget"):
        raise node.refused(f"its activations must be {', '.join(FUNCTIONS[node.op])} without a clip, not "
                           f"{', '.join(functions)}; train it with those")
    names = [*node.inputs, *[""] * 8]
    w, r = (_weights(graph, node, name) for name in names[1:3])
    inputs = graph.shapes[node.inputs[0]][-1]
    for name, array, due in (("W", w, (ways, gates * hidden, inputs)), ("R", r, (ways, gates * hidden, hidden))):
        if array.shape != due:
            raise node.refused(f"its sizes contradict each other: {name} must be {due} for {inputs} inputs and "
                               f"hidden_size {hidden}, not {array.shape}; export the float model, before it is "
                               "quantized, with another exporter")
    b = _weights(graph, node, names[3]) if names[3] else np.zeros((ways, 2 * gates * hidden))
    if b.shape != (ways, 2 * gates * hidden):
        raise node.refused(f"its sizes contradict each other: B must be {(ways, 2 * gates * hidden)}, not {b.shape}; "
                           "export it with another exporter")
    _check_start(graph, node, names[4:7])
    kind: Any = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}[node.op]
    peephole = _weights(graph, node, names[7]) if node.op == "LSTM" and names[7] else None
    after = node.op != "GRU" or bool(options.get("linear_before_reset", 0))
    if peephole is not None or not after:
        kind = ResetBeforeGru if node.op == "GRU" else PeepholeLstm
    kind, more = LinearRnn if linear else kind, {"nonlinearity": "relu"} if rectified else {}
    module = kind(inputs, hidden, bidirectional=ways == 2, **more)
    suffixes = ("_l0", "_l0_reverse")[:ways]
    set_grids(module, grids(graph, node, {1: {f"weight_ih{suffix}": w for suffix in suffixes},
                                          2: {f"weight_hh{suffix}": r for suffix in suffixes}}))
    with torch.no_grad():
        for way, suffix in enumerate(suffixes):
            _fill(module, suffix, _ordered(w[way], node.op), _ordered(r[way], node.op), b[way], op=node.op)
            if peephole is not None:
                p = peephole[way].reshape(3, hidden)[[0, 2, 1]]  # i, o, f there are i, f, o here.
                getattr(module, f"peephole{suffix}").copy_(torch.from_numpy(p))
    return module


def grids(graph: OnnxGraph, node: OnnxNode, weights: dict[int, dict[str, NDArray[Any]]]) -> dict[str, Format]:
    """The formats of a node's weights, where a quantizer says them.

    Parameters:
        weights: by the number of an input, and then by the name of what torch makes of it.

    Raises:
        Refusal: when they take too many bits, or left their grid.
    """
    found = {}
    for number, made in weights.items():
        if (grid := graph.grid(node.inputs[number])) is None:
            continue
        for name, values in made.items():
            form = grid.format(values)
            if form is None:
                raise node.refused("its quantized weights must be integers of at most 18 bits times one power of two, "
                                   "but they take more; give all channels one scale, and let nothing multiply the "
                                   "weights behind their quantizer")
            found[name] = form
    return found


def _fill(module: Any, suffix: str, w: NDArray[Any], r: NDArray[Any], b: NDArray[Any], *, op: str) -> None:
    """Set the weights of one direction."""
    of_x, of_h = (_ordered(half, op) for half in np.split(b, 2))
    getattr(module, f"weight_ih{suffix}").copy_(torch.from_numpy(w))
    getattr(module, f"weight_hh{suffix}").copy_(torch.from_numpy(r))
    if hasattr(module, f"bias{suffix}"):  # Our own cells have one bias.
        getattr(module, f"bias{suffix}").copy_(torch.from_numpy(of_x + of_h).view_as(getattr(module, f"bias{suffix}")))
    else:
        getattr(module, f"bias_ih{suffix}").copy_(torch.from_numpy(of_x))
        getattr(module, f"bias_hh{suffix}").copy_(torch.from_numpy(of_h))


def _ordered(rows: NDArray[Any], op: str) -> NDArray[Any]:
    """Rows of all gates in torch's order."""
    parts = np.split(rows, len(GATES[op]))
    return np.concatenate([parts[place] for place in GATES[op]])


def _weights(graph: OnnxGraph, node: OnnxNode, name: str) -> NDArray[Any]:
    if name not in graph.constants:
        raise node.refused("its weights must be constants of the file, not computed from the data; export it for "
                           "inference")
    return np.asarray(graph.constants[name], np.float64)


def _check_start(graph: OnnxGraph, node: OnnxNode, names: list[str]) -> None:
    """Check lengths and initial states, in this order: none, and zeros."""
    lengths, *states = names
    if lengths and not _alike(graph, lengths, graph.shapes[node.inputs[0]][node.attributes.get("layout", 0)]):
        raise node.refused("its sequences must all have the length of the input; leave sequence_lens out")
    for name in filter(None, states):
        if not _alike(graph, name, 0):
            raise node.refused("its initial states must be zeros; export it without states")


def _alike(graph: OnnxGraph, name: str, value: int) -> bool:
    return name in graph.constants and bool((graph.constants[name] == value).all())
