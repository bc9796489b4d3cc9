"""Decoders behind memories whose words have check bits: what is taken for a word, and whether bits were wrong."""
from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform, Rom, instances
from circulant.hw.stream.pipeline import delay
from circulant.sim.arith.codes import Code

__all__ = ["FAULTS", "Decoder", "Watch", "faults_of", "tell", "watched", "watches"]

FAULTS = 2
"""Bits of what a unit says of its memories in a cycle: a wrong word was corrected; one was seen and stays."""


class Decoder(wiring.Component):
    """Equals `Code.decode`, within the cycle.

    Parameters:
        width, protection: of the code.

    Members:
        i: word with its check bits, as it was read.
        o: what is taken for the word.
        corrected: a wrong bit was put right, be it a check bit.
        uncorrected: wrong bits were seen, and ``o`` is as it was read.
        right: of "scrub", the word with its check bits, a wrong bit put right.
    """

    def __init__(self, width: int, protection: str) -> None:
        self._code = Code(width, protection)
        super().__init__({"i": In(self._code.bits), "o": Out(width), "corrected": Out(1), "uncorrected": Out(1),
                          **({"right": Out(self._code.bits)} if protection == "scrub" else {})})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        code, at = self._code, 0
        corrected, uncorrected = [], []
        for n, (its, checks, columns) in enumerate(code.parts):
            syndrome = Signal(len(checks), name=f"syndrome_{n}")
            rows, at = code.rows[at:at + len(checks)], at + len(checks)
            m.d.comb += syndrome.eq(Cat(Cat(self.i[bit] for bit in row).xor() for row in rows))
            if code.kind == "parity":
                m.d.comb += self.o[its.start:its.stop].eq(self.i[its.start:its.stop])
                uncorrected.append(syndrome.any())
                continue
            wrong = Signal(len(columns), name=f"wrong_{n}")
            m.d.comb += [wrong.eq(Cat(syndrome == column for column in columns)),
                         self.o[its.start:its.stop].eq(self.i[its.start:its.stop] ^ wrong[:len(its)])]
            if code.kind == "scrub":
                m.d.comb += [self.right[its.start:its.stop].eq(self.o[its.start:its.stop]),
                             self.right[checks.start:checks.stop].eq(
                                 self.i[checks.start:checks.stop] ^ wrong[len(its):])]
            corrected.append(wrong.any())
            uncorrected.append(syndrome.any() & ~wrong.any())
        m.d.comb += [self.corrected.eq(Cat(corrected).any() if corrected else Const(0)),
                     self.uncorrected.eq(Cat(uncorrected).any())]
        return m


def watched(protection: str) -> dict[str, wiring.Member]:
    """The member ``faults`` of a unit with protected memories, see `FAULTS`; none without protection."""
    return {} if protection == "none" else {"faults": Out(FAULTS)}


def faults_of(parts: Iterable[Any]) -> list[Value]:
    """The ``faults`` of those parts that have them."""
    return [part.faults for part in parts if "faults" in part.signature.members]


def watches(parts: Iterable[Any]) -> dict[str, wiring.Member]:
    """The member ``faults`` of a unit that has parts with one."""
    return {"faults": Out(FAULTS)} if any("faults" in part.signature.members for part in parts) else {}


def tell(m: Module, unit: wiring.PureInterface, *parts: Any, own: Sequence[Value] = ()) -> None:
    """Have a unit with ``faults`` say what its parts say, those that have any, a cycle later.

    Parameters:
        own: what is seen of its own memories.
    """
    if "faults" in unit.signature.members:
        seen = [*own, *faults_of(parts)]
        m.d.sync += unit.faults.eq(Cat(Cat(each[n] for each in seen).any() for n in range(FAULTS)))


class Watch:
    """The protected memories of a unit, and what it says of them some cycles later; without protection nothing.

    Parameters:
        protection: one of `circulant.sim.arith.codes.PROTECTIONS`.
    """

    def __init__(self, m: Module, platform: Platform, protection: str) -> None:
        self._m, self._platform, self._kind = m, platform, protection
        self._seen: list[Value] = []
        self.active, self.scrubs = protection != "none", protection == "scrub"

    def read(self, rom: Rom, width: int, *, when: Value, name: str) -> Value:
        """The word that is taken for the one that a memory gives; with "scrub" it is written back if a bit was wrong.

        Parameters:
            width: of the word without its check bits.
            when: whether the word counts in this cycle: a memory that nobody reads may give anything.
        """
        if not self.active:
            return rom.data
        (decoder,) = instances(self._m, self._platform, f"{name}_decoder", Decoder, 1, width=width,
                               protection=self._kind)
        self._m.d.comb += decoder.i.eq(rom.data)
        if rom.scrubbed:
            self._m.d.comb += [rom.counts.eq(when), rom.wrong.eq(decoder.corrected), rom.right.eq(decoder.right)]
        seen = Signal(FAULTS, name=f"{name}_faults")
        self._m.d.sync += seen.eq(Cat(decoder.corrected & when, decoder.uncorrected & when))
        self._seen.append(seen)
        return decoder.o

    def later(self, value: Value, cycles: int, *, name: str) -> Value:
        """For the ``when`` of a word: a value some cycles later."""
        return Const(0) if not self.active else delay(self._m, value, cycles, name=name, reset_less=False)

    def tell(self, unit: wiring.PureInterface, *parts: Any) -> None:
        """Have the unit say what was seen, and what its parts say."""
        tell(self._m, unit, *parts, own=self._seen)
