"""The vectors that a recurrent layer goes on from: kept to be read, and brought back into its banks."""
from amaranth.hdl import Array, Const, Module, Mux, Signal, Value, ValueLike, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform
from circulant.hw.reload.config import MemoryWindow
from circulant.hw.stream.pipeline import delay

__all__ = ["Restore", "first_block", "write_signature"]


def write_signature(k: int, width: int, *, streams: int, blocks: int) -> wiring.Signature:
    """A block for a memory of vectors.

    Members:
        valid: a block is to be written.
        stream: stream that the block belongs to.
        block: number of the block in its vector.
        data: the block's values.
    """
    return wiring.Signature({
        "valid": Out(1), "stream": Out(range(max(2, streams))), "block": Out(range(max(2, blocks))),
        "data": Out(data.ArrayLayout(signed(width), k))})


def first_block(stream: Value, streams: int, blocks: int) -> ValueLike:
    """Address of the first block of a stream's state."""
    return Array([Const(n * blocks) for n in range(streams)])[stream] if streams > 1 else 0


class Restore(wiring.Component):
    """Keeps the last output of each stream. At a restart, while nothing is under way, it sends those of all streams the
    way that a step's output takes, the stream whose turn is next first.

    Parameters:
        opening: the window onto the outputs.
        settle: cycles that a block takes into the banks.

    Members:
        w: a block of output, see `write_signature`.
        restart, resume: see `circulant.hw.reload.config.Config`.
        turn: stream of the next step.
        valid: a block for the banks is there.
        drop: the block is of a stream that starts from zero.
        data: the block's values.
        busy: from the restart until the last block is there.
    """

    def __init__(self, *, opening: MemoryWindow, k: int, width: int, blocks: int, streams: int, settle: int) -> None:
        self._opening, self._settle = opening, settle
        self._blocks, self._streams = blocks, streams
        self._row = data.ArrayLayout(signed(width), k)
        super().__init__({
            "w": In(write_signature(k, width, streams=streams, blocks=blocks)),
            "restart": In(1), "resume": In(streams), "turn": In(range(max(2, streams))),
            "valid": Out(1), "drop": Out(1), "data": Out(self._row),
            "busy": Out(1),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        opening, blocks, streams = self._opening, self._blocks, self._streams
        m.submodules.outputs = mem = memory.Memory(shape=self._row, depth=streams * blocks, init=[])

        # The outputs: written as they come or through the port, read through the port or to be sent.
        write = mem.write_port()
        read = mem.read_port()
        running = Signal()
        turn = Signal.like(self.turn)
        block = Signal(range(max(2, blocks)))
        streams_left = Signal(range(streams + 1))
        settling = Signal(range(self._settle + 1))
        m.d.comb += [
            write.en.eq(self.w.valid), write.data.eq(self.w.data),
            write.addr.eq(first_block(self.w.stream, streams, blocks) + self.w.block),
            read.en.eq(1), read.addr.eq(Mux(running, first_block(turn, streams, blocks) + block, opening.index)),
            opening.data.eq(read.data), self.data.eq(read.data),
            self.valid.eq(delay(m, running, 1, name="valid", reset_less=False)),
            self.drop.eq(delay(m, ~self.resume.bit_select(turn, 1), 1, name="drop")),
            running.eq(streams_left != 0), self.busy.eq(running | (settling != 0)),
        ]
        with m.If(opening.write):
            m.d.comb += [write.en.eq(1), write.addr.eq(opening.index), write.data.eq(opening.word)]

        # At a restart those of all streams are sent, the next one first, and settle in the banks.
        with m.If(self.restart):
            m.d.sync += [streams_left.eq(streams), turn.eq(self.turn), block.eq(0)]
        with m.If(running):
            m.d.sync += [block.eq(block + 1), settling.eq(self._settle)]
            with m.If(block == blocks - 1):
                m.d.sync += [block.eq(0), streams_left.eq(streams_left - 1),
                             turn.eq(Mux(turn == streams - 1, 0, turn + 1))]
        with m.Elif(settling != 0):
            m.d.sync += settling.eq(settling - 1)
        return m
