"""1/√v of positive integers, one in each cycle: the same steps as `sim.arith.rsqrt`."""
from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import round_shift
from circulant.hw.array.parts import Memory, Parts, Product
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom
from circulant.hw.stream.pipeline import delay
from circulant.sim.arith.rsqrt import INDEX, LEAST, MANTISSA, MIDDLE, ROOT, START, starts

__all__ = ["InverseRoot"]

SQUARE = 2 * (START + 1)
"""Bits of r₀²."""


class InverseRoot(wiring.Component):
    """r and h of `inverse_root`, `latency` cycles after v, which is at least 1.

    Parameters:
        width: bits of v, which is not negative.
        name: of its table.

    Members:
        v: the integer.
        root: r.
        places: h.
    """

    latency = 7
    """Cycles: places, mantissa, table, and two products, each rounded a cycle later."""

    def __init__(self, *, width: int, name: str) -> None:
        self._width, self._name = width, name
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

        def kept(value: Value, name: str) -> Signal:
            signal = Signal(Shape.cast(value.shape()), name=name, reset_less=True)
            m.d.sync += signal.eq(value)
            return signal

        # The highest pair of bits that is not zero, and from there on the mantissa.
        highest: Value = Const(1, range(self._places + 1))
        for place in range(2, self._places + 1):
            highest = Mux(self.v[2 * place - 2:2 * place].any(), place, highest)
        places = kept(highest, "highest")
        v = kept(self.v, "v_1")
        mantissa = Signal(MANTISSA, reset_less=True)
        with m.Switch(places):
            for place in range(1, self._places + 1):
                with m.Case(place):
                    m.d.sync += mantissa.eq((v << MANTISSA) >> 2 * place)

        # Its cell of the table.
        m.submodules.starts = rom = Rom(**self.images[0]._asdict())
        m.d.comb += [rom.en.eq(1), rom.addr.eq(mantissa[MANTISSA - INDEX:] - LEAST)]
        start, square = rom.data[:START + 1], rom.data[START + 1:]

        # 3 − m r₀², and half of its product with r₀.
        scaled = kept(delay(m, mantissa, 1, name="mantissa_late") * square, "scaled")
        middle = kept(round_shift((Const(3 << MANTISSA + 2 * START) - scaled).as_signed(),
                                  MANTISSA + 2 * START - MIDDLE)[:MIDDLE + 2], "middle")
        product = kept(delay(m, start, 2, name="start_late") * middle, "product")
        m.d.sync += self.root.eq((product + (1 << START + MIDDLE - ROOT)) >> START + MIDDLE + 1 - ROOT)
        m.d.comb += [self.places.eq(delay(m, places, self.latency - 1, name="places"))]
        return m
