"""A row of the array: C block products per cycle, summed up by a tree and over time, in the spectral domain.

A complex product with a constant (c + jd) takes three real multiplications: ``s1 = c(a+b)``, ``s2 = a(d-c)``,
``s3 = b(c+d)``, ``re = s1 - s3``, ``im = s1 + s2``. The sums of s1, s2 and s3 over a row are kept apart and combined
once per row of the matrix, behind the array.
"""
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.arith.approximate import ApproximateProduct
from circulant.hw.arith.fixed import constant_product
from circulant.hw.emit.target import Platform, instances
from circulant.hw.stream.pipeline import LEVELS, Lives, registers, steps, tree, update
from circulant.hw.stream.storage import Accumulators
from circulant.sim.arith.circulant import multiplications
from circulant.sim.arith.fixed import Integers
from circulant.sim.arith.multiplier import EXACT

__all__ = ["MacRow", "MacRowShape", "begins_with_half", "data_operands", "lane_products", "phases", "row_latency",
           "tree_latency", "weight_operands"]

Number = TypeVar("Number", Value, Integers)

CONTROL = 64
"""No row has as many bits of control."""


def data_operands(spectrum: list[Value]) -> list[Value]:
    """The data side of each product: X[0], X[k/2], then a+b, a, b for each complex bin a + jb, shared by all rows."""
    operands = spectrum[:2]
    for re, im in zip(spectrum[2::2], spectrum[3::2], strict=True):
        operands += [re + im, re, im]
    return operands


def weight_operands(spectrum: list[Number]) -> list[Number]:
    """The weight side of each product: W[0], W[k/2], then c, d-c, c+d for each complex bin c + jd."""
    operands = spectrum[:2]
    for c, d in zip(spectrum[2::2], spectrum[3::2], strict=True):
        operands += [c, d - c, c + d]
    return operands


def tree_latency(columns: int, levels: int = LEVELS) -> int:
    """Cycles from the operands of a row of so many columns to the sum over it: operands, products, the tree."""
    return 2 + registers(ceil_log2(columns), levels)


def row_latency(columns: int, levels: int = LEVELS) -> int:
    """Cycles of a row of so many columns, from the operands to the head of the drain: those of the row, products, the
    tree, the sum where the levels allow one step between two registers, the drain."""
    return tree_latency(columns, levels) + (2 if steps(levels) == 1 else 1)


def begins_with_half(levels: int) -> bool:
    """Whether sums begin with half of what their last bit stands for when they are rounded: where the levels of logic
    allow two steps between two registers, this saves one."""
    return steps(levels) > 1


