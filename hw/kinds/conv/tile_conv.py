"""A dense convolution in tiles: lines of tiles, rows of filters, and a queue that its tiles always fit into."""
import numpy as np
from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.arith.decoder import Watch, watched
from circulant.hw.arith.fixed import requantize, round_shift, saturate
from circulant.hw.array.issue import SPECTRA
from circulant.hw.array.parts import Memory, Parts, Product, guarded, queue_memory
from circulant.hw.components.lines import LineBuffer
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, instances, packed
from circulant.hw.kinds.conv.tile import TileShape, fast_fir, weighted
from circulant.hw.stream.pipeline import Queue, block, connect, delay, tree
from circulant.hw.stream.width_converter import serialize

__all__ = ["RowFormat", "TileConvLayer", "TileRow"]


class RowFormat:
    """Sizes that all rows have in common; equal rows have equal names.

    Parameters:
        shape: of the convolution.
    """

    def __init__(self, shape: TileShape) -> None:
        product, layer = shape.layer.product, shape.layer
        self.pixels, self.taps, self.columns, self.products = (
            shape.pixels, layer.window.kernel[1], shape.columns, shape.products)
        self.data_width, self.weight_width, self.relu = shape.data_width, shape.weight_width, layer.relu
        terms = layer.window.kernel[0] * layer.inputs
        self.sum_width = self.data_width + self.weight_width + ceil_log2(terms)
        self.rounding = (product.frac - product.product.frac, product.product.width)
        self.last_shift, self.output_width = product.last_shift, product.output.width
        self.spread = product.grid.spread

    def __str__(self) -> str:
        return "_".join("_".join(map(str, value)) if isinstance(value, tuple) else str(int(value))
                        for value in vars(self).values())

    @property
    def latency(self) -> int:
        """Cycles from operands to values: the row's own operands, product, levels of the tree, sum, combination, and
        three roundings."""
        return 3 + ceil_log2(self.columns) + self.behind

    @property
    def behind(self) -> int:
        """Cycles from the last sum to the values: combination, three roundings."""
        return 4


