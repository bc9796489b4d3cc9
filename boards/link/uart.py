"""A UART: 8 bits, no parity, one stop bit, at a whole number of clock cycles a bit."""
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform

__all__ = ["LEAST", "UartReceiver", "UartTransmitter", "require_divisor"]

LEAST = 4
"""Cycles of a bit at least, so that its middle can be found."""


def require_divisor(divisor: int) -> int:
    """
    Raises:
        ValueError: when a bit is too short.
    """
    if divisor < LEAST:
        raise ValueError(f"A bit of a UART must take {LEAST} cycles at least, not {divisor!r}")
    return divisor


class UartReceiver(wiring.Component):
    """Bytes from a line; each bit is read in its middle, from the edge of the start bit on.

    A byte whose stop bit is missing is dropped, and so is one that nobody takes until the next one is there.

    Parameters:
        divisor: cycles of a bit.

    Members:
        rx: the line, asynchronous to the clock.
        o: stream of bytes that came.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = require_divisor(divisor)
        super().__init__({"rx": In(1, init=1), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)
        timer = Signal(range(self._divisor))
        bit = Signal(range(10))
        word = Signal(8)
        middle = Signal()
        m.d.comb += middle.eq(timer == 0)
        m.d.sync += timer.eq(timer - 1)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(middle):
            m.d.sync += timer.eq(self._divisor - 1)
        with m.FSM():
            with m.State("Idle"):
                m.d.sync += [timer.eq(self._divisor // 2 - 1), bit.eq(0)]
                with m.If(~line):
                    m.next = "Start"
            with m.State("Start"), m.If(middle):
                with m.If(line):
                    m.next = "Idle"
                with m.Else():
                    m.next = "Data"
            with m.State("Data"), m.If(middle):
                m.d.sync += [word.eq(Cat(word[1:], line)), bit.eq(bit + 1)]
                with m.If(bit == 7):
                    m.next = "Stop"
            with m.State("Stop"), m.If(middle):
                with m.If(line):
                    m.d.sync += [self.o.payload.eq(word), self.o.valid.eq(1)]
                    m.next = "Idle"
                with m.Else():
                    m.next = "Break"
            with m.State("Break"), m.If(line):
                m.next = "Idle"
        return m


class UartTransmitter(wiring.Component):
    """Bytes onto a line.

    Parameters:
        divisor: cycles of a bit.

    Members:
        i: stream of bytes to send.
        tx: the line.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = require_divisor(divisor)
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        timer = Signal(range(self._divisor))
        bits_left = Signal(range(11))
        word = Signal(10)
        busy = Signal()
        m.d.comb += self.i.ready.eq(~busy)  # A register: whoever asks may be far away.
        m.d.sync += self.tx.eq((bits_left == 0) | word[0])
        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(bits_left != 0):
            m.d.sync += [word.eq(word >> 1), bits_left.eq(bits_left - 1), timer.eq(self._divisor - 1)]
        with m.Else():
            m.d.sync += busy.eq(0)
        with m.If(self.i.valid & ~busy):
            m.d.sync += [word.eq(Cat(0, self.i.payload, 1)), bits_left.eq(10), timer.eq(self._divisor - 1), busy.eq(1)]
        return m
