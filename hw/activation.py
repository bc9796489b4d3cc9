"""Sigmoid and tanh: one table read, one multiplication, an argument per cycle; equals `sim.activation.Pwl`."""
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.config import Config
from circulant.hw.fixed import round_shift, saturate
from circulant.hw.pipeline import delay
from circulant.hw.target import Rom
from circulant.sim.activation import Pwl

__all__ = ["Activation"]


class Activation(wiring.Component):
    """A piecewise-linear function; ``latency`` cycles from x to y, without stalls.

    Parameters:
        pwl: tables and formats.
        image: name of the table's image: slope in the low bits, base above. Copies of a unit may share it.
        config: see `Rom`.

    Members:
        x: argument, of the format ``pwl.input``.
        y: value, of the format ``pwl.output``.
    """

    latency = 5
    """Cycles: clip, table, its register, product, sum."""

    def __init__(self, pwl: Pwl, *, image: str, config: Config | None = None) -> None:
        self._pwl = pwl
        self._image, self._config = image, config
        super().__init__({"x": In(signed(pwl.input.width)), "y": Out(signed(pwl.output.width))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pwl = self._pwl
        slope_width, base_width = pwl.slope_format.width, pwl.output.width
        words = [(base << slope_width) | (slope & ((1 << slope_width) - 1))
                 for slope, base in zip(pwl.slope.tolist(), pwl.base.tolist(), strict=True)]
        m.submodules.table = table = Rom(words=words, width=slope_width + base_width, image=self._image,
                                           config=self._config)

        clipped = Signal(signed(pwl.input_bits), reset_less=True)
        entry = Signal(slope_width + base_width, reset_less=True)
        base = Signal(signed(base_width), reset_less=True)
        product = Signal(signed(slope_width + pwl.place_bits + 1), reset_less=True)
        value = Signal(signed(base_width), reset_less=True)
        segment: Value = clipped[pwl.place_bits:]
        m.d.comb += [
            table.en.eq(1),
            table.addr.eq(Cat(segment[:-1], ~segment[-1])),  # from two's complement to ascending order
        ]
        m.d.comb += self.y.eq(value)
        m.d.sync += [
            clipped.eq(saturate(self.x, pwl.input_bits)),
            entry.eq(table.data),
            product.eq(entry[:slope_width].as_signed() * delay(m, clipped[:pwl.place_bits], 2, name="place")),
            base.eq(entry[slope_width:].as_signed()),
            value.eq(saturate(base + round_shift(product, pwl.shift), base_width)),
        ]
        return m
