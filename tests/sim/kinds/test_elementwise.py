"""Joins value by value: the definition, a model through file, quantization, ranges and bound, and refusals."""
import math
from fractions import Fraction

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.error.error_bound import error_bound
from circulant.sim.error.ranges import analyse
from circulant.sim.golden.network import Network
from circulant.sim.kinds.add import Add, FloatAdd
from circulant.sim.kinds.difference import Difference, FloatDifference
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.maximum import FloatMaximum, Maximum
from circulant.sim.kinds.minimum import FloatMinimum, Minimum
from circulant.sim.kinds.product import FloatProduct, Product
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.quantize.bitwidth_space import searched_bitwidths
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real import float_file
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.test_numerics import different

FORMS = Format(8, 4), Format(9, 6)
KINDS = {Add: sum, Difference: lambda v: v[0] - v[1], Maximum: max, Minimum: min, Product: math.prod}
FLOATS = FloatAdd, FloatDifference, FloatMaximum, FloatMinimum, FloatProduct


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_definition(kind, relu):
    """In fractions: exact, rounded half-up, saturated."""
    rng, out = np.random.default_rng(0), Format(7, 3)
    one, other = (rng.integers(form.lo, form.hi + 1, (40, 3)) for form in FORMS)
    found = kind("join", 3, FORMS, out, relu)([one, other])
    saturates = 0
    for a, b, y in zip(one.ravel().tolist(), other.ravel().tolist(), found.ravel().tolist(), strict=True):
        exact = KINDS[kind]([Fraction(a, 16), Fraction(b, 64)])
        wanted = math.floor(exact * 8 + Fraction(1, 2))
        saturates += not out.lo <= wanted <= out.hi
        assert y == max(0 if relu else out.lo, min(out.hi, wanted))
    assert saturates or kind in (Maximum, Minimum)


def model(sequence=True):
    """Gates of halves of a vector, and what they give joined in all ways."""
    rng = np.random.default_rng(1)

    def linear(name, inputs, outputs):
        return FloatLinear(name, inputs, outputs, rng.normal(0, 0.5, (-(-outputs // 2), -(-inputs // 2), 2)),
                           rng.normal(0, 0.3, outputs))

    nodes = [Node(linear("both", 5, 14), ("x",)), Node(FloatSlice("low", 14, 0, 7), ("both",)),
             Node(FloatSlice("high", 14, 7, 7), ("both",)), Node(FloatProduct("gate", 7), ("low", "high")),
             Node(FloatDifference("less", 7, relu=True), ("gate", "low")),
             Node(FloatMaximum("most", 7, 3), ("gate", "less", "high")),
             Node(FloatMinimum("least", 7), ("low", "most")), Node(FloatAdd("sum", 7), ("least", "gate")),
             Node(linear("out", 7, 3), ("sum",))]
    return Model("joined", (Input("x", Flow(5, sequence=sequence)),), tuple(nodes), ("out",))


@pytest.mark.parametrize("sequence", [True, False])
def test_a_model_with_all_of_them(sequence, tmp_path):
    drawn, x = model(sequence), np.random.default_rng(2).normal(0, 1, (10, 6, 5))
    x = x if sequence else x[:, 0]
    float_file.save(drawn, tmp_path / "float.npz")
    assert np.array_equal(float_file.load(tmp_path / "float.npz").run(x), drawn.run(x))
    network = quantize(drawn, x, weight_bits=14, activation_bits=14)
    network.save(tmp_path)
    assert Network.load(tmp_path).hash == network.hash
    error, bound = np.abs(network.run(x).real - drawn.run(x)), error_bound(network, drawn, x)
    assert (error <= bound).all() and bound.max() < 0.05
    for each in analyse(network, x, drawn):
        assert max(-each.lo, each.hi) <= 1.01 * each.worst + each.format.step, each.name
    assert quantize_like(drawn, network).hash == network.hash
    assert {"gate.output_bits", "less.output_bits"} <= set(searched_bitwidths(network))
    wrong, _ = different(network, network.vectors(x).inputs, tmp_path)
    assert wrong == 0


@pytest.mark.parametrize(("kind", "least", "greatest"), [
    (FloatProduct, -12, 20), (FloatDifference, -7, 7), (FloatAdd, -5, 9), (FloatMaximum, -2, 5), (FloatMinimum, -3, 4)])
def test_the_extremes_for_values_between_two_ends(kind, least, greatest):
    """Of a product they are those of the corners."""
    low, high = kind.extremes([np.array([-2.0]), np.array([-3.0])], [np.array([4.0]), np.array([5.0])])
    assert (low.tolist(), high.tolist()) == ([least], [greatest])


@pytest.mark.parametrize("kind", FLOATS)
def test_a_choice_of_values_of_one_format_keeps_it(kind):
    rng = np.random.default_rng(3)
    nodes = Node(FloatSlice("low", 6, 0, 3), ("x",)), Node(FloatSlice("high", 6, 3, 3), ("x",)), Node(
        kind("join", 3), ("low", "high"))
    drawn = Model("choice", (Input("x", Flow(6)),), nodes, ("join",))
    network = quantize(drawn, rng.normal(0, 1, (9, 6)))
    kept = kind in (FloatMaximum, FloatMinimum)
    assert (network.layers[-1].output_format == network.layers[0].input_format) is kept
    assert len(searched_bitwidths(network)) == (1 if kept else 2)


@pytest.mark.parametrize("make", [
    lambda: FloatProduct("gate", 4, 3), lambda: Difference("gate", 4, FORMS * 2, Format(8, 4))])
def test_more_than_two_sources_of_a_pair_are_refused(make):
    with pytest.raises(Refusal, match=r"^Layer 'gate': a (product|difference) must have two sources, not [34]; split"):
        make()


def test_products_beyond_int64_are_refused():
    with pytest.raises(Refusal, match=r"^Layer 'gate': the product must fit into 63 bits, but with the branches"):
        Product("gate", 4, (Format(32, 4), Format(32, 4)), Format(8, 4))
