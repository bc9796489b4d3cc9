"""A fully connected layer: an engine with one matrix, and a queue that its rows always fit into."""
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from circulant.hw.arith.decoder import tell, watched
from circulant.hw.array.bank_shape import BankShape
from circulant.hw.array.dispatch import step_layout
from circulant.hw.array.engine import Engine
from circulant.hw.array.layer_programs import matrices, matrices_of
from circulant.hw.array.matrix import beats, blocks_aside
from circulant.hw.array.parts import Parts, engine_images, engine_parts, queue_memory
from circulant.hw.array.plans import LayerPlan
from circulant.hw.array.program import ArrayShape, Matrix, Part, Program
from circulant.hw.array.shared_array import array_port
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.plan.ladders import layer_entry, layer_multiplications
from circulant.hw.plan.layer_plan import array_entry, estimate, with_array
from circulant.hw.plan.step_cost import vector_limit
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import Queue, block, connect, element, steps
from circulant.hw.unit import Site, heeds_marks, loadable, unit
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.linear import Linear

__all__ = ["LinearLayer", "vector_cycles"]


class LinearLayer(wiring.Component):
    """Vectors in, vectors out; equals `sim.kinds.linear.Linear`.

    Parameters:
        layer: the golden layer.
        program: the passes of a vector, and the array.
        single: whether each vector is a sequence of its own.
        config: the port of a reloadable design; None otherwise.

    Members:
        i: stream of blocks of x, as many side by side as the array takes; of a dense layer some values, as many as its
            columns divide.
        o: stream of blocks of y, as many side by side as the array gives; what lies behind the last output is zero.
        array: where the array is shared, see `array_port`.
        busy: of a reloadable design: a vector is under way.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, layer: Linear, *, program: Program, single: bool = False, config: Config | None = None) -> None:
        self._config = config
        self._layer, product = layer, layer.product
        _, self._k = beats(program.matrices, program.shape)  # values that leave in a cycle
        self._blocks = -(-product.rows // self._k)
        self._queue = Queue(block(self._k, product.output.width), depth=3 * self._blocks,
                            prompt=steps(program.shape.levels) > 1)
        self.program = program
        self._banks = BankShape(program.shape.columns, product, aside=blocks_aside(program.matrices, program.shape),
                                levels=program.shape.levels, single=single, counts=program.counts)
        self._engine = Engine(name=layer.name, program=program, banks=self._banks,
                              blocks=self._blocks, room=self._queue.depth, config=config)
        super().__init__({
            "i": self._engine.signature.members["i"],
            "o": Out(stream.Signature(block(self._k, product.output.width))),
            **({} if program.whole is program else {"array": Out(array_port(program.whole))}),
            **({} if config is None else {"busy": Out(1)}),
            **watched(program.shape.protection),
        })

    @property
    def parts(self) -> Parts:
        return engine_parts(self.program, self._banks, loadable=self._config is not None) + Parts(
            [queue_memory(self._queue)])

    @property
    def images(self) -> list[Image]:
        return engine_images(self._layer.name, self.program)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.engine, m.submodules.queue = engine, queue = self._engine, self._queue
        m.submodules.row_buffers = rows = engine.rows(m, stage=0)
        tell(m, self, engine)

        # Rows leave their buffer as soon as they are whole, and the queue has room for all of them.
        connect(m, wiring.flipped(self.i), engine.i)
        if self.program.whole is not self.program:
            wiring.connect(m, engine.array, wiring.flipped(self.array))
        connect(m, queue.o, wiring.flipped(self.o))
        last_block = Signal()
        valid = Signal()
        final = Signal()
        ends = Signal()
        finished_step = Signal(range(engine.steps.shape().length))
        last = Signal()
        m.d.comb += [
            rows.fetch.eq(rows.ready),
            last_block.eq(rows.block == self._blocks - 1),
            engine.fetched.eq(rows.fetch & last_block),
            engine.ends.eq(ends), engine.leaves.eq(queue.o.valid & queue.o.ready),
            ends.eq(valid & final), queue.i.valid.eq(valid), queue.i.payload.last.eq(final & last), last.eq(1),
        ]
        m.d.sync += [valid.eq(rows.fetch), final.eq(last_block)]
        if not self._banks.single:
            m.d.comb += last.eq(step_layout(1)(element(engine.steps, finished_step)).last)
            m.d.sync += finished_step.eq(finished_step + ends)

        # ReLU, and zeros behind the last output.
        k = self._k
        padding = self._blocks * k - self._layer.outputs
        for j in range(k):
            value = rows.rows.y[j]
            if self._layer.relu:
                value = Mux(value[-1], 0, value)
            m.d.comb += queue.i.payload.data[j].eq(Mux(final, 0, value) if j >= k - padding else value)

        # The state of a reloadable design: nothing is kept from vector to vector.
        if self._config is not None:
            m.d.comb += [self.busy.eq(engine.busy), engine.restart.eq(0), engine.resume.eq(0)]
        return m


@unit.register
def _(layer: Linear, plan: LayerPlan, site: Site) -> LinearLayer:
    return LinearLayer(layer, program=plan.program(layer), single=site.single, config=site.config)


@loadable.register
def _(layer: Linear) -> bool:
    return True


@heeds_marks.register
def _(layer: Linear, *, single: bool) -> bool:
    return not single


def vector_cycles(layer: Linear, shape: ArrayShape) -> int:
    """Cycles from vector to vector of a layer without a state: what the array takes, and what comes and leaves.

    A short vector takes more, as it waits for a bank; see `circulant.hw.plan.shared.cost.period`.
    """
    p, q, _ = layer.product.weights.shape
    issue = -(-p // shape.rows) * max(-(-q // shape.columns) * shape.fold, shape.slots)
    return max(issue, -(-q // blocks_aside(matrices_of(layer), shape)), -(-p // shape.gives))


@matrices.register
def _(layer: Linear) -> list[Matrix]:
    return [Matrix((Part(layer.product, 0, 0),), ("y",))]


@estimate.register
def _(layer: Linear, found: list[Matrix], shape: ArrayShape, elements: int, streams: int) -> int:
    return vector_cycles(layer, shape)


@layer_multiplications.register
def _(layer: Linear, count: int = 1, plan: LayerPlan | None = None) -> int:
    return layer.product.multiplications


@layer_entry.register
def _(layer: Linear, plan: LayerPlan) -> LayerEntry:
    return array_entry(layer, plan, lambda floor: {"limit": vector_limit(
        matrices_of(layer), plan.shape, plan.cycles, floor, vector_cycles(layer, plan.shape))})


with_array(Linear)
