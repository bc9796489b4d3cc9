import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from circulant.boards.link.uart import UartReceiver, UartTransmitter, require_divisor
from circulant.hw.stream.pipeline import connect


class Line(wiring.Component):
    """A transmitter and a receiver, whose bits may be longer."""

    def __init__(self, sends, receives):
        self._sends, self._receives = sends, receives
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8)), "cut": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.sender, m.submodules.receiver = sender, receiver = (
            UartTransmitter(self._sends), UartReceiver(self._receives))
        connect(m, self.i, sender.i)
        connect(m, receiver.o, self.o)
        m.d.comb += receiver.rx.eq(sender.tx & ~self.cut)
        return m


def passed(data, sends=8, receives=8, cut=range(0)):
    """What comes out; the line is low in the cycles of ``cut``."""
    line, found = Line(sends, receives), []
    simulator = Simulator(line)
    simulator.add_clock(1e-6)

    async def send(ctx):
        for byte in data:
            ctx.set(line.i.payload, byte)
            ctx.set(line.i.valid, 1)
            await ctx.tick().until(line.i.ready)
        ctx.set(line.i.valid, 0)

    async def receive(ctx):
        ctx.set(line.o.ready, 1)
        for cycle in range(11 * sends * (len(data) + 2)):
            ctx.set(line.cut, int(cycle in cut))
            _, _, valid, byte = await ctx.tick().sample(line.o.valid, line.o.payload)
            if valid:
                found.append(byte)

    simulator.add_testbench(send)
    simulator.add_testbench(receive)
    simulator.run()
    return bytes(found)


@pytest.mark.parametrize(("sends", "receives"), [(4, 4), (8, 8), (100, 98), (100, 102)])
def test_bytes_pass_at_rates_that_are_nearly_equal(sends, receives):
    data = bytes([0x00, 0xFF, 0x55, 0x7E, 0xA5])
    assert passed(data, sends, receives) == data


def test_a_line_that_is_held_low_gives_nothing():
    assert passed(b"", cut=range(10, 400)) == b""


def test_a_bit_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match=r"^A bit of a UART must take 4 cycles at least, not 3$"):
        require_divisor(3)
