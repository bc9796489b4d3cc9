"""States that a gate blends with what comes: the recurrence of minGRU and minLSTM."""
from typing import ClassVar

from circulant.sim.kinds.blend import FloatBlend
from circulant.training.models import scans
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch

__all__ = ["Blend", "check_steps"]


class Blend(Node):
    """The states h + z (x - h) behind each step of z and x: see `circulant.sim.kinds.blend.FloatBlend`."""

    stepwise: ClassVar[bool] = True


@of_torch(scans.Blend)
def _captured(call: Call) -> Value:
    pair = call.given
    if len(pair) != 2 or not all(isinstance(each, Value) for each in pair):
        raise Unsupported("it must take two sequences that depend on the input, gates and values")
    for source in pair:
        check_steps(source)
    if pair[0].sizes != pair[1].sizes:
        raise Unsupported(f"it must take two sequences of one shape, not {pair[0].sizes} and {pair[1].sizes}; "
                          "broadcasting is not supported")
    return call.emit(Blend, pair, 0)


def check_steps(source: Value) -> None:
    """Check that a value is a sequence."""
    if source.rank != 3 or source.batch:
        raise Unsupported(f"it must take (N, T, size), not {source.rank} axes with the batch on axis {source.batch}; "
                          "transpose or unsqueeze")


@lowered.register
def _(node: Blend, to: Builder) -> Stream:
    gate, given = (to.taken(node, number, sequence=True) for number in (0, 1))
    return to.give(node.name, "blend", gate, lambda name, flow: FloatBlend(name, flow.size), given.form,
                   others=(given,))
