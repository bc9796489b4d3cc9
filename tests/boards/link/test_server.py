"""The server's circuit, spoken to as a host does, in front of a design that gives each beat back plus one."""
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from circulant.boards.link.protocol import FLAG, PAYLOAD, UNKNOWN, Hello, Operation, Unframer, frame
from circulant.boards.link.server import Server
from circulant.hw.stream.pipeline import connect

HASH = "0123456789abcdef" * 4


class Echo(wiring.Component):
    """A server and a design of one register: what comes goes, each byte plus one; and eight words of configuration."""

    def __init__(self, beat: int = 2, patience: int = 64) -> None:
        self.server = Server(inputs=8 * beat, outputs=8 * beat, network=HASH, configures=True, patience=patience)
        self._beat = beat
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8)), "blocked": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.server = server = self.server
        connect(m, self.i, server.i)
        connect(m, server.o, self.o)
        held, full, last = Signal(8 * self._beat), Signal(), Signal()
        words = [Signal(32, name=f"word_{n}", init=n) for n in range(8)]
        m.d.comb += [server.s_ready.eq((~full | server.m_ready) & ~self.blocked), server.m_valid.eq(full),
                     server.m_data.eq(held), server.m_last.eq(last)]
        with m.If(server.m_ready):
            m.d.sync += full.eq(0)
        with m.If(server.s_valid & server.s_ready):
            m.d.sync += [full.eq(1), last.eq(server.s_last)]
            m.d.sync += [held.word_select(n, 8).eq(server.s_data.word_select(n, 8) + 1) for n in range(self._beat)]
        with m.If(server.reset):
            m.d.sync += full.eq(0)
        m.d.sync += server.cfg_rvalid.eq(server.cfg_re)
        for n, word in enumerate(words):
            with m.If(server.cfg_addr == n):
                m.d.sync += server.cfg_rdata.eq(word)
                with m.If(server.cfg_we):
                    m.d.sync += word.eq(server.cfg_wdata)
        return m


def talk(pieces: list[bytes], *, cycles: int = 900, gap: int = 0, blocked: range = range(0), **options) -> list[bytes]:
    """The answers to bytes that come, each piece after the answer to the one before or ``cycles`` cycles."""
    echo, answers, finder = Echo(**options), [], Unframer()
    simulator = Simulator(echo)
    simulator.add_clock(1e-6)

    async def speak(ctx):
        for at, piece in enumerate(pieces):
            ctx.set(echo.blocked, int(at in blocked))
            for byte in piece:
                ctx.set(echo.i.valid, 1)
                ctx.set(echo.i.payload, byte)
                await ctx.tick()
                ctx.set(echo.i.valid, 0)
                if gap:
                    await ctx.tick().repeat(gap)
            ctx.set(echo.o.ready, 1)
            for _ in range(cycles):
                _, _, valid, byte = await ctx.tick().sample(echo.o.valid, echo.o.payload)
                if valid:
                    found = list(finder.feed(bytes([byte])))
                    answers.extend(found)
                    if found:
                        break

    simulator.add_testbench(speak)
    simulator.run()
    assert finder.errors == 0, "every frame of the device is whole"
    return answers


def request(number: int, operation: int, data: bytes = b"") -> bytes:
    return frame(bytes([number, operation]) + data)


def test_a_greeting_tells_version_network_and_counters():
    first, second = (Hello.parse(answer[3:]) for answer in talk([request(7, 0), b"\x7e\x05\x7e" + request(7, 0)]))
    assert (first.version, first.network.hex(), first.sequences, first.errors) == (1, HASH[:16], 0, 0)
    assert second.errors == 1 and second.cycles > first.cycles, "it is carried out each time"


def test_bytes_come_back_from_the_design_in_whole_beats():
    data = bytes(range(20))
    answer, = talk([request(1, Operation.LAST, bytes([20]) + data)])
    assert answer == bytes([1, Operation.LAST, 20]) + bytes(byte + 1 for byte in data)


def test_flags_and_escapes_pass_as_data():
    data = bytes([0x7E, 0x7D, 0x5E, 0x5D] * 2)
    assert talk([request(0x7E, Operation.TRANSFER, bytes([8]) + data)])[0][3:] == bytes(byte + 1 for byte in data)


