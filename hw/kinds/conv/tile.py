"""Dense convolutions several pixels at once, with fewer multiplications: fast FIR filters.

Two outputs of a filter of s taps share products as two parts of a polynomial do (Karatsuba; as parallel FIR filters
Parker and Parhi 1997): with W0, W1 the even and the odd taps, X0, X1 the even and the odd pixels,

    P = (W0 + W1) X1        y_even = W0 (X0 - X1) + P        y_odd = W1 (X0' - X1) + P

where X0' is X0 one pixel on. Each of the three is a filter of half the taps, and for four outputs the same again: of 5
taps 8 products for 2 outputs and 13 for 4, in place of 10 and 20. All factors are 0 and ±1, so the sums are exactly
those of the definition.
"""
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.arith.fixed import requantize
from circulant.hw.array.line_shape import Walk
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block
from circulant.sim.arith.fixed import Integers
from circulant.sim.kinds.conv import Conv
from circulant.sim.shape.window import Window

__all__ = ["PIXELS", "TileShape", "Tiler", "fast_fir", "tiles_fit", "weighted"]

PIXELS = (2, 4)
"""Sizes of a tile."""


@cache
def fast_fir(outputs: int, taps: int) -> tuple[Integers, Integers, Integers]:
    """(x, w, y) such that ``y @ ((w @ taps) * (x @ pixels))`` are the ``outputs`` of a filter: y_i = Σ_t w_t x_(i+t).

    Shapes (products, outputs + taps - 1), (products, taps) and (outputs, products); ``outputs`` is a power of two.
    """
    if outputs == 1 or taps == 1:
        places = [(i, t) for i in range(outputs) for t in range(taps)]
        x, w = np.zeros((len(places), outputs + taps - 1), np.int64), np.zeros((len(places), taps), np.int64)
        y = np.zeros((outputs, len(places)), np.int64)
        for n, (i, t) in enumerate(places):
            x[n, i + t] = w[n, t] = y[i, n] = 1
        return x, w, y
    half, odd = outputs // 2, taps // 2
    samples = np.eye(outputs + taps, outputs + taps - 1, dtype=np.int64)  # a zero behind the last one
    x0, x1 = samples[0::2], samples[1::2]
    w0, w1 = (np.eye(taps, dtype=np.int64)[n::2] for n in range(2))
    both = w0.copy()
    both[:odd] += w1
    one, zero = np.eye(half, dtype=np.int64), np.zeros((half, half), np.int64)
    parts = []
    for pixels, weights, place in (
            (x1, both, (one, one)), (x0[:len(x1)] - x1, w0, (one, zero)), (x0[1:] - x1[:len(x0) - 1], w1, (zero, one))):
        x, w, y = fast_fir(half, len(weights))
        joined = np.zeros((outputs, len(x)), np.int64)
        for phase in range(2):
            joined[phase::2] = place[phase] @ y
        parts.append((x @ pixels[:half + len(weights) - 1], w @ weights, joined))
    x, w, y = zip(*parts, strict=True)
    return np.concatenate(x), np.concatenate(w), np.concatenate(y, axis=1)


def growth(matrix: Integers) -> int:
    """Bits by which a product with a matrix of 0 and ±1 is wider, on either side."""
    return ceil_log2(int(np.abs(matrix).sum(1).max()))


def weighted(values: list[Value], row: Integers) -> Value:
    """The sum of values with factors 0 and ±1."""
    total: Value | None = None
    for value, factor in zip(values, row.tolist(), strict=True):
        if factor:
            total = (value if factor > 0 else -value) if total is None else (
                total + value if factor > 0 else total - value)
    return Const(0, signed(1)) if total is None else total


def tiles_fit(layer: Conv, pixels: int) -> bool:
    """Whether a layer can be computed in tiles of that many pixels side by side."""
    across, width = layer.output_grid[1], layer.grid[1]
    window = layer.window
    return (layer.product.block_size == 1 and window.stride[1] == window.dilation[1] == 1 < window.kernel[1]
            and across % pixels == 0 and width % pixels == 0 and across <= width)


