"""Small words that the units share: registers that stall together, delay lines, blocks, queues."""
from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Array, Module, Shape, ShapeLike, Signal, Value, signed
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Queue", "Registers", "block", "connect", "delay", "per_matrix"]


def block(k: int, width: int) -> data.StructLayout:
    """One block of a vector between layers: k values, and whether it is the last block of its sequence."""
    return data.StructLayout({"data": data.ArrayLayout(signed(width), k), "last": 1})


def connect(m: Module, source: Any, sink: Any) -> None:
    """Join two streams whose payloads have one and the same shape; `wiring.connect` compares widths only.

    Raises:
        TypeError: when the shapes differ.
    """
    given, taken = source.payload.shape(), sink.payload.shape()
    if given != taken:
        raise TypeError(f"Streams must have one payload shape, not {given!r} and {taken!r}")
    m.d.comb += [sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]


def delay(m: Module, value: Any, cycles: int, *, name: str, reset_less: bool = True) -> Any:
    """``value`` some cycles later, without a stall. What starts something must be cleared by a reset, data need not."""
    for i in range(cycles):
        later = Signal.like(value, name=f"{name}_{i + 1}", reset_less=reset_less)
        m.d.sync += later.eq(value)
        value = later
    return value


def per_matrix(values: Sequence[int | Value], matrix: Value) -> Value:
    """The value that belongs to a matrix; a constant where all are equal."""
    if (all(isinstance(value, int) for value in values) and len(set(values)) == 1) or len(values) == 1:
        return Value.cast(values[0])
    return Array([Value.cast(value) for value in values])[matrix]


class Registers:
    """The stages of a pipeline between two streams, which all move in the same cycles.

    A cycle moves them when the last one is empty or read. ``stage()`` turns values into registers; as many calls as
    lie on the way from input to output make the ``latency``.
    """

    def __init__(self, m: Module, *, valid: Value, ready: Value) -> None:
        """``valid`` of the incoming stream and ``ready`` of the outgoing one."""
        self._m = m
        self._ready = ready
        self._valids = [valid]
        self.move = Signal()

    def stage(self, values: Iterable[Value]) -> list[Value]:
        """The values, one stage later; parallel branches each take their own calls."""
        registers = []
        for value in values:
            register = Signal(Shape.cast(value.shape()), name="stage", reset_less=True)
            with self._m.If(self.move):
                self._m.d.sync += register.eq(value)
            registers.append(register)
        return registers

    def close(self, latency: int) -> Value:
        """Finish after ``latency`` stages; returns ``valid`` of the outgoing stream."""
        valid = self._valids[0]
        for i in range(latency):
            later = Signal(name=f"valid_{i + 1}")
            with self._m.If(self.move):
                self._m.d.sync += later.eq(valid)
            valid = later
        self._m.d.comb += self.move.eq(~valid | self._ready)
        return valid


class Queue(wiring.Component):
    """A first-in first-out queue of at least ``depth`` payloads of any shape, two cycles from input to output.

    Members:
        i, o: streams of ``shape``.
        level: payloads held.
    """

    def __init__(self, shape: ShapeLike, *, depth: int) -> None:
        self._shape = shape
        self.depth = depth = max(depth, 3)  # A shallower buffered FIFO is not ready right after its first payload.
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifo = queue = fifo.SyncFIFOBuffered(width=Shape.cast(self._shape).width, depth=self.depth)
        m.d.comb += [
            queue.w_data.eq(Value.cast(self.i.payload)), queue.w_en.eq(self.i.valid), self.i.ready.eq(queue.w_rdy),
            Value.cast(self.o.payload).eq(queue.r_data), self.o.valid.eq(queue.r_rdy), queue.r_en.eq(self.o.ready),
            self.level.eq(queue.level),
        ]
        return m
