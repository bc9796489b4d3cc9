"""Frames in hardware: what comes is taken out of its frame and checked, what goes is put into one."""
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import crc, stream, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out

from circulant.boards.link.protocol import CRC, ESCAPE, FLAG, FLIP
from circulant.hw.emit.target import Platform
from circulant.hw.stream.storage import Ram

__all__ = ["BUFFER", "LATENCY", "FrameReceiver", "FrameSender"]

BUFFER = 256
"""Bytes of a frame at the most, all but its flags, before anything is escaped."""

LATENCY = 2
"""Cycles from the address of a buffer's byte to the byte: a block RAM is slow, so nothing but a register reads it."""


def checksum() -> crc.Processor:
    """CRC-32 as zlib computes it, a byte at a time."""
    return catalog.CRC32_ISO_HDLC(data_width=8).create()


class FrameReceiver(wiring.Component):
    """Keeps one frame whose check sum is right, until it is released; what comes in between is dropped.

    Members:
        i: stream of bytes, each of which is taken at once.
        valid: a frame is there.
        size: bytes of the frame without the check sum.
        address: which byte of the frame is read.
        data: the byte that was asked for `LATENCY` cycles before.
        release: the frame is done with.
        error: a frame is dropped in this cycle, as it is broken.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "valid": Out(1), "size": Out(range(BUFFER + 1)),
                          "address": In(range(BUFFER)), "data": Out(8), "release": In(1), "error": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = Ram(width=8, depth=BUFFER)
        m.submodules.check = check = checksum()
        # A frame counts from its first flag on.
        inside = Signal()
        escaped = Signal()
        count = Signal(range(BUFFER + 2))
        # What its size says is kept beside it, since to compare takes time.
        not_empty = Signal()
        checked = Signal()
        fits = Signal(init=1)
        byte = self.i.payload
        keeps = Signal()
        m.d.comb += [
            self.i.ready.eq(1), buffer.r_en.eq(1), buffer.r_addr.eq(self.address),
            keeps.eq(self.i.valid & inside & (byte != FLAG) & (byte != ESCAPE) & ~self.valid),
            buffer.w_en.eq(keeps & (count < BUFFER)), buffer.w_addr.eq(count[:8]),
            buffer.w_data.eq(byte ^ Mux(escaped, FLIP, 0)),
            check.valid.eq(keeps), check.data.eq(buffer.w_data),
        ]
        m.d.sync += self.data.eq(buffer.r_data)
        with m.If(self.release):
            m.d.sync += self.valid.eq(0)
        with m.If(self.i.valid):
            with m.If(byte == FLAG):
                m.d.comb += check.start.eq(1)
                m.d.sync += [inside.eq(~self.valid), escaped.eq(0), count.eq(0), not_empty.eq(0), checked.eq(0),
                             fits.eq(1)]
                with m.If(inside & not_empty):
                    with m.If(check.match_detected & checked & fits & ~escaped):
                        m.d.sync += [self.valid.eq(1), self.size.eq(count - CRC), inside.eq(0)]
                    with m.Else():
                        m.d.comb += self.error.eq(1)
            with m.Elif(byte == ESCAPE):
                m.d.sync += escaped.eq(1)
            with m.Else():
                m.d.sync += escaped.eq(0)
        with m.If(keeps & fits):
            m.d.sync += [count.eq(count + 1), not_empty.eq(1), checked.eq(count >= CRC), fits.eq(count < BUFFER)]
        return m


class FrameSender(wiring.Component):
    """Sends a buffer as a frame.

    Members:
        send: begin, in a cycle without ``busy``.
        busy: a frame is under way.
        size: bytes of the buffer, at least one; constant meanwhile.
        address: which byte of the buffer is read.
        data: the byte that was asked for `LATENCY` cycles before.
        o: stream of bytes of the frame.
    """

    def __init__(self) -> None:
        super().__init__({"send": In(1), "busy": Out(1), "size": In(range(BUFFER + 1)),
                          "address": Out(range(BUFFER)), "data": In(8), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.check = check = checksum()
        count = Signal(range(BUFFER + 1))
        sum_ = Signal(32)
        sum_bytes = Signal(range(CRC + 1))
        last = Signal()
        byte = Signal(8)
        special = Signal()
        escaped = Signal()
        closing = Signal()
        sending = Signal()
        m.d.comb += [self.address.eq(count), self.busy.eq(sending),
                     special.eq((byte == FLAG) | (byte == ESCAPE))]
        with m.FSM():
            with m.State("Idle"):
                m.d.comb += check.start.eq(1)
                m.d.sync += [count.eq(0), sum_bytes.eq(0), closing.eq(0), escaped.eq(0)]
                with m.If(self.send):
                    m.d.sync += sending.eq(1)
                    m.next = "Flag"
            with m.State("Flag"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(FLAG)]
                with m.If(self.o.ready):
                    with m.If(closing):
                        m.d.sync += sending.eq(0)
                        m.next = "Idle"
                    with m.Else():
                        m.next = "Fetch"
            with m.State("Fetch"):
                m.d.sync += last.eq(count == self.size - 1)
                m.next = "Keep"
            with m.State("Keep"):  # The byte is there that `address` named two cycles before.
                m.d.sync += [byte.eq(self.data), count.eq(count + 1)]
                m.d.comb += [check.valid.eq(1), check.data.eq(self.data)]
                m.next = "Send"
            with m.State("Send"):
                m.d.comb += [self.o.valid.eq(1),
                             self.o.payload.eq(Mux(escaped, byte ^ FLIP, Mux(special, ESCAPE, byte)))]
                with m.If(self.o.ready):
                    m.d.sync += escaped.eq(special & ~escaped)
                    with m.If(~special | escaped):
                        with m.If(closing):
                            m.next = "Sum"
                        with m.Elif(last):
                            m.d.sync += [closing.eq(1), sum_.eq(check.crc)]
                            m.next = "Sum"
                        with m.Else():
                            m.next = "Fetch"
            with m.State("Sum"):
                m.d.sync += [byte.eq(sum_[:8]), sum_.eq(sum_ >> 8), sum_bytes.eq(sum_bytes + 1)]
                with m.If(sum_bytes == CRC):
                    m.next = "Flag"
                with m.Else():
                    m.next = "Send"
        return m
