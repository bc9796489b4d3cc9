"""The pointwise unit: fetches blocks of pre-activations and state, computes some elements per cycle."""
from functools import singledispatch

from amaranth.hdl import Array, Cat, Const, EnableInserter, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.activation import table_image, table_widths
from circulant.hw.arith.fft import spare_steps
from circulant.hw.array import row_buffers
from circulant.hw.array.dispatch import step_layout
from circulant.hw.array.parts import Memory, Parts, Product
from circulant.hw.components.cell import Cell
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, gates_clocks
from circulant.hw.reload.config import Config, MemoryWindow
from circulant.hw.reload.restore import first_block, write_signature
from circulant.hw.stream.pipeline import LEVELS, Lives, delay, steps, when
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import PEEPHOLES, Lstm
from circulant.sim.kinds.rnn import Rnn

__all__ = ["Pointwise", "peephole_image", "pointwise_images", "pointwise_latency", "pointwise_parts"]

CHOSEN = 4
"""Elements of which one look-up table chooses one."""


def pointwise_latency(cell: type[Cell], layer: Gru | Lstm | Rnn, elements: int, levels: int = LEVELS,
                      gives: int = 1) -> int:
    """Cycles from ``fetch`` to the result: memories, elements in turn, a register, the cell, the block's register; of
    as many blocks side by side as a unit ``gives``."""
    phases = gives * layer.gates.block_size // elements
    return (row_buffers.FETCH + (phases - 1) + _registered(phases, levels)
            + cell.latency(layer, levels) + _collected(layer, phases, levels))


def _registered(phases: int, levels: int) -> int:
    """Registers, one or none, of the elements whose turn it is: none where the levels of logic allow three steps
    between two of them, or two and a look-up table chooses."""
    return int(steps(levels) < (2 if phases <= CHOSEN else 3))


def _collected(layer: Gru | Lstm | Rnn, phases: int, levels: int) -> int:
    """Registers, one or none, of a block's results: none where they come at once, and the transform behind them leaves
    a step of logic before its first register."""
    return int(phases > 1 or steps(levels) == 1 or not spare_steps(layer.gates.block_size, levels))


@singledispatch
def peephole_image(layer: Stage, gives: int = 1) -> Image | None:
    """The peephole weights, a word for each block, or for as many side by side as a unit ``gives``: those of all its
    elements for i, then f, then o."""
    return None


def pointwise_images(cell: type[Cell], layer: Gru | Lstm | Rnn, gives: int = 1) -> list[Image]:
    """The memories with given contents of a unit that ``gives`` some blocks at once: tables, peepholes."""
    tables = {name: table_image(pwl, f"{layer.name}_{name}") for name, pwl in cell.tables(layer)}
    peephole = peephole_image(layer, gives)
    return [*tables.values(), *([] if peephole is None else [peephole])]


