"""Words of a link: what goes over its pins, and the check of each."""
import math
from dataclasses import dataclass, replace

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data
from amaranth.utils import ceil_log2

from circulant.sim.chips import SLOWER
from circulant.sim.refusal import Refusal

__all__ = ["AURORA", "CHECK", "POLYNOMIAL", "UDP", "Carrier", "Channel", "LinkShape", "check_of", "intact", "seal"]

CHECK, POLYNOMIAL = 8, 0x2F
"""Bits of the check of a word, and its generator x^8 + x^5 + x^3 + x^2 + x + 1 (CRC-8/AUTOSAR): any three wrong bits of
up to 119 are seen."""

NAMED = 32
"""Bits of the hash of a network in an idle word, at the most."""

SENT, TAKEN = 8, 10
"""Cycles, besides twice the latency, from a word to its acknowledgement at its sender, and from a block to its credit
where it is taken at once."""
LEAST, CROSSING = 4, 8
"""Beats of a word over few pins at the least, and cycles from one clock to the other's."""

NUMBER = 16
"""Bits of the number of a frame."""

ENDS = 2
"""Cycles between two frames of a simulated carrier."""


def _remainder(place: int, bits: int, polynomial: int) -> int:
    """The check of a word whose bit ``place`` alone is set."""
    found = polynomial
    for _ in range(place):
        found = found << 1 ^ (polynomial | 1 << bits if found >> (bits - 1) else 0)
    return found


def check_of(value: Value, bits: int = CHECK, polynomial: int = POLYNOMIAL) -> Value:
    """The check of some bits: each is the parity of those that count for it."""
    counted = [_remainder(n, bits, polynomial) for n in range(len(value))]
    return Cat(Cat(value[n] for n, each in enumerate(counted) if each >> bit & 1).xor() for bit in range(bits))


