"""Functions that exporters write as several nodes, because their opset has none for it: put together again."""
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from circulant.training.onnx.nodes import OnnxNode

__all__ = ["together"]

X = "x"

Pattern = tuple[Any, ...]
"""An operator and what it takes: numbers, other patterns, or `X`. Sums and products take them in any order."""

_BELL: Pattern = ("Add", ("Erf", ("Div", X, math.sqrt(2))), 1.0)

PATTERNS: tuple[tuple[str, Pattern], ...] = (
    ("Softsign", ("Div", X, ("Add", ("Abs", X), 1.0))),
    ("Gelu", ("Mul", ("Mul", X, _BELL), 0.5)),
    ("Gelu", ("Mul", ("Mul", X, 0.5), _BELL)),
    ("Gelu", ("Mul", X, ("Mul", _BELL, 0.5))),
)


def together(nodes: Sequence["OnnxNode"], constants: Mapping[str, NDArray[Any]], output: str) -> tuple["OnnxNode", ...]:
    """The nodes, one in the place of each pattern, without those that nothing takes then.

    Parameters:
        output: of the graph.
    """
    made = {name: node for node in nodes for name in node.outputs}
    changed: list[OnnxNode] = []
    for node in nodes:
        for op, pattern in PATTERNS:
            found = set[str]()
            if _fits(node.outputs[0], pattern, made, constants, found) and len(found) == 1:
                node = type(node)(node.name, op, (*found,), node.outputs, {})
                break
        changed.append(node)
    needed = {output}
    for node in reversed(changed):
        needed.update(node.inputs if needed.intersection(node.outputs) else ())
    return tuple(node for node in changed if needed.intersection(node.outputs))


def _fits(name: str, pattern: Any, made: Mapping[str, "OnnxNode"], constants: Mapping[str, NDArray[Any]],
          found: set[str]) -> bool:
    """Whether a tensor is what a pattern says; noted is what stands for `X`, which must be one tensor."""
    if pattern == X:
        found.add(name)
        return name not in constants
    if isinstance(pattern, float):
        return name in constants and constants[name].size == 1 and bool(np.isclose(constants[name].item(), pattern))
    op, *wanted = pattern
    node = made.get(name)
    if node is None or node.op != op or len(node.inputs) != len(wanted):
        return False
    orders = (node.inputs, node.inputs[::-1]) if op in ("Add", "Mul") else (node.inputs,)
    for order in orders:
        tried = set(found)
        if all(_fits(each, part, made, constants, tried) for each, part in zip(order, wanted, strict=True)) and len(
                tried) <= 1:
            found.update(tried)
            return True
    return False
