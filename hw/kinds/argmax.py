"""The class that a network names, as a unit at its end: a tree over a block of outputs, and the best block so far."""
from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.target import Platform
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.controls import Swallows, control
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import block
from circulant.hw.unit import Site, WithoutImages, loadable, unit
from circulant.sim.kinds.argmax import Argmax

__all__ = ["ArgmaxLayer", "argmax_latency"]


def argmax_latency(k: int) -> int:
    """Cycles from the last block of a vector, of k values, to its place: the levels of the tree, the best so far."""
    return ceil_log2(k) + 1


class ArgmaxLayer(WithoutImages, wiring.Component):
    """Vectors in, places of their largest value out; equals `sim.kinds.argmax.Argmax`. Takes a block in each
    cycle.

    Parameters:
        layer: the golden layer.
        k: values of a block that comes.

    Members:
        i: stream of blocks of k values; what lies behind the last value is not looked at.
        o: stream of places, one a vector, marked as the last block of the vector is.
        busy: a vector is under way.
    """

    def __init__(self, layer: Argmax, *, k: int) -> None:
        self._layer, self._k = layer, k
        self._levels = ceil_log2(k)
        super().__init__({"i": In(stream.Signature(block(k, layer.input_format.width))),
                          "o": Out(stream.Signature(block(1, layer.output_format.width))), "busy": Out(1)})

    @property
    def latency(self) -> int:
        """Cycles from the last block of a vector to its place, see `argmax_latency`."""
        return argmax_latency(self._k)

    @property
    def parts(self) -> Parts:
        return Parts()

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, k, width = self._layer, self._k, self._layer.input_format.width
        beats = -(-layer.inputs // k)
        left = layer.inputs - (beats - 1) * k

        # Everything moves together, unless a place waits to be taken.
        moves = Signal()
        full = Signal()
        beat = Signal(range(max(2, beats)))
        ends = Signal()
        m.d.comb += [moves.eq(~full | self.o.ready), self.i.ready.eq(moves), self.o.valid.eq(full),
                     ends.eq(beat == beats - 1)]
        with m.If(self.i.valid & moves):
            m.d.sync += beat.eq(Mux(ends, 0, beat + 1))

        # Of equals the left one wins, so what fills up the last block, the least value, never does.
        least = -(1 << width - 1)
        level: list[tuple[Value, Value]] = [
            (Mux(ends, least, value)[:width].as_signed() if j >= left else Value.cast(value), Value.cast(j))
            for j, value in enumerate(self.i.payload.data)]

        # A level of the tree in each cycle, with what is known of the block beside it.
        head = {"comes": self.i.valid, "starts": beat == 0, "stops": ends, "beat": beat,
                "marked": self.i.payload.last}
        under_way = []
        for n in range(self._levels):
            pairs = [level[i:i + 2] for i in range(0, len(level), 2)]
            level = []
            for at, pair in enumerate(pairs):
                better = pair[-1][0] > pair[0][0]
                value = Signal(signed(width), name=f"value_{n}_{at}", reset_less=True)
                place = Signal(range(max(2, k)), name=f"place_{n}_{at}", reset_less=True)
                with m.If(moves):
                    m.d.sync += [value.eq(Mux(better, pair[-1][0], pair[0][0])),
                                 place.eq(Mux(better, pair[-1][1], pair[0][1]))]
                level.append((value, place))
            later = {name: Signal(len(Value.cast(value)), name=f"{name}_{n}") for name, value in head.items()}
            with m.If(moves):
                m.d.sync += [later[name].eq(value) for name, value in head.items()]
            under_way.append(later["comes"])
            head = dict(later)

        # The best block so far, whose place leaves behind the last one.
        (value, place), = level
        best_value = Signal(signed(width), reset_less=True)
        best_index = Signal(range(layer.inputs), reset_less=True)
        marked = Signal(reset_less=True)
        better = Signal()
        m.d.comb += [better.eq(head["starts"] | (value > best_value)), self.o.payload.last.eq(marked),
                     self.o.payload.data[0].eq(best_index),
                     self.busy.eq(Cat(full, beat != 0, *under_way).any())]
        with m.If(moves):
            m.d.sync += full.eq(head["comes"] & head["stops"])
            with m.If(head["comes"] & better):
                m.d.sync += [best_value.eq(value), best_index.eq(head["beat"] * k + place)]
            with m.If(head["comes"]):
                m.d.sync += marked.eq(head["marked"])
        return m


@unit.register
def _(layer: Argmax, plan: StreamPlan, site: Site) -> ArgmaxLayer:
    return ArgmaxLayer(layer, k=site.k)


@loadable.register
def _(layer: Argmax) -> bool:
    return True


without_multipliers(Argmax)


@leaving.register
def _(layer: Argmax, plan: StreamPlan, comes: list[int], k: int) -> list[int]:
    return [comes[-1] + argmax_latency(k)]


@control.register
def _(layer: Argmax, plan: StreamPlan, k: int, *, wanted: int, depths: Sequence[int]) -> Swallows:
    return Swallows()
