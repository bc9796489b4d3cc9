"""The lines of an image: blocks come in, are transformed once, and wait as spectra until no kernel sees them any more.

Each kernel position that the array takes in a cycle has a copy of the lines, so that any of them can be read at once;
the blocks of a pixel that it takes in a cycle lie in banks. Nothing is stored around the image: what lies outside reads
as zero.
"""
from amaranth.hdl import Array, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.issue import SPECTRA
from circulant.hw.array.line_shape import LineShape
from circulant.hw.array.parts import Memory
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import delay
from circulant.hw.stream.storage import Ram

__all__ = ["LineStore", "depth", "group_signature", "line"]


def group_signature(shape: LineShape) -> wiring.Signature:
    """Interface from a `KernelWalk` to the lines: the group of kernel positions and blocks that is read in a cycle.

    Members:
        turn: which of the kernel positions are read.
        part: which of the blocks of a pixel are read.
        offset: address of the kernel's first column within a line, negative in the padding.
        rows: address of each line of the kernel.
        inside_rows: for each row of the kernel, whether it lies within the image.
        inside_columns: for each column of the kernel, whether it lies within the image.
    """
    window, width, (outer, inner) = shape.walk.window, shape.walk.grid[1], shape.turns
    offset = signed(1 + max(width, window.padding[1] + 1).bit_length() + inner.bit_length() + 1)
    return wiring.Signature({
        "turn": Out(range(max(2, outer))), "part": Out(range(max(2, inner))), "offset": Out(offset),
        "rows": Out(range(depth(shape))).array(window.kernel[0]),
        "inside_rows": Out(1).array(window.kernel[0]), "inside_columns": Out(1).array(window.kernel[1]),
    })


def depth(shape: LineShape) -> int:
    """Addresses of all lines."""
    return shape.lines * line(shape)


def line(shape: LineShape) -> int:
    """Addresses of a line: a part of the blocks of a pixel has one in each bank."""
    return shape.walk.grid[1] * shape.turns[1]