@dataclass(frozen=True, eq=False)
class TileShape:
    """How a dense convolution is computed in tiles; in place of a `LineBufferShape`.

    Parameters:
        layer: the golden layer, which `tiles_fit`.
        pixels: of a tile.
        positions: rows of the kernel that are taken in a cycle.
        rows: output channels that are computed side by side.
        protection: of its memories.
    """

    layer: Conv
    pixels: int
    positions: int
    rows: int
    blocks: int = 1
    fold: int = 1
    protection: str = "none"

    @property
    def chains(self) -> int:
        """All rows leave at once."""
        return self.rows

    @property
    def filters(self) -> tuple[Integers, Integers, Integers]:
        return fast_fir(self.pixels, self.layer.window.kernel[1])

    @property
    def products(self) -> int:
        """Products of a filter: multiplications for a tile, a row of the kernel, an input and an output channel."""
        return len(self.filters[0])

    @property
    def columns(self) -> int:
        """Filters of a row."""
        return self.positions * self.layer.inputs

    @property
    def row_columns(self) -> int:
        """Columns of the array, as a `LineBufferShape` has them."""
        return self.columns

    @property
    def multipliers(self) -> int:
        return self.rows * self.columns * self.products

    @property
    def turns(self) -> tuple[int, int]:
        return -(-self.layer.window.kernel[0] // self.positions), 1

    @property
    def passes(self) -> int:
        return -(-self.layer.outputs // self.rows)

    @property
    def cycles(self) -> int:
        """Cycles per tile."""
        return self.passes * self.turns[0]

    @property
    def lines(self) -> int:
        """Lines that are kept, see `LineBufferShape`."""
        return 2 * self.layer.window.extent[0] + self.layer.window.stride[0]

    @property
    def tiles(self) -> int:
        """Tiles of an image."""
        return self.layer.output_grid[0] * (self.layer.output_grid[1] // self.pixels)

    @property
    def multiplications(self) -> int:
        """Multiplications per image."""
        layer = self.layer
        return self.tiles * layer.window.kernel[0] * layer.inputs * layer.outputs * self.products

    @property
    def walk(self) -> Walk:
        height, (down, across), window = self.layer.grid[0], self.layer.output_grid, self.layer.window
        return Walk((height, across // self.pixels), (down, across // self.pixels),
                    Window((window.kernel[0], 1), (window.stride[0], 1), (window.padding[0], 0),
                           (window.dilation[0], 1)))

    @property
    def block(self) -> data.StructLayout:
        """Layout of a block that comes in: pixels side by side, all channels of each."""
        return block(self.pixels * self.layer.inputs, self.layer.product.input.width)

    @property
    def pixel_width(self) -> int:
        """Bits of a pixel in the format of the spectrum, no more than pixels that come in can fill: without a transform
        a spectrum's bit for growth would be a copy of the sign."""
        product = self.layer.product
        shift = product.input.frac - product.spectrum.frac
        return min(product.spectrum.width, max(2, product.input.width - shift + (shift > 0)))

    @property
    def data_width(self) -> int:
        """Bits of what is multiplied, on the side of the pixels."""
        return self.pixel_width + growth(self.filters[0])

    @property
    def weight_width(self) -> int:
        """The same on the side of the weights."""
        return self.layer.product.weight.width + growth(self.filters[1])

    @property
    def spectrum(self) -> data.ArrayLayout:
        """Layout of a tile: for each channel the sums of pixels that are multiplied."""
        return data.ArrayLayout(signed(self.data_width), self.layer.inputs * self.products)

    def transform(self, m: Module, platform: Platform) -> "Tiler":
        m.submodules.tiler = tiler = Tiler(self)
        return tiler

    @cached_property
    def weights(self) -> Integers:
        """(passes · turns, rows, columns, products): what each row multiplies with in each cycle of a tile."""
        layer, (down, across) = self.layer, self.layer.window.kernel
        taps = np.zeros((self.passes * self.rows, self.turns[0] * self.positions, layer.inputs, across), np.int64)
        taps[:layer.outputs, :down] = layer.product.weights.reshape(
            layer.outputs, down, across, layer.inputs).transpose(0, 1, 3, 2)
        sums = (taps @ self.filters[1].T).reshape(self.passes, self.rows, self.turns[0], self.columns, self.products)
        return np.ascontiguousarray(sums.transpose(0, 2, 1, 3, 4)).reshape(-1, *sums.shape[1:2], *sums.shape[3:])


class Tiler(wiring.Component):
    """From pixels to tiles: what the filters multiply, for each tile of a line, zeros beside the image.

    Members:
        i: stream of pixels side by side, all channels of each.
        o: stream of tiles, a tile in each cycle in which there are pixels.
    """

    def __init__(self, shape: TileShape) -> None:
        self._shape = shape
        super().__init__({"i": In(stream.Signature(shape.block.members["data"])), "o": Out(stream.Signature(
            shape.spectrum))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, layer = self._shape, self._shape.layer
        n, inputs, product = shape.pixels, layer.inputs, layer.product
        beats, tiles = layer.grid[1] // n, layer.output_grid[1] // n

        # The beats around a tile: as many before and behind it as its windows see.
        left = layer.window.padding[1]
        before, behind = -(-left // n), max(0, -(-(layer.window.kernel[1] - 1 - left) // n))
        depth = before + 1 + behind
        # The oldest beat first; a tile is made of the beats around the one in the middle that are of its line.
        kept = [Signal(self.i.payload.shape(), name=f"kept_{d}", reset_less=True) for d in range(depth)]
        live = [Signal(name=f"live_{d}") for d in range(depth)]
        place = [Signal(range(max(2, beats)), name=f"place_{d}", reset_less=True) for d in range(depth)]

        # They move when one comes, or when the last tiles of a line are to leave.
        column = Signal(range(max(2, beats)))
        moves = Signal()
        made = Signal()
        spectrum = Signal(shape.spectrum, reset_less=True)
        centre = before
        flushes = Signal()  # The last tiles of a line wait for nothing behind it.
        m.d.comb += flushes.eq((column == 0) & Cat(live[centre:]).any())
        m.d.comb += [
            self.i.ready.eq(~made | self.o.ready), moves.eq(self.i.ready & (self.i.valid | flushes)),
            self.o.valid.eq(made), self.o.payload.eq(spectrum),
        ]
        with m.If(moves & self.i.valid):
            m.d.sync += column.eq(Mux(column == beats - 1, 0, column + 1))
        with m.If(self.o.ready):
            m.d.sync += made.eq(0)
        with m.If(moves):
            for d in range(depth):
                last = d == depth - 1
                m.d.sync += [kept[d].eq(self.i.payload if last else kept[d + 1]),
                             live[d].eq(self.i.valid if last else live[d + 1]),
                             place[d].eq(column if last else place[d + 1])]
            m.d.sync += made.eq(live[centre] & (place[centre] < tiles))

        # The tile: pixels in the format of the spectrum, zeros outside the line, summed as the filters say.
        shift = product.input.frac - product.spectrum.frac
        first = centre * n - left  # pixel of the beats with which a tile begins
        for c in range(inputs):
            pixels: list[Value] = []
            for at in range(first, first + n + layer.window.kernel[1] - 1):
                d = at // n
                value = requantize(kept[d][at % n * inputs + c], shift, shape.pixel_width)
                if d != centre:
                    here = live[d] & (place[d] + max(0, centre - d) == place[centre] + max(0, d - centre))
                    value = Mux(here, value, 0)
                pixels.append(value)
            for j, row in enumerate(shape.filters[0]):
                with m.If(moves):
                    m.d.sync += spectrum[c * shape.products + j].eq(weighted(pixels, row))
        return m
