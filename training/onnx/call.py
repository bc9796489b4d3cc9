"""A node of an ONNX graph as it is computed: its inputs, attributes and axes, and where the batch lies."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from circulant.training.onnx.nodes import RECURRENT, OnnxGraph, OnnxNode

__all__ = ["OnnxCall", "Values"]

Values = Mapping[str, torch.Tensor]
"""Tensors computed from the data so far, by their names."""


@dataclass(frozen=True, eq=False)
class OnnxCall:
    """A node in its graph.

    Parameters:
        batch: by tensor the axis of the batch.
    """

    node: OnnxNode
    graph: OnnxGraph
    batch: dict[str, int]

    def data(self, values: Values, number: int = 0) -> Any:
        """An input that depends on the data."""
        name = self.node.inputs[number]
        if name not in values:
            raise self.node.refused("it must take what depends on the data, not a constant; compute that beforehand")
        return values[name]

    def operand(self, values: Values, number: int) -> Any:
        """An input of arithmetic, which may be a constant."""
        name = self.node.inputs[number]
        if name in values:
            x, more = values[name], len(self.result) - len(self.graph.shapes[name])
            return x.reshape(x.shape[0], *[1] * more, *x.shape[1:]) if self.extra and more > 0 else x
        like, array = next(iter(values.values())), np.asarray(self.graph.constants[name])
        axis = self.batch.get(self.node.outputs[0], 0) if array.ndim == len(self.result) else -1
        if not self.extra and axis >= 0 and (array == array.take([0], axis)).all():
            array = array.take([0], axis)  # As many samples as the data has.
        return torch.tensor(array).to(like.device, like.dtype)

    def number(self, number: int) -> Any:
        """An input that is a constant, or None where there is none."""
        name = self.node.inputs[number] if number < len(self.node.inputs) else ""
        if name and name not in self.graph.constants:
            raise self.node.refused("its sizes must be constants, not computed from the data; export it with fixed "
                                    "sizes")
        return self.graph.constants[name].tolist() if name else None

    def option(self, name: str, default: Any) -> Any:
        """An attribute."""
        return self.node.attributes.get(name, default)

    def axes(self, number: int = 1) -> list[int] | None:
        """Axes as an attribute or an input, none negative."""
        found = self.option("axes", self.number(number))
        return None if found is None else [self.place(axis) for axis in found]

    def axis(self, default: int) -> int:
        """The attribute of that name, not negative."""
        return self.place(self.option("axis", default))

    def place(self, axis: int) -> int:
        """The axis of the first input that the file means."""
        return axis % (len(self.source) - self.extra) + self.extra

    @property
    def extra(self) -> int:
        """Axes in front that the file does not have."""
        return int(self.graph.batch is None)

    @property
    def source(self) -> tuple[int, ...]:
        """The shape of the first input."""
        name = self.node.inputs[0]
        return self.graph.constants[name].shape if name in self.graph.constants else self.graph.shapes[name]

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.graph.shapes[self.node.outputs[0]]

    def follow_batch(self) -> None:
        """Note which axis of the outputs is that of the batch."""
        node = self.node
        if self.extra:
            self.batch.update(dict.fromkeys(node.outputs, 0))
            return
        first = next(name for name in node.inputs if name in self.batch)
        came = axis = self.batch[first]
        if node.op in RECURRENT:
            self.batch.update(zip(node.outputs, (0, 0, 0) if self.option("layout", 0) else (2, 1, 1), strict=False))
            return
        if node.op == "Transpose":
            axis = self.permutation.index(came)
        elif node.op in ("Reshape", "Flatten", "Squeeze", "Unsqueeze"):
            axis = self.batch_of_reshaped(came)
        elif node.op == "Gather" and self.axis(0) < came:
            axis += np.ndim(self.number(1)) - 1
        elif node.op.startswith("Reduce"):
            axis -= 0 if self.option("keepdims", 1) else sum(each < came for each in self.axes() or [])
        elif node.op != "Gather" and node.outputs[0] in self.graph.shapes:
            axis += len(self.result) - len(self.graph.shapes[first])  # Broadcasting adds axes in front.
        self.batch.update(dict.fromkeys(node.outputs, axis))

    @property
    def permutation(self) -> list[int]:
        given = self.option("perm", range(len(self.source) - self.extra)[::-1])
        return [0] * self.extra + [axis + self.extra for axis in given]

    def batch_of_reshaped(self, came: int) -> int:
        """The axis of the result that has as many values before it and as many in it as the batch had."""
        shape = self.source
        before = int(np.prod(shape[:came]))
        for axis, size in enumerate(self.result):
            if size == shape[came] and int(np.prod(self.result[:axis])) == before:
                return axis
        raise self.node.refused(f"it must leave the batch an axis of its own, not turn {shape} into {self.result}; "
                                "export it with a batch of more than 1")
