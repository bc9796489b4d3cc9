"""A recurrent layer: banks, array, row memories, pointwise unit, and the order in which they work.

    i ─► banks ─► array ─┬─► rows of the gates ─► pointwise ─┬─► (m) ─► banks ─► projection ─┐
         ▲               └─► rows of the projection ─────────│───────────────────────────────┤
         └──────────────────────────── h ◄───────────────────┴───────────────────────────────┴─► queue ─► o

Nothing in it waits for anything but a step's input at its start and room for its output; what comes when follows from
the program. With several streams the steps of as many independent sequences follow each other in turn, and the gates of
one are computed while the results of another are under way.
"""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.banks import Banks, BankShape
from circulant.hw.array.lanes import LaneArray
from circulant.hw.array.pointwise import Pointwise, step_layout
from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.array.rows import RowMemories
from circulant.hw.array.sequencer import Sequencer
from circulant.hw.pipeline import Queue, block, connect
from circulant.sim.circulant import JointProduct
from circulant.sim.lstm import GATES as GATE_NAMES
from circulant.sim.lstm import Lstm

__all__ = ["RecurrentLayer", "bank_shape", "recurrent_program"]

GATES, PROJECT = 0, 1
"""Commands: the pre-activations of a step; its projection."""


def recurrent_program(layer: Lstm, shape: ArrayShape) -> Program:
    """The passes of a step: the gates of each hidden block side by side, and behind them the projection."""
    matrices = [Matrix(layer.gates, GATE_NAMES, command=GATES)]
    if layer.projection is not None:
        matrices.append(Matrix(JointProduct((layer.projection,)), ("y",), command=PROJECT))
    order = [(n, row) for n, matrix in enumerate(matrices) for row in range(0, matrix.rows, shape.rows)]
    return Program(shape, matrices, order)


def bank_shape(layer: Lstm, shape: ArrayShape, *, streams: int = 1) -> BankShape:
    """The banks of a layer: its input and recurrent vectors, and what is to be projected."""
    x, h = layer.gates.parts
    projected = 0 if layer.projection is None else layer.projection.columns // layer.projection.block_size
    return BankShape(
        columns=shape.columns,
        x=x,
        h=h,
        projected=projected,
        streams=streams,
        width=max(product.spectrum.width for product in layer.products.values()),
    )