class LineStore(wiring.Component):
    """Lines as a ring, behind the transform, which waits while all of them are held.

    Parameters:
        shape: of a convolution, of tiles of one, or of a pooling.

    Members:
        i: stream of blocks of pixels, the last one of an image is marked; that mark is not looked at.
        freed: lines that are given back in this cycle.
        done: a line is whole now.
        column: pixels that have come of the line behind the whole ones.
        group: group of kernel positions and blocks to read, see `group_signature`.
        spectra: spectra of the group's columns, `SPECTRA` cycles after its issue, which comes a cycle later; zero
            outside the image.
    """

    def __init__(self, shape: LineShape) -> None:
        self._shape = shape
        height, width = shape.walk.grid
        super().__init__({
            "i": In(stream.Signature(shape.block)), "freed": In(range(height + 1)),
            "done": Out(1), "column": Out(range(max(2, width))),
            "group": In(group_signature(shape)),
            "spectra": Out(data.ArrayLayout(shape.spectrum, shape.positions * shape.blocks)),
        })

    @property
    def memory(self) -> Memory:
        """The lines: a copy of a bank for each column of the array."""
        shape = self._shape
        return Memory(shape.positions * shape.blocks, shape.spectrum.size, depth(shape))

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        self._read(m, self._write(m, platform))
        return m

    def _write(self, m: Module, platform: Platform) -> list[Ram]:
        """Transform and store; returns the banks, those of the first kernel position first."""
        shape, walk = self._shape, self._shape.walk
        height, width = walk.grid

        # The transform, which waits while all lines are held.
        transform = shape.transform(m, platform)
        held = Signal(signed((shape.lines + height + 1).bit_length() + 2))
        held_next = Signal.like(held)
        has_room = Signal(init=1)  # For a line at least.
        writes = Signal()
        write_address = Signal(range(depth(shape)))
        pixel_ends = Signal()
        bank = Signal(range(max(2, shape.blocks)))
        part = Signal(range(max(2, shape.turns[1])))
        m.d.comb += [
            transform.i.valid.eq(self.i.valid), self.i.ready.eq(transform.i.ready),
            transform.i.payload.eq(self.i.payload.data), transform.o.ready.eq(has_room),
            writes.eq(transform.o.valid & transform.o.ready),
            pixel_ends.eq(writes & (part * shape.blocks + bank == walk.blocks - 1)),
            self.done.eq(pixel_ends & (self.column == width - 1)),
            held_next.eq(held + self.done - self.freed),
        ]
        m.d.sync += [held.eq(held_next), has_room.eq(held_next < shape.lines)]

        # The place of the next block: bank after bank, part after part, pixel after pixel.
        with m.If(writes):
            m.d.sync += bank.eq(bank + 1)
            with m.If((bank == shape.blocks - 1) | pixel_ends):
                m.d.sync += [bank.eq(0), part.eq(part + 1),
                             write_address.eq(Mux(write_address == depth(shape) - 1, 0, write_address + 1))]
        with m.If(pixel_ends):
            m.d.sync += [part.eq(0), self.column.eq(Mux(self.done, 0, self.column + 1))]

        # The lines: each bank once for each kernel position that is read in a cycle.
        rams = []
        for n in range(shape.positions):
            for b in range(shape.blocks):
                m.submodules[f"lines_{n}_{b}"] = ram = Ram(width=shape.spectrum.size, depth=depth(shape), old=True)
                m.d.comb += [ram.w_en.eq(writes & (bank == b)), ram.w_addr.eq(write_address), ram.r_en.eq(1),
                             ram.w_data.eq(Value.cast(transform.o.payload))]
                rams.append(ram)
        return rams

    def _read(self, m: Module, rams: list[Ram]) -> None:
        """Read the group: for each of its kernel positions the blocks of a pixel, zeros outside the image."""
        shape, walk, window, group = self._shape, self._shape.walk, self._shape.walk.window, self.group
        outer, inner = shape.turns
        for n in range(shape.positions):
            # The position of this turn: its line, its column, and whether it lies in the image.
            seen_positions = [min(t * shape.positions + n, window.positions - 1) for t in range(outer)]
            places = [divmod(position, window.kernel[1]) for position in seen_positions]
            row = Signal.like(group.rows[0], name=f"from_{n}")
            inside = Signal(name=f"inside_{n}")
            column = Signal(range(max(2, window.extent[1] * inner)), name=f"column_{n}")
            m.d.comb += [
                row.eq(_chosen([group.rows[r] for r, _ in places], group.turn)),
                column.eq(_chosen([Const(c * window.dilation[1] * inner) for _, c in places], group.turn)),
                inside.eq(_chosen([group.inside_rows[r] & group.inside_columns[c] for r, c in places], group.turn)),
            ]
            address = Signal.like(group.rows[0], name=f"address_{n}")
            here = Signal(name=f"here_{n}", reset_less=True)
            m.d.sync += [address.eq(row + group.offset + column + group.part), here.eq(inside)]

            # Its blocks, with the register behind the memory.
            there = delay(m, here, SPECTRA, name=f"there_{n}")
            for b in range(shape.blocks):
                if b == walk.blocks % shape.blocks != 0:  # From here on the last part of a pixel has nothing written.
                    filled = Signal(name=f"filled_{n}", reset_less=True)
                    m.d.sync += filled.eq(inside & (group.part != inner - 1))
                    there = delay(m, filled, SPECTRA, name=f"filled_there_{n}")
                ram = rams[n * shape.blocks + b]
                m.d.comb += [ram.r_addr.eq(address),
                             Value.cast(self.spectra[n * shape.blocks + b]).eq(Mux(there, delay(
                                 m, ram.r_data, 1, name=f"spectrum_{n}_{b}"), 0))]


def _chosen(values: list[Value], turn: Value) -> Value:
    return values[0] if len(values) == 1 else Array(values)[turn]
