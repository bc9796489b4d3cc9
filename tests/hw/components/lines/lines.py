"""Shapes of line buffers that hold blocks as they are, for the tests of their parts."""
from dataclasses import dataclass

from amaranth.hdl import Module, signed
from amaranth.lib import data

from circulant.hw.array.line_shape import Walk
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.pool.window_pool import Passing
from circulant.hw.stream.pipeline import block
from circulant.sim.shape.window import Grid, Window

K, WIDTH = 2, 8


@dataclass(frozen=True)
class Lines:
    """A shape whose sizes are free.

    Parameters:
        grid: of the image.
        beats: blocks of a pixel.
    """

    grid: Grid
    window: Window
    beats: int = 1
    positions: int = 1
    blocks: int = 1
    passes: int = 1
    fold: int = 1

    @property
    def walk(self) -> Walk:
        return Walk(self.grid, self.window.outputs("lines", self.grid), self.window, self.beats)

    @property
    def lines(self) -> int:
        return 2 * self.window.kernel[0] + self.window.stride[0]

    @property
    def turns(self) -> tuple[int, int]:
        return -(-self.window.positions // self.positions), -(-self.beats // self.blocks)

    @property
    def cycles(self) -> int:
        return self.passes * self.turns[0] * self.turns[1] * self.fold

    @property
    def block(self) -> data.StructLayout:
        return block(K, WIDTH)

    @property
    def spectrum(self) -> data.ArrayLayout:
        return data.ArrayLayout(signed(WIDTH), K)

    def transform(self, m: Module, platform: Platform) -> Passing:
        m.submodules.passing = passing = Passing(self.spectrum, flip=False)
        return passing
