"""Functions of straight lines that are level or go by powers of two, such as ReLU: comparisons, and no multiplier."""
from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import requantize, saturate
from circulant.hw.emit.target import Platform
from circulant.sim.arith.activation import Pwl

__all__ = ["StraightLines", "straight"]

FEW = 4
"""Segments at the most: each takes a comparison and a choice."""


def straight(pwl: Pwl) -> bool:
    """Whether a table needs no multiplier."""
    return pwl.method == "pwl" and pwl.segments <= FEW and all(
        slope >= 0 and slope & slope - 1 == 0 for slope in pwl.slope.tolist())


class StraightLines(wiring.Component):
    """A function whose lines are `straight`; equals `sim.arith.activation.Pwl`, ``latency`` cycles from x to y.

    Members:
        x: argument, of the format ``pwl.input``.
        y: value, of the format ``pwl.output``.
    """

    latency = 2
    """Cycles: segment, value."""

    def __init__(self, pwl: Pwl) -> None:
        self._pwl = pwl
        super().__init__({"x": In(signed(pwl.input.width)), "y": Out(signed(pwl.output.width))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        pwl = self._pwl
        argument = Signal(signed(pwl.input_bits), reset_less=True)
        m.d.sync += argument.eq(saturate(self.x, pwl.input_bits))
        found: Value = self._line(argument, 0)
        for n, start in enumerate(pwl.start.tolist()[1:], 1):
            beyond = Signal(name=f"beyond_{n}", reset_less=True)
            m.d.sync += beyond.eq(self.x >= Const(start, signed(pwl.input_bits)))
            found = Mux(beyond, self._line(argument, n), found)
        value = Signal(signed(pwl.output.width), reset_less=True)
        m.d.sync += value.eq(found)
        m.d.comb += self.y.eq(value)
        return m

    def _line(self, argument: Value, segment: int) -> Value:
        """The value on the line of a segment."""
        pwl, slope = self._pwl, int(self._pwl.slope[segment])
        base = Const(int(pwl.base[segment]) << pwl.lift)
        product: Value = argument << slope.bit_length() - 1 if slope else Const(0, signed(1))
        total = product + base.as_signed() if base.shape().signed else product + base
        return requantize(total, pwl.shift, pwl.output.width).as_signed()
