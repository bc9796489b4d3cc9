"""The data side of a convolution: the lines of an image, and the walk of the kernel over them."""
from amaranth.hdl import Module
from amaranth.lib import wiring

from circulant.hw.array.line_shape import LineShape
from circulant.hw.array.parts import Memory
from circulant.hw.components.lines.kernel_walk import KernelWalk
from circulant.hw.components.lines.line_store import LineStore
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import connect

__all__ = ["LineBuffer"]


class LineBuffer(wiring.Component):
    """Line buffer: a group of columns per cycle, without a gap while pixels are there and there is room for what comes
    of them.

    Parameters:
        shape: of a convolution, of tiles of one, or of a pooling.

    Members:
        i: stream of blocks of pixels, the last one of an image is marked; that mark is not looked at.
        room: whether an output pixel may be started.
        starts: an output pixel is started.
        issue: for the array, see `circulant.hw.array.issue.issue_signature`.
        spectra: spectra of the columns of the group that was issued `SPECTRA` cycles before.
    """

    def __init__(self, shape: LineShape) -> None:
        self._walk, self._store = KernelWalk(shape), LineStore(shape)
        store, walk = self._store.signature.members, self._walk.signature.members
        super().__init__({"i": store["i"], **{name: walk[name] for name in ("room", "starts", "issue")},
                          "spectra": store["spectra"]})

    @property
    def latency(self) -> int:
        """Cycles from the last block that an output pixel needs, out of the transform, to its first issue."""
        return self._walk.latency

    @property
    def memory(self) -> Memory:
        """The lines."""
        return self._store.memory

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.walk, m.submodules.store = walk, store = self._walk, self._store
        connect(m, wiring.flipped(self.i), store.i)
        wiring.connect(m, walk.group, store.group)
        wiring.connect(m, walk.issue, wiring.flipped(self.issue))
        m.d.comb += [
            walk.done.eq(store.done), walk.column.eq(store.column), store.freed.eq(walk.freed),
            walk.room.eq(self.room), self.starts.eq(walk.starts), self.spectra.eq(store.spectra),
        ]
        return m
