# amaranth: UnusedElaboratable=no
import re

import pytest
from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.stream.pipeline import (
    LEVELS,
    PROMPT,
    QUEUE,
    Lives,
    Queue,
    Registers,
    block,
    connect,
    delay,
    per_matrix,
    registers,
    tree,
    update,
)
from tests.hw.simulate import RESET, Transfers, cycles, run, sink, source, trace
from tests.hw.simulate import stream as streamed

STALLS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.6)]


class Built(wiring.Component):
    """Ports, and a function that builds what lies between them."""

    def __init__(self, build, **ports):
        self._build = build
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        self._build(m, self)
        return m


def chain(depth, levels=LEVELS, gated=False):
    """A pipeline that adds one in each of its steps."""
    def build(m, ports):
        registers = Registers(m, valid=ports.i.valid, ready=ports.o.ready, count=depth, levels=levels, gated=gated)
        values = [ports.i.payload]
        for at in range(1, depth + 1):
            values = registers.stage([(values[0] + 1)[:8]], at)
        m.d.comb += [
            ports.o.payload.eq(values[0]), ports.o.valid.eq(registers.close()), ports.i.ready.eq(registers.move)]

    return Built(build, i=In(stream.Signature(8)), o=Out(stream.Signature(8)))


def test_a_block_holds_signed_values_and_the_mark_of_the_last():
    assert block(4, 12) == data.StructLayout({"data": data.ArrayLayout(signed(12), 4), "last": 1})
    assert block(4, 12).size == 49


def test_connect_joins_payload_valid_and_ready():
    def build(m, ports):
        connect(m, wiring.flipped(ports.i), wiring.flipped(ports.o))

    dut = Built(build, i=In(stream.Signature(block(2, 5))), o=Out(stream.Signature(block(2, 5))))
    payloads = [{"data": [n, -n], "last": n & 1} for n in range(16)]
    assert cycles(dut, payloads, quiet=2) == (list(range(16)), list(range(16)))
    assert streamed(dut, payloads, stall_i=0.5, stall_o=0.5, quiet=30) == payloads


@pytest.mark.parametrize(("source", "sink", "words"), [
    (signed(8), 8, "Streams must have one payload shape, not signed(8) and unsigned(8)"),
    (block(2, 4), 9, "Streams must have one payload shape, not StructLayout({'data': ArrayLayout(signed(4), 2), "
                     "'last': 1}) and unsigned(9)"),
])
def test_connect_refuses_payloads_that_only_have_one_width(source, sink, words):
    with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
        connect(Module(), stream.Signature(source).create(), stream.Signature(sink).create())


@pytest.mark.parametrize("length", [0, 1, 5])
def test_delay(length):
    def build(m, ports):
        m.d.comb += ports.y.eq(delay(m, ports.x, length, name="x"))

    xs = list(range(1, 21))
    dut = Built(build, x=In(8), y=Out(8))
    assert trace(dut, {"x": xs}, extra=length)["y"] == [0] * length + xs


@pytest.mark.parametrize(("reset_less", "after"), [(True, [1, 1, 1]), (False, [0, 0, 0])])
def test_delay_is_cleared_by_a_reset_where_it_is_told_to(reset_less, after):
    def build(m, ports):
        m.d.comb += ports.y.eq(delay(m, ports.x, 3, name="x", reset_less=reset_less))

    shown = trace(Built(build, x=In(1), y=Out(1)), {"x": [1] * 6 + [0] * 4, RESET: [0] * 5 + [1] + [0] * 4})
    assert shown["y"] == [0, 0, 0, 1, 1, 1, *after, 0]


def test_per_matrix_is_the_value_of_the_matrix():
    def build(m, ports):
        m.d.comb += [
            ports.constants.eq(per_matrix([3, 14, 15], ports.matrix)),
            ports.values.eq(per_matrix([ports.a, ports.a + 1, ports.a - 1], ports.matrix)),
            ports.equal.eq(per_matrix([9, 9, 9], ports.matrix)),
        ]

    dut = Built(build, matrix=In(range(3)), a=In(8), constants=Out(8), values=Out(8), equal=Out(8))
    shown = trace(dut, {"matrix": [0, 1, 2, 1], "a": [10, 20, 30, 40]})
    assert (shown["constants"], shown["values"], shown["equal"]) == ([3, 14, 15, 14], [10, 21, 29, 41], [9] * 4)


