import numpy as np
import pytest

from circulant.hw.chips.cut import Place, cut, even
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import ROWS, classifier, data, pair


@pytest.mark.parametrize("state_first", [False, True])
def test_parts_give_what_the_whole_gives(state_first):
    network = pair()
    x = network.integers(data(network))
    trace = network.traced(x)
    first, y = trace["lstm1.y"].integers, trace["lstm2.y"].integers
    late = np.concatenate([np.zeros_like(y[:, :1]), y[:, :-1]], axis=1)
    one, other = cut(network, ROWS, 2, state_first=state_first).parts
    given = one.compute({"input": x, "lstm2__1_before": late[..., 4:], "lstm2__1": y[..., 4:]})
    assert set(given) == {"lstm1", "lstm2__0", "lstm2"} and (given["lstm2"] == y).all()
    given = other.compute({"lstm1": first, "lstm2__0_before": late[..., :4]})
    assert list(given) == ["lstm2__1"] and (given["lstm2__1"] == y[..., 4:]).all()


def test_wires_go_where_they_are_taken():
    made = cut(pair(), ROWS, 2)
    assert {(each.name, each.start, each.to, each.before, each.direct) for each in made.wires} == {
        ("lstm1", 0, 1, "", True), ("lstm2__1", 1, 0, "lstm2__1_before", True),
        ("lstm2__0", 0, 1, "lstm2__0_before", False)}
    assert made.ends == {"lstm2__1_before": "lstm1", "lstm2__0_before": "lstm1"} and made.outputs == {"lstm2": 0}
    assert made.entering(0) == ("input",) and made.entering(1) == ()


def test_a_layer_on_one_chip_leaves_the_other_empty():
    made = cut(pair(), {"lstm1": Place((1,)), "lstm2": Place((1,))}, 2)
    assert made.parts[0] is None and not made.wires and len(made.parts[1].nodes) == 2


@pytest.mark.parametrize(("placement", "said"), [
    ({"lstm1": Place((0,))}, "but 'lstm2' has None"),
    ({"lstm1": Place((0,)), "lstm2": Place((2,))}, "a place on the chips 0 to 1, but 'lstm2' has"),
    ({"lstm1": Place((0, 1), (2, 2)), "lstm2": Place((1,))}, "The rows of layer 'lstm1' cannot be divided"),
    ({"lstm1": Place((0,)), "lstm2": Place((0, 1), (4, 0))}, "must be of 4 block rows in all, one or more"),
    ({"lstm1": Place((0,)), "lstm2": Place((0, 1), (1, 2))}, "must be of 4 block rows in all, one or more")])
def test_places_that_cannot_be_are_refused(placement, said):
    with pytest.raises(Refusal, match=said):
        cut(pair(), placement, 2)


def test_sequences_in_turn_need_all_layers_on_each_chip_and_a_result_for_each_step():
    turns = Place((0, 1), streams=True)
    made = cut(pair(), dict.fromkeys(("lstm1", "lstm2"), turns), 3)
    assert made.turns == (0, 1) and made.leaving == [("lstm2", 0), ("lstm2", 1)] and made.parts[2] is None
    with pytest.raises(Refusal, match="must have all layers each, and be of the chips 0 to 1, not"):
        cut(pair(), {"lstm1": turns, "lstm2": Place((0,))}, 2)
    with pytest.raises(Refusal, match="only where each step of a sequence has its result, which is not so of"):
        cut(classifier(), dict.fromkeys(("layer_0", "out"), turns), 2)


def test_block_rows_are_shared_by_weights():
    layer = pair().layers[1]
    assert even(layer, [1, 1]) == (2, 2) and even(layer, [9, 1]) == (3, 1) and even(layer, [1, 1, 1, 1]) == (1,) * 4
    with pytest.raises(Refusal, match="'lstm2' has 4 for 5 chips"):
        even(layer, [1] * 5)
