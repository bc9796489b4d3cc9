"""Modules of nodes with weights or windows: what they have in common."""
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from circulant.sim.arith.fixed import Format
from circulant.training.onnx.nodes import OnnxGraph, OnnxNode

__all__ = ["constant", "filled", "grids", "padding_of", "weights"]


def weights(graph: OnnxGraph, node: OnnxNode, name: str) -> NDArray[Any]:
    """The values of a tensor that must be a constant."""
    if name not in graph.constants:
        raise node.refused("its weights must be constants of the file, not computed from the data; export it for "
                           "inference")
    return np.asarray(graph.constants[name], np.float64)


def constant(graph: OnnxGraph, node: OnnxNode, number: int) -> NDArray[Any]:
    """The weights that an input is."""
    return weights(graph, node, node.inputs[number])


def grids(graph: OnnxGraph, node: OnnxNode, weights: dict[int, dict[str, NDArray[Any]]]) -> dict[str, Format]:
    """The formats of a node's weights, where a quantizer says them.

    Parameters:
        weights: by the number of an input, and then by the name of what torch makes of it.

    Raises:
        Refusal: when they take too many bits, or left their grid.
    """
    found = {}
    for number, made in weights.items():
        if (grid := graph.grids.get(node.inputs[number])) is None:
            continue
        for name, values in made.items():
            form = grid.format(values)
            if form is None:
                raise node.refused("its quantized weights must be integers of at most 18 bits times one power of two, "
                                   "but they take more; give all channels one scale, and let nothing multiply the "
                                   "weights behind their quantizer")
            found[name] = form
    return found


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


def filled(module: nn.Module, **values: NDArray[Any]) -> nn.Module:
    """A module with these parameters."""
    with torch.no_grad():
        for name, value in values.items():
            getattr(module, name).copy_(torch.tensor(value.copy()))
    return module
