import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.kinds.argmax import Argmax
from circulant.sim.refusal import Refusal
from tests.hw.golden import network

GIVEN = Format(8, 3)


def test_the_place_of_the_largest_value():
    x = np.random.default_rng(0).integers(-128, 128, (50, 10))
    assert Argmax("choice", 10, GIVEN)(x).tolist() == [[max(range(10), key=row.__getitem__)] for row in x.tolist()]


@pytest.mark.parametrize(("values", "place"), [
    ([5, 5, 5], 0), ([-1, 5, 5], 1), ([-128, -128, -127], 2), ([0, -1, 0], 0)])
def test_of_equals_the_lowest_place(values, place):
    assert Argmax("choice", 3, GIVEN)(np.array([values])).tolist() == [[place]]


@pytest.mark.parametrize(("inputs", "width"), [(2, 2), (3, 3), (10, 5), (16, 5), (17, 6)])
def test_the_format_just_holds_the_last_place(inputs, width):
    form = Argmax("choice", inputs, GIVEN).output_format
    assert form == Format(width, 0)
    assert form.hi >= inputs - 1 > form.hi // 2


def test_a_choice_needs_two_values():
    with pytest.raises(Refusal, match=r"^Layer 'choice' must choose from at least two values, not 1; leave"):
        Argmax("choice", 1, GIVEN)


def test_behind_a_network(tmp_path):
    plain = network(4, 6, 3, outputs=5, k_out=2)
    chosen = plain.with_argmax()
    x = np.random.default_rng(0).normal(size=(20, 7, plain.flow.size))
    assert (chosen.run(x).integers[..., 0] == plain.run(x).integers.argmax(-1)).all()
    chosen.save(tmp_path)
    assert Network.load(tmp_path).hash == chosen.hash != plain.hash
    vectors = chosen.chosen(plain.vectors(x))
    assert (vectors.outputs == chosen.vectors(x).outputs).all()
    assert vectors.network == chosen.hash


def test_a_choice_of_a_choice_is_refused():
    with pytest.raises(Refusal, match=r"^Network 'small' must give values to choose from, but it ends with the choice "
                                      r"'argmax' already; leave argmax out$"):
        network(4, 6, 3, outputs=5, k_out=2).with_argmax().with_argmax()
