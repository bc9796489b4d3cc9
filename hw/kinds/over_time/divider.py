"""The division of a block of sums by the number of their steps: a bit of all quotients in each cycle."""
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import saturate
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block
from circulant.sim.kinds.over_time import COUNT_BITS, OverTime

__all__ = ["Divider", "quotient_bits", "sums"]


def sums(layer: OverTime, k: int) -> data.StructLayout:
    """The payload for a mean: k sums of values plus half their range, which are never negative, their steps, and
    whether the block is the last of its vector."""
    return data.StructLayout({"data": data.ArrayLayout(unsigned(layer.sum_bits), k), "steps": COUNT_BITS, "last": 1})


def quotient_bits(layer: OverTime) -> int:
    """Bits of a quotient, also of a mean that was rounded up; a block takes a cycle for each and one more."""
    return layer.input_format.width + layer.lift + 1


class Divider(wiring.Component):
    """Sums in, means out, rounded half-up as `sim.kinds.over_time.OverTime` says: long division, whose
    remainder and quotient share a register, for all values of a block side by side.

    With half the range h = 2^(width − 1) added to each value, a mean is ⌊(2 (S + n h) 2^s + n) / 2n⌋ − h 2^s.

    Parameters:
        k: values of a block.

    Members:
        i: stream of blocks of sums with the number of steps, see `sums`.
        o: stream of blocks of means, zero behind the last value of a vector.
    """

    def __init__(self, layer: OverTime, *, k: int) -> None:
        self._layer, self._k = layer, k
        super().__init__({"i": In(stream.Signature(sums(layer, k))),
                          "o": Out(stream.Signature(block(k, layer.output_format.width)))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, bits, lift = self._layer, quotient_bits(self._layer), self._layer.lift
        half = 1 << layer.input_format.width - 1 + lift
        divisor = Signal(COUNT_BITS + 1 + max(0, -lift), reset_less=True)  # 2n, brought to the point of the sums.
        last = Signal(reset_less=True)
        bits_left = Signal(range(bits + 1))
        working = Signal()
        full = Signal()
        takes = Signal()
        m.d.comb += [working.eq(bits_left != 0), takes.eq(~working & (~full | self.o.ready)), self.i.ready.eq(takes),
                     self.o.valid.eq(full & ~working), self.o.payload.last.eq(last)]
        with m.If(takes):
            m.d.sync += full.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [bits_left.eq(bits), last.eq(self.i.payload.last),
                             divisor.eq(self.i.payload.steps << 1 + max(0, -lift))]
        with m.If(working):
            m.d.sync += bits_left.eq(bits_left - 1)

        for j in range(self._k):
            # The remainder, less than the divisor, over the bits of the dividend that are left and the quotient's.
            pair = Signal(len(divisor) + bits, name=f"pair_{j}", reset_less=True)
            remainder = Signal(len(divisor) + 1, name=f"remainder_{j}")
            enough = Signal(name=f"enough_{j}")
            start = Value.cast(self.i.payload.data[j]) << 1 + max(0, lift)
            m.d.comb += [remainder.eq(pair[bits - 1:]), enough.eq(remainder >= divisor)]
            with m.If(takes):
                m.d.sync += pair.eq(start + (self.i.payload.steps << max(0, -lift)))
            with m.If(working):
                m.d.sync += pair.eq(Cat(enough, pair[:bits - 1], Mux(enough, remainder - divisor, remainder)))
            mean = saturate(Cat(pair[:bits], Const(0, 1)).as_signed() - half, layer.output_format.width)
            behind = (-(-layer.inputs // self._k) - 1) * self._k + j >= layer.inputs
            m.d.comb += self.o.payload.data[j].eq(Mux(last, 0, mean) if behind else mean)
        return m