class RecurrentLayer(wiring.Component):
    """Sequences in, states out, from a zero state at the start of each; equals `sim.lstm.Lstm`.

    Parameters:
        layer: the golden layer.
        shape: the array.
        elements: of the pointwise unit per cycle, a divisor of the block size.
        streams: independent sequences that are interleaved, a step of each in turn.

    Members:
        i: stream of blocks of x; a step takes as many as the inputs fill, the last one of a sequence is marked.
        o: stream of blocks of h (or y), of the last or of every step, in the same turns.
    """

    PLACES = 8
    """Steps under way at the most, from the start of the gates to the last block of the output."""

    def __init__(self, layer: Lstm, *, shape: ArrayShape, elements: int, streams: int = 1) -> None:
        self._layer, self._streams = layer, streams
        self.program = recurrent_program(layer, shape)
        k = layer.gates.block_size
        self._projects = layer.projection is not None
        self._hidden_blocks, self._blocks = -(-layer.hidden // k), layer.gates.parts[1].columns // k
        self._array = LaneArray(name=layer.name, program=self.program)
        self._banks = Banks(bank_shape(layer, shape, streams=streams))
        self._gate_rows = RowMemories(self.program, command=GATES)
        self._pointwise = Pointwise(layer, elements=elements, streams=streams)
        self._state = block(k, layer.output_format.width)
        super().__init__(
            {"i": In(stream.Signature(block(k, layer.input_format.width))), "o": Out(stream.Signature(self._state))}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        banks, array, rows, pointwise = self._banks, self._array, self._gate_rows, self._pointwise
        m.submodules.banks, m.submodules.array, m.submodules.gate_rows, m.submodules.pointwise = (
            banks,
            array,
            rows,
            pointwise,
        )
        shape = banks.shape
        m.submodules.sequencer = sequencer = Sequencer(
            self.program, needs=shape.needs, depth=shape.depth, most=shape.most
        )
        m.submodules.queue = queue = Queue(self._state, depth=(self._streams + 2) * self._blocks)
        connect(m, wiring.flipped(self.i), banks.i)
        connect(m, queue.o, wiring.flipped(self.o))

        gates_done = sequencer.done & (sequencer.command == GATES)
        second = Signal(2)
        m.d.sync += second.eq(second ^ Mux(sequencer.done, Mux(sequencer.command == GATES, 1, 2), 0))
        m.d.comb += [
            banks.address.eq(sequencer.address),
            banks.group.eq(sequencer.group),
            banks.zero.eq(sequencer.zero & (sequencer.command == GATES)),
            banks.done_input.eq(gates_done),
            banks.done_h.eq(gates_done & ~sequencer.zero),
            sequencer.have[GATES].eq(banks.have_h),
            array.spectra.eq(banks.spectra),
            array.second.eq(second.bit_select(sequencer.command, 1)),
            *(
                getattr(array, name).eq(getattr(sequencer, name))
                for name in ("weight", "number", "valid", "first", "ends")
            ),
        ]
        if self._projects:
            m.d.comb += [
                banks.done_projected.eq(sequencer.done & (sequencer.command == PROJECT)),
                sequencer.have[PROJECT].eq(banks.have_projected),
            ]
        for c in range(self.program.shape.chains):
            wiring.connect(m, getattr(array, f"o{c}"), getattr(rows, f"i{c}"))

        results = Signal(
            data.StructLayout(
                {
                    "valid": 1,
                    "block": range(max(2, self._blocks)),
                    "step": step_layout(self._streams),
                    "data": self._state.members["data"],
                }
            )
        )
        ends = Signal()
        m.d.comb += ends.eq(results.valid & (results.block == self._blocks - 1))
        fetched = Signal()
        m.d.comb += fetched.eq(rows.fetch & (rows.block == self._hidden_blocks - 1))
        steps = self._commands(m, sequencer, queue, results, ends, fetched)
        computed = Signal(range(self.PLACES))
        m.d.sync += computed.eq(computed + fetched)
        m.d.comb += [
            pointwise.waiting.eq(rows.waiting != 0),
            pointwise.block.eq(rows.block),
            rows.fetch.eq(pointwise.fetch),
            pointwise.step.eq(steps[computed]),
            *(pointwise.rows[kind].eq(rows.rows[kind]) for kind in GATE_NAMES),
        ]
        if self._projects:
            self._project(m, steps, results)
        else:
            m.d.comb += [results[name].eq(getattr(pointwise.o, name)) for name in ("valid", "block", "step", "data")]
            m.d.comb += [
                banks.own.valid.eq(results.valid),
                banks.own.drop.eq(results.step.last),
                banks.own.data.eq(results.data),
            ]
        emitted = Const(1) if self._layer.returns == "sequence" else results.step.last
        m.d.comb += [
            queue.i.valid.eq(results.valid & emitted),
            queue.i.payload.data.eq(results.data),
            queue.i.payload.last.eq(results.step.last & (results.block == self._blocks - 1)),
        ]
        return m

    def _commands(
        self, m: Module, sequencer: Sequencer, queue: Queue, results: Any, ends: Signal, fetched: Signal
    ) -> Any:
        """Start the gates of a step when its input is there, then its projection; returns what the steps are like."""
        banks, n = self._banks, self._streams
        ring, bases, projected = self._banks.shape.ring, self._banks.shape.bases, self._banks.shape.projected_bases
        layout = step_layout(n)
        steps = [Signal(layout, name=f"step_{place}") for place in range(self.PLACES)]
        place, under_way, unfetched, unprojected = (
            Signal(range(self.PLACES), name=name) for name in ("place", "under_way", "unfetched", "unprojected")
        )
        at, turn, fresh = Signal(range(ring)), Signal(range(max(2, n))), Signal(n, init=(1 << n) - 1)
        reading, promised, leaves = Signal(), Signal(range(len(steps) * self._blocks + queue.depth)), Signal()
        gates, project, picks = Signal(), Signal(), Signal()
        wants = Signal()
        m.d.comb += [
            # Rows of two steps fit into their memories, vectors of two into the banks that wait for the projection.
            wants.eq(
                (banks.inputs > reading)
                & (under_way != self.PLACES - 1)
                & (unfetched < 2)
                & (unprojected < 2)
                & (promised <= queue.depth - self._blocks)
            ),
            sequencer.go.valid.eq(Mux(picks, 1, wants)),
            sequencer.go.payload.command.eq(Mux(picks, PROJECT, GATES)),
            gates.eq(sequencer.go.valid & sequencer.go.ready & ~picks),
            project.eq(sequencer.go.valid & sequencer.go.ready & picks),
            sequencer.go.payload.zero.eq(~picks & fresh.bit_select(turn, 1)),
            sequencer.go.payload.base.eq(Array([Const(base, range(self._banks.shape.depth)) for base in bases])[at]),
            leaves.eq(queue.o.valid & queue.o.ready),
        ]
        last = banks.last.bit_select(at, 1)
        with m.If(sequencer.done & (sequencer.command == GATES)):
            m.d.sync += reading.eq(0)
        with m.If(gates):
            m.d.sync += [
                reading.eq(1),
                at.eq(Mux(at == ring - 1, 0, at + 1)),
                place.eq(place + 1),
                turn.eq(Mux(turn == n - 1, 0, turn + 1)),
                fresh.bit_select(turn, 1).eq(last),
            ]
            for number, step in enumerate(steps):
                with m.If(place == number):
                    m.d.sync += [step.first.eq(sequencer.go.payload.zero), step.last.eq(last), step.stream.eq(turn)]
        skipped = ends & ~results.step.last if self._layer.returns == "last" else Const(0)
        m.d.sync += [
            under_way.eq(under_way + gates - ends),
            unfetched.eq(unfetched + gates - fetched),
            promised.eq(promised + Mux(gates, self._blocks, 0) - Mux(skipped, self._blocks, 0) - leaves),
        ]
        if self._projects:
            second = Signal()
            m.d.sync += [unprojected.eq(unprojected + gates - project), second.eq(second ^ project)]
            # With several streams the gates of the next one go first, so that the projection's vector is there.
            m.d.comb += picks.eq((unprojected != 0) if n == 1 else (unprojected == 2) | ((unprojected == 1) & ~wants))
            with m.If(picks):
                m.d.comb += sequencer.go.payload.base.eq(Mux(second, projected[1], projected[0]))
        return Array(steps)

    def _project(self, m: Module, steps: Any, results: Any) -> None:
        """Blocks of m go to the banks, and those of the projection become the results."""
        banks, array, pointwise = self._banks, self._array, self._pointwise
        m.submodules.projected_rows = rows = RowMemories(self.program, command=PROJECT)
        for c in range(self.program.shape.chains):
            wiring.connect(m, getattr(array, f"o{c}"), getattr(rows, f"i{c}"))
        projected = Signal(range(self.PLACES))
        m.d.comb += rows.fetch.eq((rows.waiting != 0) & ~pointwise.comes)  # one transform serves both
        with m.If(rows.fetch & (rows.block == self._blocks - 1)):
            m.d.sync += projected.eq(projected + 1)
        valid, number, step = Signal(), Signal.like(rows.block), Signal(step_layout(self._streams))
        m.d.sync += [valid.eq(rows.fetch), number.eq(rows.block), step.eq(steps[projected])]
        m.d.comb += [
            results.valid.eq(valid),
            results.block.eq(number),
            results.step.eq(step),
            banks.own.valid.eq(pointwise.o.valid | valid),
            banks.own.projected.eq(pointwise.o.valid),
            banks.own.drop.eq(~pointwise.o.valid & step.last),
            banks.own.data.eq(Mux(pointwise.o.valid, Value.cast(pointwise.o.data), Value.cast(results.data))),
        ]
        k = self._layer.gates.block_size
        padding = self._blocks * k - self._layer.outputs
        for j in range(k):
            value = rows.rows.y[j]
            m.d.comb += results.data[j].eq(Mux(number == self._blocks - 1, 0, value) if j >= k - padding else value)
