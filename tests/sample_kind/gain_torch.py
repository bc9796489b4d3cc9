"""The gain as a torch module, its node in the neutral graph, and the layer that the node becomes."""
from dataclasses import dataclass

from torch import nn

from circulant.training.neutral import Builder, Call, Node, Stream, Value, lowered, of_torch
from tests.sample_kind.gain import FloatGain


class Double(nn.Module):
    """Twice the input."""

    def forward(self, x):
        return 2 * x


@dataclass(frozen=True, eq=False, kw_only=True)
class DoubleNode(Node):
    """Twice each value."""


@of_torch(Double)
def _captured(call: Call) -> Value:
    return call.emit(DoubleNode, (call.tensor,), call.tensor.batch)


@lowered.register
def _(node: DoubleNode, to: Builder) -> Stream:
    source = to.single(node)
    return to.give(node.name, "gain", source, lambda name, flow: FloatGain(name, flow.size), source.form,
                   order=source.order)

