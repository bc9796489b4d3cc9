"""The data side of a convolution: pixels come in, are transformed once, and wait as spectra in lines until no kernel
sees them any more.

Each kernel position that the array takes in a cycle has a copy of the lines, so that any of them can be read at once;
the blocks of a pixel that it takes in a cycle lie in banks. Nothing is stored around the image: what lies outside reads
as zero.
"""
from typing import NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import constant_product
from circulant.hw.array.issue import SPECTRA, issue_signature
from circulant.hw.array.line_shape import LineShape
from circulant.hw.array.parts import Memory
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import delay
from circulant.hw.stream.storage import Ram

__all__ = ["LineBuffer"]


class _Pixel(NamedTuple):
    """The output pixel to start next: where its kernel lies, and the events of its start.

    Members:
        top, left: line and column of the image that the kernel begins with, negative in the padding.
        bases: address of each line of the kernel.
        ready: all that the kernel sees has come, and there is room for what comes of it.
        starts, row_ends, image_ends: it starts in this cycle, as the last one of a row, or of the image.
    """

    top: Signal
    left: Signal
    bases: list[Signal]
    ready: Signal
    starts: Signal
    row_ends: Signal
    image_ends: Signal


class _Group(NamedTuple):
    """The group of kernel positions and blocks that is read in this cycle.

    Members:
        turn, part: of the kernel positions, and of the blocks of a pixel.
        offset: address of the kernel's first column within a line.
        rows: address of each line of the kernel.
        inside_rows, inside_columns: whether each of them lies within the image.
    """

    turn: Signal
    part: Signal
    offset: Signal
    rows: list[Signal]
    inside_rows: list[Value]
    inside_columns: list[Value]


