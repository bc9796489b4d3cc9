"""The gain as a torch module, its node in the neutral graph, and the layer that the node becomes."""
from dataclasses import dataclass

from torch import nn

from circulant.training.capture import graph
from circulant.training.capture.building import Builder
from circulant.training.capture.call import Call, Value
from circulant.training.capture.lowering import lowered
from circulant.training.capture.operators import MODULES
from circulant.training.capture.streams import Stream
from tests.sample_kind.gain import FloatGain


class Double(nn.Module):
    """Twice the input."""

    def forward(self, x):
        return 2 * x


@dataclass(frozen=True, eq=False, kw_only=True)
class DoubleNode(graph.Node):
    """Twice each value."""


def _captured(call: Call) -> Value:
    return call.emit(DoubleNode, (call.tensor,), call.tensor.batch)


@lowered.register
def _(node: DoubleNode, to: Builder) -> Stream:
    source = to.single(node)
    return to.give(node.name, "gain", source, lambda name, flow: FloatGain(name, flow.size), source.form,
                   order=source.order)


MODULES[Double] = _captured
