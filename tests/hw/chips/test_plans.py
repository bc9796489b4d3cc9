import pytest

from circulant.hw.chips.cut import Place
from circulant.hw.chips.plans import planned, shared
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import ROWS, cluster, pair


def test_states_that_go_to_and_fro_bound_the_period():
    """A step of both shares, twice the way between them: slower pins make it longer by as much as they are slower."""
    near, far = (planned(pair(), cluster(250, 250, latency=latency), ROWS).timing for latency in (3, 63))
    assert near.exchanges.keys() == {0, 1}
    assert far.exchanges[0] - near.exchanges[0] == pytest.approx(60, abs=4)
    assert far.period == max(far.exchanges.values()) and "cycles" in far.estimates


def test_words_of_a_step_are_counted():
    timing = planned(pair(), cluster(120, 120, bits=16), {"lstm1": Place((0,)), "lstm2": Place((1,))}).timing
    assert timing.links == {(0, 1): 16, (1, 0): 0}, "four blocks of four values of 16 bits"
    assert timing.period == max(timing.parts.values()) and timing.estimates == ()
    slow = planned(pair(), cluster(120, 120, bits=1), {"lstm1": Place((0,)), "lstm2": Place((1,))}).timing
    assert slow.period == 256


def test_words_that_would_pass_a_chip_are_refused():
    places = {"lstm1": Place((0,)), "lstm2": Place((2,))}
    with pytest.raises(Refusal, match="'lstm1' goes from 'chip0' to 'chip2' over 2 links, and no chip passes words on"):
        planned(pair(), cluster(99, 99, 99, topology="line"), places)


def test_layers_share_an_array_where_a_state_is_divided():
    ways = list(shared(pair(), cluster(120, 120), ROWS))
    assert ways and not list(shared(pair(), cluster(120, 120), {"lstm1": Place((0,)), "lstm2": Place((1,))}))
    for made in ways:
        own = [plan for plan in made.plans[0] if plan.multipliers]
        assert len({plan.sharing for plan in own}) == 1 and sum(plan.multipliers for plan in own) <= 120
        assert made.timing.period >= own[0].cycles == sum(
            program.cycles * program.shape.fold for program in own[0].sharing.programs)
        assert set(made.timing.estimates) == {"cycles", "latency_spaced"}
