"""FFT and inverse FFT of real blocks: the butterflies of `sim.arith.fft`, a block per cycle."""
from collections.abc import Iterable
from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from circulant.hw.arith.bounded import Bounded, hull
from circulant.hw.arith.fixed import halves
from circulant.hw.emit.target import Platform, gates_clocks
from circulant.hw.stream.pipeline import LEVELS, Registers, registers, steps
from circulant.sim.arith import fft

__all__ = ["FftShape", "ForwardFft", "InverseFft", "fft_latency", "forward_latency", "spare_steps", "transform_steps"]


def transform_steps(k: int) -> int:
    """Steps of a transform: its butterflies, and three more for the twiddle products of each of them from n = 8 on."""
    butterflies = exact_log2(k)
    return butterflies + 3 * max(0, butterflies - 2)


def fft_latency(k: int, levels: int = LEVELS, more: int = 0) -> int:
    """Cycles of an `InverseFft`, for so many levels of logic between two registers; ``more``: see there."""
    return registers(transform_steps(k), levels, more)


def forward_latency(k: int, levels: int = LEVELS) -> int:
    """Cycles of a `ForwardFft`: the same with a step for the rounding."""
    return registers(transform_steps(k) + 1, levels)


def spare_steps(k: int, levels: int) -> int:
    """Steps that may come before those of a `ForwardFft` without a register between them."""
    return forward_latency(k, levels) * steps(levels) - transform_steps(k) - 1


@dataclass(frozen=True)
class FftShape:
    """Sizes that both transforms of a block have in common.

    Parameters:
        k: block size.
        width: of a number that goes in.
        twiddle_bits: fraction bits of the twiddle factors.
        levels: of logic between two registers.
    """

    k: int
    width: int
    twiddle_bits: int
    levels: int = LEVELS

    def __post_init__(self) -> None:
        fft.check_block_size(self.k)

    @property
    def inverse_width(self) -> int:
        """Bits of a number that comes out of the inverse transform; a complex bin reaches √2 times its parts."""
        return self.width + exact_log2(self.k) + (self.k > 4)

    @property
    def words(self) -> data.ArrayLayout:
        return data.ArrayLayout(signed(self.width), self.k)


