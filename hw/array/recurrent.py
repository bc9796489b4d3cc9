"""A recurrent layer: banks, array, row memories, pointwise unit, and the order in which they work.

    i ─► banks ─► array ─┬─► rows of the gates ─► pointwise ─┬─► (m) ─► banks ─► projection ─┐
         ▲               └─► rows of the projection ─────────│───────────────────────────────┤
         └──────────────────────────── h ◄───────────────────┴───────────────────────────────┴─► queue ─► o

Nothing in it waits for anything but a step's input at its start and room for its output; what comes when follows from
the program. With several streams the steps of as many independent sequences follow each other in turn, and the gates of
one are computed while the results of another are under way.
"""
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.banks import Banks, BankShape
from circulant.hw.array.dispatch import PLACES, Dispatch
from circulant.hw.array.lanes import LaneArray
from circulant.hw.array.pointwise import Pointwise, step_layout
from circulant.hw.array.program import MAIN, SECOND, Program
from circulant.hw.array.rows import RowMemories
from circulant.hw.array.sequencer import Sequencer
from circulant.hw.pipeline import Queue, block, connect
from circulant.sim.gru import Gru
from circulant.sim.lstm import Lstm

__all__ = ["RecurrentLayer", "bank_shape"]


def bank_shape(layer: Gru | Lstm, *, columns: int, streams: int = 1) -> BankShape:
    """The banks of a layer: its input and recurrent vectors, and what is to be projected."""
    x, h = layer.gates.parts
    return BankShape(columns, x, h, layer.projection if isinstance(layer, Lstm) else None, streams)


