"""Small words that the units share: registers that stall together, delay lines, blocks, queues."""
from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import TypeVar

from amaranth.hdl import Array, Const, Module, Mux, Shape, ShapeLike, Signal, Value, ValueLike, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.emit.target import Platform

__all__ = ["LEVELS", "MOST_LEVELS", "PROMPT", "QUEUE", "Bundle", "Lives", "Queue", "Registers", "block", "connect",
           "delay", "difference", "difference_steps", "element", "kept", "past", "per_matrix", "registers", "steps",
           "tree", "update", "when"]


V = TypeVar("V", bound=ValueLike)

LEVELS = 4
"""Levels of logic between two registers, at the most, where nobody says how many."""

MOST_LEVELS = 12
"""No register is left out beyond these."""

STEP = 3
"""Levels of logic that a step of arithmetic takes: a sum, a rounding, a clipping, half a twiddle product."""

QUEUE = 2
"""Cycles of a payload through an empty `Queue`."""

PROMPT = 1
"""The same where it is prompt."""


def steps(levels: int) -> int:
    """Steps of arithmetic between two registers for so many levels of logic; docs/synthesis.md has them measured."""
    return max(1, levels // STEP)


def registers(count: int, levels: int, more: int = 0) -> int:
    """Registers of ``count`` steps in a row, the last of which has one; or where ``more`` steps follow, the last of
    these."""
    every = steps(levels)
    return -(-(count + more) // every) - -(-more // every)


def block(k: int, width: int) -> data.StructLayout:
    """One block of a vector between layers: k values, and whether it is the last block of its sequence."""
    return data.StructLayout({"data": data.ArrayLayout(signed(width), k), "last": 1})


def connect(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Join two streams whose payloads have one and the same shape; `wiring.connect` compares widths only.

    Raises:
        TypeError: when the shapes differ.
    """
    given, taken = source.payload.shape(), sink.payload.shape()
    if given != taken:
        raise TypeError(f"Streams must have one payload shape, not {given!r} and {taken!r}")
    m.d.comb += [sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]


class Bundle:
    """Members of a component that make a signature, to be connected as a whole."""

    def __init__(self, component: wiring.PureInterface, signature: wiring.Signature) -> None:
        self.signature = signature
        for name in signature.members:
            setattr(self, name, getattr(component, name))


def delay(m: Module, value: V, cycles: int, *, name: str, reset_less: bool = True) -> V:
    """``value`` some cycles later, without a stall. What starts something must be cleared by a reset, data need not."""
    for i in range(cycles):
        later = Signal.like(value, name=f"{name}_{i + 1}", reset_less=reset_less)
        m.d.sync += later.eq(value)
        value = later
    return value


def kept(m: Module, value: Value, name: str) -> Signal:
    """The value a cycle later, in a register of that name."""
    signal = Signal(Shape.cast(value.shape()), name=name, reset_less=True)
    m.d.sync += signal.eq(value)
    return signal


def element(values: data.View, index: Value) -> Value:
    """An element of an array, chosen by comparisons: Amaranth would multiply the index by the element's width, and a
    tool would spend a multiplier on it."""
    return Array([Value.cast(values[n]) for n in range(values.shape().length)])[index]


def per_matrix(values: Sequence[int | Value], matrix: Value) -> Value:
    """The value that belongs to a matrix; a constant where all are equal."""
    if (all(isinstance(value, int) for value in values) and len(set(values)) == 1) or len(values) == 1:
        return Value.cast(values[0])
    return Array([Value.cast(value) for value in values])[matrix]


class Lives:
    """When what came in with a ``valid`` is where: enables of registers whose clock is to stop.

    Parameters:
        valid: None where no clock stops, so that registers have no enable.
    """

    def __init__(self, m: Module, valid: Value | None, *, name: str) -> None:
        self._m, self._name = m, name
        self._at = [valid]

    def at(self, cycles: int) -> Value | None:
        """Whether something is there so many cycles after it was valid."""
        while len(self._at) <= cycles:
            before, later = self._at[-1], None
            if before is not None:
                later = Signal(name=f"{self._name}_{len(self._at)}")
                self._m.d.sync += later.eq(before)
            self._at.append(later)
        return self._at[cycles]

    def after(self, cycles: int) -> "Lives":
        """The same, so many cycles later."""
        return Lives(self._m, self.at(cycles), name=f"{self._name}_{cycles}")


def update(m: Module, statements: object, enable: Value | None = None) -> None:
    """Statements of registers, with ``enable``, if there is one."""
    if enable is None:
        m.d.sync += statements
    else:
        with m.If(enable):
            m.d.sync += statements


def when(m: Module, value: Value, shape: ShapeLike, *, kept: bool, name: str, enable: Value | None = None) -> Signal:
    """A value as a signal: a register where it is ``kept``, with ``enable``, if there is one; else in the same
    cycle."""
    signal = Signal(Shape.cast(shape), name=name, reset_less=kept)
    if kept:
        update(m, signal.eq(value), enable)
    else:
        m.d.comb += signal.eq(value)
    return signal


def tree(m: Module, level: Sequence[Value], *, name: str, join: Callable[[Value, Value], Value] = add,
         levels: int = LEVELS, lives: Lives | None = None, count: int | None = None, more: int = 0) -> Value:
    """The sum of some values, or what ``join`` makes of two at a time.

    Parameters:
        lives: enables of the registers.
        count: steps, at least ⌈log2⌉ of the number of values, which is the default.
        more: steps that follow outside. Registers lie as in a tree of ``count + more`` steps: behind its last step, and
            before it where `registers` says.
    """
    left, behind = (ceil_log2(len(level)) if count is None else count) + more, 0
    while left > more:
        pairs = [join(level[i], level[i + 1]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
        left -= 1
        kept = left % steps(levels) == 0
        level = [when(m, pair, signed(len(pair)), kept=kept, name=f"{name}_{len(pairs)}_{n}",
                      enable=lives.at(behind) if lives and kept else None) for n, pair in enumerate(pairs)]
        behind += kept
    return level[0]


def difference_steps(plus: int, minus: int) -> int:
    """Steps of the `difference` of so many values and so many."""
    return max(ceil_log2(plus), ceil_log2(max(1, minus))) + (minus > 0)


def difference(m: Module, plus: Sequence[Value], minus: Sequence[Value], *, name: str, levels: int = LEVELS,
               more: int = 0) -> Value:
    """The sum of some values without that of others, two trees side by side; ``more`` as of `tree`."""
    count = difference_steps(len(plus), len(minus))
    if not minus:
        return tree(m, plus, name=name, levels=levels, count=count, more=more)
    high, low = (tree(m, values, name=f"{name}_{sign}", levels=levels, count=count - 1, more=more + 1)
                 for values, sign in ((plus, "plus"), (minus, "minus")))
    return when(m, high - low, signed(len(high - low)), kept=more % steps(levels) == 0, name=name)


class Registers:
    """The stages of a pipeline between two streams, which all move in the same cycles.

    A cycle moves them when the last one is empty or read. ``stage()`` turns the values of a step into registers, or
    leaves them as they are where the levels of logic allow more than a step between two of them.

    Parameters:
        valid: of the incoming stream.
        ready: of the outgoing one.
        count: steps from input to output.
        levels: of logic between two registers.
        gated: registers move only with something valid before them.
        more: steps that follow outside, without a register between.
    """

    def __init__(self, m: Module, *, valid: Value, ready: Value, count: int, levels: int = LEVELS,
                 gated: bool = False, more: int = 0) -> None:
        self._m, self._steps, self._every = m, count + more, steps(levels)
        self._kept = registers(count, levels, more)
        self._ready = ready
        self._valids = [valid]
        self.move = Signal()
        if gated:
            self._valids += [Signal(name=f"valid_{i + 1}") for i in range(self._kept)]

    def stage(self, values: Iterable[Value], at: int) -> list[Value]:
        """The values behind step ``at``, counted from 1; parallel branches each take their own calls."""
        kept = (self._steps - at) % self._every == 0
        before = (self._steps - 1) // self._every - (self._steps - at) // self._every  # Registers before this one.
        enable = self.move & self._valids[before] if kept and len(self._valids) > 1 else self.move
        found = []
        for value in values:
            signal = Signal(Shape.cast(value.shape()), name="stage", reset_less=kept)
            if kept:
                with self._m.If(enable):
                    self._m.d.sync += signal.eq(value)
            else:
                self._m.d.comb += signal.eq(value)
            found.append(signal)
        return found

    def close(self) -> Value:
        """Finish; returns ``valid`` of the outgoing stream."""
        valid = self._valids[0]
        for i in range(self._kept):
            later = self._valids[i + 1] if len(self._valids) > 1 else Signal(name=f"valid_{i + 1}")
            with self._m.If(self.move):
                self._m.d.sync += later.eq(valid)
            valid = later
        self._m.d.comb += self.move.eq(~valid | self._ready)
        return valid


def past(m: Module, queue: wiring.PureInterface, word: Value, *, empty: Value, read: Value) -> tuple[Value, Value]:
    """The way past the memory of a prompt queue: whether what comes takes it, and what the output shows.

    Parameters:
        queue: with streams ``i`` and ``o``.
        word: that was read last.
        empty: nothing is in the memory.
        read: a word is read.
    """
    passes = Signal()
    beside = Signal()
    passed = Signal(len(word), reset_less=True)
    m.d.comb += passes.eq(queue.i.valid & empty & (~queue.o.valid | queue.o.ready))
    with m.If(passes):
        m.d.sync += [passed.eq(Value.cast(queue.i.payload)), beside.eq(1)]
    with m.If(read):
        m.d.sync += beside.eq(0)
    return passes, Mux(beside, passed, word)


class Queue(wiring.Component):
    """A first-in first-out queue of at least ``depth`` payloads of any shape, two cycles from input to output.

    Parameters:
        prompt: one cycle from input to output, for a level of logic more behind it: what comes while the memory is
            empty and the output free goes to a register beside the memory's.

    Members:
        i: stream of payloads into the queue.
        o: stream of payloads out of the queue.
        level: number of payloads held.
    """

    latency = QUEUE

    def __init__(self, shape: ShapeLike, *, depth: int, prompt: bool = False) -> None:
        self._shape, self._prompt = shape, prompt
        self.depth = depth = max(depth, 3)  # A shallower buffered FIFO is not ready right after its first payload.
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    def elaborate(self, platform: Platform) -> Module:
        """As Amaranth's buffered FIFO, but what decides a cycle is known in registers and compared with no count."""
        m = Module()
        most = self.depth - 1
        width = Shape.cast(self._shape).width
        m.submodules.storage = storage = memory.Memory(shape=width, depth=most, init=[])
        write = storage.write_port()
        read = storage.read_port()

        # The output is the memory's register, filled again as soon as it is taken.
        waiting = Signal(range(most + 1))
        not_empty = Signal()
        not_full = Signal(init=1)
        free = ~self.o.valid | self.o.ready
        passes, shown = past(m, self, read.data, empty=~not_empty, read=read.en) if self._prompt else (
            Const(0), read.data)
        m.d.comb += [
            self.i.ready.eq(not_full), self.level.eq(waiting + self.o.valid),
            write.en.eq(self.i.valid & not_full & ~passes), write.data.eq(Value.cast(self.i.payload)),
            read.en.eq(not_empty & free), Value.cast(self.o.payload).eq(shown),
        ]

        # Addresses go round, and what waits is counted.
        for port in (write, read):
            with m.If(port.en):
                m.d.sync += port.addr.eq(Mux(port.addr == most - 1, 0, port.addr + 1))
        grows = Signal()
        shrinks = Signal()
        m.d.comb += [grows.eq(write.en & ~read.en), shrinks.eq(read.en & ~write.en)]
        with m.If(grows):
            m.d.sync += [waiting.eq(waiting + 1), not_empty.eq(1), not_full.eq(waiting != most - 1)]
        with m.If(shrinks):
            m.d.sync += [waiting.eq(waiting - 1), not_empty.eq(waiting != 1), not_full.eq(1)]
        m.d.sync += self.o.valid.eq(not_empty | passes | self.o.valid & ~self.o.ready)
        return m
