"""The data side of a convolution: pixels come in, are transformed once, and wait as spectra in lines until no kernel
sees them any more.

Each kernel position that the array takes in a cycle has a copy of the lines, so that any of them can be read at once;
the blocks of a pixel that it takes in a cycle lie in banks. Nothing is stored around the image: what lies outside reads
as zero.
"""
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fft import FftShape, ForwardFft
from circulant.hw.arith.fixed import constant_product
from circulant.hw.array.parts import Memory
from circulant.hw.array.program import ArrayShape, Matrix, Part, Program
from circulant.hw.emit.target import instances
from circulant.hw.stream.pipeline import block, delay
from circulant.hw.stream.storage import Ram
from circulant.sim.golden.conv import Conv

__all__ = ["LineBufferShape", "LineBuffer"]


@dataclass(frozen=True, eq=False)
class LineBufferShape:
    """How a convolution meets its array.

    Parameters:
        layer: the golden layer.
        positions, blocks: of the kernel and of a pixel, that the array takes in a cycle; their product is the columns
            of the array.
        rows, chains, fold: of the array.

    Members:
        pixels: that come and leave side by side.
    """

    layer: Conv
    positions: int
    blocks: int
    rows: int
    chains: int
    fold: int = 1
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
        return ArrayShape(self.rows, self.row_columns, self.chains, self.fold)

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
        return 2 * window.kernel[0] + window.stride[0]

    @property
    def walk(self) -> Conv:
        """What the kernel moves over: grid, output_grid, window, and the blocks of a pixel."""
        return self.layer

    @property
    def block(self) -> data.StructLayout:
        """Layout of a block that comes in."""
        return block(self.layer.product.block_size, self.layer.product.input.width)

    @property
    def spectrum(self) -> data.ArrayLayout:
        """Layout of a block's spectrum, as the lines hold it."""
        return data.ArrayLayout(signed(self.layer.product.spectrum.width), self.layer.product.block_size)

    def transform(self, m: Module, platform: Any) -> Any:
        """From blocks to spectra: a component with streams i and o, added to the module."""
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
        program = Program(self.array, [Matrix((Part(product, 0, 0),), ("y",))], inputs=columns,
                          order=[(0, row) for row in range(0, p, self.rows)], spacing=(columns, columns, columns))
        issues = [(issue.number, issue.group) for issue in program.commands[0]]
        assert issues == [(n, group) for n in range(self.passes) for group in range(outer * inner)]
        assert all(each.slot == 0 for each in program.passes)
        return program