def test_a_request_that_comes_twice_is_answered_twice_and_carried_out_once():
    once = request(3, Operation.LAST, bytes([2, 10, 20]))
    first, second, greeting = talk([once, once, request(4, Operation.HELLO)])
    assert first == second == bytes([3, Operation.LAST, 2, 11, 21])
    assert Hello.parse(greeting[3:]).sequences == 1


def test_a_request_that_waits_while_an_answer_leaves_is_read_from_its_first_byte():
    first, second = request(5, Operation.LAST, bytes([2, 10, 20])), request(9, Operation.LAST, bytes([2, 30, 40]))
    answers = talk([first + bytes([FLAG]) * 200 + second, b""])
    assert answers == [bytes([5, Operation.LAST, 2, 11, 21]), bytes([9, Operation.LAST, 2, 31, 41])]


@pytest.mark.parametrize("beat", [1, 3])
def test_requests_need_not_end_with_a_beat(beat):
    pieces = [request(1, Operation.TRANSFER, bytes([0, 1])), request(2, Operation.TRANSFER, bytes([0, 2])),
              request(3, Operation.LAST, bytes([3, 3])), request(4, Operation.TRANSFER, bytes([0]))]
    answers = talk(pieces, beat=beat)
    assert [answer[2] for answer in answers] == [1, 1, 1, 0]
    assert b"".join(answer[3:] for answer in answers) == bytes([2, 3, 4])


def test_what_a_design_does_not_take_is_said_and_taken_later():
    data = bytes(range(12))
    first, second = talk([request(1, Operation.TRANSFER, bytes([0]) + data),
                          request(2, Operation.TRANSFER, bytes([12]) + data[2:])], blocked=range(1))
    assert first == bytes([1, Operation.TRANSFER, 2]), "one beat waits in front of the design"
    assert second[3:] == bytes(byte + 1 for byte in data)


def test_the_longest_request_is_answered_in_full():
    data = random.Random(1).randbytes(PAYLOAD)
    answer, = talk([request(9, Operation.LAST, bytes([PAYLOAD]) + data)], cycles=3000)
    assert answer[3:] == bytes((byte + 1) % 256 for byte in data)


@pytest.mark.parametrize("data", [[5], [5, 6]], ids=["half a beat", "a whole beat that waits"])
def test_a_reset_forgets_what_is_under_way(data):
    answers = talk([request(1, Operation.TRANSFER, bytes([0, *data])), request(2, Operation.RESET),
                    request(3, Operation.LAST, bytes([2, 7, 8]))], blocked=range(2))
    assert answers[1:] == [bytes([2, Operation.RESET, 0]), bytes([3, Operation.LAST, 2, 8, 9])]


def test_words_are_written_and_read():
    words = [0x01020304, 0xFFEEDDCC]
    write = bytes([2, 0, 0]) + b"".join(word.to_bytes(4, "little") for word in words)
    answers = talk([request(1, Operation.WRITE, write), request(2, Operation.READ, bytes([1, 0, 0, 4]))])
    assert answers[0] == bytes([1, Operation.WRITE, 0])
    assert [int.from_bytes(answers[1][3 + 4 * n:7 + 4 * n], "little") for n in range(4)] == [1, *words, 4]


def test_an_unknown_operation_is_refused():
    assert talk([request(1, 77)]) == [bytes([1, 77, UNKNOWN])]


def test_after_noise_the_next_whole_frame_is_answered():
    rng, once = random.Random(5), request(1, Operation.LAST, bytes([2, 10, 20]))
    broken = [bytes(once[:at] + once[at + 1:]) for at in range(len(once))]  # a byte is lost
    broken += [bytes(once[:at] + bytes([once[at] ^ 1 << rng.randrange(8)]) + once[at + 1:]) for at in range(len(once))]
    noise = b"".join(broken) + rng.randbytes(300) + b"\x7e"
    answers = talk([noise, request(2, Operation.HELLO)], cycles=200)
    assert Hello.parse(answers[-1][3:]).errors > len(once), "they are counted"
    assert all(answer == bytes([1, Operation.LAST, 2, 11, 21]) for answer in answers[:-1]), "what is whole is the same"