@dataclass(frozen=True)
class MacRowShape:
    """Sizes that all rows of an array have in common.

    Parameters:
        k: block size.
        columns: lanes of a row, block products per cycle.
        data_width: of a number of the data's spectrum.
        weight_width: of a number of the weights' spectrum.
        terms: block products that an accumulator sums up at the most.
        slots: accumulators, sums that grow side by side.
        fold: cycles that a block product takes, with as many times fewer multipliers.
        levels: of logic between two registers.
        multiplier: see `circulant.sim.arith.multiplier`.
    """

    k: int
    columns: int
    data_width: int
    weight_width: int
    terms: int
    slots: int
    fold: int = 1
    levels: int = LEVELS
    multiplier: str = EXACT

    @property
    def products(self) -> int:
        """Multiplications of a block product."""
        return multiplications(self.k)

    @property
    def multipliers(self) -> int:
        """Multipliers of a lane: the products that it makes in a cycle."""
        return -(-self.products // self.fold)

    @property
    def widths(self) -> list[tuple[int, int]]:
        """For each multiplier of a lane the bits of its operands, data and weights: the widest of all phases."""
        a, b = self.data_width, self.weight_width
        each = ([(a, b)] * 2 + [(a + 1, b), (a, b + 1), (a, b + 1)] * (self.k // 2))[:self.products]
        mine = [each[i::self.multipliers] for i in range(self.multipliers)]
        return [(max(x for x, _ in found), max(y for _, y in found)) for found in mine]

    @property
    def product_width(self) -> int:
        """Bits of the widest product, of which one factor is a sum of two numbers."""
        return self.data_width + self.weight_width + 1

    @property
    def sum_width(self) -> int:
        return self.data_width + self.weight_width + 2 + ceil_log2(self.terms)

    @property
    def sums(self) -> data.ArrayLayout:
        return data.ArrayLayout(signed(self.sum_width), self.products)

    @property
    def operands(self) -> data.ArrayLayout:
        """The layout of the operands of a cycle."""
        return data.ArrayLayout(data.ArrayLayout(signed(self.data_width + 1), self.multipliers), self.columns)

    @property
    def weights(self) -> data.ArrayLayout:
        return data.ArrayLayout(data.ArrayLayout(signed(self.weight_width), self.k), self.columns)

    @property
    def row_products(self) -> data.ArrayLayout:
        """The layout of the products of a cycle."""
        return data.ArrayLayout(data.ArrayLayout(signed(self.product_width), self.multipliers), self.columns)

    @property
    def row_sums(self) -> data.ArrayLayout:
        """The layout of the sums over the columns of a cycle."""
        return data.ArrayLayout(signed(self.sum_width), self.multipliers)

    @property
    def port_bits(self) -> int:
        """Bits that go into a row at the most: operands, weights, the sums of the row behind, control."""
        own = self.multipliers * (self.data_width + 1) + self.k * self.weight_width
        return self.columns * own + self.products * self.sum_width + CONTROL

    @property
    def pair_port_bits(self) -> int:
        """The same of a row pair and of its rows, in the direction with the most: see
        `circulant.hw.array.row_pair.RowPair`."""
        products = self.columns * self.multipliers * self.product_width
        return max(self.port_bits + self.columns * self.k * self.weight_width, 2 * products,
                   products + self.products * self.sum_width + CONTROL)

    @property
    def late(self) -> bool:
        """Whether sums, and the weights' side of products, have a register of their own."""
        return steps(self.levels) == 1


def phases(operands: list[Value], shape: MacRowShape, phase: Value) -> list[Value]:
    """The operands whose turn it is, zeros where a last phase has none."""
    if shape.fold == 1:
        return operands
    each = shape.multipliers
    filled = [*operands, *[Const(0, signed(1))] * (each * shape.fold - len(operands))]
    return [Array(filled[i::each])[phase] for i in range(each)]


def lane_products(m: Module, platform: Platform, shape: MacRowShape, *, x: data.View, w: data.View, phase: Value,
                  lives: Lives, gated: bool) -> list[list[Value]]:
    """For each product of a phase that of every column of a row. Its operands are registers of its own, which a
    multiplier has within: the path to all rows ends at them.

    Parameters:
        x, w, phase, gated: see `MacRow`.
        lives: when its operands count.
    """
    operands = Signal(shape.operands, name="row_x", reset_less=True)
    update(m, operands.eq(x), lives.at(0))
    products: list[list[Value]] = [[] for _ in range(shape.multipliers)]
    made = {j: instances(m, platform, f"product_{j}", ApproximateProduct, shape.columns, multiplier=shape.multiplier,
                         a_bits=a, b_bits=b) for j, (a, b) in enumerate(shape.widths) if shape.multiplier != EXACT}
    for c in range(shape.columns):
        weights = weight_operands([w[c][i] for i in range(shape.k)])
        for j, weight in enumerate(phases(weights, shape, phase)):
            factor = Signal(signed(shape.weight_width + 1), name=f"factor_{c}_{j}", reset_less=True)
            product = Signal(signed(shape.product_width), name=f"product_{c}_{j}", reset_less=True)
            near = factor
            if shape.late:
                near = Signal.like(factor, name=f"near_{c}_{j}")
                update(m, near.eq(factor), lives.at(0))
            a, b = shape.widths[j]  # What is above repeats the sign.
            left, right = operands[c][j][:a].as_signed(), near[:b].as_signed()
            if made:
                m.d.comb += [made[j][c].a.eq(left), made[j][c].b.eq(right)]
            value = made[j][c].o if made else left * right
            if gated:  # Weights that are late come a cycle before it is known whether they count.
                update(m, factor.eq(weight), None if shape.late else lives.at(0))
                update(m, product.eq(value), lives.at(1))
            else:
                m.d.sync += [factor.eq(weight), product.eq(value)]
            products[j].append(product)
    return products


class MacRow(wiring.Component):
    """`row_latency` cycles from operands to accumulators or, with ``load``, to a shift register.

    Parameters:
        registered: see `circulant.hw.stream.storage.Accumulators`.
        gated: registers hold what nobody waits for.
        given: products come from outside, see `circulant.hw.array.row_pair.RowPair`.
        apart: the last whole sums stay where they are, and the chain fetches those of each row; of several phases in
            the cycle in which they are there.

    Members:
        products: products of each column, 2 cycles after their operands.
        x: operands of the data side for each column, those of a phase, see `data_operands`.
        w: spectra of the weights for each column, with x, or where ``shape.late`` one cycle before.
        phase: which part of the products is their turn, with w.
        add: the sum of the next cycle's products goes to accumulator ``slot``, `tree_latency` - 1 cycles after x.
        slot: accumulator that the sum is added to.
        first: with ``add``: the sum is the first one of its row.
        half: where sums `begins_with_half`: that, a cycle later than ``first``.
        load: with ``add``: the sum is the last one, and goes to the drain. Without it the drain shifts.
        part: with ``add``: the phase of these products.
        chain: sums of the row behind, which the drain takes as it shifts.
        sums: sums at the head of the drain.
        live: where registers are gated: x counts in this cycle.
        moves: where registers are gated: the drain is loaded or shifted in this cycle.
    """

    def __init__(self, shape: MacRowShape, *, registered: bool | None = None, gated: bool = False,
                 given: bool = False, apart: bool = False) -> None:
        self._shape, self._registered, self._stops, self._outside = shape, registered, gated, given
        self._apart = apart
        super().__init__({
            **self._sources(shape),
            "add": In(1), "slot": In(range(shape.slots)), "first": In(1), "load": In(1), "part": In(range(shape.fold)),
            **({} if apart else {"chain": In(shape.sums)}), "sums": Out(shape.sums),
            **({"half": In(shape.sum_width - 1)} if begins_with_half(shape.levels) else {}),
            **({"live": In(1)} if gated else {}), **({"moves": In(1)} if gated and not apart else {}),
        })

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape = self._shape
        drain = Signal(shape.sums, reset_less=True)
        total = Signal(data.ArrayLayout(signed(shape.sum_width), shape.multipliers))
        m.d.comb += self.sums.eq(drain)
        # What all accumulators listen to is a register of each row: one for all rows would reach across the device.
        # It needs no reset: what is added up and loaded behind one is replaced by the first product of the next sum.
        add, first, load, part = (
            Signal.like(value, name=f"row_{name}", reset_less=True, attrs={"keep": 1})
            for name, value in (("add", self.add), ("first", self.first), ("load", self.load), ("part", self.part)))
        loads = load
        if shape.late and not self._apart:
            loads = Signal(name="row_loads", reset_less=True, attrs={"keep": 1})
            m.d.sync += loads.eq(load)
        m.d.sync += [add.eq(self.add), first.eq(self.first), load.eq(self.load)]
        if shape.fold > 1:
            m.d.sync += part.eq(self.part)

        # The sums over a row, added to what their slot holds.
        held = self._accumulators(m, total, add=add)
        for i, row_sum in enumerate(self._row_sums(m, platform)):
            m.d.comb += total[i].eq(Mux(first, self._start(i, part), held[i]) + row_sum)

        # The drain: a whole sum of each product is loaded, or that of the row behind shifted in.
        if self._apart:
            for j in range(shape.products):
                phase, i = divmod(j, shape.multipliers)
                with m.If(part == phase if phase < shape.fold - 1 else load):
                    m.d.sync += drain[j].eq(total[i])
            return m
        for j in range(shape.products):
            phase, i = divmod(j, shape.multipliers)
            value: Value = total[i]
            if shape.late or phase < shape.fold - 1:  # It waits for the last phase.
                value = Signal(signed(shape.sum_width), name=f"sum_{j}", reset_less=True)
                with m.If(part == phase if phase < shape.fold - 1 else Const(1)):
                    m.d.sync += value.eq(total[i])
            update(m, drain[j].eq(Mux(loads, value, self.chain[j])), self.moves if self._stops else None)
        return m

    def _start(self, i: int, part: Value) -> Value:
        """Start of the sum of a multiplier's products: of both real bins, and of s1 of complex ones, the half, as both
        parts of their bin are sums with s1."""
        shape = self._shape
        if not begins_with_half(shape.levels):
            return Const(0)
        numbers = range(i, shape.multipliers * shape.fold, shape.multipliers)
        halved = Const(sum((j < 2 or j % 3 == 2) << phase for phase, j in enumerate(numbers)), shape.fold)
        return Mux(halved.bit_select(part, 1) if shape.fold > 1 else halved, self.half, 0)

    def _sources(self, shape: MacRowShape) -> dict[str, wiring.Member]:
        """The members that sums over the columns come from."""
        return {"products": In(shape.row_products)} if self._outside else {
            "x": In(shape.operands), "w": In(shape.weights), "phase": In(range(shape.fold))}

    def _row_sums(self, m: Module, platform: Platform) -> Iterator[Value]:
        """For each product of a phase the sum over the columns."""
        shape = self._shape
        lives = Lives(m, self.live if self._stops else None, name="live")
        terms_of: Iterable[list[Value]] = (
            [self.products[c][i] for c in range(shape.columns)] for i in range(shape.multipliers))
        if not self._outside:
            terms_of = lane_products(m, platform, shape, x=self.x, w=self.w, phase=self.phase, lives=lives,
                                     gated=self._stops)
        for i, terms in enumerate(terms_of):
            yield tree(m, terms, name=f"tree_{i}", levels=shape.levels, lives=lives.after(2))

    def _accumulators(self, m: Module, total: data.View, *, add: Value) -> data.View:
        """The sum that the slot holds; it takes the total in a cycle that adds. No multiplier is spent on its
        address."""
        shape = self._shape
        if shape.slots * shape.fold == 1:
            held = Signal(total.shape(), reset_less=True)
            with m.If(add):
                m.d.sync += held.eq(total)
            return held
        m.submodules.accumulators = sums = Accumulators(
            total.shape(), depth=shape.slots * shape.fold, registered=self._registered)
        following = constant_product(self.slot, shape.fold) + self.part if shape.fold > 1 else self.slot
        m.d.comb += [sums.following.eq(following), sums.write.eq(add), sums.data.eq(total)]
        return sums.word
