"""The shapes that a `circulant.hw.components.lines.LineBuffer` serves: convolutions, tiles of them, poolings."""
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Protocol

import numpy as np
from amaranth.hdl import Module, signed
from amaranth.lib import data, stream

from circulant.hw.arith.fft import FftShape, ForwardFft
from circulant.hw.array.program import ArrayShape, Matrix, Part, Program
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.emit.target import Platform, instances
from circulant.hw.stream.pipeline import block
from circulant.sim.kinds.conv import Conv
from circulant.sim.shape.window import Grid, Window

__all__ = ["LineBufferShape", "LineShape", "Transform", "Walk"]


@dataclass(frozen=True)
class Walk:
    """The image that a kernel moves over, and how; see `circulant.sim.kinds.conv.Conv`.

    Parameters:
        grid, output_grid: (height, width) of what comes and of what leaves.
        blocks: of a pixel.
        block_by_block: whether all positions of the kernel are read of a block before the next one, a sum for each.
    """

    grid: Grid
    output_grid: Grid
    window: Window
    blocks: int = 1
    block_by_block: bool = False


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


@dataclass(frozen=True, eq=False)
class LineBufferShape:
    """How a convolution meets its array.

    Parameters:
        layer: the golden layer.
        positions, blocks: of the kernel and of a pixel, that the array takes in a cycle; their product is the columns
            of the array.
        rows, chains, fold, protection: of the array.

    Members:
        pixels: that come and leave side by side.
    """

    layer: Conv
    positions: int
    blocks: int
    rows: int
    chains: int
    fold: int = 1
    protection: str = "none"
    pixels: ClassVar[int] = 1

    @property
    def row_columns(self) -> int:
        """Columns of the array."""
        return self.positions * self.blocks

    @property
    def multiplications(self) -> int:
        """Real multiplications of an image."""
        return prod(self.layer.output_grid) * self.layer.product.multiplications

    @property
    def array(self) -> ArrayShape:
        return ArrayShape(self.rows, self.row_columns, self.chains, self.fold, protection=self.protection)

    @property
    def turns(self) -> tuple[int, int]:
        """Groups of kernel positions, and of blocks, that make a sum."""
        return -(-self.layer.window.positions // self.positions), -(-self.layer.blocks // self.blocks)

    @property
    def passes(self) -> int:
        return -(-(self.layer.product.rows // self.layer.product.block_size) // self.rows)

    @property
    def cycles(self) -> int:
        """Array cycles per output pixel."""
        return self.passes * self.turns[0] * self.turns[1] * self.fold

    @property
    def lines(self) -> int:
        """Lines that are kept: those that a row of outputs sees, and as many again for the next image to come in."""
        window = self.layer.window
        return 2 * window.extent[0] + window.stride[0]

    @property
    def walk(self) -> Walk:
        """The image that the kernel moves over."""
        return Walk(self.layer.grid, self.layer.output_grid, self.layer.window, self.layer.blocks)

    @property
    def block(self) -> data.StructLayout:
        """Layout of a block that comes in."""
        return block(self.layer.product.block_size, self.layer.product.input.width)

    @property
    def spectrum(self) -> data.ArrayLayout:
        """Layout of a block's spectrum, as the lines hold it."""
        return data.ArrayLayout(signed(self.layer.product.spectrum.width), self.layer.product.block_size)

    def transform(self, m: Module, platform: Platform) -> ForwardFft:
        """The way from blocks to spectra, added to the module."""
        product = self.layer.product
        (transform,) = instances(
            m, platform, "fft", ForwardFft, 1,
            shape=FftShape(product.block_size, product.input.width, product.twiddle_bits),
            shift=product.input.frac - product.spectrum.frac, spectrum_width=product.spectrum.width)
        return transform

    @property
    def program(self) -> Program:
        """Pass after pass, the columns of the matrix in the order in which the lines give them."""
        layer, (outer, inner) = self.layer, self.turns
        p, _, k = layer.product.weights.shape
        weights = np.zeros((p, outer * self.positions, inner * self.blocks, k), np.int64)
        weights[:, :layer.window.positions, :layer.blocks] = layer.product.weights.reshape(
            p, layer.window.positions, layer.blocks, k)
        grouped = weights.reshape(p, outer, self.positions, inner, self.blocks, k).transpose(0, 1, 3, 2, 4, 5)
        product = replace(layer.product, weights=np.ascontiguousarray(grouped.reshape(p, -1, k)))
        columns = product.weights.shape[1]
        program = InputFirst(self.array, [Matrix((Part(product, 0, 0),), ("y",))], inputs=columns,
                          order=[(0, row) for row in range(0, p, self.rows)], spacing=(columns, columns, columns))
        issues = [(issue.number, issue.group) for issue in program.commands[0]]
        assert issues == [(n, group) for n in range(self.passes) for group in range(outer * inner)]
        assert all(each.slot == 0 for each in program.passes)
        return program
