"""The protocol of the link, as host and circuit both speak it.

Bytes go as frames between two `FLAG`s. `FLAG` and `ESCAPE` within a frame are sent as `ESCAPE` and the byte with the
bits of `FLIP` turned (RFC 1662, asynchronous HDLC), so that a receiver finds the next frame after any disturbance. The
last four bytes are the CRC-32 of those before, low byte first. What is not whole is dropped without an answer.

The host asks, the device answers, one frame at a time. A request begins with a number and an operation, the answer with
the same two and a status. The host repeats a request, with its number, until its answer comes. To a number that it has
answered last the device sends that answer again and does nothing, so each request is carried out once.

| operation | request | status, answer |
|---|---|---|
| HELLO | | 0, see `Hello`; carried out each time |
| TRANSFER, LAST | bytes of output to wait for, bytes of input beats | bytes that were taken, bytes of output beats |
| RESET | | 0; the circuit starts anew |
| WRITE | address (3), words of 4 bytes | 0; of the configuration port, address after address |
| READ | address (3), count | 0, so many words |

Numbers are low byte first. The last byte of LAST ends its beat and with it the sequence. An unknown operation has the
status `UNKNOWN`.
"""
import binascii
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple, Self

__all__ = ["ESCAPE", "FLAG", "FLIP", "GREETING", "HASH", "PAYLOAD", "UNKNOWN", "VERSION", "Hello", "Operation",
           "Unframer", "frame"]

FLAG, ESCAPE, FLIP = 0x7E, 0x7D, 0x20
PAYLOAD = 240
"""Bytes of input in a request, and of output in an answer, at the most."""

VERSION = 1
UNKNOWN = 0xFF
HASH = 8
"""Bytes of the network's hash that a device tells, the first ones."""

CRC = 4
LONGEST = 3 + PAYLOAD + CRC
GREETING = 1 + HASH + 13
"""Bytes of a `Hello`."""


class Operation(IntEnum):
    """Operations of a request."""

    HELLO = 0
    TRANSFER = 1
    LAST = 2
    RESET = 3
    WRITE = 4
    READ = 5


class Hello(NamedTuple):
    """Identity and counters of a device.

    Members:
        version: of the protocol.
        network: the first bytes of the network's hash.
        cycles: since it was configured, modulo 2**32.
        sequences: that have left it since then.
        errors: frames that were dropped, as their check sum was wrong.
        flags: bit 0: a sequence was too long; bit 1: one was malformed.
    """

    version: int
    network: bytes
    cycles: int
    sequences: int
    errors: int
    flags: int

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """From the answer.

        Raises:
            ValueError: when it has another size.
        """
        if len(data) != GREETING:
            raise ValueError(f"A greeting must have {GREETING} bytes, not {len(data)}")
        at = 1 + HASH
        numbers = [int.from_bytes(data[at + 4 * n:at + 4 * n + 4], "little") for n in range(3)]
        return cls(data[0], data[1:at], cycles=numbers[0], sequences=numbers[1], errors=numbers[2], flags=data[-1])


def frame(data: bytes) -> bytes:
    """The bytes of a frame around ``data``."""
    found = bytearray([FLAG])
    for byte in data + binascii.crc32(data).to_bytes(CRC, "little"):
        found += bytes([ESCAPE, byte ^ FLIP]) if byte in (FLAG, ESCAPE) else bytes([byte])
    return bytes([*found, FLAG])


class Unframer:
    """Finds whole frames in what comes, whatever else comes.

    Members:
        errors: pieces between flags that were dropped.
    """

    def __init__(self) -> None:
        self._held, self._begun, self._escaped = bytearray(), False, False
        self.errors = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The contents of the frames that end in ``data``."""
        for byte in data:
            if byte == FLAG:
                if self._begun and self._held:
                    whole = bytes(self._held)
                    right = binascii.crc32(whole[:-CRC]).to_bytes(CRC, "little") == whole[-CRC:]
                    if len(whole) > CRC and right and not self._escaped:
                        yield whole[:-CRC]
                    else:
                        self.errors += 1
                self._held.clear()
                self._begun, self._escaped = True, False
            elif byte == ESCAPE:
                self._escaped = True
            elif self._begun and len(self._held) <= LONGEST:
                self._held.append(byte ^ FLIP if self._escaped else byte)
                self._escaped = False
