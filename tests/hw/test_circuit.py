"""The fast simulation of circuits shows, cycle by cycle, what Amaranth's simulator shows."""
import numpy as np
import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Shape, Signal, signed, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.program import ArrayShape
from circulant.hw.kinds.recurrent import RecurrentLayer
from circulant.hw.stream.storage import OLD
from tests.hw.drawn_layers import gru
from tests.hw.kinds.test_recurrent import best_program
from tests.hw.simulate import RESET, Amaranths, Fast

NUMBERS = {"a": signed(5), "b": unsigned(4), "c": signed(7), "s": unsigned(3)}


def shown(simulation, drives):
    """What all ports show in each cycle."""
    seen = []

    def agent():
        for drive in drives:
            ports = yield drive
            seen.append(ports)

    simulation.run([agent()])
    return seen


def drawn(dut, cycles, seed=0, reset=0.05):
    rng = np.random.default_rng(seed)
    ports = {".".join(map(str, path)): member.shape for path, member, _ in dut.signature.flatten(dut)
             if member.flow is In}
    return [{path: draw(rng, shape) for path, shape in ports.items()} | {RESET: int(rng.random() < reset)}
            for _ in range(cycles)]


def draw(rng, shape):
    if hasattr(shape, "elem_shape"):
        return [draw(rng, shape.elem_shape) for _ in range(shape.length)]
    if hasattr(shape, "members"):
        return {name: draw(rng, each) for name, each in shape.members.items()}
    shape = Shape.cast(shape)
    least = -(1 << shape.width - 1) if shape.signed else 0
    return int(rng.integers(least, least + (1 << shape.width)))


def assert_same(dut, drives):
    fast, slow = shown(Fast(dut), drives), shown(Amaranths(dut), drives)
    for cycle, (mine, its) in enumerate(zip(fast, slow, strict=True)):
        assert mine == its, f"cycle {cycle}"
    return fast


class Expressions(wiring.Component):
    """Each operator, of numbers with and without a sign."""

    def __init__(self, make):
        self._make = make
        inputs = [Signal(shape, name=name) for name, shape in NUMBERS.items()]
        super().__init__({name: In(shape) for name, shape in NUMBERS.items()}
                         | {f"o{n}": Out(value.shape()) for n, value in enumerate(make(*inputs))})

    def elaborate(self, platform):
        m = Module()
        for n, value in enumerate(self._make(self.a, self.b, self.c, self.s)):
            m.d.comb += getattr(self, f"o{n}").eq(value)
        return m


@pytest.mark.parametrize("make", [
    lambda a, b, c, s: [a + b, a - b, b - s, a * c, a * b, -a, -b, abs(a), a // 3, b // 3, c % 5],
    lambda a, b, c, s: [a & b, a | c, a ^ b, ~a, ~b, ~(a + c), ~~b, (~b)[1:6], (~b) + 1, -(~b)],
    lambda a, b, c, s: [a < c, a <= b, b > c, c >= a, a == c, a != b, a.bool(), b.any(), a.all(), c.xor(), ~b.all()],
    lambda a, b, c, s: [a << s, b << s, a >> s, c >> s, b >> s, a.shift_left(2), c.shift_right(3), c.rotate_left(2)],
    lambda a, b, c, s: [a[1:4], a[-1], Cat(a, b, c), Cat(a < c, b)[2:], a.as_unsigned(), b.as_signed(),
                        (a + b).as_unsigned(), Cat(a, c).as_signed(), c.bit_select(s, 2), Cat(a, b).word_select(s, 2),
                        a.replicate(3), a[2:2]],
    lambda a, b, c, s: [Mux(s, a, b), Mux(a > 1, c, a), Array([a, b, c])[s], Array([1, -2, 3, -4, 5])[s] + a,
                        Mux(b[0], Mux(b[1], a, c), -b), b.matches("1--0", "01-1"), b.matches(1, 2), b.matches()],
], ids=["arithmetic", "bits", "comparisons", "shifts", "parts", "choices"])
def test_operators(make):
    dut = Expressions(make)
    assert_same(dut, drawn(dut, 80))


class Statements(wiring.Component):
    """Registers, partial assignments, choices and a memory."""

    def __init__(self):
        super().__init__({name: In(shape) for name, shape in NUMBERS.items()} | {
            "count": Out(5), "kept": Out(signed(9)), "made": Out(signed(9)), "state": Out(2), "low": Out(4),
            "read": Out(8), "through": Out(8), "now": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.count.eq(self.count + self.b)
        free = Signal(4, reset_less=True)
        m.d.sync += free.eq(self.b + free)
        with m.Switch(self.b):
            with m.Case("1--0"):
                m.d.sync += self.kept[2:6].eq(self.a)
                m.d.comb += self.made.eq(self.c)
            with m.Case(1, 3):
                m.d.sync += Cat(self.kept[:2], self.kept[6:]).eq(self.c)
                m.d.comb += self.made.bit_select(self.s, 3).eq(self.a)
            with m.Default():
                m.d.comb += self.made[-3:].eq(self.s)
        with m.If(self.a > self.c):
            m.d.sync += Array([self.kept, self.count])[self.s[0]].eq(self.c)
        with m.FSM():
            with m.State("first"), m.If(self.s == 3):
                m.next = "second"
            with m.State("second"):
                m.d.comb += self.state.eq(2)
                m.next = "first"
        m.d.comb += self.low.eq(free)
        m.submodules.memory = store = memory.Memory(shape=8, depth=6, init=[3, 1, 4, 1, 5], attrs={OLD: 1})
        writer = store.write_port(granularity=4)
        ports = {"read": store.read_port(), "through": store.read_port(transparent_for=[writer]),
                 "now": store.read_port(domain="comb")}
        m.d.comb += [writer.addr.eq(self.s), writer.data.eq(self.c), writer.en.eq(self.b)]
        for name, port in ports.items():
            m.d.comb += [port.addr.eq(self.b), getattr(self, name).eq(port.data)]
        m.d.comb += [ports["read"].en.eq(self.a[0]), ports["through"].en.eq(1)]
        return m


def test_statements_memories_and_reset():
    dut = Statements()
    seen = assert_same(dut, drawn(dut, 400))
    assert all(len({ports[name] for ports in seen}) > 1 for name in dut.signature.members), "each port has moved"


@pytest.mark.parametrize("reset", ["before", "after"])
def test_a_layer(reset):
    layer = gru(3, k=4, inputs=7, hidden=6, reset=reset)
    dut = RecurrentLayer(layer, program=best_program(layer, ArrayShape(4, 2, 2), 2), elements=2)
    seen = assert_same(dut, [{"o.ready": 1, "i.valid": 1} | drive for drive in drawn(dut, 250, reset=0.004)])
    assert sum(ports["o.valid"] for ports in seen) > 3


def test_runs_begin_anew():
    dut = Statements()
    simulation, drives = Fast(dut), drawn(dut, 30)
    assert shown(simulation, drives) == shown(simulation, drives)


def test_a_second_clock_is_refused():
    class Two(wiring.Component):
        o: Out(1)

        def elaborate(self, platform):
            m = Module()
            m.d.slow += self.o.eq(~self.o)
            return m

    with pytest.raises(AssertionError, match=r"must have one clock, not also 'slow'"):
        Fast(Two())
