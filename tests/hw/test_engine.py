# amaranth: UnusedElaboratable=no
import re
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.engine import Engine
from circulant.sim.fixed import Format
from tests.hw.golden import blocks, numbers, product
from tests.hw.simulate import RESET, Transfers, restarted, run, sink, source

BLOCK_SIZES = (1, 2, 4, 8, 16)


class Commanded(wiring.Component):
    """An engine whose commands wait for their vectors, as its users let them."""

    def __init__(self, products, lanes):
        self.engine = engine = Engine(name="part", products=products, lanes=lanes)
        rows = data.StructLayout({"matrix": engine.o.matrix.shape(), "data": engine.o.data.shape()})
        self.inputs = [f"i{n}" for n in range(len(products))]
        super().__init__({
            **{name: In(stream.Signature(getattr(engine, name).payload.shape())) for name in self.inputs},
            "go": In(stream.Signature(engine.go.payload.shape())), "o": Out(stream.Signature(rows)),
            "starts": Out(1), "last": Out(len(products))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine = engine = self.engine
        for name in self.inputs:
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(engine, name))
        may = self.go.payload.zero | engine.full.bit_select(self.go.payload.matrix, 1)
        m.d.comb += [
            engine.go.payload.eq(self.go.payload), engine.go.valid.eq(self.go.valid & may),
            self.go.ready.eq(engine.go.ready & may), self.starts.eq(engine.go.valid & engine.go.ready),
            self.last.eq(engine.last), self.o.valid.eq(engine.o.valid), self.o.payload.matrix.eq(engine.o.matrix),
            self.o.payload.data.eq(engine.o.data)]
        return m


def work(products, count, seed=0):
    """For each matrix its vectors, and commands that use them all up, some with zero."""
    rng = np.random.default_rng(seed)
    vectors = [numbers(p.input, count, p.columns, seed=seed) for p in products]
    order = [(n, 0) for n in range(len(products)) for _ in range(count)]
    rng.shuffle(order)
    order.insert(2, (len(products) - 1, 1))
    order.append((0, 1))
    return vectors, [{"matrix": int(n), "zero": int(zero)} for n, zero in order]


def golden(products, vectors, commands):
    """Rows of y, each with its matrix, in the order of the commands."""
    waiting, rows = [list(v) for v in vectors], []
    for command in commands:
        n = command["matrix"]
        x = np.zeros(products[n].columns, np.int64) if command["zero"] else waiting[n].pop(0)
        rows += [{"matrix": n, "data": row} for row in products[n](x).reshape(-1, products[n].block_size).tolist()]
    return rows


def computed(products, lanes, vectors, commands, *, stall=0.0, reset_at=None):
    """The same of an engine."""
    def agents():
        came, went = [Transfers() for _ in range(len(products) + 1)], Transfers()
        feeds = [source(f"i{n}", blocks([v[None] for v in vectors[n]], p.block_size), came[n], stall=stall, seed=n)
                 for n, p in enumerate(products)]
        return went, [*feeds, source("go", commands, came[-1], stall=stall, seed=99), sink("o", went, came)]

    went, chosen = agents()
    if reset_at is not None:
        (_, before), (went, chosen) = (went, chosen), agents()
        ports = [*(f"i{n}.valid" for n in range(len(products))), "go.valid", "o.ready"]
        chosen = [restarted(first, second, at=reset_at, idle={port: 0})
                  for first, second, port in zip(before, chosen, ports, strict=True)]
    run(Commanded(products, lanes), *chosen)
    return went.payloads


def of_one_block_size(k):
    """Two matrices whose formats differ wherever they may."""
    return [product(5, 2, k), product(3, 3, k, seed=1, weight=Format(7, 4), input=Format(9, 6), spectrum=Format(11, 5),
                                      product=Format(17, 10), output=Format(11, 7))]


@pytest.mark.parametrize("change", ["block size", "width of y", "twiddle bits"])
def test_init_matrices_of_two_kinds(change):
    one = product(2, 2, 4)
    other = {"block size": product(2, 2, 8), "width of y": product(2, 2, 4, output=Format(12, 6)),
             "twiddle bits": replace(one, twiddle_bits=8)}[change]
    words = "Matrices of one engine must share block size, width of y and twiddle bits"
    with pytest.raises(ValueError, match=f"^{words}$"):
        Engine(name="part", products=[one, other], lanes=1)


@pytest.mark.parametrize("lanes", [0, -1])
def test_init_wrong_lanes(lanes):
    with pytest.raises(ValueError, match=f"^Lanes must be a positive number, not {re.escape(repr(lanes))}$"):
        Engine(name="part", products=[product(2, 2, 4)], lanes=lanes)


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_engine_equals_golden(k, stall):
    products = of_one_block_size(k)
    vectors, commands = work(products, 4)
    assert computed(products, 2, vectors, commands, stall=stall) == golden(products, vectors, commands)


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("q", [1, 3])
def test_every_count_of_lanes(lanes, q):
    products = [product(5, q, 4)]
    vectors, commands = work(products, 4, seed=lanes)
    assert computed(products, lanes, vectors, commands) == golden(products, vectors, commands)


def test_three_matrices():
    products = [product(1, 4, 2), product(4, 1, 2, seed=1, weight=Format(6, 5)), product(3, 2, 2, seed=2)]
    vectors, commands = work(products, 5)
    assert computed(products, 3, vectors, commands, stall=0.3) == golden(products, vectors, commands)


def test_a_single_block():
    products = [product(1, 1, 8)]
    vectors, commands = work(products, 8)
    assert computed(products, 1, vectors, commands) == golden(products, vectors, commands)


@pytest.mark.parametrize("extreme", ["lo", "hi"])
def test_extremes_do_not_wrap(extreme):
    """Sums of the greatest products over the longest row, in formats that hold them."""
    wide = product(2, 5, 4, product=Format(26, 10), output=Format(26, 10))
    value = getattr(wide.weight, extreme)
    products = [replace(wide, weights=np.full((2, 5, 4), value), bias=np.full(8, getattr(wide.output, extreme) // 2))]
    vectors = [np.array([[wide.input.lo] * 20, [wide.input.hi] * 20, [wide.input.lo, wide.input.hi] * 10])]
    commands = [{"matrix": 0, "zero": 0}] * 3
    assert computed(products, 2, vectors, commands) == golden(products, vectors, commands)


@pytest.mark.parametrize("reset_at", [9, 30, 47])
def test_right_answers_after_a_reset(reset_at):
    products = of_one_block_size(4)
    vectors, commands = work(products, 5)
    assert computed(products, 2, vectors, commands, stall=0.2, reset_at=reset_at) == golden(products, vectors, commands)


@pytest.mark.parametrize(("k", "q", "lanes"), [(1, 1, 1), (4, 3, 2), (4, 1, 3), (8, 2, 2), (16, 2, 1)])
def test_latency_and_cycles_per_matrix(k, q, lanes):
    """From a command to its first row: the columns, and ``latency`` behind the last; then a group per drain."""
    matrix, starts, rows = product(4, q, k), [], []
    dut = Commanded([matrix], lanes)

    def watch():
        for t in range(120):
            shown = yield {"go.valid": int(t > 30), "go.payload": {"matrix": 0, "zero": 0}, RESET: 0}
            if shown["starts"]:
                starts.append(t)
            if shown["o.valid"]:
                rows.append(t)

    run(dut, source("i0", blocks([numbers(matrix.input, 2, 4 * k)[:, :q * k]], k), Transfers()), watch())
    step, count = max(q, lanes), -(-4 // lanes)
    first = 31 + q + dut.engine.latency
    assert starts == [31, 31 + q + step * (count - 1)]
    groups = [first + step * n for n in range(2 * count)]
    assert rows == [t + n for at, t in enumerate(groups) for n in range(min(lanes, 4 - at % count * lanes))]


def test_last_is_that_of_the_vector_that_waits():
    matrix, shown = product(1, 2, 2), []
    dut = Commanded([matrix], 1)
    vectors = numbers(matrix.input, 6, 4)
    payloads = blocks([vectors[:1], vectors[1:3], vectors[3:]], 2)

    def watch():
        for _ in range(60):
            ports = yield {"go.valid": 1, "go.payload": {"matrix": 0, "zero": 0}}
            if ports["starts"]:
                shown.append(ports["last"])

    run(dut, source("i0", payloads, Transfers()), watch())
    assert shown == [1, 0, 1, 0, 0, 1]