class LineBuffer(wiring.Component):
    """Line buffer, and the walk of the kernel over it: a group of columns per cycle, without a gap while pixels are
    there and there is room for what comes of them.

    Parameters:
        shape: a `LineBufferShape` or a `circulant.hw.layers.tile.TileShape`.

    Members:
        i: stream of blocks of pixels, the last one of an image is marked; that mark is not looked at.
        room: whether an output pixel may be started.
        starts: one is.
        weight, number, valid, phase, first, ends: for the `LaneArray`.
        spectra: of the columns, two cycles later.
    """

    def __init__(self, shape: Any) -> None:
        self._shape = shape
        super().__init__({
            "i": In(stream.Signature(shape.block)),
            "room": In(1), "starts": Out(1),
            "weight": Out(range(max(2, shape.cycles // shape.fold))), "number": Out(range(max(2, shape.passes))),
            "valid": Out(1), "phase": Out(range(max(2, shape.fold))), "first": Out(1), "ends": Out(1),
            "spectra": Out(data.ArrayLayout(shape.spectrum, shape.positions * shape.blocks)),
        })

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        shape, layer, window = self._shape, self._shape.walk, self._shape.walk.window
        (height, width), (down, across) = layer.grid, layer.output_grid
        inner = shape.turns[1]
        line, depth = width * inner, width * inner * shape.lines

        # The pixel to start next: its place, the lines of its kernel rows, and whether what it sees has come.
        x, y = Signal(range(max(2, across))), Signal(range(max(2, down)))
        top, left = Signal(range(-window.padding[0] - 1, down * window.stride[0] + 1), init=-window.padding[0]), Signal(
            range(-window.padding[1] - 1, across * window.stride[1] + 1), init=-window.padding[1])
        bases = [Signal(range(depth), name=f"base_{r}", init=(r - window.padding[0]) % shape.lines * line)
                 for r in range(window.kernel[0])]
        starts, image_ends, row_ends, freed = Signal(), Signal(), Signal(), Signal(range(height + 1))
        done, column = self._writer(m, platform, line, depth, freed)
        come = Signal(signed((height + shape.lines + 2).bit_length() + 2))  # whole lines of this image that have come
        bottom, right = top + window.kernel[0] - 1, left + window.kernel[1] - 1
        last_line, last_column = (Mux(place > size - 1, size - 1, place)
                                  for place, size in ((bottom, height), (right, width)))
        seen, there = Signal(), (come > last_line) | ((come == last_line) & (column > last_column))
        if window.sees_padding_alone:
            # A kernel that sees nothing but padding waits for no pixel, but for the first one of its image.
            there &= (come > 0) | ((come == 0) & (column > 0))
        m.d.comb += [
            seen.eq(there),
            row_ends.eq(starts & (x == across - 1)), image_ends.eq(row_ends & (y == down - 1)),
            self.starts.eq(starts),
        ]
        m.d.sync += come.eq(come + done - Mux(image_ends, height, 0))
        with m.If(starts):
            m.d.sync += [x.eq(x + 1), left.eq(left + window.stride[1])]
        with m.If(row_ends):
            m.d.sync += [x.eq(0), left.eq(-window.padding[1]), y.eq(y + 1), top.eq(top + window.stride[0])]
            self._advance(m, bases, window.stride[0] % shape.lines * line, depth)
        with m.If(image_ends):
            m.d.sync += [y.eq(0), top.eq(-window.padding[0])]
            self._advance(m, bases, (height - (down - 1) * window.stride[0]) % shape.lines * line, depth)
        self._walk(m, starts, seen=seen, row_ends=row_ends, image_ends=image_ends, freed=freed, bases=bases, top=top,
                   left=left)
        return m

    @property
    def memory(self) -> Memory:
        """The lines: a copy of a bank for each column of the array."""
        shape = self._shape
        return Memory(shape.positions * shape.blocks, shape.spectrum.size,
                      shape.walk.grid[1] * shape.turns[1] * shape.lines)

    @staticmethod
    def _advance(m: Module, places: list[Signal], step: int, depth: int) -> None:
        for place in places:
            m.d.sync += place.eq(Mux(place >= depth - step, place - (depth - step), place + step))

    def _writer(self, m: Module, platform: Any, line: int, depth: int, freed: Value) -> tuple[Signal, Signal]:
        """Transform and store; returns whether a line is whole now, and how many pixels of the one behind it are."""
        shape, layer = self._shape, self._shape.walk
        height, width = layer.grid
        transform = shape.transform(m, platform)
        held = Signal(signed((shape.lines + height + 1).bit_length() + 2))
        writes, place = Signal(), Signal(range(depth))
        bank, turn, column = (Signal(range(max(2, count))) for count in (shape.blocks, shape.turns[1], width))
        pixel, done = Signal(), Signal()
        m.d.comb += [
            transform.i.valid.eq(self.i.valid), self.i.ready.eq(transform.i.ready),
            transform.i.payload.eq(self.i.payload.data), transform.o.ready.eq(held < shape.lines),
            writes.eq(transform.o.valid & transform.o.ready),
            pixel.eq(writes & (turn * shape.blocks + bank == layer.blocks - 1)),
            done.eq(pixel & (column == width - 1)),
        ]
        m.d.sync += held.eq(held + done - freed)
        with m.If(writes):
            m.d.sync += bank.eq(bank + 1)
            with m.If((bank == shape.blocks - 1) | pixel):
                m.d.sync += [bank.eq(0), turn.eq(turn + 1), place.eq(Mux(place == depth - 1, 0, place + 1))]
        with m.If(pixel):
            m.d.sync += [turn.eq(0), column.eq(Mux(done, 0, column + 1))]
        self._rams = []
        for n in range(shape.positions):
            for b in range(shape.blocks):
                m.submodules[f"lines_{n}_{b}"] = ram = Ram(width=shape.spectrum.size, depth=depth)
                m.d.comb += [ram.w_en.eq(writes & (bank == b)), ram.w_addr.eq(place), ram.r_en.eq(1),
                             ram.w_data.eq(Value.cast(transform.o.payload))]
                self._rams.append(ram)
        return done, column

    def _walk(self, m: Module, starts: Signal, seen: Value, row_ends: Value, image_ends: Value, freed: Value,
              bases: list[Signal], top: Value, left: Value) -> None:
        """All groups of the pixel that was started last, and the next one behind it."""
        shape, layer, window = self._shape, self._shape.walk, self._shape.walk.window
        (height, width), (outer, inner), fold = layer.grid, shape.turns, shape.fold
        busy, finishes = Signal(), Signal()
        phase = Signal.like(self.phase)
        turn, part, number = (Signal(range(max(2, count))) for count in (outer, inner, shape.passes))
        weight = Signal.like(self.weight)
        whole, group_ends = Signal(), Signal()
        m.d.comb += [
            whole.eq(phase == fold - 1),
            group_ends.eq(busy & whole & (part == inner - 1) & (turn == outer - 1)),
            finishes.eq(group_ends & (number == shape.passes - 1)),
            starts.eq((~busy | finishes) & seen & self.room),
        ]
        with m.If(busy):
            m.d.sync += phase.eq(Mux(whole, 0, phase + 1))
            with m.If(whole):
                m.d.sync += [weight.eq(weight + 1), part.eq(Mux(part == inner - 1, 0, part + 1))]
                with m.If(part == inner - 1):
                    m.d.sync += turn.eq(Mux(turn == outer - 1, 0, turn + 1))
            with m.If(group_ends):
                m.d.sync += number.eq(number + 1)
            with m.If(finishes):
                m.d.sync += [busy.eq(0), weight.eq(0), number.eq(0)]
        rows = [Signal.like(base, name=f"row_{r}") for r, base in enumerate(bases)]
        inside_rows, inside_columns = Signal(window.kernel[0]), Signal(window.kernel[1])
        offset = Signal(signed(1 + max(width, window.padding[1] + 1).bit_length() + inner.bit_length() + 1))
        # What the rows to come do not see any more is free when the last pixel of a row has been read.
        oldest, frees, leaves = Signal(range(height + 1)), Signal(range(height + 1)), Signal(range(height + 1))
        after = top + window.stride[0]
        m.d.comb += leaves.eq(Mux(image_ends, height, Mux(after > 0, Mux(after > height, height, after), 0)) - oldest)
        with m.If(finishes):
            m.d.comb += freed.eq(frees)
            m.d.sync += frees.eq(0)
        with m.If(row_ends):
            m.d.sync += [frees.eq(leaves), oldest.eq(Mux(image_ends, 0, oldest + leaves))]
        with m.If(starts):
            m.d.sync += [
                busy.eq(1), offset.eq(constant_product(left, inner)),
                *(row.eq(base) for row, base in zip(rows, bases, strict=True)),
                inside_rows.eq(Cat((top + r >= 0) & (top + r < height) for r in range(window.kernel[0]))),
                inside_columns.eq(Cat((left + c >= 0) & (left + c < width) for c in range(window.kernel[1]))),
            ]

        m.d.sync += [self.valid.eq(busy), self.weight.eq(weight), self.number.eq(number), self.phase.eq(phase),
                     self.first.eq((turn == 0) & (part == 0)), self.ends.eq(group_ends)]
        for n in range(shape.positions):
            seen_positions = [min(t * shape.positions + n, window.positions - 1) for t in range(outer)]
            places = [divmod(position, window.kernel[1]) for position in seen_positions]
            row, inside = Signal.like(rows[0], name=f"from_{n}"), Signal(name=f"inside_{n}")
            column = Signal(range(max(2, window.kernel[1] * inner)), name=f"column_{n}")
            m.d.comb += [
                row.eq(_chosen([rows[r] for r, _ in places], turn)),
                column.eq(_chosen([Const(c * inner) for _, c in places], turn)),
                inside.eq(_chosen([inside_rows[r] & inside_columns[c] for r, c in places], turn)),
            ]
            address, here = Signal.like(rows[0], name=f"address_{n}"), Signal(name=f"here_{n}")
            m.d.sync += [address.eq(row + offset + column + part), here.eq(inside)]
            there = delay(m, here, 2, name=f"there_{n}")
            for b in range(shape.blocks):
                if b == layer.blocks % shape.blocks != 0:  # From here on the last part of a pixel has nothing written.
                    filled = Signal(name=f"filled_{n}")
                    m.d.sync += filled.eq(inside & (part != inner - 1))
                    there = delay(m, filled, 2, name=f"filled_there_{n}")
                ram = self._rams[n * shape.blocks + b]
                m.d.comb += [ram.r_addr.eq(address),
                             Value.cast(self.spectra[n * shape.blocks + b]).eq(Mux(there, delay(
                                 m, ram.r_data, 1, name=f"spectrum_{n}_{b}"), 0))]


def _chosen(values: list[Value], turn: Value) -> Value:
    return values[0] if len(values) == 1 else Array(values)[turn]
