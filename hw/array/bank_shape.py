"""The vectors that wait at an array: how many there are, how long they are, and where they lie in the banks."""
from dataclasses import dataclass

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from circulant.hw.arith.fft import forward_latency
from circulant.hw.stream.pipeline import LEVELS, steps
from circulant.sim.arith.circulant import Product

__all__ = ["BankShape", "forwards", "write_latency"]


def write_latency(k: int, levels: int = LEVELS) -> int:
    """Cycles from a block to where it can be read: its transform, the bank unless that forwards it."""
    return forward_latency(k, levels) + 1 - forwards(k, levels)


def forwards(k: int, levels: int) -> bool:
    """Whether a block that nothing holds up, as a layer's own, can be read in the cycle in which it is written: where
    the levels of logic allow two steps between two registers, and it is known a cycle before that it comes."""
    return steps(levels) > 1 and forward_latency(k, levels) > 1


@dataclass(frozen=True, eq=False)
class BankShape:
    """Sizes and places.

    Parameters:
        columns: C.
        x, h, second: a product with the input, the recurrent and the second vector; it says the formats.
        streams: sequences that are interleaved.
        aside: blocks of the input that come side by side; it divides the columns, and the input is all that there is.
            The last ones of a vector may be more than it has.
        own: blocks of the layer itself that come side by side; they divide the columns, and its vectors and where these
            begin.
        levels: of logic between two registers.
        single: whether each vector is a sequence of its own, so that no mark of an end is looked at.
        start: column with which the recurrent vector begins, where it does not follow the input at once.
        counts: vectors whose blocks count one by one, the recurrent and the second one, and the input, see
            ``waits`` of `circulant.hw.array.program.Program`.
    """

    columns: int
    x: Product
    h: Product | None = None
    second: Product | None = None
    streams: int = 1
    aside: int = 1
    own: int = 1
    levels: int = LEVELS
    single: bool = False
    start: int = 0
    counts: int = 2

    def __post_init__(self) -> None:
        if self.aside > 1 and (self.h is not None or self.columns % self.aside):
            raise ValueError("Blocks side by side must divide the columns, without a recurrent vector, not "
                             f"{self.aside} of {self.columns}")
        if any(each % self.own for each in (self.columns, self.head, self.h_blocks, self.second_blocks)):
            raise ValueError(f"Own blocks side by side must divide columns, vectors and their places, not {self!r}")

    @property
    def k(self) -> int:
        return self.x.block_size

    @property
    def width(self) -> int:
        """Bits of a number of a spectrum."""
        return max(product.spectrum.width for product in (self.x, self.h, self.second) if product is not None)

    @property
    def foreknown(self) -> bool:
        """Whether a block of the input counts before it is written, and is read in that cycle: nothing holds it up in a
        layer without a state."""
        return self.h is None and forwards(self.k, self.levels)

    @property
    def x_blocks(self) -> int:
        return _blocks(self.x)

    @property
    def beats(self) -> int:
        """Beats of an input."""
        return -(-self.x_blocks // self.aside)

    @property
    def head(self) -> int:
        """Columns before the recurrent vector."""
        return max(self.start, self.x_blocks)

    @property
    def h_blocks(self) -> int:
        return _blocks(self.h)

    @property
    def second_blocks(self) -> int:
        return _blocks(self.second)

    @property
    def ring(self) -> int:
        return 3 if self.h is None else 2 * self.streams

    @property
    def bases(self) -> list[int]:
        """First address of each vector of the ring."""
        return [n * self._groups for n in range(self.ring)]

    @property
    def second_bases(self) -> list[int]:
        groups = -(-self.second_blocks // self.columns)
        return [self.ring * self._groups + n * groups for n in range(2)]

    @property
    def depth(self) -> int:
        return self.second_bases[1] + self.second_bases[1] - self.second_bases[0]

    @property
    def most(self) -> int:
        """A bound of the blocks that are counted, which have come and are not read to the end."""
        own = 2 * max(self.streams * self.h_blocks, self.second_blocks) + 2 * self.own
        return max(own, self.ring * self.beats * self.aside) if self.counts > 2 else own

    @property
    def waiting(self) -> wiring.Signature:
        """Interface from `circulant.hw.array.banks.Banks` to those who ask what waits; for its members see there."""
        return wiring.Signature({"inputs": Out(range(self.ring + 1)), "last": Out(self.ring)})

    @property
    def _groups(self) -> int:
        return -(-(self.head + self.h_blocks) // self.columns)


def _blocks(product: Product | None) -> int:
    return 0 if product is None else product.columns // product.block_size