@dataclass(frozen=True)
class Carrier:
    """A core that carries the words of a link in frames, with an AXI4-Stream port.

    Parameters:
        beat: bits of a beat at its port; a frame's last beat is its check.
        words: of a frame.
        added: bits of a frame on the wire besides its beats.
        rate: of the wire in Mb/s, without its coding.
        shared: whether all links of a chip share it.
        mhz: clock of the chips.
    """

    name: str
    beat: int
    words: int
    added: int
    rate: float
    shared: bool
    mhz: float = 100.0

    def cycles(self, beats: int, links: int = 1) -> int:
        """Cycles from frame to frame of so many beats, where so many links share it."""
        on_wire = (self.added + beats * self.beat) * self.mhz / self.rate * (links if self.shared else 1)
        return max(math.ceil(on_wire), beats + ENDS)

    def beats(self, bits: int) -> int:
        """Beats of a frame of so many bits, with that of its check."""
        return -(-bits // self.beat) + 1


UDP = Carrier("udp", 32, 4, 8 * (8 + 14 + 20 + 8 + 4 + 12), 1000.0, shared=True)
"""Gigabit Ethernet: preamble, headers of Ethernet, IPv4 and UDP, check, and the gap between two frames (IEEE 802.3)."""

AURORA = Carrier("aurora", 64, 4, 64, 10_000.0, shared=False)
"""Aurora 64B/66B over a lane of 10.3125 Gb/s: a frame ends with a block that separates it from the next one (PG074)."""


@dataclass(frozen=True)
class Channel:
    """A stream over a link.

    Parameters:
        k, width: values of a block, and bits of each.
        blocks: of a vector.
    """

    k: int
    width: int
    blocks: int


@dataclass(frozen=True)
class LinkShape:
    """One direction of a link.

    Parameters:
        bits: of a word.
        latency: cycles of a word from pins to pins at the most, with which full speed is reached.
        channels: that it carries.
        back: channels of the other direction.
        pins, beats: data pins over which a word goes with an answer, and cycles that it takes; 0 and 1 where each of
            their bits has a pin.
        carrier: of frames in place of pins, where a word takes so many cycles of its frame.
    """

    bits: int
    latency: int
    channels: tuple[Channel, ...]
    back: tuple[Channel, ...] = ()
    pins: int = 0
    beats: int = 1
    carrier: Carrier | None = None

    @classmethod
    def over(cls, bits: int, latency: int, channels: tuple[Channel, ...], back: tuple[Channel, ...], *, pins: int
             ) -> "LinkShape":
        """A link over so many data pins, in beats that are as few as its words and answers allow; 0 for one each."""
        beats = LEAST
        while pins:  # More beats are more words under way, and longer numbers.
            most = latency + 2 * beats + CROSSING
            found = cls(bits, most, channels, back, pins=pins, beats=beats)
            other = cls(bits, most, back, channels, pins=pins, beats=beats)
            frame = max(a.word.size + b.answer.size for a, b in ((found, other), (other, found)))
            if frame <= pins * beats:
                return found
            beats = -(-frame // pins)
        return cls(bits, latency, channels, back)

    def over_carrier(self, carrier: Carrier, links: int) -> "LinkShape":
        """The same link over a carrier, which so many links of a chip use, in beats as few as it allows."""
        beats = 1
        while True:  # As above. A word waits for its frame, that for the one before, and to be there as a whole.
            found = replace(self, latency=self.latency + 3 * carrier.words * beats + CROSSING, beats=beats,
                            carrier=carrier)
            frame = max(found.frame, found.reverse.frame)
            if (needed := -(-carrier.cycles(frame, links) // carrier.words)) <= beats:
                return found
            beats = needed

    def __post_init__(self) -> None:
        if self.bits < 1 or self.latency < 0:
            raise Refusal(f"A link must have one bit or more in a word, and no negative latency, not {self.bits} and "
                          f"{self.latency}; give --link BITS,LATENCY")

    @property
    def reverse(self) -> "LinkShape":
        """The other direction."""
        return replace(self, channels=self.back, back=self.channels)

    @property
    def frame(self) -> int:
        """Beats of a frame of a carrier: its number, an answer, words, and its check."""
        assert self.carrier is not None, "pins have no frames"
        return self.carrier.beats(NUMBER + self.reverse.answer.size + self.carrier.words * self.word.size)

    @property
    def exact(self) -> bool:
        """Whether a word takes a cycle, and always as long."""
        return not self.pins and self.carrier is None

    def _under_way(self, added: int) -> int:
        """Words that go until the first one is answered, so many cycles more than there and back."""
        return -(-(2 * self.latency + added) // (self.beats if self.carrier else 1)) + 2

    @property
    def window(self) -> int:
        """Words that are kept until they are acknowledged."""
        return 1 << ceil_log2(self._under_way(SENT))

    @property
    def seq_bits(self) -> int:
        """Bits of a number of a word; there are twice as many as words that are kept."""
        return ceil_log2(self.window) + 1

    @property
    def patience(self) -> int:
        """Cycles without a new acknowledgement after which words are sent again."""
        return 2 * (2 * self.latency + 16)

    @property
    def quiet(self) -> int:
        """Cycles behind a reset in which what comes is from before it, or over a carrier from an end that sees by
        silence alone that this one was reset, as its frames have the numbers of old ones."""
        return 2 * (self.patience + self.latency) if self.carrier else max(self.latency, SLOWER) + 8

    def words(self, channel: int) -> int:
        """Words of a block."""
        each = self.channels[channel]
        return -(-each.k * each.width // self.bits)

    def depth(self, channel: int) -> int:
        """Blocks of a channel that may be under way: a whole vector, and as many as full speed takes."""
        return max(self.channels[channel].blocks, -(-self._under_way(TAKEN) // self.words(channel)) + 1)

    def credit_bits(self, channel: int) -> int:
        return ceil_log2(self.depth(channel) + 1) + 1

    @property
    def word(self) -> data.StructLayout:
        """A word: idle ones say whether the other side was heard (``mark``), and for which network (``data``)."""
        return data.StructLayout({
            "valid": 1, "idle": 1, "mark": 1, "channel": max(1, ceil_log2(len(self.channels) or 1)),
            "seq": self.seq_bits, "data": self.bits, "check": CHECK})

    @property
    def answer(self) -> data.StructLayout:
        """An answer to these words: the number of the next one due, and how many blocks were taken of each channel."""
        taken = {f"taken_{n}": self.credit_bits(n) for n in range(len(self.channels))}
        return data.StructLayout({"valid": 1, "ack": self.seq_bits, **taken, "check": CHECK})

    @property
    def named(self) -> int:
        """Bits of the network's hash in an idle word."""
        return min(self.bits, NAMED)

    def delay(self, channel: int) -> int:
        """Cycles of a block from the one in which it is offered until it can be taken behind the link; over a carrier
        about, where a word waits for no more than its frame."""
        spared = 2 * self.carrier.words * self.beats - self.frame if self.carrier else 0
        return (self.words(channel) - 1) * self.beats + 6 + self.latency - spared

    def cycles(self, channel: int) -> int:
        """Cycles that a block takes."""
        return self.words(channel) * self.beats

    def slices(self, bits: Value, channel: int) -> list[Value]:
        """The words of a block's bits."""
        return [bits[n * self.bits:(n + 1) * self.bits] for n in range(self.words(channel))]


def _sealed(fields: data.View) -> Value:
    """The check of all other fields."""
    names = [name for name in fields.shape().members if name not in ("valid", "check")]
    return check_of(Cat(Value.cast(getattr(fields, name)) for name in names))


def intact(fields: data.View) -> Value:
    """Whether a word or an answer is there, and as it was sent."""
    return fields.valid & (_sealed(fields) == fields.check)


def seal(m: Module, fields: data.View) -> None:
    """Give a word or an answer its check."""
    m.d.comb += fields.check.eq(_sealed(fields))