class LineBuffer(wiring.Component):
    """Line buffer, and the walk of the kernel over it: a group of columns per cycle, without a gap while pixels are
    there and there is room for what comes of them.

    Parameters:
        shape: of a convolution, of tiles of one, or of a pooling.

    Members:
        i: stream of blocks of pixels, the last one of an image is marked; that mark is not looked at.
        room: whether an output pixel may be started.
        starts: one is.
        issue: for the `LaneArray`, see `issue_signature`.
        spectra: of the columns, `SPECTRA` cycles later.
    """

    def __init__(self, shape: LineShape) -> None:
        self._shape = shape
        # A kernel that sees padding alone would start an image a cycle later.
        self._ahead = shape.cycles > 1 and not shape.walk.window.sees_padding_alone
        super().__init__({
            "i": In(stream.Signature(shape.block)),
            "room": In(1), "starts": Out(1),
            "issue": Out(issue_signature(cycles=shape.cycles // shape.fold, passes=shape.passes, fold=shape.fold)),
            "spectra": Out(data.ArrayLayout(shape.spectrum, shape.positions * shape.blocks)),
        })

    @property
    def latency(self) -> int:
        """Cycles from the last block that an output pixel needs, out of the transform, to its first issue: it is
        written and counted, the pixel starts, and the register in front of the array. Pixels of several cycles leave
        time for another register, between the comparisons of places and the start, but for kernels that see padding
        alone."""
        return 3 + self._ahead

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, walk, window = self._shape, self._shape.walk, self._shape.walk.window
        (height, width), (down, across) = walk.grid, walk.output_grid
        line = width * shape.turns[1]
        depth = line * shape.lines

        # The pixel to start next: its place, and the lines of its kernel rows.
        x, y = Signal(range(max(2, across))), Signal(range(max(2, down)))
        top, left = Signal(range(-window.padding[0] - 1, down * window.stride[0] + 1), init=-window.padding[0]), Signal(
            range(-window.padding[1] - 1, across * window.stride[1] + 1), init=-window.padding[1])
        bases = [Signal(range(depth), name=f"base_{r}", init=(r - window.padding[0]) % shape.lines * line)
                 for r in range(window.kernel[0])]
        starts, image_ends, row_ends, freed = Signal(), Signal(), Signal(), Signal(range(height + 1))

        # Whether what it sees has come: whole lines of this image, and the pixels of the one behind them.
        done, column = self._writer(m, platform, line, depth, freed)
        come = Signal(signed((height + shape.lines + 2).bit_length() + 2))
        last_line, last_column = self._last()
        ready, there = Signal(), (come > last_line) | ((come == last_line) & (column > last_column))
        if window.sees_padding_alone:
            # A kernel that sees nothing but padding waits for no pixel, but for the first one of its image.
            there &= (come > 0) | ((come == 0) & (column > 0))
        if self._ahead:  # A start moves on to another place. What was known of the one before is asked no more.
            m.d.sync += ready.eq(there & self.room)
        else:
            m.d.comb += ready.eq(there & self.room)
        last_x, last_y = Signal(init=across == 1), Signal(init=down == 1)
        places = [last_x.eq(x == across - 1), last_y.eq(y == down - 1)]
        if self._ahead:
            m.d.sync += places
        else:
            m.d.comb += places
        m.d.comb += [row_ends.eq(starts & last_x), image_ends.eq(row_ends & last_y), self.starts.eq(starts)]
        m.d.sync += come.eq(come + done - Mux(image_ends, height, 0))

        # The move to the next pixel: within a row, to the next row, to the next image.
        with m.If(starts):
            m.d.sync += [x.eq(x + 1), left.eq(left + window.stride[1]),
                         last_column.eq(self._within(left + window.stride[1] + window.kernel[1] - 1, width))]
        with m.If(row_ends):
            m.d.sync += [x.eq(0), left.eq(left.init), last_column.eq(last_column.init), y.eq(y + 1),
                         top.eq(top + window.stride[0]),
                         last_line.eq(self._within(top + window.stride[0] + window.kernel[0] - 1, height))]
            self._advance(m, bases, window.stride[0] % shape.lines * line, depth)
        with m.If(image_ends):
            m.d.sync += [y.eq(0), top.eq(top.init), last_line.eq(last_line.init)]
            self._advance(m, bases, (height - (down - 1) * window.stride[0]) % shape.lines * line, depth)

        # Its groups, what they read, and the lines that are free behind them.
        pixel = _Pixel(top=top, left=left, bases=bases, ready=ready, starts=starts, row_ends=row_ends,
                       image_ends=image_ends)
        group, finishes = self._walk(m, pixel)
        self._read(m, group)
        self._free(m, pixel, finishes, freed)
        return m

    @property
    def memory(self) -> Memory:
        """The lines: a copy of a bank for each column of the array."""
        shape = self._shape
        return Memory(shape.positions * shape.blocks, shape.spectrum.size,
                      shape.walk.grid[1] * shape.turns[1] * shape.lines)

    def _last(self) -> list[Signal]:
        """Registers for the last line and the last column of the image that the kernel sees, as an image begins."""
        walk, window = self._shape.walk, self._shape.walk.window
        first = [min(kernel - 1 - padding, size - 1) for kernel, padding, size in zip(
            window.kernel, window.padding, walk.grid, strict=True)]
        return [Signal(range(min(0, place), max(2, size)), name=name, init=place) for name, place, size in zip(
            ("last_line", "last_column"), first, walk.grid, strict=True)]

    @staticmethod
    def _within(place: Value, size: int) -> Value:
        """A place of the kernel's last line or column, or the last one of the image before it."""
        return Mux(place > size - 1, size - 1, place)

    @staticmethod
    def _advance(m: Module, places: list[Signal], step: int, depth: int) -> None:
        for place in places:
            m.d.sync += place.eq(Mux(place >= depth - step, place - (depth - step), place + step))

    def _writer(self, m: Module, platform: Platform, line: int, depth: int, freed: Value) -> tuple[Signal, Signal]:
        """Transform and store; returns whether a line is whole now, and how many pixels of the one behind it are."""
        shape, walk = self._shape, self._shape.walk
        height, width = walk.grid

        # The transform, which waits while all lines are held.
        transform = shape.transform(m, platform)
        held = Signal(signed((shape.lines + height + 1).bit_length() + 2))
        free, holds = Signal(init=1), Signal.like(held, name="holds")  # A line at least; lines that are held next.
        writes, place = Signal(), Signal(range(depth))
        bank, turn, column = (Signal(range(max(2, count))) for count in (shape.blocks, shape.turns[1], width))
        pixel, done = Signal(), Signal()
        m.d.comb += [
            transform.i.valid.eq(self.i.valid), self.i.ready.eq(transform.i.ready),
            transform.i.payload.eq(self.i.payload.data), transform.o.ready.eq(free),
            writes.eq(transform.o.valid & transform.o.ready),
            pixel.eq(writes & (turn * shape.blocks + bank == walk.blocks - 1)),
            done.eq(pixel & (column == width - 1)),
            holds.eq(held + done - freed),
        ]
        m.d.sync += [held.eq(holds), free.eq(holds < shape.lines)]

        # The place of the next block: bank after bank, part after part, pixel after pixel.
        with m.If(writes):
            m.d.sync += bank.eq(bank + 1)
            with m.If((bank == shape.blocks - 1) | pixel):
                m.d.sync += [bank.eq(0), turn.eq(turn + 1), place.eq(Mux(place == depth - 1, 0, place + 1))]
        with m.If(pixel):
            m.d.sync += [turn.eq(0), column.eq(Mux(done, 0, column + 1))]

        # The lines: each bank once for each kernel position that is read in a cycle.
        self._rams = []
        for n in range(shape.positions):
            for b in range(shape.blocks):
                m.submodules[f"lines_{n}_{b}"] = ram = Ram(width=shape.spectrum.size, depth=depth, old=True)
                m.d.comb += [ram.w_en.eq(writes & (bank == b)), ram.w_addr.eq(place), ram.r_en.eq(1),
                             ram.w_data.eq(Value.cast(transform.o.payload))]
                self._rams.append(ram)
        return done, column

    def _walk(self, m: Module, pixel: _Pixel) -> tuple[_Group, Signal]:
        """Issue all groups of the pixel that was started last, pass after pass, and start the next one behind it
        without a gap; returns the group of this cycle, and whether it is the last one of its pixel."""
        shape, walk, window = self._shape, self._shape.walk, self._shape.walk.window
        width, (outer, inner), issue = walk.grid[1], shape.turns, self.issue
        phase, weight = Signal.like(issue.phase), Signal.like(issue.weight)
        turn, part, number = (Signal(range(max(2, count))) for count in (outer, inner, shape.passes))
        whole, group_ends, finishes = Signal(), Signal(), Signal()
        m.d.comb += whole.eq(phase == shape.fold - 1)

        def start() -> None:
            """Start the next pixel, once what it sees is there, and room for it."""
            with m.If(pixel.ready):
                m.d.comb += pixel.starts.eq(1)
                m.next = "ISSUE"

        def advance() -> None:
            """Count: a phase of the fold, a part of the blocks, a turn of the positions, a pass."""
            m.d.sync += phase.eq(Mux(whole, 0, phase + 1))
            with m.If(whole):
                m.d.sync += [weight.eq(weight + 1), part.eq(Mux(part == inner - 1, 0, part + 1))]
                with m.If(part == inner - 1):
                    m.d.sync += turn.eq(Mux(turn == outer - 1, 0, turn + 1))
            with m.If(group_ends):
                m.d.sync += number.eq(number + 1)

        final = Signal()  # The same as the condition of all counters, known in a register.
        if self._ahead:
            remaining = Signal(range(shape.cycles))
            m.d.sync += final.eq(remaining == 1)
            with m.If(pixel.starts):
                m.d.sync += remaining.eq(shape.cycles - 1)
            with m.Elif(remaining != 0):
                m.d.sync += remaining.eq(remaining - 1)

        with m.FSM(name="walk") as fsm:
            with m.State("WAIT"):
                start()
            with m.State("ISSUE"):
                m.d.comb += [
                    group_ends.eq(whole & (part == inner - 1) & (turn == outer - 1)),
                    finishes.eq(final if self._ahead else group_ends & (number == shape.passes - 1)),
                ]
                advance()
                with m.If(finishes):
                    m.d.sync += [weight.eq(0), number.eq(0)]
                    m.next = "WAIT"
                    start()

        # The pixel under way: the lines of its kernel, and which rows and columns of it lie in the image.
        rows = [Signal.like(base, name=f"row_{r}", reset_less=True) for r, base in enumerate(pixel.bases)]
        offset = Signal(signed(1 + max(width, window.padding[1] + 1).bit_length() + inner.bit_length() + 1),
                        reset_less=True)
        with m.If(pixel.starts):
            m.d.sync += [
                offset.eq(constant_product(pixel.left, inner)),
                *(row.eq(base) for row, base in zip(rows, pixel.bases, strict=True)),
            ]
        inside_rows, inside_columns = ([
            self._inside(m, place, axis, n, pixel.starts) for n in range(window.kernel[axis])]
            for axis, place in enumerate((pixel.top, pixel.left)))

        # A register between the walk and the array.
        m.d.sync += [issue.valid.eq(fsm.ongoing("ISSUE")), issue.weight.eq(weight), issue.number.eq(number),
                     issue.phase.eq(phase), issue.first.eq((turn == 0) & (part == 0)), issue.ends.eq(group_ends)]
        return _Group(turn=turn, part=part, offset=offset, rows=rows, inside_rows=inside_rows,
                      inside_columns=inside_columns), finishes

    def _inside(self, m: Module, place: Value, axis: int, n: int, starts: Value) -> Value:
        """Whether row, or column, ``n`` of the kernel lies in the image, for the pixel under way: asked only on the
        sides where it can lie outside."""
        walk, window = self._shape.walk, self._shape.walk.window
        first = n - window.padding[axis]
        last = first + (walk.output_grid[axis] - 1) * window.stride[axis]
        sides = [*([place + n >= 0] if first < 0 else []), *([place + n < walk.grid[axis]] if last >= walk.grid[axis]
                                                             else [])]
        if not sides:
            return Const(1)
        inside = Signal(name=f"inside_{('row', 'column')[axis]}_{n}", reset_less=True)
        with m.If(starts):
            m.d.sync += inside.eq(Cat(*sides).all())
        return inside

    def _free(self, m: Module, pixel: _Pixel, finishes: Value, freed: Signal) -> None:
        """Give back the lines that the rows to come do not see any more, when the last pixel of a row has been read."""
        height, stride = self._shape.walk.grid[0], self._shape.walk.window.stride[0]
        oldest, frees, leaves = Signal(range(height + 1)), Signal(range(height + 1)), Signal(range(height + 1))
        after = pixel.top + stride
        m.d.comb += leaves.eq(
            Mux(pixel.image_ends, height, Mux(after > 0, Mux(after > height, height, after), 0)) - oldest)
        with m.If(finishes):
            m.d.comb += freed.eq(frees)
            m.d.sync += frees.eq(0)
        with m.If(pixel.row_ends):
            m.d.sync += [frees.eq(leaves), oldest.eq(Mux(pixel.image_ends, 0, oldest + leaves))]

    def _read(self, m: Module, group: _Group) -> None:
        """Read a group: for each of its kernel positions the blocks of a pixel, zeros outside the image."""
        shape, walk, window = self._shape, self._shape.walk, self._shape.walk.window
        outer, inner = shape.turns
        for n in range(shape.positions):
            # The position of this turn: its line, its column, and whether it lies in the image.
            seen_positions = [min(t * shape.positions + n, window.positions - 1) for t in range(outer)]
            places = [divmod(position, window.kernel[1]) for position in seen_positions]
            row, inside = Signal.like(group.rows[0], name=f"from_{n}"), Signal(name=f"inside_{n}")
            column = Signal(range(max(2, window.kernel[1] * inner)), name=f"column_{n}")
            m.d.comb += [
                row.eq(_chosen([group.rows[r] for r, _ in places], group.turn)),
                column.eq(_chosen([Const(c * inner) for _, c in places], group.turn)),
                inside.eq(_chosen([group.inside_rows[r] & group.inside_columns[c] for r, c in places], group.turn)),
            ]
            address, here = Signal.like(group.rows[0], name=f"address_{n}"), Signal(name=f"here_{n}", reset_less=True)
            m.d.sync += [address.eq(row + group.offset + column + group.part), here.eq(inside)]

            # Its blocks, with the register behind the memory.
            there = delay(m, here, SPECTRA, name=f"there_{n}")
            for b in range(shape.blocks):
                if b == walk.blocks % shape.blocks != 0:  # From here on the last part of a pixel has nothing written.
                    filled = Signal(name=f"filled_{n}", reset_less=True)
                    m.d.sync += filled.eq(inside & (group.part != inner - 1))
                    there = delay(m, filled, SPECTRA, name=f"filled_there_{n}")
                ram = self._rams[n * shape.blocks + b]
                m.d.comb += [ram.r_addr.eq(address),
                             Value.cast(self.spectra[n * shape.blocks + b]).eq(Mux(there, delay(
                                 m, ram.r_data, 1, name=f"spectrum_{n}_{b}"), 0))]


def _chosen(values: list[Value], turn: Value) -> Value:
    return values[0] if len(values) == 1 else Array(values)[turn]
