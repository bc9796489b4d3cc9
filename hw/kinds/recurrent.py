"""A recurrent layer: an engine, row memories, and the pointwise unit.

    i ─► engine ─┬─► rows of the gates ─► pointwise ─┬─► (m) ─► engine ─► rows of the projection ─┐
           ▲     └─ …                                │                                            │
           └─────────────────── h ◄──────────────────┴────────────────────────────────────────────┴─► queue ─► o

With several streams the steps of as many independent sequences follow each other in turn, and the gates of
one are computed while the results of another are under way.
"""
from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import tell, watched
from circulant.hw.array.bank_shape import BankShape, write_latency
from circulant.hw.array.dispatch import step_layout
from circulant.hw.array.engine import Engine
from circulant.hw.array.matrix import beats
from circulant.hw.array.parts import Memory, Parts, engine_images, engine_parts, queue_memory
from circulant.hw.array.plans import LayerPlan
from circulant.hw.array.program import SECOND, ArrayShape, Matrix, Program
from circulant.hw.array.row_buffers import RowBuffers
from circulant.hw.array.shared_array import array_port
from circulant.hw.components.cell import cells_of
from circulant.hw.components.pointwise import Pointwise, pointwise_images, pointwise_latency, pointwise_parts
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.plan.ladders import layer_entry, layer_multiplications
from circulant.hw.plan.layer_plan import array_entry, element_multiplications, estimate, issue_cycles, with_array
from circulant.hw.plan.shared.cost import steady_step
from circulant.hw.plan.step_cost import chain_latency, limit, stages
from circulant.hw.reload.config import Config, MemoryWindow
from circulant.hw.reload.restore import Restore
from circulant.hw.stream.pipeline import Queue, block, connect, delay, element
from circulant.hw.unit import Site, loadable, unit
from circulant.sim.configuration import StateShape
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.cell import RecurrentLayer as GoldenRecurrentLayer
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.rnn import Rnn

__all__ = ["RecurrentLayer", "bank_shape"]


def bank_shape(layer: Gru | Lstm | Rnn, program: Program, *, streams: int = 1) -> BankShape:
    """The banks of a layer: its input and recurrent vectors, and what is to be projected, or r * h."""
    x, h = layer.gates.parts
    second = next((part.product for matrix in program.matrices for part in matrix.parts if part.vector), None)
    return BankShape(program.shape.columns, x, h, second, streams, levels=program.shape.levels, start=program.inputs,
                     counts=program.counts, own=program.shape.gives)


