"""A GRU layer: one engine for both matrices, the pointwise unit, and the order in which they work.

    i ─► engine ─┬─► rows of W_ih x ─► two banks ─┐
         ▲       └─► rows of W_hh h ─► one bank ──┼─► GruPointwise ─► blocks of h ─┬─► state memory
         └─────────────────────────────────────────────────────────────────────────┴─► queue ─► o

Gate rows are interleaved per hidden block, so that a block of the next state is computed as soon as its three rows are
there. The input's product of step t+1 is issued right behind the recurrent one of step t, and so fills its drain.
"""
from dataclasses import replace
from typing import Any

import numpy as np
from amaranth.hdl import Array, Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.engine import Engine
from circulant.hw.pipeline import Queue, block, connect, delay
from circulant.hw.pointwise import GruPointwise
from circulant.sim.circulant import Product
from circulant.sim.gru import GATES, Gru

__all__ = ["GruLayer", "interleaved"]


def interleaved(product: Product) -> Product:
    """The product with its rows in the order r, z, n of hidden block 0, r, z, n of hidden block 1, …"""
    rows, columns, k = product.weights.shape
    weights = product.weights.reshape(3, rows // 3, columns, k).swapaxes(0, 1).reshape(rows, columns, k)
    bias = product.bias.reshape(3, rows // 3, k).swapaxes(0, 1).reshape(-1)
    return replace(product, weights=np.ascontiguousarray(weights), bias=np.ascontiguousarray(bias))


class GruLayer(wiring.Component):
    """Sequences in, states out, from h = 0 at the start of each sequence; equals `sim.gru.Gru`.

    Parameters:
        layer: the golden layer; both matrices have one block size.
        lanes: of the engine.
        elements: of the state per cycle in the pointwise unit, a divisor of the block size.

    Members:
        i: stream of blocks of x; a step takes as many as the inputs fill, the last one of a sequence is marked.
        o: stream of blocks of h, of the last or of every step.
    """

    def __init__(self, layer: Gru, *, lanes: int, elements: int) -> None:
        self._k = k = layer.input_product.block_size
        if (other := layer.recurrent_product.block_size) != k:
            raise ValueError(f"Both matrices must have one block size, not {k} and {other}")
        if elements < 1 or k % elements:
            raise ValueError(f"Elements per cycle must divide the block size {k}, not {elements!r}")
        self._layer = layer
        self._elements = elements
        self._blocks = layer.recurrent_product.weights.shape[1]
        self._engine = Engine(name=layer.name, lanes=lanes,
                              products=[interleaved(layer.input_product), interleaved(layer.recurrent_product)])
        self._state = block(k, layer.output_format.width)
        super().__init__({
            "i": In(stream.Signature(block(k, layer.input_format.width))), "o": Out(stream.Signature(self._state))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.engine = engine = self._engine
        m.submodules.queue = queue = Queue(self._state, depth=2 * self._blocks)
        connect(m, wiring.flipped(self.i), engine.i0)
        connect(m, queue.o, wiring.flipped(self.o))
        step = self._order(m, engine, room=queue.level <= self._blocks)
        rows, waiting = self._row_memories(m, engine, step)
        values, address, is_last_block, valid = self._pointwise(m, rows, waiting, step)

        m.submodules.state = state = memory.Memory(shape=self._state.members["data"], depth=self._blocks, init=[])
        write, read = state.write_port(), state.read_port()
        emits = step["last"] if self._layer.returns == "last" else 1
        ends = Signal()
        m.d.comb += [
            read.en.eq(rows["en"]), read.addr.eq(rows["block"]), rows["h"].eq(read.data),
            write.en.eq(valid), write.addr.eq(address), write.data.eq(values),
            engine.i1.payload.data.eq(values), engine.i1.valid.eq(valid & ~step["last"]),
            queue.i.payload.data.eq(values), queue.i.payload.last.eq(step["last"] & is_last_block),
            queue.i.valid.eq(valid & emits), ends.eq(valid & is_last_block),
        ]
        with m.If(ends):
            m.d.sync += step["busy"].eq(0)
        return m

    def _order(self, m: Module, engine: Engine, *, room: Any) -> dict[str, Signal]:
        """Alternate between the input's and the recurrent product; returns what the current step is like."""
        first, last, bank = Signal(init=1), Signal(), Signal()
        step = {name: Signal(name=f"step_{name}") for name in ("first", "last", "bank", "busy")}
        with m.FSM():
            with m.State("INPUT"):
                m.d.comb += [engine.go.valid.eq(engine.full[0]), engine.go.payload.matrix.eq(0)]
                with m.If(engine.go.valid & engine.go.ready):
                    m.d.sync += last.eq(engine.last[0])
                    m.next = "RECURRENT"
            with m.State("RECURRENT"):
                m.d.comb += [
                    engine.go.valid.eq(~step["busy"] & (first | engine.full[1]) & room),
                    engine.go.payload.matrix.eq(1), engine.go.payload.zero.eq(first),
                ]
                with m.If(engine.go.valid & engine.go.ready):
                    m.d.sync += [
                        step["first"].eq(first), step["last"].eq(last), step["bank"].eq(bank), step["busy"].eq(1),
                        first.eq(last), bank.eq(~bank),
                    ]
                    m.next = "INPUT"
        return step

    def _row_memories(self, m: Module, engine: Engine, step: dict[str, Signal]) -> tuple[dict[str, Any], Signal]:
        """Keep the engine's rows by gate; returns their read side and how many hidden blocks wait."""
        blocks, started = self._blocks, Signal()
        row = data.ArrayLayout(signed(self._layer.pre_format.width), self._k)
        rows: dict[str, Any] = {
            "en": started, "block": Signal(range(max(2, blocks))), "h": Signal(self._state.members["data"])}
        waiting, complete = Signal(range(blocks + 1)), Signal()
        bank = Signal()
        for source, (matrix, banks) in {"x": (0, 2), "h": (1, 1)}.items():
            gate, at = Signal(range(3), name=f"{source}_gate"), Signal(range(max(2, blocks)), name=f"{source}_at")
            here = Signal(name=f"{source}_here")
            m.d.comb += here.eq(engine.o.valid & (engine.o.matrix == matrix))
            base, read_base = (Mux(bank, blocks, 0), Mux(step["bank"], blocks, 0)) if banks == 2 else (0, 0)
            with m.If(here):
                m.d.sync += gate.eq(Mux(gate == 2, 0, gate + 1))
                with m.If(gate == 2):
                    m.d.sync += at.eq(Mux(at == blocks - 1, 0, at + 1))
                    if banks == 2:
                        with m.If(at == blocks - 1):
                            m.d.sync += bank.eq(~bank)
                    else:
                        m.d.comb += complete.eq(1)
            for index, name in enumerate(GATES):
                m.submodules[f"rows_{source}{name}"] = mem = memory.Memory(shape=row, depth=banks * blocks, init=[])
                write, read = mem.write_port(), mem.read_port()
                m.d.comb += [
                    write.en.eq(here & (gate == index)), write.addr.eq(base + at), write.data.eq(engine.o.data),
                    read.en.eq(started), read.addr.eq(read_base + rows["block"]),
                ]
                rows[f"{source}{name}"] = read.data
        m.d.sync += waiting.eq(waiting + complete - started)
        return rows, waiting

    def _pointwise(self, m: Module, rows: dict[str, Any], waiting: Signal, step: dict[str, Signal]) -> tuple[Any, ...]:
        """Start a hidden block when it waits, ``elements`` per cycle; returns the blocks of the next state."""
        k, elements = self._k, self._elements
        phases = k // elements
        running, phase, current = Signal(), Signal(range(max(2, phases))), Signal.like(rows["block"])
        ends_block = Signal()
        m.d.comb += [ends_block.eq(phase == phases - 1), rows["en"].eq((waiting != 0) & (~running | ends_block))]
        with m.If(running):
            m.d.sync += [phase.eq(Mux(ends_block, 0, phase + 1)), running.eq(~ends_block)]
        with m.If(rows["en"]):
            m.d.sync += [running.eq(1), current.eq(rows["block"])]
            m.d.sync += rows["block"].eq(Mux(rows["block"] == self._blocks - 1, 0, rows["block"] + 1))

        latency = GruPointwise.latency
        valid, at = delay(m, running, latency, name="valid", reset_less=False), delay(m, phase, latency, name="phase")
        address = delay(m, current, latency, name="block")
        collected = Signal(self._state.members["data"], reset_less=True)
        padding = self._blocks * k - self._layer.hidden
        for lane in range(elements):
            m.submodules[f"pointwise_{lane}"] = unit = GruPointwise(self._layer, name=self._layer.name)
            for name in ("xr", "xz", "xn", "hr", "hz", "hn"):
                m.d.comb += getattr(unit, name).eq(_element(rows[name], phase, lane, elements, phases))
            m.d.comb += unit.h.eq(Mux(step["first"], 0, _element(rows["h"], phase, lane, elements, phases)))
            for p in range(phases):
                j = p * elements + lane
                value = Mux(address == self._blocks - 1, 0, unit.y) if j >= k - padding else unit.y
                with m.If(valid & (at == p)):
                    m.d.sync += collected[j].eq(value)
        done = delay(m, valid & (at == phases - 1), 1, name="done", reset_less=False)
        done_at = delay(m, address, 1, name="done_at")
        return collected, done_at, done_at == self._blocks - 1, done


def _element(values: Any, phase: Signal, lane: int, elements: int, phases: int) -> Any:
    """Element ``lane`` of the group that the phase selects."""
    return Array([values[p * elements + lane] for p in range(phases)])[phase]