class RecurrentLayer(wiring.Component):
    """Sequences in, states out, from a zero state at the start of each; equals `sim.lstm.Lstm` or `sim.gru.Gru`.

    Parameters:
        layer: the golden layer.
        program: the passes of a step, and the array.
        elements: of the pointwise unit per cycle, a divisor of the block size.
        streams: independent sequences that are interleaved, a step of each in turn.

    Members:
        i: stream of blocks of x; a step takes as many as the inputs fill, the last one of a sequence is marked.
        o: stream of blocks of h (or y), of the last or of every step, in the same turns.
    """

    def __init__(self, layer: Gru | Lstm, *, program: Program, elements: int, streams: int = 1) -> None:
        self._layer, self._streams, self.program = layer, streams, program
        k = layer.gates.block_size
        self._hidden_blocks, self._blocks = -(-layer.hidden // k), layer.gates.parts[1].columns // k
        self._array = LaneArray(name=layer.name, program=program)
        self._banks = Banks(bank_shape(layer, columns=program.shape.columns, streams=streams))
        self._gate_rows = RowMemories(program, stage=0)
        self._pointwise = Pointwise(layer, elements=elements, streams=streams)
        self._state = block(k, layer.output_format.width)
        super().__init__(
            {"i": In(stream.Signature(block(k, layer.input_format.width))), "o": Out(stream.Signature(self._state))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        banks, rows, pointwise = self._banks, self._gate_rows, self._pointwise
        m.submodules.banks, m.submodules.gate_rows, m.submodules.pointwise = banks, rows, pointwise
        m.submodules.queue = queue = Queue(self._state, depth=(self._streams + 2) * self._blocks)
        m.submodules.dispatch = dispatch = Dispatch(
            self.program, banks=banks.shape, blocks=self._blocks, room=queue.depth)
        connect(m, wiring.flipped(self.i), banks.i)
        connect(m, queue.o, wiring.flipped(self.o))
        self._sequence(m, dispatch)
        self._rows(m, rows)

        results = Signal(data.StructLayout({
            "valid": 1, "block": range(max(2, self._blocks)), "step": step_layout(self._streams),
            "data": self._state.members["data"]}))
        ends, fetched, computed = Signal(), Signal(), Signal(range(PLACES))
        m.d.comb += [
            ends.eq(results.valid & (results.block == self._blocks - 1)),
            fetched.eq(rows.fetch & (rows.block == self._hidden_blocks - 1)),
            dispatch.ends.eq(ends), dispatch.fetched.eq(fetched), dispatch.leaves.eq(queue.o.valid & queue.o.ready),
            dispatch.skipped.eq(ends & ~results.step.last if self._layer.returns == "last" else 0),
            pointwise.waiting.eq(rows.waiting != 0),
            pointwise.block.eq(rows.block),
            rows.fetch.eq(pointwise.fetch),
            pointwise.step.eq(dispatch.steps[computed]),
            *(pointwise.rows[kind].eq(rows.rows[kind]) for kind in pointwise.rows.shape().members),
        ]
        m.d.sync += computed.eq(computed + fetched)
        if self.program.commands[SECOND]:
            self._project(m, dispatch, results)
        else:
            m.d.comb += [results[name].eq(getattr(pointwise.o, name)) for name in ("valid", "block", "step", "data")]
            m.d.comb += [
                banks.own.valid.eq(results.valid), banks.own.drop.eq(results.step.last),
                banks.own.data.eq(results.data),
            ]
        emitted = Const(1) if self._layer.returns == "sequence" else results.step.last
        m.d.comb += [
            queue.i.valid.eq(results.valid & emitted),
            queue.i.payload.data.eq(results.data),
            queue.i.payload.last.eq(results.step.last & (results.block == self._blocks - 1)),
        ]
        return m

    def _sequence(self, m: Module, dispatch: Dispatch) -> None:
        """Commands to the sequencer, and from there to banks and array."""
        banks, array, shape = self._banks, self._array, self._banks.shape
        m.submodules.array = array
        m.submodules.sequencer = sequencer = Sequencer(
            self.program, depth=max(2, shape.depth), most=shape.most, image=f"{self._layer.name}_program")
        wiring.connect(m, dispatch.go, sequencer.go)
        main = sequencer.done & (sequencer.command == MAIN)
        m.d.comb += [
            dispatch.inputs.eq(banks.inputs), dispatch.last.eq(banks.last),
            dispatch.done.eq(sequencer.done), dispatch.command.eq(sequencer.command),
            sequencer.have.eq(banks.have),
            banks.address.eq(sequencer.address), banks.group.eq(sequencer.group),
            banks.zero.eq(sequencer.zero & (sequencer.command == MAIN)),
            banks.done_input.eq(main), banks.done_h.eq(main & ~sequencer.zero),
            banks.done_second.eq(sequencer.done & (sequencer.command == SECOND)),
            array.spectra.eq(banks.spectra),
            array.second.eq(dispatch.second.bit_select(sequencer.command, 1)),
            *(getattr(array, name).eq(getattr(sequencer, name))
              for name in ("weight", "number", "valid", "slot", "first", "ends")),
        ]

    def _rows(self, m: Module, rows: RowMemories) -> None:
        for c in range(self.program.shape.chains):
            wiring.connect(m, getattr(self._array, f"o{c}"), getattr(rows, f"i{c}"))

    def _project(self, m: Module, dispatch: Dispatch, results: Any) -> None:
        """Blocks of m go to the banks, and those of the projection become the results."""
        banks, pointwise = self._banks, self._pointwise
        m.submodules.projected_rows = rows = RowMemories(self.program, stage=1)
        self._rows(m, rows)
        projected = Signal(range(PLACES))
        m.d.comb += rows.fetch.eq((rows.waiting != 0) & ~pointwise.comes)  # one transform serves both
        with m.If(rows.fetch & (rows.block == self._blocks - 1)):
            m.d.sync += projected.eq(projected + 1)
        valid, number, step = Signal(), Signal.like(rows.block), Signal(step_layout(self._streams))
        m.d.sync += [valid.eq(rows.fetch), number.eq(rows.block), step.eq(dispatch.steps[projected])]
        m.d.comb += [
            results.valid.eq(valid), results.block.eq(number), results.step.eq(step),
            banks.own.valid.eq(pointwise.o.valid | valid),
            banks.own.second.eq(pointwise.o.valid),
            banks.own.drop.eq(~pointwise.o.valid & step.last),
            banks.own.data.eq(Mux(pointwise.o.valid, Value.cast(pointwise.o.data), Value.cast(results.data))),
        ]
        k = self._layer.gates.block_size
        padding = self._blocks * k - self._layer.outputs
        for j in range(k):
            value = rows.rows.y[j]
            m.d.comb += results.data[j].eq(Mux(number == self._blocks - 1, 0, value) if j >= k - padding else value)
