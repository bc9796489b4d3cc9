"""The shapes that a `circulant.hw.layers.line_buffer.LineBuffer` serves: convolutions, tiles of them, poolings."""
from dataclasses import dataclass
from typing import Protocol

from amaranth.hdl import Module
from amaranth.lib import data, stream

from circulant.hw.emit.target import Platform
from circulant.sim.shape.window import Grid, Window

__all__ = ["LineShape", "Transform", "Walk"]


@dataclass(frozen=True)
class Walk:
    """The image that a kernel moves over, and how; see `circulant.sim.golden.conv.Conv`.

    Parameters:
        grid, output_grid: (height, width) of what comes and of what leaves.
        blocks: of a pixel.
    """

    grid: Grid
    output_grid: Grid
    window: Window
    blocks: int = 1


class Transform(Protocol):
    """A component between the blocks that come and the lines: an FFT, filters of a tile, or nothing.

    Members:
        i: stream of blocks.
        o: stream of what the lines hold, in the same order.
    """

    i: stream.Interface
    o: stream.Interface


class LineShape(Protocol):
    """Sizes of a line buffer, and of the array or tree behind it."""

    @property
    def walk(self) -> Walk:
        """The image that the kernel moves over."""

    @property
    def lines(self) -> int:
        """Lines that are kept."""

    @property
    def positions(self) -> int:
        """Positions of the kernel that are read in a cycle."""

    @property
    def blocks(self) -> int:
        """Blocks of a pixel that are read in a cycle."""

    @property
    def turns(self) -> tuple[int, int]:
        """Groups of kernel positions, and of blocks, that make a sum."""

    @property
    def passes(self) -> int:
        """How often the kernel is read for an output pixel."""

    @property
    def fold(self) -> int:
        """Cycles that a group stays."""

    @property
    def cycles(self) -> int:
        """Cycles per output pixel."""

    @property
    def block(self) -> data.StructLayout:
        """Layout of a block that comes in, see `circulant.hw.stream.pipeline.block`."""

    @property
    def spectrum(self) -> data.ArrayLayout:
        """Layout of a block as the lines hold it."""

    def transform(self, m: Module, platform: Platform) -> Transform:
        """The way from blocks to what the lines hold, added to the module."""
