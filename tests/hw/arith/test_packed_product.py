"""Two products in one multiplier are the two products, for all integers that fit."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.hw.arith.bounded import Span
from circulant.hw.arith.packed_product import PackedForm, PackedProduct, packed_word, packing
from tests.hw.arith.test_bounded import cut
from tests.hw.simulate import trace

PORTS = [(27, 18), (25, 18)]

signed = Span.of_width


@given(data=st.integers(2, 18), factor=st.integers(2, 12), ports=st.sampled_from(PORTS), numbers=st.data(),
       lowest=st.booleans())
def test_what_fits_the_ports_gives_both_products(data, factor, ports, *, numbers, lowest):
    """At the ends of the spans as within, by integers alone."""
    x_span, w_span = signed(data), signed(factor)
    w_span = w_span if lowest else Span(w_span.low + 1, w_span.high)
    form = packing(x_span, w_span, ports)
    if form is None:
        assert factor * 2 + data + 1 - 2 * (not lowest) > ports[0] or data > ports[1]
        return
    values = [numbers.draw(st.one_of(st.sampled_from(span), st.integers(*span))) for span in (w_span, w_span, x_span)]
    first, second, x = values
    word = (first << form.shift) + second
    assert cut(word, form.word) == word and form.word <= 27 and form.data <= 18
    both = word * x + (1 << (form.shift - 1))
    assert both >> form.shift == first * x
    assert (both & ((1 << form.shift) - 1)) - (1 << (form.shift - 1)) == second * x


@pytest.mark.parametrize(("data", "factor", "ports", "form"), [
    (Span(-256, 255), Span(-255, 255), (27, 18), PackedForm(9, 26, 17)),  # d - c of 8 bits, spectra of 9
    (Span(-512, 510), Span(-128, 127), (27, 18), PackedForm(10, 27, 18)),  # c with a + b
    (Span(-256, 255), Span(-256, 254), (27, 18), None),  # c + d, where both may be the lowest number
    (Span(-256, 255), Span(-255, 254), (27, 18), PackedForm(9, 26, 17)),
    (Span(-256, 255), Span(-255, 255), (25, 18), None),
    (Span(-1 << 16, (1 << 16) - 1), Span(-15, 15), (27, 18), PackedForm(17, 26, 21)),  # weights of 4 bits
    (Span(-1 << 18, (1 << 18) - 1), Span(-1, 1), (27, 18), None)])
def test_which_widths_fit(data, factor, ports, form):
    assert packing(data, factor, ports) == form


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("data", "factor"), [(10, 7), (5, 4), (18, 3)])
def test_the_circuit_gives_both_products_a_cycle_later(data, factor, gated):
    form = packing(signed(data), signed(factor), (27, 18))
    rng, ends = np.random.default_rng(data), signed(factor)
    rows = [(x, w1, w2) for x in signed(data) for w1 in ends for w2 in ends]
    rows += [tuple(int(rng.integers(span.low, span.high + 1)) for span in (signed(data), ends, ends))
             for _ in range(60)]
    columns = {"x": [row[0] for row in rows] + [0],
               "word": [(w1 << form.shift) + w2 for _, w1, w2 in rows] + [0]}
    live = [int(rng.random() < 0.7) for _ in columns["x"]]
    shown = trace(PackedProduct(form, gated=gated), columns | ({"live": live} if gated else {}))
    held = None
    for n, (x, w1, w2) in enumerate(rows):
        held = (w1 * x, w2 * x) if live[n] or not gated else held
        if held is not None:
            assert (shown["first"][n + 1], shown["second"][n + 1]) == held


def test_a_word_is_the_sum_of_both_parts():
    from amaranth.hdl import Module, Signal
    from amaranth.hdl import signed as shape
    from amaranth.lib import wiring
    from amaranth.lib.wiring import In, Out

    form = packing(signed(6), signed(4), (27, 18))

    class Words(wiring.Component):
        first: In(shape(4))
        second: In(shape(4))
        word: Out(shape(form.word))

        def elaborate(self, platform):
            m = Module()
            kept = Signal()
            m.d.sync += kept.eq(~kept)
            m.d.comb += self.word.eq(packed_word(self.first, self.second, form))
            return m

    pairs = [(w1, w2) for w1 in range(-8, 8) for w2 in range(-8, 8)]
    shown = trace(Words(), {"first": [w1 for w1, _ in pairs], "second": [w2 for _, w2 in pairs]})["word"]
    assert list(shown) == [(w1 << form.shift) + w2 for w1, w2 in pairs]
