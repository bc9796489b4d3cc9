"""The walk of a kernel over an image: which group of its positions and blocks is read in each cycle."""
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import constant_product
from circulant.hw.array.issue import issue_signature
from circulant.hw.array.line_shape import LineShape
from circulant.hw.components.lines.line_store import depth, group_signature, line

__all__ = ["KernelWalk"]


class KernelWalk(wiring.Component):
    """Output pixels one after the other, a group of columns per cycle, without a gap while what they see is there and
    there is room for what comes of them.

    Parameters:
        shape: of a convolution, of tiles of one, or of a pooling.

    Members:
        done: a line of the image is whole now.
        column: pixels that have come of the line behind the whole ones.
        room: whether an output pixel may be started.
        starts: an output pixel is started.
        issue: for the array, see `issue_signature`.
        group: for the store of lines, see `group_signature`.
        freed: lines that no kernel sees any more, from this cycle on.
    """

    def __init__(self, shape: LineShape) -> None:
        self._shape = shape
        height, width = shape.walk.grid
        # A kernel that sees padding alone would start an image a cycle later.
        self._ahead = shape.cycles > 1 and not shape.walk.window.sees_padding_alone
        super().__init__({
            "done": In(1), "column": In(range(max(2, width))),
            "room": In(1), "starts": Out(1),
            "issue": Out(issue_signature(cycles=shape.cycles // shape.fold, passes=shape.passes, fold=shape.fold)),
            "group": Out(group_signature(shape)), "freed": Out(range(height + 1)),
        })

    @property
    def latency(self) -> int:
        """Cycles from the last block that an output pixel needs, out of the transform, to its first issue: it is
        written and counted, the pixel starts, and the register in front of the array. Pixels of several cycles leave
        time for another register, between the comparisons of places and the start, but for kernels that see padding
        alone."""
        return 3 + self._ahead

    def elaborate(self, platform: None) -> Module:
        m = Module()
        shape, walk, window = self._shape, self._shape.walk, self._shape.walk.window
        (height, width), (down, across) = walk.grid, walk.output_grid
        lines = depth(shape)

        # The pixel to start next: its place, and the lines of its kernel rows.
        x = Signal(range(max(2, across)))
        y = Signal(range(max(2, down)))
        top = Signal(range(-window.padding[0] - 1, down * window.stride[0] + 1), init=-window.padding[0])
        left = Signal(range(-window.padding[1] - 1, across * window.stride[1] + 1), init=-window.padding[1])
        bases = [Signal(range(lines), name=f"base_{r}", init=(
            r * window.dilation[0] - window.padding[0]) % shape.lines * line(shape)) for r in range(window.kernel[0])]
        image_ends = Signal()
        row_ends = Signal()

        # Whether what it sees has come: whole lines of this image, and the pixels of the one behind them.
        lines_come = Signal(signed((height + shape.lines + 2).bit_length() + 2))
        last_line, last_column = self._last()
        ready = Signal()
        there = (lines_come > last_line) | ((lines_come == last_line) & (self.column > last_column))
        if window.sees_padding_alone:
            # A kernel that sees nothing but padding waits for no pixel, but for the first one of its image.
            there &= (lines_come > 0) | ((lines_come == 0) & (self.column > 0))
        last_x = Signal(init=across == 1)
        last_y = Signal(init=down == 1)
        # A start moves on to another place. What was known of the one before is asked no more.
        known = m.d.sync if self._ahead else m.d.comb
        known += [ready.eq(there & self.room), last_x.eq(x == across - 1), last_y.eq(y == down - 1)]
        m.d.comb += [row_ends.eq(self.starts & last_x), image_ends.eq(row_ends & last_y)]
        m.d.sync += lines_come.eq(lines_come + self.done - Mux(image_ends, height, 0))

        # The move to the next pixel: within a row, to the next row, to the next image.
        with m.If(self.starts):
            m.d.sync += [x.eq(x + 1), left.eq(left + window.stride[1]),
                         last_column.eq(self._within(left + window.stride[1] + window.extent[1] - 1, width))]
        with m.If(row_ends):
            m.d.sync += [x.eq(0), left.eq(left.init), last_column.eq(last_column.init), y.eq(y + 1),
                         top.eq(top + window.stride[0]),
                         last_line.eq(self._within(top + window.stride[0] + window.extent[0] - 1, height))]
            self._advance(m, bases, window.stride[0] % shape.lines * line(shape))
        with m.If(image_ends):
            m.d.sync += [y.eq(0), top.eq(top.init), last_line.eq(last_line.init)]
            self._advance(m, bases, (height - (down - 1) * window.stride[0]) % shape.lines * line(shape))

        # Its groups, the lines of its kernel, and those that are free behind it.
        finishes = self._issue(m, ready)
        self._place(m, top, left, bases)
        self._free(m, top, row_ends, image_ends, finishes)
        return m

    def _last(self) -> list[Signal]:
        """Registers for the last line and the last column of the image that the kernel sees, as an image begins."""
        walk, window = self._shape.walk, self._shape.walk.window
        first = [min(extent - 1 - padding, size - 1) for extent, padding, size in zip(
            window.extent, window.padding, walk.grid, strict=True)]
        return [Signal(range(min(0, place), max(2, size)), name=name, init=place) for name, place, size in zip(
            ("last_line", "last_column"), first, walk.grid, strict=True)]

    @staticmethod
    def _within(place: Value, size: int) -> Value:
        """A place of the kernel's last line or column, or the last one of the image before it."""
        return Mux(place > size - 1, size - 1, place)

    def _advance(self, m: Module, places: list[Signal], step: int) -> None:
        lines = depth(self._shape)
        for place in places:
            m.d.sync += place.eq(Mux(place >= lines - step, place - (lines - step), place + step))

    def _issue(self, m: Module, ready: Value) -> Value:
        """Issue all groups of the pixel that was started last, pass after pass, and start the next one behind it
        without a gap; returns whether the group of this cycle is the last one of its pixel."""
        shape, (outer, inner), issue, group = self._shape, self._shape.turns, self.issue, self.group
        phase = Signal.like(issue.phase)
        weight = Signal.like(issue.weight)
        pass_number = Signal(range(max(2, shape.passes)))
        phase_ends = Signal()
        group_ends = Signal()
        finishes = Signal()
        m.d.comb += phase_ends.eq(phase == shape.fold - 1)

        parts, turns = (group.part, group.part == inner - 1), (group.turn, group.turn == outer - 1)
        (sooner, sooner_ends), (later, later_ends) = (turns, parts) if shape.walk.block_by_block else (parts, turns)

        def start() -> None:
            """Start the next pixel, once what it sees is there, and room for it."""
            with m.If(ready):
                m.d.comb += self.starts.eq(1)
                m.next = "ISSUE"

        def advance() -> None:
            """Count: a phase of the fold, a part of the blocks and a turn of the positions or the other way round, a
            pass."""
            m.d.sync += phase.eq(Mux(phase_ends, 0, phase + 1))
            with m.If(phase_ends):
                m.d.sync += [weight.eq(weight + 1), sooner.eq(Mux(sooner_ends, 0, sooner + 1))]
                with m.If(sooner_ends):
                    m.d.sync += later.eq(Mux(later_ends, 0, later + 1))
            with m.If(group_ends):
                m.d.sync += pass_number.eq(pass_number + 1)

        final = Signal()  # The same as the condition of all counters, known in a register.
        if self._ahead:
            remaining = Signal(range(shape.cycles))
            m.d.sync += final.eq(remaining == 1)
            with m.If(self.starts):
                m.d.sync += remaining.eq(shape.cycles - 1)
            with m.Elif(remaining != 0):
                m.d.sync += remaining.eq(remaining - 1)

        with m.FSM(name="walk") as fsm:
            with m.State("WAIT"):
                start()
            with m.State("ISSUE"):
                m.d.comb += [
                    group_ends.eq(phase_ends & sooner_ends & later_ends),
                    finishes.eq(final if self._ahead else group_ends & (pass_number == shape.passes - 1)),
                ]
                advance()
                with m.If(finishes):
                    m.d.sync += [weight.eq(0), pass_number.eq(0)]
                    m.next = "WAIT"
                    start()

        # A register between the walk and the array.
        m.d.sync += [issue.valid.eq(fsm.ongoing("ISSUE")), issue.weight.eq(weight), issue.number.eq(pass_number),
                     issue.phase.eq(phase), issue.first.eq((sooner == 0) & (shape.walk.block_by_block | (later == 0))),
                     issue.ends.eq(phase_ends & sooner_ends if shape.walk.block_by_block else group_ends)]
        return finishes

    def _place(self, m: Module, top: Value, left: Value, bases: list[Signal]) -> None:
        """Hold the place of the pixel under way: the lines of its kernel, and which rows and columns of it lie in the
        image."""
        group = self.group
        rows = [Signal.like(base, name=f"row_{r}", reset_less=True) for r, base in enumerate(bases)]
        offset = Signal.like(group.offset, name="offset", reset_less=True)
        with m.If(self.starts):
            m.d.sync += [offset.eq(constant_product(left, self._shape.turns[1])),
                         *(row.eq(base) for row, base in zip(rows, bases, strict=True))]
        m.d.comb += [group.offset.eq(offset), *(port.eq(row) for port, row in zip(group.rows, rows, strict=True))]
        for axis, place, sides in ((0, top, group.inside_rows), (1, left, group.inside_columns)):
            m.d.comb += [side.eq(self._inside(m, place, axis, n)) for n, side in enumerate(sides)]

    def _inside(self, m: Module, place: Value, axis: int, n: int) -> Value:
        """Whether row, or column, ``n`` of the kernel lies in the image, for the pixel under way: asked only on the
        sides where it can lie outside."""
        walk, window = self._shape.walk, self._shape.walk.window
        n *= window.dilation[axis]
        first = n - window.padding[axis]
        last = first + (walk.output_grid[axis] - 1) * window.stride[axis]
        sides = [*([place + n >= 0] if first < 0 else []), *([place + n < walk.grid[axis]] if last >= walk.grid[axis]
                                                             else [])]
        if not sides:
            return Const(1)
        inside = Signal(name=f"inside_{('row', 'column')[axis]}_{n}", reset_less=True)
        with m.If(self.starts):
            m.d.sync += inside.eq(Cat(*sides).all())
        return inside

    def _free(self, m: Module, top: Value, row_ends: Value, image_ends: Value, finishes: Value) -> None:
        """Give back the lines that the rows to come do not see any more, when the last pixel of a row has been read."""
        height, stride = self._shape.walk.grid[0], self._shape.walk.window.stride[0]
        oldest = Signal(range(height + 1))
        lines_to_free = Signal(range(height + 1))
        lines_passed = Signal(range(height + 1))
        after = top + stride
        m.d.comb += lines_passed.eq(
            Mux(image_ends, height, Mux(after > 0, Mux(after > height, height, after), 0)) - oldest)
        with m.If(finishes):
            m.d.comb += self.freed.eq(lines_to_free)
            m.d.sync += lines_to_free.eq(0)
        with m.If(row_ends):
            m.d.sync += [lines_to_free.eq(lines_passed), oldest.eq(Mux(image_ends, 0, oldest + lines_passed))]
