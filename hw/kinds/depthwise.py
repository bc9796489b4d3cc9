"""A depthwise convolution: lines are kept, and of each block of a pixel some positions of the window are read in a
cycle, multiplied and added up.

    i ─► lines ─► products ─► tree ─► sum over the turns ─► round ─► + bias, ReLU ─► queue ─► o
"""
from dataclasses import dataclass
from math import prod

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.array.issue import SPECTRA
from circulant.hw.array.line_shape import Walk
from circulant.hw.array.parts import Memory, Parts, Product, queue_memory
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.components.lines import LineBuffer
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, packed
from circulant.hw.kinds.pool.window_pool import ChannelShape, Passing
from circulant.hw.plan.ladders import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.plan.line_cost import image_cycles
from circulant.hw.plan.stream_plan import values_entry
from circulant.hw.stream.pipeline import LEVELS, Queue, block, delay, tree
from circulant.hw.unit import Site, heeds_marks, unit
from circulant.sim.arith.circulant import pad
from circulant.sim.figures import floor
from circulant.sim.kinds.depthwise import Depthwise

__all__ = ["DepthwiseLayer", "DepthwisePlan", "DepthwiseShape"]


@dataclass(frozen=True)
class DepthwisePlan(ValuesPlan):
    """The plan of a depthwise convolution.

    Parameters:
        positions: of the window that are read of ``elements`` channels in a cycle.
    """

    positions: int = 1