class RecurrentLayer(wiring.Component):
    """Sequences in, states out, from a zero state at the start of each; equals `sim.kinds.lstm.Lstm` or
    `sim.kinds.gru.Gru`.

    Parameters:
        layer: the golden layer.
        program: the passes of a step, and the array.
        elements: of the pointwise unit per cycle, a divisor of the block size.
        streams: independent sequences that are interleaved, a step of each in turn.
        config: the port of a reloadable design, which must have as many streams; None otherwise.
        keeps: with ``config``: whether the state can be saved and restored through it.

    Members:
        i: stream of blocks of x; a step takes as many as the inputs fill, the last one of a sequence is marked.
        o: stream of blocks of h (or y), of the last or of every step, in the same turns.
        array: where the array is shared, see `array_port`.
        busy: of a reloadable design: a step is under way.
        resuming: with ``keeps``: streams whose next step is not the first of its sequence.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, layer: Gru | Lstm | Rnn, *, program: Program, elements: int, streams: int = 1,
                 config: Config | None = None, keeps: bool = False) -> None:
        self._layer, self._streams, self.program, self._config = layer, streams, program, config
        self.keeps = keeps
        comes, k = beats(program.matrices, program.shape)
        self._k = k
        self._hidden_blocks, self._blocks = -(-layer.hidden // k), layer.gates.parts[1].columns // k
        self._queue = Queue(block(k, layer.output_format.width), depth=(streams + 2) * self._blocks)
        self._banks = bank_shape(layer, program, streams=streams)
        self._engine = Engine(
            name=layer.name, program=program, blocks=self._blocks, room=self._queue.depth, banks=self._banks,
            config=config)
        self._elements = elements
        self._restore, self._own_state = None, None
        if keeps:
            assert config is not None
            self._own_state = self._outputs = self._opening("y", layer.outputs, self._blocks, layer.output_format.width)
            if cells_of(layer)[0].private:
                self._own_state = self._opening(
                    "c", layer.hidden, self._hidden_blocks, cells_of(layer)[0].memories(layer)["state"])
            self._restore = Restore(
                opening=self._outputs, k=k, width=layer.output_format.width, blocks=self._blocks, streams=streams,
                settle=write_latency(k, program.shape.levels) + 2)
            config.restoring.append(self._restore.busy)
        self._pointwise = self._unit(0)
        self._state = block(k, layer.output_format.width)
        super().__init__({
            "i": In(stream.Signature(block(comes, layer.input_format.width))),
            "o": Out(stream.Signature(self._state)),
            **({} if program.whole is program else {"array": Out(array_port(program.whole))}),
            **({} if config is None else {"busy": Out(1)}), **({"resuming": Out(streams)} if keeps else {}),
            **watched(program.shape.protection)})

    @property
    def parts(self) -> Parts:
        """The engine, the queue, the pointwise units; the state that can be saved is kept once more."""
        layer, loads = self._layer, self._config is not None
        found = engine_parts(self.program, self._banks, loadable=loads) + Parts([queue_memory(self._queue)])
        for cell in cells_of(layer):
            each = pointwise_parts(cell, layer, self._elements, self._streams, self.program.shape.gives)
            found += each.loadable if loads else each
        kept = Memory(1, self._k * layer.output_format.width, self._streams * self._blocks)
        return found + Parts([kept]) if self.keeps else found

    @property
    def images(self) -> list[Image]:
        return [*engine_images(self._layer.name, self.program),
                *(image for cell in cells_of(self._layer) for image in pointwise_images(
                    cell, self._layer, self.program.shape.gives))]

    def _opening(self, part: str, size: int, blocks: int, width: int) -> MemoryWindow:
        """The window onto a part of the state."""
        assert self._config is not None
        layer, k = self._layer, self._k
        return self._config.claim(
            f"{layer.name}_{part}", words=self._streams * blocks, width=k * width,
            state=StateShape(layer.name, part=part, size=size, block_size=k, blocks=blocks, streams=self._streams,
                             width=width))

    def _unit(self, stage: int) -> Pointwise:
        return Pointwise(cells_of(self._layer)[stage], self._layer, elements=self._elements, streams=self._streams,
                         levels=self.program.shape.levels, config=self._config, state=self._own_state,
                         gives=self.program.shape.gives)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        engine, queue, pointwise = self._engine, self._queue, self._pointwise
        m.submodules.engine, m.submodules.pointwise, m.submodules.queue = engine, pointwise, queue
        m.submodules.gate_rows = rows = engine.rows(m, stage=0)
        tell(m, self, engine)

        # Inputs to the engine, outputs from the queue.
        connect(m, wiring.flipped(self.i), engine.i)
        if self.program.whole is not self.program:
            wiring.connect(m, engine.array, wiring.flipped(self.array))
        connect(m, queue.o, wiring.flipped(self.o))

        # The results of a step, block after block, and what the engine has to know of them.
        results = Signal(data.StructLayout({
            "valid": 1, "block": range(max(2, self._blocks)), "step": step_layout(self._streams),
            "y": self._state.members["data"]}))
        ends = Signal()
        fetched = self._feed(m, rows, pointwise)
        m.d.comb += [
            ends.eq(results.valid & (results.block == self._blocks - 1)),
            engine.ends.eq(ends), engine.fetched.eq(fetched), engine.leaves.eq(queue.o.valid & queue.o.ready),
            engine.skipped.eq(ends & ~results.step.last if self._layer.returns == "last" else 0),
        ]

        # The way back into the banks: results, and what is to be projected or is r · h.
        if not self.program.commands[SECOND]:
            _give(m, pointwise.o, results)
            m.d.comb += [engine.own.valid.eq(results.valid), engine.own.drop.eq(results.step.last),
                         engine.own.data.eq(results.y)]
        else:
            (self._renew if len(cells_of(self._layer)) > 1 else self._project)(m, results)
            m.d.comb += [
                engine.own.valid.eq(pointwise.o.valid | results.valid),
                engine.own.second.eq(pointwise.o.valid),
                engine.own.drop.eq(~pointwise.o.valid & results.step.last),
                engine.own.data.eq(Mux(pointwise.o.valid, Value.cast(pointwise.o.y), Value.cast(results.y))),
            ]

        # The way out: the results of every step, or of the last one.
        emitted = Const(1) if self._layer.returns == "sequence" else results.step.last
        m.d.comb += [
            queue.i.valid.eq(results.valid & emitted),
            queue.i.payload.data.eq(results.y),
            queue.i.payload.last.eq(results.step.last & (results.block == self._blocks - 1)),
        ]

        # The state of a reloadable design.
        if self._config is not None:
            m.d.comb += self.busy.eq(engine.busy)
            if self.keeps:
                self._keep(m, self._config, results)
            else:
                m.d.comb += [engine.restart.eq(0), engine.resume.eq(0)]
        return m

    def _keep(self, m: Module, config: Config, results: data.View) -> None:
        """Keep the outputs of each stream, and take them back at a restart."""
        engine, own = self._engine, self._engine.own
        m.submodules.restore = restore = self._restore
        assert restore is not None
        m.d.comb += [
            restore.w.valid.eq(results.valid), restore.w.block.eq(results.block), restore.w.data.eq(results.y),
            restore.w.stream.eq(results.step.stream),
            restore.restart.eq(config.restart), restore.resume.eq(config.resume), restore.turn.eq(engine.turn),
            engine.restart.eq(config.restart), engine.resume.eq(config.resume),
            self.resuming.eq(engine.resuming),
        ]
        with m.If(restore.valid):
            m.d.comb += [own.valid.eq(1), own.second.eq(0), own.drop.eq(restore.drop), own.data.eq(restore.data)]

    def _feed(self, m: Module, rows: RowBuffers, unit: Pointwise) -> Value:
        """Rows to a pointwise unit, block after block; returns when the last one of a step goes."""
        fetched = Signal()
        computed_step = Signal(range(self._engine.steps.shape().length))
        m.d.comb += [
            fetched.eq(rows.fetch & (rows.block == self._hidden_blocks - 1)),
            unit.waiting.eq(rows.ready),
            unit.block.eq(rows.block),
            rows.fetch.eq(unit.fetch),
            Value.cast(unit.step).eq(element(self._engine.steps, computed_step)),
            *(unit.rows[kind].eq(rows.rows[kind]) for kind in unit.rows.shape().members),
        ]
        m.d.sync += computed_step.eq(computed_step + fetched)
        return fetched

    def _project(self, m: Module, results: data.View) -> None:
        """Rows of the projection are the results."""
        m.submodules.projected_rows = rows = self._engine.rows(m, stage=1)
        projected_step = Signal(range(self._engine.steps.shape().length))
        m.d.comb += rows.fetch.eq(rows.ready & ~self._pointwise.comes)  # one transform serves both
        with m.If(rows.fetch & (rows.block == self._blocks - 1)):
            m.d.sync += projected_step.eq(projected_step + 1)
        result_valid = Signal()
        result_block = Signal.like(rows.block)
        result_step = Signal(step_layout(self._streams))
        m.d.sync += [result_valid.eq(rows.fetch), result_block.eq(rows.block),
                     Value.cast(result_step).eq(element(self._engine.steps, projected_step))]
        m.d.comb += [results.valid.eq(result_valid), results.block.eq(result_block), results.step.eq(result_step)]
        k = self._k
        padding = self._blocks * k - self._layer.outputs
        for j in range(k):
            value = rows.rows.y[j]
            m.d.comb += results.y[j].eq(Mux(result_block == self._blocks - 1, 0, value) if j >= k - padding else value)

    def _renew(self, m: Module, results: data.View) -> None:
        """Rows of the candidate go through a pointwise unit of their own."""
        layer, first = self._layer, self._pointwise
        m.submodules.candidate_rows = rows = self._engine.rows(m, stage=1)
        m.submodules.renewal = unit = self._unit(1)
        # One transform serves both: the unit with the shorter way gives way.
        shape = self.program.shape
        ahead, behind = (pointwise_latency(cell, layer, self._elements, shape.levels, shape.gives)
                         for cell in cells_of(layer))
        self._feed(m, rows, unit)
        _give(m, unit.o, results)
        m.d.comb += first.yields.eq(delay(m, unit.fetch, behind - ahead, name="renewed", reset_less=False))
        m.d.comb += [
            unit.w_gate.valid.eq(first.o.valid), unit.w_gate.block.eq(first.o.block),
            unit.w_gate.stream.eq(first.o.step.stream), unit.w_gate.data.eq(first.o.gate),
            first.w_state.valid.eq(unit.o.valid), first.w_state.block.eq(unit.o.block),
            first.w_state.stream.eq(unit.o.step.stream), first.w_state.data.eq(unit.o.y),
        ]


def _give(m: Module, o: wiring.PureInterface, results: data.View) -> None:
    """Take the blocks of a pointwise unit as results."""
    m.d.comb += [results.valid.eq(o.valid), results.block.eq(o.block), results.step.eq(o.step), results.y.eq(o.y)]


@unit.register
def _(layer: Gru | Lstm | Rnn, plan: LayerPlan, site: Site) -> RecurrentLayer:
    return RecurrentLayer(layer, program=plan.program(layer), elements=plan.elements, streams=plan.streams,
                          config=site.config, keeps=site.keeps)


@loadable.register
def _(layer: Gru | Lstm | Rnn) -> bool:
    return True


@estimate.register
def _(layer: Gru | Lstm | Rnn, found: list[Matrix], shape: ArrayShape, elements: int, streams: int) -> int:
    issue = issue_cycles(found, shape)
    k = layer.gates.block_size
    busy = max(issue, -(-layer.hidden // k) * k // elements, -(-layer.inputs // k))
    if streams > 1:
        return busy
    ahead = sum(-(-matrix.rows // shape.rows) * ((layer.inputs // k) // shape.columns) * shape.fold
                for matrix in found if not matrix.stage)
    return max(busy, issue - ahead + chain_latency(layer, shape, elements))


@layer_multiplications.register
def _(layer: Gru | Lstm | Rnn, count: int = 1, plan: LayerPlan | None = None) -> int:
    return sum(product.multiplications for product in layer.products.values()) + (
        element_multiplications(layer) * layer.hidden)


@layer_entry.register
def _(layer: Gru | Lstm | Rnn, plan: LayerPlan) -> LayerEntry:
    def alone(floor: int) -> LayerEntry:
        cycles, starved, step = steady_step(plan.alone(layer), plan.elements)
        phases = stages(layer, plan.elements, plan.shape)[0].phases
        return {"limit": limit(layer, plan.program(layer), plan.elements, plan.cycles, floor=floor, starved=starved),
                "chart": {"period": cycles, "rows": step.rows(phases)}}

    return array_entry(layer, plan, alone)


with_array(GoldenRecurrentLayer)