def test_per_matrix_is_a_constant_where_all_are_equal_and_the_value_where_there_is_one():
    matrix, a = Signal(), Signal(4)
    assert repr(per_matrix([9, 9], matrix)) == repr(Value.cast(9))
    assert per_matrix([a], matrix) is a


@pytest.mark.parametrize("depth", [1, 3])
def test_registers_take_a_cycle_per_stage_and_a_payload_per_cycle(depth):
    assert cycles(chain(depth), list(range(40)), quiet=depth + 2) == (list(range(40)), list(range(depth, 40 + depth)))


@pytest.mark.parametrize(("depth", "levels", "latency"), [(3, 6, 2), (4, 6, 2), (5, 9, 2), (7, 12, 2), (2, 5, 2)])
def test_registers_are_left_out_where_levels_of_logic_allow(depth, levels, latency):
    assert registers(depth, levels) == latency
    assert cycles(chain(depth, levels), list(range(20)), quiet=9)[1] == list(range(latency, 20 + latency))
    xs = list(range(30))
    assert streamed(chain(depth, levels), xs, stall_i=0.4, stall_o=0.5, quiet=50) == [x + depth for x in xs]


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_registers_lose_and_add_nothing(depth, stall_i, stall_o):
    xs = list(range(200))
    assert streamed(chain(depth), xs, stall_i=stall_i, stall_o=stall_o, quiet=50) == [x + depth for x in xs]


@pytest.mark.parametrize(("depth", "levels"), [(0, 4), (1, 4), (3, 4), (4, 6), (5, 9)])
def test_gated_registers_lose_and_add_nothing(depth, levels):
    xs = list(range(60))
    made = chain(depth, levels, gated=True)
    assert streamed(made, xs, stall_i=0.4, stall_o=0.5, quiet=50) == [x + depth for x in xs]


def test_gated_registers_hold_what_nobody_waits_for():
    given = {"i.valid": [1, 0, 0, 0, 1, 0, 0, 0], "i.payload": [5, 9, 9, 9, 20, 9, 9, 9], "o.ready": [1] * 8}
    assert trace(chain(2, gated=True), given)["o.payload"] == [0, 0, 7, 7, 7, 7, 22, 22]
    assert trace(chain(2), given)["o.payload"] == [0, 1, 7, 11, 11, 11, 22, 11]


def test_lives_are_enables_a_cycle_later_each():
    def build(m, ports):
        lives, late = Lives(m, ports.i, name="live"), Signal(4, reset_less=True)
        update(m, late.eq(late + 1), lives.after(1).at(1))
        m.d.comb += [ports.y.eq(late), ports.z.eq(lives.at(2))]

    shown = trace(Built(build, i=In(1), y=Out(4), z=Out(1)), {"i": [1, 0, 1, 1, 0, 0, 0]})
    assert shown["z"] == [0, 0, 1, 0, 1, 1, 0] and shown["y"] == [0, 0, 0, 1, 1, 2, 3]
    assert Lives(Module(), None, name="none").after(2).at(3) is None


def test_registers_are_empty_after_a_reset():
    xs = list(range(60))
    assert streamed(chain(3), xs, stall_o=0.5, reset_at=30, quiet=50) == [x + 3 for x in xs]


