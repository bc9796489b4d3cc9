"""The unit that answers the requests of a host and plays them through a design."""
from typing import NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.boards.link.frames import BUFFER, LATENCY, FrameReceiver, FrameSender
from circulant.boards.link.protocol import GREETING, HASH, PAYLOAD, UNKNOWN, VERSION, Operation
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import connect
from circulant.hw.stream.storage import Ram
from circulant.sim.configuration import ADDRESS_BITS, WORD

__all__ = ["Server"]

HEAD = 3
"""Bytes in front of what an answer carries: number, operation, status."""

RESETS = 4
"""Cycles of a reset of the design."""


class _Beats(NamedTuple):
    """Signals between bytes and beats: the beat that fills, its bytes so far, whether it is whole, and a last one; the
    beat that empties, its bytes to come, whether another one may come; whether anything moves in this cycle."""

    beat: Signal
    filled: Signal
    whole: Signal
    ends: Signal
    held: Signal
    left: Signal
    drains: Signal
    moves: Signal


class Server(wiring.Component):
    """Requests in, answers out; see `circulant.boards.link.protocol`.

    A transfer ends when all its bytes are taken and the output that it waits for is there, or when nothing has moved
    for ``patience`` cycles; the answer says how much was taken.

    Parameters:
        inputs, outputs: bits of an input beat and of an output beat, whole bytes.
        network: the network's hash, hexadecimal.
        configures: whether the design has a configuration port.
        patience: cycles, a power of two.

    Members:
        i: stream of bytes from the UART.
        o: stream of bytes to the UART.
        reset: the design is to be reset.
        s_…: the design's input, from the side of its neighbour.
        m_…: the design's output, from the side of its neighbour.
        flags: the design's flags: overflow, malformed.
        cfg_…: the design's configuration port.
    """

    def __init__(self, *, inputs: int, outputs: int, network: str, configures: bool = False,
                 patience: int = 1 << 16) -> None:
        if inputs % 8 or outputs % 8 or min(inputs, outputs) < 8:
            raise ValueError(f"A beat must have whole bytes, not {inputs} and {outputs} bits")
        self._network, self._configures, self._patience = bytes.fromhex(network)[:HASH], configures, patience
        self._inputs, self._outputs = inputs // 8, outputs // 8
        super().__init__({
            "i": In(stream.Signature(8)), "o": Out(stream.Signature(8)), "reset": Out(1),
            "s_valid": Out(1), "s_ready": In(1), "s_data": Out(inputs), "s_last": Out(1),
            "m_valid": In(1), "m_ready": Out(1), "m_data": In(outputs), "m_last": In(1),
            "flags": In(2),
            **({"cfg_addr": Out(ADDRESS_BITS), "cfg_wdata": Out(WORD), "cfg_we": Out(1), "cfg_re": Out(1),
                "cfg_rdata": In(WORD), "cfg_rvalid": In(1)} if configures else {}),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()

        # Frames come and go; the buffer of the answer is written before its frame is sent.
        m.submodules.receiver = receiver = FrameReceiver()
        m.submodules.sender = sender = FrameSender()
        m.submodules.answer = answer = Ram(width=8, depth=BUFFER)
        connect(m, self.i, receiver.i)
        connect(m, sender.o, self.o)

        # The request at hand, read byte by byte: at ``at``, and ``fresh`` when it is there.
        self._at = at = Signal(range(BUFFER + 1))
        self._ages = ages = Signal(LATENCY)
        self._fresh = fresh = ages[-1]
        self._receiver = receiver
        m.d.sync += ages.eq(Cat(1, ages))
        m.d.comb += receiver.address.eq(at)
        # Whether all bytes were taken, and whether this is the last one: right as soon as it is fresh.
        self._spent = spent = Signal()
        self._final = final = Signal()
        m.d.sync += [spent.eq(at == receiver.size), final.eq(at == receiver.size - 1)]

        # The buffer of the answer has registers on both sides.
        self._put_at = put_at = Signal(range(BUFFER))
        self._put_byte = put_byte = Signal(8)
        self._puts = puts = Signal()
        m.d.comb += [answer.r_en.eq(1), answer.r_addr.eq(sender.address)]
        m.d.sync += [sender.data.eq(answer.r_data), answer.w_en.eq(puts), answer.w_addr.eq(put_at),
                     answer.w_data.eq(put_byte)]

        # The answer that is written, or was written last.
        self._size = size = Signal(range(BUFFER + 1), init=HEAD)
        self._operation = operation = Signal(8)
        self._status = status = Signal(8)
        number = Signal(8)
        answered = Signal(8)
        known = Signal()
        again = Signal()
        index = Signal(range(32))
        m.d.comb += sender.size.eq(size)
        m.d.sync += again.eq(known & (number == answered))
        greeting, beats, words = self._greeting(m, index), self._beats(m), self._words(m)

        # A request's head, what its operation asks for, then the head of the answer and the whole of it.
        with m.FSM():
            with m.State("Idle"):
                m.d.sync += [index.eq(0), ages.eq(Cat(receiver.valid, ages))]
                with m.If(fresh & receiver.valid):
                    m.d.sync += [number.eq(receiver.data), at.eq(1), ages.eq(0)]
                    m.next = "Operation"
            with m.State("Operation"), m.If(fresh):
                m.d.sync += [operation.eq(receiver.data), at.eq(2), ages.eq(0)]
                with m.If(again & (receiver.data != Operation.HELLO)):
                    m.next = "Answer"
                with m.Else():
                    m.d.sync += [size.eq(HEAD), status.eq(0), answered.eq(number), known.eq(1)]
                    with m.Switch(receiver.data):
                        with m.Case(Operation.HELLO):
                            m.next = "Hello"
                        with m.Case(Operation.TRANSFER, Operation.LAST):
                            m.next = "Wanted"
                        with m.Case(Operation.RESET):
                            m.next = "Reset"
                        if self._configures:
                            with m.Case(Operation.WRITE, Operation.READ):
                                m.next = "Address"
                        with m.Default():
                            m.d.sync += status.eq(UNKNOWN)
                            m.next = "Head"
            with m.State("Hello"):
                m.d.sync += index.eq(index + 1)
                with m.If(index != 0):
                    self._put(m, greeting)
                with m.If(index == GREETING):
                    m.d.sync += index.eq(0)
                    m.next = "Head"
            with m.State("Reset"):
                m.d.comb += self.reset.eq(1)
                m.d.sync += index.eq(index + 1)
                with m.If(index == RESETS - 1):
                    m.d.sync += index.eq(0)
                    m.next = "Head"
            self._transfer(m, beats)
            if self._configures:
                self._configure(m, *words)
            with m.State("Head"):  # The three bytes in front, now that the status is known.
                m.d.comb += [puts.eq(1), put_at.eq(index), put_byte.eq(Array([number, operation, status])[index])]
                m.d.sync += index.eq(index + 1)
                with m.If(index == HEAD - 1):
                    m.next = "Answer"
            with m.State("Answer"):
                m.d.comb += [sender.send.eq(1), receiver.release.eq(1)]  # The next request may come meanwhile.
                m.next = "Sending"
            with m.State("Sending"), m.If(~sender.busy):
                m.d.sync += [at.eq(0), ages.eq(0)]
                m.next = "Idle"
        return m

    def _greeting(self, m: Module, index: Signal) -> Value:
        """A byte of a `circulant.boards.link.protocol.Hello`, one cycle behind its index."""
        cycles = Signal(32)
        sequences = Signal(32)
        errors = Signal(32)
        leaves = Signal()
        error = Signal()
        byte = Signal(8)
        m.d.sync += [leaves.eq(self.m_valid & self.m_ready & self.m_last), error.eq(self._receiver.error),
                     cycles.eq(cycles + 1), sequences.eq(sequences + leaves), errors.eq(errors + error)]
        identity = (VERSION, *self._network)
        later = Signal(24)  # The count goes on while it is told: its upper bytes are those of the first one's cycle.
        with m.If(index == len(identity)):
            m.d.sync += later.eq(cycles[8:])
        counts = [cycles[:8], *(later.word_select(n, 8) for n in range(3)),
                  *(word.word_select(n, 8) for word in (sequences, errors) for n in range(4))]
        told = [*(Const(each, 8) for each in identity), *counts, Cat(self.flags, Const(0, 6))]
        m.d.sync += byte.eq(Array(told)[index])
        return byte

    def _put(self, m: Module, value: Value) -> None:
        """Write the next byte of the answer."""
        m.d.comb += [self._puts.eq(1), self._put_at.eq(self._size), self._put_byte.eq(value)]
        m.d.sync += self._size.eq(self._size + 1)

    def _take(self, m: Module) -> None:
        """Go on to the next byte of the request."""
        m.d.sync += [self._at.eq(self._at + 1), self._ages.eq(0)]

    def _beats(self, m: Module) -> "_Beats":
        """Signals between bytes and beats; what is on its way outlasts a request."""
        found = _Beats(
            beat=Signal(8 * self._inputs, name="beat"), filled=Signal(range(max(2, self._inputs)), name="filled"),
            whole=Signal(name="whole"), ends=Signal(name="ends"), held=Signal(8 * self._outputs, name="held"),
            left=Signal(range(self._outputs + 1), name="left"), drains=Signal(name="drains"),
            moves=Signal(name="moves"))
        beat, filled, whole, ends, held, left, drains, moves = found
        m.d.comb += [
            self.s_valid.eq(whole), self.s_data.eq(beat), self.s_last.eq(ends), self.m_ready.eq(drains & (left == 0)),
        ]
        with m.If(self.s_valid & self.s_ready):
            m.d.comb += moves.eq(1)
            m.d.sync += [whole.eq(0), ends.eq(0)]
        with m.If(self.m_valid & self.m_ready):
            m.d.comb += moves.eq(1)
            m.d.sync += [held.eq(self.m_data), left.eq(self._outputs)]
        with m.If(self.reset):
            m.d.sync += [filled.eq(0), whole.eq(0), ends.eq(0), left.eq(0)]
        return found

    def _transfer(self, m: Module, beats: "_Beats") -> None:
        """The states in which bytes become beats and beats become bytes."""
        fresh, size, request = self._fresh, self._size, self._receiver
        beat, filled, whole, ends, held, left, drains, moves = beats
        wanted = Signal(8)
        idle = Signal(range(self._patience + 1))
        enough = Signal()  # The output that is waited for is there: a cycle late.
        m.d.sync += enough.eq(size >= wanted + HEAD)
        with m.State("Wanted"), m.If(fresh):
            m.d.sync += [wanted.eq(request.data), idle.eq(0)]
            self._take(m)
            m.next = "Move"
        with m.State("Move"):
            m.d.comb += drains.eq(1)
            with m.If(fresh & ~self._spent & ~whole):
                m.d.comb += moves.eq(1)
                m.d.sync += [beat.eq(Cat(beat[8:], request.data)), filled.eq(filled + 1),
                             self._status.eq(self._status + 1)]
                with m.If(filled == self._inputs - 1):
                    m.d.sync += [filled.eq(0), whole.eq(1)]
                with m.If(self._final & (self._operation == Operation.LAST)):
                    m.d.sync += ends.eq(1)
                self._take(m)
            with m.If((left != 0) & (size != HEAD + PAYLOAD)):
                m.d.comb += moves.eq(1)
                m.d.sync += [held.eq(held >> 8), left.eq(left - 1)]
                self._put(m, held[:8])
            m.d.sync += idle.eq(Mux(moves, 0, idle + 1))
            with m.If((fresh & self._spent & ~whole & enough) | idle[-1]):
                m.next = "Head"

    def _words(self, m: Module) -> tuple[Signal, Signal]:
        """Address and word at the configuration port, if there is one."""
        address = Signal(ADDRESS_BITS, name="address")
        word = Signal(WORD, name="word")
        if self._configures:
            m.d.comb += [self.cfg_addr.eq(address), self.cfg_wdata.eq(word)]
        return address, word

    def _configure(self, m: Module, address: Signal, word: Signal) -> None:
        """The states that write to the configuration port and read from it."""
        fresh = self._fresh
        request = self._receiver
        count = Signal(8)
        parts = Signal(3)
        with m.State("Address"), m.If(fresh):
            m.d.sync += [address.eq(Cat(address[8:], request.data)), parts.eq(parts + 1)]
            self._take(m)
            with m.If(parts == ADDRESS_BITS // 8 - 1):
                m.d.sync += parts.eq(0)
                with m.If(self._operation == Operation.WRITE):
                    m.next = "Word"
                with m.Else():
                    m.next = "Count"
        with m.State("Word"):
            with m.If(fresh & self._spent):
                m.next = "Head"
            with m.Elif(fresh):
                m.d.sync += [word.eq(Cat(word[8:], request.data)), parts.eq(parts + 1)]
                self._take(m)
                with m.If(parts == WORD // 8 - 1):
                    m.d.sync += parts.eq(0)
                    m.next = "Write"
        with m.State("Write"):
            m.d.comb += self.cfg_we.eq(1)
            m.d.sync += address.eq(address + 1)
            m.next = "Word"
        with m.State("Count"), m.If(fresh):
            m.d.sync += count.eq(request.data)
            m.next = "Read"
        with m.State("Read"):
            m.d.sync += count.eq(count - 1)
            with m.If(count == 0):
                m.next = "Head"
            with m.Else():
                m.d.comb += self.cfg_re.eq(1)
                m.next = "Await"
        with m.State("Await"), m.If(self.cfg_rvalid):
            m.d.sync += [word.eq(self.cfg_rdata), address.eq(address + 1)]
            m.next = "Give"
        with m.State("Give"):
            self._put(m, word[:8])
            m.d.sync += [word.eq(word >> 8), parts.eq(parts + 1)]
            with m.If(parts == WORD // 8 - 1):
                m.d.sync += parts.eq(0)
                m.next = "Read"