@dataclass(frozen=True, eq=False)
class DepthwiseShape(ChannelShape):
    """How a depthwise convolution walks over an image; in place of a `LineBufferShape`.

    Parameters:
        layer: the golden layer.
        k: channels of a block.
        positions: of the window that are read in a cycle.
    """

    layer: Depthwise
    k: int
    positions: int

    @property
    def turns(self) -> tuple[int, int]:
        return -(-self.layer.window.positions // self.positions), self.beats

    @property
    def cycles(self) -> int:
        """Cycles per output pixel."""
        return self.turns[0] * self.beats

    @property
    def walk(self) -> Walk:
        return Walk(self.layer.grid, self.layer.output_grid, self.layer.window, self.beats, block_by_block=True)

    def transform(self, m: Module, platform: Platform) -> Passing:
        m.submodules.passing = passing = Passing(self.spectrum, flip=False)
        return passing


class DepthwiseLayer(wiring.Component):
    """Images in, images out; equals `sim.kinds.depthwise.Depthwise`.

    Every ``shape.cycles`` cycles a pixel of the output, while those that it sees are there and the output is taken.

    Parameters:
        shape: channels and positions that are taken in a cycle.
        marked: whether the last block of an image is marked.

    Members:
        i: stream of blocks of channels.
        o: stream of blocks of channels; what lies behind the last one is zero.
    """

    def __init__(self, shape: DepthwiseShape, *, marked: bool = True) -> None:
        self._shape, self._marked, layer = shape, marked, shape.layer
        self._lines = LineBuffer(shape)
        payload = block(shape.k, layer.output_format.width)
        self._queue = Queue(payload, depth=4 + 2 * shape.beats + -(-self._behind // shape.turns[0]))
        super().__init__({"i": self._lines.signature.members["i"], "o": Out(stream.Signature(payload))})

    @property
    def _levels(self) -> int:
        """Levels of the tree."""
        return ceil_log2(self._shape.positions)

    @property
    def _behind(self) -> int:
        """Cycles from an issue of the lines to the queue: the lines, product, tree, sum, rounding, bias."""
        return SPECTRA + 1 + self._levels + 3

    @property
    def latency(self) -> int:
        """Cycles from the last block of the last pixel that a window needs to the first block of its pixel."""
        return self._lines.latency + self._shape.turns[0] - 1 + self._behind + self._queue.latency

    @property
    def parts(self) -> Parts:
        shape, layer = self._shape, self._shape.layer
        return Parts([self._lines.memory, queue_memory(self._queue), *(
            Memory(1, image.width, len(image.words), writable=False) for image in self.images)],
            [Product(shape.k * shape.positions, layer.input_format.width, layer.factor.width)])

    @property
    def images(self) -> list[Image]:
        """Weights of the positions and channels that are taken in a cycle; biases of the channels of a block."""
        shape, layer, (turns, beats) = self._shape, self._shape.layer, self._shape.turns
        taps = pad(layer.weights.T, turns * shape.positions).T
        taps = pad(taps, beats * shape.k).reshape(turns, shape.positions, beats, shape.k)
        words = packed(taps.transpose(2, 0, 1, 3).reshape(beats * turns, -1), layer.factor.width)
        biases = packed(pad(layer.bias, beats * shape.k).reshape(beats, shape.k), layer.output_format.width)
        return [Image(words, shape.positions * shape.k * layer.factor.width, f"{layer.name}_weights"),
                Image(biases, shape.k * layer.output_format.width, f"{layer.name}_bias")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, layer, lines, queue = self._shape, self._shape.layer, self._lines, self._queue
        factor, width = layer.factor.width, layer.output_format.width
        weights, biases = (Rom(**image._asdict()) for image in self.images)
        m.submodules.weights, m.submodules.biases = weights, biases
        shape.between(m, self, lines, queue)

        # What is known of an issue, as late as its products and its sums.
        late = SPECTRA + 1 + self._levels
        issue = lines.issue
        m.d.comb += [weights.en.eq(1), biases.en.eq(1),
                     weights.addr.eq(delay(m, issue.weight, SPECTRA - 1, name="weight"))]
        first, comes, ends = (delay(m, value, late, name=name, reset_less=False) for name, value in (
            ("first", issue.first), ("comes", issue.valid), ("ends", issue.valid & issue.ends)))
        leaves = delay(m, ends, 3, name="leaves", reset_less=False)
        beat = Signal(range(max(2, shape.beats)))
        m.d.comb += [queue.i.valid.eq(leaves), biases.addr.eq(beat)]
        with m.If(delay(m, ends, 1, name="summed", reset_less=False)):
            m.d.sync += beat.eq(Mux(beat == shape.beats - 1, 0, beat + 1))
        if self._marked:
            shape.mark(m, queue, leaves)

        # Products, their sums over the positions of a turn, and over all turns; rounding, bias, ReLU.
        for j in range(shape.k):
            level: list[Value] = []
            for n in range(shape.positions):
                product = Signal(signed(layer.input_format.width + factor), name=f"product_{j}_{n}", reset_less=True)
                m.d.sync += product.eq(
                    lines.spectra[n][j] * weights.data.word_select(n * shape.k + j, factor).as_signed())
                level.append(product)
            terms = tree(m, level, name=f"tree_{j}")
            total = Signal(signed(layer.sum_bits), name=f"total_{j}", reset_less=True)
            with m.If(comes):
                m.d.sync += total.eq(Mux(first, 0, total) + terms)
            shifted = round_shift(total, layer.rounding)
            rounded = Signal(shifted.shape(), name=f"rounded_{j}", reset_less=True)
            value = Signal(signed(width), name=f"value_{j}", reset_less=True)
            limited = saturate(rounded + biases.data.word_select(j, width).as_signed(), width)
            m.d.sync += [rounded.eq(shifted), value.eq(Mux(limited[-1], 0, limited) if layer.relu else limited)]
            m.d.comb += queue.i.payload.data[j].eq(value)
        return m


@unit.register
def _(layer: Depthwise, plan: DepthwisePlan, site: Site) -> DepthwiseLayer:
    return DepthwiseLayer(DepthwiseShape(layer, plan.elements, plan.positions), marked=site.marked)


@heeds_marks.register
def _(layer: Depthwise, *, single: bool) -> bool:
    return False


@ladder.register
def _(layer: Depthwise, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    """Some channels in a cycle, and some positions of the window, each with a multiplier."""
    plans, window = list[DepthwisePlan](), layer.window
    for k in (1 << n for n in range((layer.inputs - 1).bit_length() + 1)):
        for positions in sorted({-(-window.positions // n) for n in range(1, window.positions + 1)}):
            shape = DepthwiseShape(layer, k, positions)
            padded = image_cycles(shape.walk, lines=shape.lines, cycles=shape.cycles) if (
                window.sees_padding_alone) else 0
            cycles = max(prod(layer.grid) * shape.beats, prod(layer.output_grid) * shape.cycles, padded)
            plans.append(DepthwisePlan(k, cycles, k * positions, positions=positions))
    return Ladder([(each,) for each in useful(plans)])


@layer_multiplications.register
def _(layer: Depthwise, count: int = 1, plan: DepthwisePlan | None = None) -> int:
    return prod(layer.output_grid) * layer.weights.size


layer_entry.register(Depthwise, lambda layer, plan: values_entry(
    layer, plan, "some channels and positions of the window in each cycle") | {
        "positions": plan.positions, "floor": floor(layer_multiplications(layer), plan.multipliers)})
