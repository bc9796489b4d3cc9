"""The products of two rows of the array: they multiply one spectrum with different weights, two products in a
multiplier where their widths allow it.
"""
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.bounded import Span, hull
from circulant.hw.arith.packed_product import PackedForm, PackedProduct, packed_word, packing
from circulant.hw.array.mac_row import MacRowShape, phases, weight_operands
from circulant.hw.array.program import Program
from circulant.hw.emit.target import PORT_BITS, Platform, instances
from circulant.hw.stream.pipeline import Lives, update
from circulant.sim.arith.fixed import Integers
from circulant.sim.arith.multiplier import EXACT

__all__ = ["PairForms", "RowPair", "pair_forms"]

@dataclass(frozen=True)
class PairForms:
    """How the multipliers of a lane serve two rows.

    Parameters:
        kinds: widths of two products in one.
        places: for each multiplier the number of its kind; None where each row has one of its own.
    """

    kinds: tuple[PackedForm, ...] = ()
    places: tuple[int | None, ...] = ()

    def __bool__(self) -> bool:
        """Whether rows work in pairs."""
        return bool(self.kinds)

    @property
    def forms(self) -> list[PackedForm | None]:
        """The widths of each multiplier."""
        return [None if kind is None else self.kinds[kind] for kind in self.places]


def pair_forms(program: Program, shape: MacRowShape, *, loadable: bool) -> PairForms:
    """The multipliers of a lane that fit two products in the ports of ``program.shape``; none where nobody asks for
    them, products are approximate, there is one row, or two have more bits than a module may have.

    Parameters:
        shape: of the rows.
        loadable: whether any weights of their format may come; else those of the program count, of which few are the
            lowest number of the format.
    """
    ports = program.shape.ports
    if ports is None or shape.multiplier != EXACT or program.shape.rows < 2 or shape.pair_port_bits > PORT_BITS:
        return PairForms()
    spectra = _extremes(shape) if loadable else _spectra(program)
    weights = [hull([Span(0, 0), Span(int(each.min()), int(each.max()))]) for each in weight_operands(list(spectra.T))]
    spans = list(zip(_phased(_data_spans(shape), shape), _phased(weights, shape), strict=True))
    own = [packing(x, w, ports) for x, w in spans]
    # One shift and one word for all, where they fit, make fewer kinds.
    widest = max((form.shift for form in own if form), default=0)
    found = [packing(x, w, ports, shift=widest) or form for (x, w), form in zip(spans, own, strict=True)]
    word = max((form.word for form in found if form), default=0)
    found = [wide if form and (wide := replace(form, word=word)).fits(ports) else form for form in found]
    kinds = tuple(dict.fromkeys(form for form in found if form))
    return PairForms(kinds, tuple(None if form is None else kinds.index(form) for form in found))


def _spectra(program: Program) -> Integers:
    """(blocks, k): the weights of all matrices."""
    return np.concatenate([part.product.weights.reshape(-1, part.product.block_size)
                           for matrix in program.matrices for part in matrix.parts])


def _extremes(shape: MacRowShape) -> Integers:
    """(4, k): the ends of the format of weights, in each combination of both parts of a bin."""
    limit = 1 << (shape.weight_width - 1)
    ends = np.array([(c, d) for c in (-limit, limit - 1) for d in (-limit, limit - 1)])
    return np.tile(ends, -(-shape.k // 2))[:, :shape.k]


def _data_spans(shape: MacRowShape) -> list[Span]:
    """Spans of the data side of each product, see `circulant.hw.array.mac_row.data_operands`."""
    one = Span.of_width(shape.data_width)
    two = Span(2 * one.low, 2 * one.high)
    return ([one] * 2 + [two, one, one] * (shape.k // 2))[:shape.products]


def _phased(spans: Sequence[Span], shape: MacRowShape) -> list[Span]:
    """The span of each multiplier of a lane, over its phases."""
    return [hull(spans[i::shape.multipliers]) for i in range(shape.multipliers)]


class RowPair(wiring.Component):
    """Products of two rows, for each a cycle after its operands' registers; in `MacRow` their sums follow.

    Parameters:
        shape: of both rows.
        forms: see `pair_forms`.
        gated: registers hold what nobody waits for.

    Members:
        x, phase, live: see `circulant.hw.array.mac_row.MacRow`.
        w: spectra of the weights of each row, see `circulant.hw.array.mac_row.MacRow`.
        products: products of each row, by column and multiplier.
    """

    def __init__(self, shape: MacRowShape, *, forms: PairForms, gated: bool = False) -> None:
        self._shape, self._forms, self._gated = shape, forms, gated
        super().__init__({
            "x": In(shape.operands), "w": In(shape.weights).array(2), "phase": In(range(shape.fold)),
            "products": Out(shape.row_products).array(2), **({"live": In(1)} if gated else {})})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape = self._shape
        lives = Lives(m, self.live if self._gated else None, name="live")
        x = Signal(shape.operands, name="row_x", reset_less=True)
        update(m, x.eq(self.x), lives.at(0))
        more = {"gated": True} if self._gated else {}
        forms = self._forms.forms
        made = {j: instances(m, platform, f"product_{j}", PackedProduct, shape.columns, form=form, **more)
                for j, form in enumerate(forms) if form}
        for c in range(shape.columns):
            sides = [phases(weight_operands([w[c][i] for i in range(shape.k)]), shape, self.phase) for w in self.w]
            for j, form in enumerate(forms):
                operand = x[c][j][:shape.widths[j][0]].as_signed()
                if form:
                    packed, word = made[j][c], packed_word(sides[0][j], sides[1][j], form)
                    factor = self._factor(m, lives, word, name=f"word_{c}_{j}")
                    m.d.comb += [packed.x.eq(operand), packed.word.eq(factor),
                                 *([packed.live.eq(lives.at(1))] if self._gated else []),
                                 self.products[0][c][j].eq(packed.first), self.products[1][c][j].eq(packed.second)]
                    continue
                for n, side in enumerate(sides):
                    near = self._factor(m, lives, side[j], name=f"factor_{n}_{c}_{j}")
                    product = Signal(shape.row_products.elem_shape.elem_shape, name=f"product_{n}_{c}_{j}",
                                     reset_less=True)
                    update(m, product.eq(operand * near[:shape.widths[j][1]].as_signed()), lives.at(1))
                    m.d.comb += self.products[n][c][j].eq(product)
        return m

    def _factor(self, m: Module, lives: Lives, value: Value, *, name: str) -> Value:
        """A weight, or a word of two, in a register; two where the levels of logic allow one step between two of them.
        It then comes a cycle before it is known whether it counts."""
        factor = Signal(signed(len(value)), name=name, reset_less=True)
        update(m, factor.eq(value), None if self._shape.late else lives.at(0))
        if not self._shape.late:
            return factor
        near = Signal.like(factor, name=f"near_{name}")
        update(m, near.eq(factor), lives.at(0))
        return near