class TileRow(wiring.Component):
    """The filters of an output channel: a group of columns in each cycle, and the pixels of a tile when it is whole.

    Members:
        x: transformed pixels of each column.
        w: transformed filters of each column.
        add: the sums of products of x ``2 + ceil_log2(columns)`` cycles before are added up.
        first: with ``add``: the sums are the first of a tile.
        bias: bias of the channel, four cycles after the last ``add`` of a tile.
        scale: scale of the row, a cycle earlier, see `circulant.sim.arith.weight_grid.WeightGrid.row_scales`.
        y: pixels of the tile, ``latency`` cycles after the last x.
    """

    def __init__(self, form: RowFormat) -> None:
        self._form = form
        lanes = form.columns * form.products
        super().__init__({
            "x": In(data.ArrayLayout(signed(form.data_width), lanes)),
            "w": In(data.ArrayLayout(signed(form.weight_width), lanes)),
            "add": In(1), "first": In(1), "bias": In(signed(form.output_width)),
            **({"scale": In(form.spread.bit_length())} if form.spread else {}),
            "y": Out(data.ArrayLayout(signed(form.output_width), form.pixels)),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        form = self._form

        # Operands are registers of each row, near its multipliers: one for all rows would reach across the device.
        x, w = (Signal.like(value, name=f"row_{name}", reset_less=True, attrs={"keep": 1})
                for name, value in (("x", self.x), ("w", self.w)))
        m.d.sync += [x.eq(self.x), w.eq(self.w)]

        # Each filter: its products over all columns, summed by a tree, then over the groups of a tile.
        sums: list[Value] = []
        for j in range(form.products):
            level: list[Value] = []
            for c in range(form.columns):
                product = Signal(signed(form.data_width + form.weight_width), name=f"product_{j}_{c}", reset_less=True)
                at = c * form.products + j
                m.d.sync += product.eq(x[at] * w[at])
                level.append(product)
            terms = tree(m, level, name=f"tree_{j}")
            total = Signal(signed(form.sum_width), name=f"sum_{j}", reset_less=True)
            with m.If(self.add):
                m.d.sync += total.eq(Mux(self.first, 0, total) + terms)
            sums.append(total)

        # The pixels: sums of the filters, rounded twice, with the bias, and ReLU.
        for pixel, row in enumerate(fast_fir(form.pixels, form.taps)[2]):
            whole = Signal(signed(form.sum_width + 1), name=f"whole_{pixel}", reset_less=True)
            rounded = Signal(signed(form.rounding[1]), name=f"rounded_{pixel}", reset_less=True)
            scaled = rounded << self.scale if form.spread else rounded
            shifted = round_shift(scaled, form.last_shift)
            total = Signal(shifted.shape(), name=f"total_{pixel}", reset_less=True)
            value = Signal(signed(form.output_width), name=f"value_{pixel}", reset_less=True)
            limited = saturate(total + self.bias, form.output_width)
            m.d.sync += [whole.eq(weighted(sums, row)), rounded.eq(requantize(whole, *form.rounding)),
                         total.eq(shifted),
                         value.eq(Mux(total + self.bias < 0, 0, limited) if form.relu else limited)]
            m.d.comb += self.y[pixel].eq(value)
        return m


class TileConvLayer(wiring.Component):
    """Images in, images out, tile by tile; equals `sim.kinds.conv.Conv`.

    Parameters:
        shape: how it is computed.
        single: whether pixels leave one by one.
        marked: whether the last ones of an image are marked.

    Members:
        i: stream of pixels of the image side by side, all channels of each.
        o: stream of pixels of the output side by side, all channels of each.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, shape: TileShape, *, single: bool = False, marked: bool = True) -> None:
        self._shape, self._form, self._marked, layer = shape, RowFormat(shape), marked, shape.layer
        self._lines = LineBuffer(shape)
        payload = block(shape.pixels * layer.outputs, layer.product.output.width)
        self._queue = Queue(payload, depth=4 + (self._form.latency + 5) // shape.cycles)
        super().__init__({"i": self._lines.signature.members["i"], "o": Out(stream.Signature(
            block(layer.outputs, layer.product.output.width) if single else payload)), **watched(shape.protection)})

    @property
    def parts(self) -> Parts:
        shape, form = self._shape, self._form
        filters = shape.columns * shape.products
        kept = [Memory(1, (form.output_width + form.spread.bit_length()) * shape.rows, shape.passes, writable=False),
                Memory(shape.rows, shape.weight_width * filters, len(shape.weights), writable=False)]
        return guarded(kept, shape.protection) + Parts(
            [self._lines.memory, queue_memory(self._queue)],
            [Product(shape.rows * filters, form.data_width, form.weight_width)])

    @property
    def images(self) -> list[Image]:
        """Biases of the rows and behind them their scales, a word for each pass; then the weights of each row."""
        shape, layer, width = self._shape, self._shape.layer, self._form.output_width
        product, bits = layer.product, self._form.spread.bit_length()
        biases, scales = np.zeros((2, shape.passes * shape.rows), np.int64)
        biases[:layer.outputs] = product.bias[:layer.outputs]
        scales[:layer.outputs] = product.grid.row_scales[:layer.outputs] or 0
        words = packed(biases.reshape(shape.passes, -1), width)
        if bits:
            words = [word | scale << width * shape.rows for word, scale in
                     zip(words, packed(scales.reshape(shape.passes, -1), bits), strict=True)]
        filters = shape.columns * shape.products
        plain = [Image(words, (width + bits) * shape.rows, f"{layer.name}_bias"), *(
            Image(packed(shape.weights[:, r].reshape(-1, filters), shape.weight_width), shape.weight_width * filters,
                  f"{layer.name}_weights_{r}") for r in range(shape.rows))]
        return [each.coded(shape.protection) for each in plain]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, form, layer, lines, queue = self._shape, self._form, self._shape.layer, self._lines, self._queue
        m.submodules.lines, m.submodules.queue = lines, queue
        connect(m, wiring.flipped(self.i), lines.i)
        serialize(m, queue.o, wiring.flipped(self.o))

        # A tile is started while the queue has room for all under way.
        promised = Signal(range(queue.depth + 2))
        m.d.comb += lines.room.eq(promised < queue.depth)
        m.d.sync += promised.eq(promised + lines.starts - (queue.o.valid & queue.o.ready))

        # What the lines give is in the operands a cycle later; products, the tree, the sum follow.
        operands = Signal(data.ArrayLayout(signed(shape.data_width), shape.columns * shape.products), reset_less=True)
        m.d.sync += operands.eq(Value.cast(lines.spectra))

        # The issue on its way: to the sums, and to where whole tiles leave.
        summed = SPECTRA + form.latency - form.behind
        ends = delay(m, lines.issue.ends, summed, name="ends", reset_less=False)
        add, first, number = (delay(m, value, summed, name=name) for name, value in (
            ("add", lines.issue.valid), ("first", lines.issue.first), ("number", lines.issue.number)))
        leaves = delay(m, ends, form.behind + 1, name="leaves", reset_less=False)
        which = delay(m, number, form.behind + 1, name="which")
        before = int(bool(form.spread))  # A scale is needed a cycle before the bias.
        bias_at = delay(m, number, form.behind - 1 - before, name="bias_at")

        # The rows with their weights; of several passes those before the last one are kept.
        rows = instances(m, platform, "row", TileRow, shape.rows, form=form)
        biases, *weights = self.images
        watch, bits = Watch(m, platform, shape.protection), form.spread.bit_length()
        m.submodules.bias = bias = Rom(**biases._asdict(), scrubbed=watch.scrubs)
        m.d.comb += [bias.en.eq(1), bias.addr.eq(bias_at)]
        counts = watch.later(lines.issue.valid, 1, name="counts")
        bias_word = watch.read(bias, (form.output_width + bits) * shape.rows, name="bias", when=watch.later(
            ends, form.behind - before, name="bias_counts"))
        known = delay(m, bias_word, before, name="known")
        scales = bias_word[form.output_width * shape.rows:]
        pixels: list[Value] = [Value.cast(0)] * (shape.pixels * layer.outputs)
        for r, row in enumerate(rows):
            m.submodules[f"weights_{r}"] = rom = Rom(**weights[r]._asdict(), scrubbed=watch.scrubs)
            m.d.comb += [
                rom.en.eq(1), rom.addr.eq(lines.issue.weight), Value.cast(row.x).eq(Value.cast(operands)),
                Value.cast(row.w).eq(delay(m, watch.read(
                    rom, len(Value.cast(row.w)), when=counts, name=f"weights_{r}"), 2, name=f"weights_{r}")),
                row.add.eq(add), row.first.eq(first),
                row.bias.eq(known.word_select(r, form.output_width).as_signed()),
                *([row.scale.eq(scales.word_select(r, bits))] if bits else []),
            ]
            for n in range(shape.passes):
                channel = n * shape.rows + r
                if channel >= layer.outputs:
                    continue
                for p in range(shape.pixels):
                    value: Value = row.y[p]
                    if n < shape.passes - 1:
                        value = Signal(signed(form.output_width), name=f"early_{channel}_{p}", reset_less=True)
                        with m.If(leaves & (which == n)):
                            m.d.sync += value.eq(row.y[p])
                    pixels[p * layer.outputs + channel] = value

        watch.tell(self)

        # A whole tile into the queue.
        whole = Signal()
        m.d.comb += [
            whole.eq(leaves & (which == shape.passes - 1)), queue.i.valid.eq(whole),
            *(queue.i.payload.data[at].eq(value) for at, value in enumerate(pixels)),
        ]
        if self._marked:
            tile = Signal(range(max(2, shape.tiles)))
            m.d.comb += queue.i.payload.last.eq(tile == shape.tiles - 1)
            with m.If(whole):
                m.d.sync += tile.eq(Mux(tile == shape.tiles - 1, 0, tile + 1))
        return m
