"""1/√v of positive integers, one in each cycle: the same steps as `sim.arith.rsqrt`."""
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts, Product
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom
from circulant.hw.stream.pipeline import LEVELS, delay, kept, registers, steps, when
from circulant.sim.arith.rsqrt import INDEX, LEAST, MANTISSA, MIDDLE, ROOT, START, starts

__all__ = ["InverseRoot", "root_latency"]

GROUP = 4
"""Pairs of bits of v that are looked at side by side."""

SEEK = 3
"""Steps from v to its mantissa: the highest pair of each group, the highest group, the shift."""

SQUARE = 2 * (START + 1)
"""Bits of r₀²."""


def root_latency(levels: int = LEVELS) -> int:
    """Cycles of an `InverseRoot`: the mantissa, its cell of the table, two products, a sum behind each."""
    return registers(SEEK, levels) + 5


class InverseRoot(wiring.Component):
    """r and h of `inverse_root`, `latency` cycles after v, which is at least 1.

    Parameters:
        width: bits of v, which is not negative.
        name: of its table.
        levels: of logic between two registers.

    Members:
        v: the integer.
        root: r.
        places: h.
    """

    def __init__(self, *, width: int, name: str, levels: int = LEVELS) -> None:
        self._name, self._levels = name, levels
        self.latency = root_latency(levels)
        self._places = -(-width // 2)
        super().__init__({"v": In(width), "root": Out(ROOT + 2), "places": Out(range(self._places + 1))})

    @property
    def parts(self) -> Parts:
        (image,) = self.images
        return Parts([Memory(1, image.width, len(image.words), writable=False)],
                     [Product(1, MANTISSA + 1, SQUARE + 1), Product(1, START + 2, MIDDLE + 3)])

    @property
    def images(self) -> list[Image]:
        """r₀, and behind it its square."""
        words = [int(each) | int(each) ** 2 << START + 1 for each in starts()]
        return [Image(words, START + 1 + SQUARE, self._name)]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()

        # The highest pair of bits that is not zero, in each group of them and of all; from there on the mantissa.
        keeps = [(SEEK - step) % steps(self._levels) == 0 for step in range(1, SEEK + 1)]
        groups = -(-self._places // GROUP)
        inner, some = [], []
        for n in range(groups):
            pairs = [self.v[2 * at:2 * at + 2].any() for at in range(n * GROUP, min((n + 1) * GROUP, self._places))]
            highest: Value = Const(0, range(GROUP))
            for at, pair in enumerate(pairs):
                highest = Mux(pair, at, highest)
            inner.append(when(m, highest, range(GROUP), kept=keeps[0], name=f"inner_{n}"))
            some.append(when(m, Cat(pairs).any(), 1, kept=keeps[0], name=f"some_{n}"))
        group, place = Const(0, range(groups)), inner[0]
        for n in range(1, groups):
            group, place = Mux(some[n], n, group), Mux(some[n], inner[n], place)
        group = when(m, group, range(max(2, groups)), kept=keeps[1], name="group")
        place = when(m, place, range(GROUP), kept=keeps[1], name="place")
        v = delay(m, self.v, sum(keeps[:2]), name="v")
        coarse = Signal(MANTISSA + 2 * GROUP)
        mantissa = Signal(MANTISSA, reset_less=True)
        with m.Switch(group):
            for n in range(groups):
                with m.Case(n):
                    m.d.comb += coarse.eq((v << MANTISSA) >> 2 * GROUP * n)
        with m.Switch(place):
            for n in range(GROUP):
                with m.Case(n):
                    m.d.sync += mantissa.eq(coarse >> 2 * n + 2)

        # Its cell of the table.
        m.submodules.starts = rom = Rom(**self.images[0]._asdict())
        m.d.comb += [rom.en.eq(1), rom.addr.eq(mantissa[MANTISSA - INDEX:] - LEAST)]
        start, square = rom.data[:START + 1], rom.data[START + 1:]

        # 3 − m r₀², and half of its product with r₀.
        scaled = kept(m, delay(m, mantissa, 1, name="mantissa_late") * square, "scaled")
        cut = MANTISSA + 2 * START - MIDDLE
        difference = Const((3 << MANTISSA + 2 * START) + (1 << cut - 1)) - scaled
        middle = kept(m, difference[cut:cut + MIDDLE + 2], "middle")
        product = kept(m, delay(m, start, 2, name="start_late") * middle, "product")
        m.d.sync += self.root.eq((product + (1 << START + MIDDLE - ROOT)) >> START + MIDDLE + 1 - ROOT)
        m.d.comb += self.places.eq(delay(m, Cat(place, group) + 1, self.latency - sum(keeps[:2]), name="places"))
        return m