def test_registers_move_up_to_a_stalled_output():
    """While the sink is away, a pipeline of n stages fills with n payloads."""
    shown = trace(chain(3), {"i.valid": [1] * 8, "i.payload": list(range(8)), "o.ready": [0] * 8})
    assert shown["i.ready"] == [1, 1, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize(("depth", "holds"), [(1, 3), (2, 3), (3, 3), (5, 5)])
def test_queue_takes_its_depth_at_once_and_gives_two_cycles_later_or_promptly(depth, holds, prompt):
    """A buffered FIFO of a depth below three pauses behind its first payload."""
    shown = trace(Queue(signed(7), depth=depth, prompt=prompt), {
        "i.valid": [1] * (holds + 4), "i.payload": list(range(holds + 4)), "o.ready": [0] * (holds + 4)})
    assert shown["i.ready"] == [1] * holds + [0] * 4
    late = PROMPT if prompt else QUEUE
    assert shown["o.valid"] == [0] * late + [1] * (holds + 4 - late)
    assert shown["level"] == [*range(holds + 1), *[holds] * 3]


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize("depth", [1, 5])
@pytest.mark.parametrize("prompt", [False, True])
def test_queue_keeps_order_and_shape(depth, stall_i, stall_o, prompt):
    payloads = [{"data": [n, -n, 7 - n], "last": n % 2} for n in range(-100, 100)]
    assert streamed(Queue(block(3, 8), depth=depth, prompt=prompt), payloads, stall_i=stall_i, stall_o=stall_o,
                    quiet=50) == payloads


@pytest.mark.parametrize(("prompt", "late"), [(False, QUEUE), (True, PROMPT)])
def test_queue_passes_a_payload_per_cycle(prompt, late):
    assert cycles(Queue(8, depth=4, prompt=prompt), list(range(50)), quiet=5) == (
        list(range(50)), list(range(late, 50 + late)))


@pytest.mark.parametrize("prompt", [False, True])
def test_queue_is_empty_after_a_reset(prompt):
    assert streamed(Queue(8, depth=8, prompt=prompt), list(range(50)), stall_o=0.6, reset_at=25) == list(range(50))


class TestTheHelper:
    """What the other tests rely on has to go red itself."""

    @staticmethod
    def wrong(build):
        return Built(build, i=In(stream.Signature(8)), o=Out(stream.Signature(8)))

    def test_a_payload_that_changes_while_it_waits(self):
        def build(m, ports):
            m.d.sync += ports.o.payload.eq(ports.o.payload + 1)
            m.d.comb += [ports.o.valid.eq(ports.i.valid), ports.i.ready.eq(ports.o.ready)]

        with pytest.raises(AssertionError, match=r"^o must keep what it offered until it is taken, \d+, not show \d+$"):
            streamed(self.wrong(build), list(range(20)), stall_o=0.5)

    def test_an_offer_that_is_withdrawn(self):
        def build(m, ports):
            m.d.sync += ports.o.valid.eq(~ports.o.valid)
            m.d.comb += ports.i.ready.eq(1)

        with pytest.raises(AssertionError, match=r"^o must keep what it offered until it is taken, 0, not show None$"):
            streamed(self.wrong(build), list(range(20)), stall_o=0.5)

    def test_a_deadlock(self):
        def build(m, ports):
            count = Signal(8)
            m.d.comb += [ports.o.valid.eq(ports.i.valid & (count < 5)), ports.i.ready.eq(ports.o.ready & (count < 5))]
            m.d.sync += count.eq(count + (ports.i.valid & ports.i.ready))

        with pytest.raises(AssertionError, match=r"^Deadlock: \[5\] payloads were accepted and 5 given$"):
            streamed(self.wrong(build), list(range(20)))

    def test_something_extra(self):
        def build(m, ports):
            count = Signal(8)
            m.d.comb += [ports.o.valid.eq(count != 21), ports.i.ready.eq(1)]
            m.d.sync += count.eq(count + (ports.o.valid & ports.o.ready))

        assert len(streamed(self.wrong(build), list(range(20)))) == 21

    def test_several_streams(self):
        def build(m, ports):
            m.d.comb += [
                ports.o.valid.eq(ports.a.valid & ports.b.valid), ports.o.payload.eq(ports.a.payload + ports.b.payload),
                ports.a.ready.eq(ports.o.ready & ports.b.valid), ports.b.ready.eq(ports.o.ready & ports.a.valid)]

        dut = Built(build, **{name: In(stream.Signature(8)) for name in "ab"}, o=Out(stream.Signature(9)))
        a, b, o = Transfers(), Transfers(), Transfers()
        feeds = source("a", [1, 2, 3], a, stall=0.5), source("b", [10, 20, 30], b, stall=0.5, seed=1)
        run(dut, *feeds, sink("o", o, [a, b]))
        assert o.payloads == [11, 22, 33]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_a_tree_sums_values_a_level_in_each_cycle(count):
    levels, values = (count - 1).bit_length(), [(-3) ** n for n in range(count)]

    def build(m, ports):
        m.d.comb += ports.y.eq(tree(m, [Value.cast(Signal(signed(16), init=each)) for each in values], name="sum"))

    shown = trace(Built(build, y=Out(signed(20))), {}, extra=levels + 2)["y"]
    assert shown[levels:] == [sum(values)] * 2
    assert sum(values) not in shown[:levels]
