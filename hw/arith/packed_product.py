"""Two products that share a factor, in one multiplier with a wide port.

    (w₁ · 2ˢ + w₂) · x + 2ˢ⁻¹  =  w₁ · x · 2ˢ  +  (w₂ · x + 2ˢ⁻¹)

Where -2ˢ⁻¹ ≤ w₂ · x < 2ˢ⁻¹, what is in brackets has no sign and fits s bits. So the upper bits are w₁ · x as it is, and
the lower s bits are w₂ · x but for the highest one, which is inverted. Fu et al., "Deep Learning with INT8 Optimization
on Xilinx Devices" (WP486, 2016), add the sign of the lower product to the upper one instead; the constant here takes no
logic where a tool leaves it to the adder behind the multiplier of a DSP block.
"""
from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.bounded import Span
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import update

__all__ = ["PackedForm", "PackedProduct", "packed_word", "packing"]


@dataclass(frozen=True)
class PackedForm:
    """Widths of two products with a common factor.

    Parameters:
        data: bits of the common factor.
        word: bits of w₁ · 2ˢ + w₂.
        shift: s, and the bits of each product.
    """

    data: int
    word: int
    shift: int

    def fits(self, ports: tuple[int, int]) -> bool:
        """Whether both factors fit the ports of a DSP block."""
        small, large = sorted((self.word, self.data))
        return small <= min(ports) and large <= max(ports)


def packing(data: Span, factors: Span, ports: tuple[int, int], *, shift: int = 0) -> PackedForm | None:
    """The widths with which a DSP block makes the products of two factors of a span with one of ``data``; None where
    they do not fit its ports.

    Parameters:
        ports: bits of the factors of a DSP block, signed.
        shift: bits of a product at the least.
    """
    shift = max(shift, data.times(factors).width)
    word = Span((factors.low << shift) + factors.low, (factors.high << shift) + factors.high).width
    form = PackedForm(data.width, word, shift)
    return form if form.fits(ports) else None


def packed_word(first: Value, second: Value, form: PackedForm) -> Value:
    """``first`` · 2ˢ + ``second``, of signed numbers: a sum of the upper bits and the sign of the lower ones."""
    low = Cat(second, second[-1].replicate(form.shift))[:form.shift]
    return Cat(low, (first + second[-1:].as_signed())[:form.word - form.shift]).as_signed()


class PackedProduct(wiring.Component):
    """``first`` and ``second`` of a word times x, a cycle later.

    Parameters:
        gated: registers hold what nobody waits for.

    Members:
        x: the factor that both products have in common.
        word: the other two factors, see `packed_word`.
        first, second: the products of x with the low and with the high factor of the word.
        live: where registers are gated: x and word count in this cycle.
    """

    def __init__(self, form: PackedForm, *, gated: bool = False) -> None:
        self._form, self._gated = form, gated
        super().__init__({
            "x": In(signed(form.data)), "word": In(signed(form.word)),
            "first": Out(signed(form.shift)), "second": Out(signed(form.shift)),
            **({"live": In(1)} if gated else {})})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        s = self._form.shift
        both = Signal(signed(2 * s), reset_less=True)
        update(m, both.eq(self.word * self.x + (1 << (s - 1))), self.live if self._gated else None)
        m.d.comb += [self.first.eq(both[s:].as_signed()), self.second.eq(Cat(both[:s - 1], ~both[s - 1]).as_signed())]
        return m
