"""Gates for each channel: the definition, sequences of different lengths, images, file, bound, and refusals."""
import math
from fractions import Fraction

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gate import FloatGate, Gate
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Window
from tests.random_networks import Random
from tests.sim import samples

STEPS, IMAGES = Flow(5, sequence=True), Flow(4, (6, 5))


@pytest.mark.parametrize("relu", [False, True])
def test_equals_the_definition(relu):
    """In fractions: exact, rounded half-up, saturated."""
    forms, out, rng = (Format(8, 4), Format(9, 6)), Format(7, 3), np.random.default_rng(0)
    x, v = (rng.integers(form.lo, form.hi + 1, shape) for form, shape in zip(forms, ((3, 6, 4), (3, 4)), strict=True))
    found, saturates = Gate("gate", 4, forms, out, relu)([x, v]), 0
    for n, t, c in np.ndindex(x.shape):
        wanted = math.floor(Fraction(int(x[n, t, c]), 16) * Fraction(int(v[n, c]), 64) * 8 + Fraction(1, 2))
        saturates += not out.lo <= wanted <= out.hi
        assert found[n, t, c] == max(0 if relu else out.lo, min(out.hi, wanted))
    assert saturates


def excited(images=False):
    """Squeeze and excitation of a sequence, or of an image."""
    r, size = Random(1), 4 if images else 5
    mean = [Node(FloatPool("mean", size, IMAGES.grid, Window(IMAGES.grid), "average"), ("x",)),
            Node(FloatFlatten("flat", size, (1, 1), "pixels"), ("mean",))] if images else [
                Node(FloatOverTime("mean", size, "mean"), ("x",))]
    nodes = [*mean, Node(r.linear("squeeze", size, 2, 2, relu=True), (mean[-1].name,)),
             Node(r.linear("excite", 2, size, 1), ("squeeze",)),
             Node(r.activation("sigmoid", size, "sigmoid"), ("excite",)),
             Node(FloatGate("gate", size), ("x", "sigmoid"))]
    last = FloatFlatten("out", size, IMAGES.grid, "channels") if images else r.gru("out", size, 6, 2, "sequence")
    return Model("excited", (Input("x", IMAGES, (4, 6, 5)) if images else Input("x", STEPS),),
                 (*nodes, Node(last, ("gate",))), ("out",))


@pytest.mark.parametrize("images", [False, True])
def test_a_network_is_within_the_bound_and_comes_back_from_its_file(images, tmp_path):
    samples.comes_back_within_the_bound(excited(images), np.random.default_rng(2).normal(
        0, 0.6, (20, 4, 6, 5) if images else (20, 9, 5)), tmp_path)


def test_sequences_of_different_lengths_are_those_by_themselves():
    samples.each_is_as_by_itself(excited(), np.random.default_rng(3).normal(0, 0.6, (6, 9, 5)),
                                 np.array([3, 9, 1, 5, 9, 2]))


def test_a_sequence_is_not_gated_piece_by_piece():
    network = quantize(excited(), np.ones((2, 3, 5)))
    with pytest.raises(Refusal, match=r"^A sequence can be continued piece by piece if nothing waits for its end, but "
                                      r"layer 'gate' holds a vector for all of its steps; run whole sequences$"):
        network.resume(np.zeros((1, 2, 5), np.int64), network.initial(1))


@pytest.mark.parametrize(("flows", "message"), [
    ((Flow(5), Flow(5)), r"^Layer 'gate' must take a sequence or images, and then one vector, not vectors of 5 values "
                         r"and vectors of 5 values; correct its sources$"),
    ((STEPS, STEPS), "^Layer 'gate' must take a sequence or images, and then one vector, not sequences of"),
    ((STEPS, Flow(4)), "^Layer 'gate' must take the 5 and 4 values that come before it, not 5 and 5; give it these"),
])
def test_what_is_no_sequence_and_vector_is_refused(flows, message):
    with pytest.raises(Refusal, match=message):
        FloatGate("gate", 5).following(flows)
