"""Sigmoid and tanh: one table read, one multiplication, an argument per cycle; equals `sim.arith.activation.Pwl`."""
from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import saturate
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import LEVELS, delay, steps, when
from circulant.sim.arith.activation import Pwl

__all__ = ["Activation", "activation_latency", "table_image", "table_widths"]


def table_widths(pwl: Pwl) -> tuple[int, int]:
    """Bits of a slope and of a base in the table."""
    return pwl.slope_format.width, (
        max(pwl.base_format.width, _half(pwl).bit_length() + 1) + (pwl.shift > pwl.lift))


def _half(pwl: Pwl) -> int:
    """Where a base is finer than the value, the half step of the rounding, which is added in the table."""
    return 1 << pwl.shift - pwl.lift - 1 if pwl.shift > pwl.lift else 0


def table_image(pwl: Pwl, image: str) -> Image:
    """The table, an entry for each segment: slope in the low bits, base above."""
    slope_width, base_width = table_widths(pwl)
    words = [base << slope_width | slope & (1 << slope_width) - 1
             for slope, base in zip(pwl.slope.tolist(), (pwl.base + _half(pwl)).tolist(), strict=True)]
    return Image(words, slope_width + base_width, image)


def activation_latency(levels: int = LEVELS) -> int:
    """Cycles of an `Activation`: clip, segment and table, its register, product, sum; where the levels of logic allow
    more than a step between two registers, clip and segment and table, product, sum."""
    return 5 if steps(levels) == 1 else 3


class Activation(wiring.Component):
    """A piecewise-linear function; `activation_latency` cycles from x to y, without stalls.

    Parameters:
        pwl: tables and formats.
        image: name of the table's image, see `table_image`. Copies of a unit may share it.
        config: see `Rom`.
        levels: of logic between two registers.
        width: of the argument, which is clipped; that of ``pwl.input`` where nobody says it.
        early: whether there is ``soon``.

    Members:
        x: argument, with the fraction of ``pwl.input``.
        y: value, of the format ``pwl.output``.
        soon: the same a cycle earlier, behind logic.
    """

    def __init__(self, pwl: Pwl, *, image: str, config: Config | None = None, levels: int = LEVELS, width: int = 0,
                 early: bool = False) -> None:
        self._pwl, self._late = pwl, steps(levels) == 1
        self.latency = activation_latency(levels)
        self._image, self._config, self._early = image, config, early
        value = Out(signed(pwl.output.width))
        super().__init__({"x": In(signed(width or pwl.input.width)), "y": value, **({"soon": value} if early else {})})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        pwl = self._pwl
        bits, rounded = pwl.input_bits, pwl.shift > pwl.lift
        slope_width, base_width = table_widths(pwl)
        m.submodules.table = table = Rom(**table_image(pwl, self._image)._asdict(), config=self._config)

        # The line of the segment: its entry of the table, and the place of the argument.
        late = self._late
        clipped = when(m, saturate(self.x, bits), signed(bits), kept=late, name="clipped")
        place: Value = clipped if pwl.method == "pwl" else clipped[:pwl.cell_bits] if pwl.cell_bits else Const(0, 1)
        entry = when(m, table.data, slope_width + base_width, kept=late, name="entry")
        base = Signal(signed(base_width), reset_less=True)
        product = Signal(signed(slope_width + len(place) + 1), reset_less=True)
        value = Signal(signed(pwl.output.width), reset_less=True)
        total: Value = product + (base << pwl.lift)
        if pwl.shift > 0:
            total = (total if rounded else total + Const(1 << pwl.shift - 1)) >> pwl.shift

        # Clip, look up, multiply, add: a register behind each.
        m.d.comb += [table.en.eq(1), table.addr.eq(self._segment(m, clipped)), self.y.eq(value)]
        m.d.sync += [
            product.eq(entry[:slope_width].as_signed() * delay(m, place, 2 if late else 1, name="place")),
            base.eq(entry[slope_width:].as_signed()),
            value.eq(fitted := saturate(total << max(0, -pwl.shift), pwl.output.width)),
        ]
        if self._early:
            m.d.comb += self.soon.eq(fitted)
        return m

    def _segment(self, m: Module, clipped: Value) -> Value:
        """The number of the segment of what ``clipped`` takes: comparisons in the cycle before, then their parities."""
        pwl = self._pwl
        cell = clipped[pwl.cell_bits:]
        if pwl.segments == 1 << len(cell):
            return Cat(cell[:-1], ~cell[-1])  # from two's complement to ascending order
        # Clipping changes no comparison, because every start lies within the reach.
        passed = Cat(self.x >= Const(start, signed(pwl.input_bits)) for start in pwl.start[1:].tolist())
        beyond = when(m, passed, pwl.segments - 1, kept=self._late, name="beyond")
        # Segment n has passed the first n starts: its bit b is the parity of those whose number 2**b divides.
        return Cat(beyond[(1 << b) - 1::1 << b].xor() for b in range((pwl.segments - 1).bit_length()))