def pointwise_parts(cell: type[Cell], layer: Gru | Lstm | Rnn, elements: int, streams: int, gives: int = 1) -> Parts:
    """Parts of a unit: its states, a table and a product for each activation, the products of gates."""
    k = layer.gates.block_size * gives
    blocks = -(-layer.hidden // k)
    memories = [Memory(1, k * width, streams * blocks) for width in cell.memories(layer).values()]
    memories += [Memory(elements, sum(table_widths(pwl)), len(pwl.slope), writable=False)
                 for _, pwl in cell.tables(layer)]
    peephole = peephole_image(layer, gives)
    if peephole is not None:
        memories.append(Memory(1, peephole.width, blocks, writable=False))
    pairs = [(pwl.slope_format.width, pwl.input_bits if pwl.method == "pwl" else pwl.cell_bits + 1)
             for _, pwl in cell.tables(layer)]
    return Parts(memories, [Product(elements, a, b) for a, b in pairs + cell.factors(layer)])


class Pointwise(wiring.Component):
    """A block every ``k / elements`` cycles; `pointwise_latency` cycles from ``fetch`` to the result.

    Parameters:
        cell: what is computed. Each of its ``memories`` holds the blocks of every stream: the one called ``own`` takes
            what the cell calls ``next``, the others what comes from outside.
        layer: the golden layer.
        elements: per cycle, a divisor of the values of a block, or of the blocks side by side.
        gives: blocks side by side, called a block in what follows; they make up the hidden ones.
        streams: sequences that are interleaved, each with a state of its own.
        levels: of logic between two registers.
        config, state: the port through which tables can be written, and its window onto the memory ``state``; only that
            of an LSTM, which nobody else has, is read.

    Members:
        waiting: a block waits.
        block: number of the block that waits.
        yields: no block is fetched in this cycle.
        fetch: the block that waits is wanted; its rows are there in the next cycle and stay.
        rows: pre-activations of the block, by gate.
        step: marks of the step of the block that waits: the first or the last of its sequence, and its stream.
        comes: a result is there in the next cycle.
        w_…: a block for a memory that is not the cell's own, see `write_signature`.
        o: a block of each output of the cell.
        o.valid: for one cycle, the block is there.
        o.block: number of the block.
        o.step: marks of its step: the first or the last of its sequence, and its stream.
    """

    def __init__(self, cell: type[Cell], layer: Gru | Lstm | Rnn, *, elements: int, streams: int,
                 levels: int = LEVELS, config: Config | None = None, state: MemoryWindow | None = None,
                 gives: int = 1) -> None:
        k = layer.gates.block_size * gives
        if elements < 1 or k % elements:
            raise ValueError(f"Elements per cycle must divide the block size {k}, not {elements!r}")
        self._layer, self._elements, self._streams, self._k, self._gives = layer, elements, streams, k, gives
        self._blocks = blocks = -(-layer.hidden // k)
        self._cell, self._config, self._state, self._levels = cell, config, state, levels
        self._memories = cell.memories(layer)
        self._outputs = cell.outputs(layer)
        row = data.ArrayLayout(signed(layer.pre_format.width), k)
        number, step = range(max(2, blocks)), step_layout(streams)
        super().__init__({
            "waiting": In(1), "yields": In(1), "block": In(number), "fetch": Out(1), "step": In(step), "comes": Out(1),
            "rows": In(data.StructLayout(dict.fromkeys(cell.rows, row))),
            **{f"w_{name}": In(write_signature(k, width, streams=streams, blocks=blocks))
               for name, width in self._memories.items() if name != cell.own},
            "o": Out(wiring.Signature({
                "valid": Out(1), "block": Out(number), "step": Out(step),
                **{name: Out(data.ArrayLayout(signed(width), k)) for name, width in self._outputs.items()}})),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        k, elements, blocks, layer = self._k, self._elements, self._blocks, self._layer
        phases = k // elements

        # The block at work and the group of its elements; the next one is fetched with the last group.
        running = Signal()
        phase = Signal(range(max(2, phases)))
        free = Signal(init=1)
        block_at_work = Signal.like(self.block)
        step_at_work = Signal.like(self.step)
        m.d.comb += self.fetch.eq(self.waiting & ~self.yields & free)
        # Neither at work nor in the last phase: what fetches waits for no more than that.
        m.d.sync += free.eq(Mux(self.fetch, phases == 1, free | (phase == phases - 2)))
        with m.If(running):
            m.d.sync += [phase.eq(Mux(free, 0, phase + 1)), running.eq(~free)]
        with m.If(self.fetch):
            m.d.sync += [running.eq(1), block_at_work.eq(self.block), step_at_work.eq(self.step)]

        # Operands as fetched: pre-activations, peepholes, states.
        writes = self._writes(m)
        operands: dict[str, data.View] = {kind: self.rows[kind] for kind in self._cell.rows} | self._peepholes(m)
        operands |= {name: self._memory(m, name, width, writes[name]) for name, width in self._memories.items()}

        # What is known of the group, as late as its results.
        registered, collected = _registered(phases, self._levels), _collected(layer, phases, self._levels)
        latency = registered + self._cell.latency(layer, self._levels)
        soon = delay(m, running, latency - 1, name="soon", reset_less=False)
        valid = delay(m, soon, 1, name="valid", reset_less=False)
        at, number = delay(m, phase, latency, name="phase"), delay(m, block_at_work, latency, name="number")
        kept = delay(m, step_at_work, latency, name="step")

        # With clocks that stop, those of the cells do while nothing is in them.
        busy = None
        if gates_clocks(platform):
            lives = Lives(m, running, name="busy")
            busy = Cat(*(lives.at(n) for n in range(latency + 1))).any()

        # The cells, one for each element of a group; their results are collected to a block.
        results = {name: Signal(self.o.signature.members[name].shape, name=f"result_{name}", reset_less=bool(collected))
                   for name in self._outputs}
        given_by = dict(results)
        if self._cell.own:
            given_by["next"] = writes[self._cell.own].data
        padding = blocks * k - layer.hidden
        comes = [Signal(name=f"group_{p}_comes") for p in range(phases)]
        m.d.comb += [each.eq(valid & (at == p)) for p, each in enumerate(comes)]
        for lane in range(elements):
            cell = self._cell(layer, name=layer.name, config=self._config, levels=self._levels)
            m.submodules[f"cell_{lane}"] = cell if busy is None else EnableInserter(busy)(cell)
            for name, operand in operands.items():
                value = Array([operand[p * self._elements + lane] for p in range(self._k // self._elements)])[phase]
                given = getattr(cell, name)
                m.d.comb += given.eq(when(m, Mux(step_at_work.first, 0, value) if name == "state" else value,
                                          given.shape(), kept=bool(registered), name=f"element_{name}"))
            for p in range(phases):
                j = p * elements + lane
                behind = (number == blocks - 1) if j >= k - padding else Const(0)
                taken = [values[j].eq(Mux(behind, 0, getattr(cell, name))) for name, values in given_by.items()]
                if not collected:
                    m.d.comb += taken
                    continue
                with m.If(comes[p]):
                    m.d.sync += taken

        # The block, when its last group is there.
        done = delay(m, comes[-1], collected, name="done", reset_less=False)
        m.d.comb += [
            self.comes.eq(comes[-1] if collected else soon),
            self.o.valid.eq(done), self.o.block.eq(delay(m, number, collected, name="done_block")),
            self.o.step.eq(delay(m, kept, collected, name="done_step")),
            *(getattr(self.o, name).eq(result) for name, result in results.items()),
        ]
        return m

    def _writes(self, m: Module) -> dict[str, wiring.PureInterface]:
        """The blocks for each memory: those that come, and those of the cell's own state, whose data is a register."""
        own = self._cell.own
        writes = {name: getattr(self, f"w_{name}") for name in self._memories if name != own}
        if own:
            writes[own] = write = write_signature(
                self._k, self._memories[own], streams=self._streams, blocks=self._blocks).create(path=("own",))
            m.d.comb += [
                write.valid.eq(self.o.valid), write.block.eq(self.o.block), write.stream.eq(self.o.step.stream)]
        return writes

    def _memory(self, m: Module, name: str, width: int, given: wiring.PureInterface) -> data.View:
        """A block of the memory, as fetched; ``given`` writes it."""
        values = data.ArrayLayout(signed(width), self._k)
        m.submodules[name] = mem = memory.Memory(shape=values, depth=self._streams * self._blocks, init=[])
        write = mem.write_port()
        read = mem.read_port()
        m.d.comb += [
            read.en.eq(self.fetch),
            read.addr.eq(first_block(self.step.stream, self._streams, self._blocks) + self.block),
            write.en.eq(given.valid),
            write.addr.eq(first_block(given.stream, self._streams, self._blocks) + given.block),
            write.data.eq(given.data),
        ]
        state = self._state
        if name == "state" and state is not None:
            with m.If(state.write):
                m.d.comb += [write.en.eq(1), write.addr.eq(state.index), write.data.eq(state.word)]
            if self._cell.private:
                with m.If(state.open):
                    m.d.comb += [read.en.eq(1), read.addr.eq(state.index)]
                m.d.comb += state.data.eq(read.data)
        return read.data

    def _peepholes(self, m: Module) -> dict[str, data.View]:
        """The peephole weights of the block that is fetched, by operand of the cell."""
        k, image = self._k, peephole_image(self._layer, self._gives)
        if image is None:
            return {}
        width = image.width // (3 * k)
        m.submodules.peephole = rom = Rom(**image._asdict(), config=self._config)
        m.d.comb += [rom.en.eq(self.fetch), rom.addr.eq(self.block)]
        weights = data.View(data.ArrayLayout(data.ArrayLayout(signed(width), k), 3), rom.data)
        return {f"p{gate}": weights[n] for n, gate in enumerate(PEEPHOLES)}
