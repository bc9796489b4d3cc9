"""a · h + x, value by value: a diagonal linear recurrence, a block in each cycle; λ · h + x, pair by pair."""
from collections.abc import Sequence

import numpy as np
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import requantize
from circulant.hw.array.parts import Memory, Parts, Product
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, packed
from circulant.hw.kinds.scan import ScanControl, State, require_fixed, with_a_state
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.controls import control
from circulant.hw.stream.pipeline import PROMPT, block, connect, delay
from circulant.hw.unit import Site, unit
from circulant.sim.arith.circulant import pad
from circulant.sim.kinds.decay import Decay
from circulant.sim.kinds.spiral import Spiral

__all__ = ["LATENCY", "DecayLayer"]

LATENCY = 3
"""Cycles: state and factor, product, sum."""


class DecayLayer(wiring.Component):
    """Steps in, states out; equals `sim.kinds.decay.Decay` or `sim.kinds.spiral.Spiral`.

    Parameters:
        layer: the golden layer.
        elements: of a block, each with one multiplier or two.

    Members:
        i: stream of blocks of steps.
        o: stream of blocks of states.
    """

    def __init__(self, layer: Decay, *, elements: int) -> None:
        self._layer, self._elements = layer, elements
        self._state = State(layer, k=elements, latency=LATENCY)
        super().__init__({"i": In(stream.Signature(block(elements, layer.input_format.width))),
                          "o": Out(stream.Signature(block(elements, layer.output_format.width)))})

    @property
    def parts(self) -> Parts:
        layer, (image,) = self._layer, self.images
        return self._state.parts + Parts([Memory(1, image.width, len(image.words), writable=False)],
                                         [
            Product(self._elements * layer.terms, layer.factor.width, layer.output_format.width)])

    @property
    def images(self) -> list[Image]:
        """Factors of the values that are taken in a cycle."""
        layer, e = self._layer, self._elements
        each = [pad(a, -(-layer.inputs // e) * e // layer.terms).reshape(-1, e // layer.terms)
                for a in layer.weights]
        words = packed(np.concatenate(each, axis=1), layer.factor.width)
        return [Image(words, e * layer.factor.width, f"{layer.name}_factors")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, (after, given) = self._layer, self._layer.shifts
        m.submodules.factors = rom = Rom(**self.images[0]._asdict())
        x = delay(m, self.i.payload.data, 2, name="x")

        def times(place: int, state: Value, name: str) -> Value:
            factor = rom.data.word_select(place, layer.factor.width).as_signed()
            product = Signal((factor * state).shape(), name=name, reset_less=True)
            m.d.sync += product.eq(factor * state)
            return product

        def follow(j: int, states: Sequence[Value]) -> Value:
            total = times(j // layer.terms, states[j], f"product_{j}")
            if layer.terms == 2:
                turned = times(self._elements // 2 + j // 2, states[j ^ 1], f"turned_{j}")
                total = total + turned if j % 2 else total - turned
            return requantize((total << after) + (x[j] << given), layer.rounding, layer.output_format.width)

        beat = self._state.add(m, [wiring.flipped(self.i)], follow)
        m.d.comb += [rom.en.eq(1), rom.addr.eq(beat)]
        connect(m, self._state.queue.o, wiring.flipped(self.o))
        return m


@unit.register
def _(layer: Decay, plan: ValuesPlan, site: Site) -> DecayLayer:
    require_fixed(layer, site)
    return DecayLayer(layer, elements=plan.elements)


with_a_state(Decay, LATENCY)
with_a_state(Spiral, LATENCY, Spiral.terms)


@leaving.register
def _(layer: Decay, plan: ValuesPlan, comes: list[int], k: int) -> list[int]:
    return [cycle + LATENCY - 1 + PROMPT for cycle in comes]


@control.register
def _(layer: Decay, plan: ValuesPlan, k: int, *, wanted: int, depths: Sequence[int]) -> ScanControl:
    return ScanControl(layer, k=k, latency=LATENCY)
