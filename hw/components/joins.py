"""Joins of several streams: sums, products and their like, and vectors side by side.

What one branch gives waits in a queue until the others have come. A queue that holds a whole vector is enough against
a deadlock: each layer gives a vector, or a step, from those that came up to it, so the oldest one under way is never
kept back. So that nothing stalls either, it holds as many as the longest other way has under way. Where the steps of
the other way come when the last one has gone in, a whole sequence waits, too (`Stages.waiting`).
"""
from collections.abc import Sequence
from typing import ClassVar

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts
from circulant.hw.stream.pipeline import block
from circulant.hw.stream.storage import DeepQueue
from circulant.hw.unit import FLYING, SLACK, WithoutImages
from circulant.sim.kinds.blend import Blend
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.elementwise import Elementwise

__all__ = ["JoinLayer", "waiting"]


def waiting(beats: int, beside: int) -> int:
    """Blocks that wait in front of a join at the most, of vectors of so many ``beats``.

    Parameters:
        beside: stages on the longest other way.
    """
    return (2 + FLYING * beside) * beats + SLACK * beside + DeepQueue.latency


class JoinLayer(WithoutImages, wiring.Component):
    """Several streams in, one out; each waits in a queue of its own.

    Parameters:
        k: values of a block, of all streams.
        beside: for each source the stages on the longest other way.

    Members:
        k: values of a block.
        depths: blocks that each queue holds.
        more: that it holds besides, as another source comes over a link.
        i_0, i_1, …: streams of blocks of the sources, in their order.
        o: stream of blocks of the join.
    """

    more: ClassVar[int] = 0

    def __init__(self, layer: Elementwise | Concat | Blend, *, k: int, beside: Sequence[int]) -> None:
        self._layer, self.k = layer, k
        self.depths = [waiting(-(-size // k), stages) for size, stages in zip(layer.sizes, beside, strict=True)]
        super().__init__({
            **{f"i_{n}": In(stream.Signature(block(k, form.width))) for n, form in enumerate(layer.input_formats)},
            "o": Out(stream.Signature(block(k, layer.output_format.width)))})

    @property
    def inputs(self) -> list[stream.Interface]:
        """The streams of its sources."""
        return [getattr(self, f"i_{n}") for n in range(len(self.depths))]

    @property
    def widths(self) -> list[int]:
        """Bits of a value that waits, source by source."""
        return [form.width for form in self._layer.input_formats]

    @property
    def parts(self) -> Parts:
        return Parts([Memory(1, self.k * width + 1, depth + self.more)
                      for width, depth in zip(self.widths, self.depths, strict=True)])

    def _queues(self, m: Module) -> list[DeepQueue]:
        found = []
        for n, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            m.submodules[f"waits_{n}"] = queue = DeepQueue(
                block(self.k, width), depth=depth + self.more, prompt=True)
            found.append(queue)
        return found