class ForwardFft(wiring.Component):
    """Spectra of real blocks, rounded by ``shift`` bits, saturated to ``spectrum_width``: `sim.arith.fft.forward`.

    A block per cycle, ``latency`` cycles later. Twiddle products are shifts and additions.

    Parameters:
        shape: block size, width of a value, twiddle bits.
        shift: bits by which the exact spectrum is rounded.
        spectrum_width: of a number of the spectrum.
        other_shift, other_width: the same for blocks with ``other``; without a width there are none.

    Members:
        i: stream of blocks of k values.
        other: the block that comes is rounded as the second kind of product asks for.
        o: stream of spectra, k numbers in the order of `sim.arith.fft`.
    """

    def __init__(self, shape: FftShape, *, shift: int, spectrum_width: int, other_shift: int = 0,
                 other_width: int = 0) -> None:
        self._shape = shape
        self._rounding, self._other = (shift, spectrum_width), (other_shift, other_width)
        width = max(spectrum_width, other_width)
        super().__init__({
            "i": In(stream.Signature(shape.words)),
            **({"other": In(1)} if other_width else {}),
            "o": Out(stream.Signature(data.ArrayLayout(signed(width), shape.k))),
        })

    @property
    def latency(self) -> int:
        """Cycles from an accepted input to its output, without stalls, see `forward_latency`."""
        return forward_latency(self._shape.k, self._shape.levels)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        count = transform_steps(self._shape.k)
        registers = Registers(m, valid=self.i.valid, ready=self.o.ready, count=count + 1, levels=self._shape.levels,
                              gated=gates_clocks(platform))

        def transform(x: list[Bounded]) -> list[Bounded]:
            n = len(x)
            if n == 1:
                return x
            if n == 2:
                return _stage(registers, [x[0] + x[1], x[0] - x[1]], 1)
            even, odd = transform(x[0::2]), transform(x[1::2])
            if n >= 8:
                at = transform_steps(n // 2)
                even = _waiting(registers, even, at)
                odd = _turned(registers, odd, at, n=n, twiddle_bits=self._shape.twiddle_bits, sign=-1)
            y = [even[0] + odd[0], even[0] - odd[0]] + [even[0]] * (n - 2)
            middle = n // 4
            y[2 * middle], y[2 * middle + 1] = even[1], -odd[1]
            for j in range(1, middle):
                mirror = n // 2 - j
                y[2 * j], y[2 * j + 1] = even[2 * j] + odd[2 * j], even[2 * j + 1] + odd[2 * j + 1]
                y[2 * mirror], y[2 * mirror + 1] = even[2 * j] - odd[2 * j], odd[2 * j + 1] - even[2 * j + 1]
            return _stage(registers, y, transform_steps(n))

        # The butterflies, then the spectrum rounded to its format, or to the other one.
        spectrum = transform([Bounded.of(self.i.payload[j]) for j in range(self._shape.k)])
        (shift, width), (other_shift, other_width) = self._rounding, self._other
        if other_width and self._other != self._rounding:
            other: Value = self.other
            for at in range(1, count + 1):
                (other,) = registers.stage([other], at)
            # Shifted to a common point, both are rounded and clipped alike, unless their widths differ.
            most = max(shift, other_shift, 0)
            given = [_either(other, x << most - other_shift, x << most - shift).rounded(most) for x in spectrum]
            results = [x.clipped(width).value for x in given]
            if other_width != width:
                results = [Mux(other, x.clipped(other_width).value, result)
                           for x, result in zip(given, results, strict=True)]
        else:
            results = [x.rounded(shift).clipped(width).value for x in spectrum]

        # The last register, and the stream.
        rounded = registers.stage(results, count + 1)
        m.d.comb += [self.o.payload[j].eq(x) for j, x in enumerate(rounded)]
        m.d.comb += [self.o.valid.eq(registers.close()), self.i.ready.eq(registers.move)]
        return m


class InverseFft(wiring.Component):
    """Real blocks of spectra, times k and without rounding at the end; equals `sim.arith.fft.inverse`.

    A block per cycle, ``latency`` cycles later.

    Parameters:
        shape: block size, width of a number of the spectrum, twiddle bits.
        more: steps that follow, see `circulant.hw.stream.pipeline.Registers`.

    Members:
        i: stream of spectra, k numbers in the order of `sim.arith.fft`.
        o: stream of blocks of k values of ``shape.inverse_width`` bits.
    """

    def __init__(self, shape: FftShape, *, more: int = 0) -> None:
        self._shape, self._more = shape, more
        super().__init__({
            "i": In(stream.Signature(shape.words)),
            "o": Out(stream.Signature(data.ArrayLayout(signed(shape.inverse_width), shape.k))),
        })

    @property
    def latency(self) -> int:
        """Cycles from an accepted input to its output, without stalls."""
        return fft_latency(self._shape.k, self._shape.levels, self._more)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        registers = Registers(m, valid=self.i.valid, ready=self.o.ready, count=transform_steps(self._shape.k),
                              levels=self._shape.levels, gated=gates_clocks(platform), more=self._more)

        def transform(y: list[Bounded], at: int) -> list[Bounded]:
            n = len(y)
            if n == 1:
                return y
            if n == 2:
                return _stage(registers, [y[0] + y[1], y[0] - y[1]], at + 1)
            middle = n // 4
            even = [y[0] + y[1], y[2 * middle] << 1] + [y[0]] * (n // 2 - 2)
            odd = [y[0] - y[1], -(y[2 * middle + 1] << 1)] + [y[0]] * (n // 2 - 2)
            for j in range(1, middle):
                mirror = n // 2 - j
                even[2 * j], even[2 * j + 1] = y[2 * j] + y[2 * mirror], y[2 * j + 1] - y[2 * mirror + 1]
                odd[2 * j], odd[2 * j + 1] = y[2 * j] - y[2 * mirror], y[2 * j + 1] + y[2 * mirror + 1]
            at += 1
            even, odd = _stage(registers, even, at), _stage(registers, odd, at)
            if n >= 8:
                even = _waiting(registers, even, at)
                odd = _turned(registers, odd, at, n=n, twiddle_bits=self._shape.twiddle_bits, sign=1)
                at += 3
            x = [y[0]] * n
            x[0::2], x[1::2] = transform(even, at), transform(odd, at)
            return x

        block = transform([Bounded.of(self.i.payload[j]) for j in range(self._shape.k)], 0)
        m.d.comb += [self.o.payload[j].eq(x.value) for j, x in enumerate(block)]
        m.d.comb += [self.o.valid.eq(registers.close()), self.i.ready.eq(registers.move)]
        return m


def _stage(registers: Registers, numbers: Iterable[Bounded], at: int) -> list[Bounded]:
    """The numbers behind a step, see `Registers.stage`."""
    given = list(numbers)
    kept = registers.stage((each.significant for each in given), at)
    return [each.kept(value) for value, each in zip(kept, given, strict=True)]


def _either(condition: Value, yes: Bounded, no: Bounded) -> Bounded:
    return Bounded(Mux(condition, yes.value, no.value), hull([yes.span, no.span]), min(yes.zeros, no.zeros))


def _waiting(registers: Registers, numbers: list[Bounded], at: int) -> list[Bounded]:
    """The numbers behind the three steps that others take from step ``at`` on."""
    for step in range(at + 1, at + 4):
        numbers = _stage(registers, numbers, step)
    return numbers


def _turned(registers: Registers, odd: list[Bounded], at: int, *, n: int, twiddle_bits: int, sign: int
            ) -> list[Bounded]:
    """The complex bins m of a half spectrum times exp(sign · 2πi m/n), rounded; the two real bins as they are.

    Three steps behind step ``at``, none of which adds up more than half the digits of a factor: where both its parts
    are equal a sum and the two halves of its product, else the halves of four products and the sums of each half; then
    all of it.
    """
    turned = _stage(registers, _stage(registers, odd[:2], at + 1), at + 2)
    for j in range(1, n // 4):
        c, s = fft.twiddle(j, n, twiddle_bits)
        re, im = odd[2 * j], odd[2 * j + 1]
        # The span of both halves together is that of the whole product.
        if c == s:
            sums = _stage(registers, (re - im, re + im) if sign > 0 else (re + im, im - re), at + 1)
            spans = [x.times(c).span for x in sums]
            parts = [_stage(registers, (x.times(half) for half in halves(c)), at + 2) for x in sums]
        else:
            spans = [(re.times(c) - im.times(sign * s)).span, (im.times(c) + re.times(sign * s)).span]
            re_c, im_s, im_c, re_s = (_stage(registers, (x.times(half) for half in halves(factor)), at + 1)
                                      for x, factor in ((re, c), (im, s), (im, c), (re, s)))
            parts = [_stage(registers, (x - y if sign > 0 else x + y for x, y in zip(re_c, im_s, strict=True)), at + 2),
                     _stage(registers, (x + y if sign > 0 else x - y for x, y in zip(im_c, re_s, strict=True)), at + 2)]
        turned += [Bounded((low + high).number, span).rounded(twiddle_bits)
                   for (low, high), span in zip(parts, spans, strict=True)]
    return _stage(registers, turned, at + 3)
