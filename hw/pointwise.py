"""The pointwise unit: fetches blocks of pre-activations and state, computes some elements per cycle."""

from typing import Any

import numpy as np
from amaranth.hdl import Array, Const, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.dispatch import step_layout
from circulant.hw.cells import cell_of
from circulant.hw.pipeline import delay
from circulant.hw.target import Rom, packed
from circulant.sim.gru import Gru
from circulant.sim.lstm import PEEPHOLES, Lstm

__all__ = ["Pointwise"]


def _base(stream: Any, streams: int, blocks: int) -> Any:
    """Address of the first block of a stream's state."""
    return Array([Const(n * blocks) for n in range(streams)])[stream] if streams > 1 else 0


class Pointwise(wiring.Component):
    """A block every ``k / elements`` cycles; ``latency`` cycles from ``fetch`` to the result.

    Parameters:
        layer: the golden layer.
        elements: per cycle, a divisor of the block size.
        streams: sequences that are interleaved, each with a state of its own.

    Members:
        waiting, block: blocks that wait; the number of the next.
        fetch: that block is wanted; its rows are there in the next cycle and stay.
        rows: pre-activations by gate.
        step: of the block that waits.
        comes: a result is there in the next cycle.
        o: a block of h or m, with its number and its step; ``valid`` for one cycle.
    """

    def __init__(self, layer: Gru | Lstm, *, elements: int, streams: int) -> None:
        k = layer.gates.block_size
        if elements < 1 or k % elements:
            raise ValueError(f"Elements per cycle must divide the block size {k}, not {elements!r}")
        self._layer, self._elements, self._streams, self._k = layer, elements, streams, k
        self._blocks = blocks = -(-layer.hidden // k)
        cell: Any = cell_of(layer)
        self._state, self._cell_latency = signed(cell.state_format(layer).width), cell.latency(layer)
        self._cells = [cell(layer, name=layer.name) for _ in range(elements)]
        row = data.ArrayLayout(signed(layer.pre_format.width), k)
        number, step = range(max(2, blocks)), step_layout(streams)
        super().__init__(
            {
                "waiting": In(1),
                "block": In(number),
                "fetch": Out(1),
                "step": In(step),
                "comes": Out(1),
                "rows": In(data.StructLayout(dict.fromkeys(cell.rows, row))),
                "o": Out(
                    wiring.Signature(
                        {
                            "valid": Out(1),
                            "block": Out(number),
                            "step": Out(step),
                            "data": Out(data.ArrayLayout(signed(layer.sigmoid.output.width), k)),
                        }
                    )
                ),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from ``fetch`` to the result: memories, elements in turn, the cell, the block's register."""
        return 1 + (self._k // self._elements - 1) + self._cell_latency + 1

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        k, elements, blocks, layer = self._k, self._elements, self._blocks, self._layer
        phases = k // elements
        running, phase, ends = Signal(), Signal(range(max(2, phases))), Signal()
        current, step = Signal.like(self.block), Signal.like(self.step)
        m.d.comb += [ends.eq(phase == phases - 1), self.fetch.eq(self.waiting & (~running | ends))]
        with m.If(running):
            m.d.sync += [phase.eq(Mux(ends, 0, phase + 1)), running.eq(~ends)]
        with m.If(self.fetch):
            m.d.sync += [running.eq(1), current.eq(self.block), step.eq(self.step)]

        values = data.ArrayLayout(self._state, k)
        m.submodules.state = state = memory.Memory(shape=values, depth=self._streams * blocks, init=[])
        write, read = state.write_port(), state.read_port()
        m.d.comb += [read.en.eq(self.fetch), read.addr.eq(_base(self.step.stream, self._streams, blocks) + self.block)]
        operands: dict[str, Any] = {kind: self.rows[kind] for kind in self._cells[0].rows} | self._peepholes(m)

        latency = self._cell_latency
        valid = delay(m, running, latency, name="valid", reset_less=False)
        at, number = delay(m, phase, latency, name="phase"), delay(m, current, latency, name="number")
        kept = delay(m, step, latency, name="step")
        result, following = Signal(self.o.data.shape(), reset_less=True), Signal(values, reset_less=True)
        padding = blocks * k - layer.hidden
        for lane, cell in enumerate(self._cells):
            m.submodules[f"cell_{lane}"] = cell
            m.d.comb += [
                getattr(cell, name).eq(self._element(operand, phase, lane)) for name, operand in operands.items()
            ]
            m.d.comb += cell.state.eq(Mux(step.first, 0, self._element(read.data, phase, lane)))
            for p in range(phases):
                j = p * elements + lane
                behind = (number == blocks - 1) if j >= k - padding else Const(0)
                with m.If(valid & (at == p)):
                    m.d.sync += [result[j].eq(Mux(behind, 0, cell.y)), following[j].eq(Mux(behind, 0, cell.next))]
        m.d.comb += self.comes.eq(valid & (at == phases - 1))
        done = delay(m, self.comes, 1, name="done", reset_less=False)
        done_block, done_step = delay(m, number, 1, name="done_block"), delay(m, kept, 1, name="done_step")
        m.d.comb += [
            write.en.eq(done),
            write.addr.eq(_base(done_step.stream, self._streams, blocks) + done_block),
            write.data.eq(following),
            self.o.valid.eq(done),
            self.o.block.eq(done_block),
            self.o.step.eq(done_step),
            self.o.data.eq(result),
        ]
        return m

    def _element(self, values: Any, phase: Signal, lane: int) -> Any:
        """Element ``lane`` of the group whose turn it is."""
        return Array([values[p * self._elements + lane] for p in range(self._k // self._elements)])[phase]

    def _peepholes(self, m: Module) -> dict[str, Any]:
        """The peephole weights of the block that is fetched, by operand of the cell."""
        layer, k = self._layer, self._k
        if isinstance(layer, Gru) or layer.peephole is None:
            return {}
        width = layer.peephole_format.width
        table = np.pad(layer.peephole, ((0, 0), (0, self._blocks * k - layer.hidden))).reshape(3, self._blocks, k)
        m.submodules.peephole = rom = Rom(
            words=packed(table.swapaxes(0, 1).reshape(self._blocks, -1), width),
            width=3 * k * width,
            image=f"{layer.name}_peephole",
        )
        m.d.comb += [rom.en.eq(self.fetch), rom.addr.eq(self.block)]
        weights = data.View(data.ArrayLayout(data.ArrayLayout(signed(width), k), 3), rom.data)
        return {f"p{gate}": weights[n] for n, gate in enumerate(PEEPHOLES)}
