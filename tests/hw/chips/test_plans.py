import numpy as np
import pytest

from circulant.hw.chips.cut import Place
from circulant.hw.chips.plans import planned, shared
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
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


@pytest.mark.parametrize(("bits", "busy"), [(512, False), (8, True)])
def test_a_period_is_an_estimate_where_a_busy_link_is_joined(bits, busy):
    """Each vector waits for its other rows."""
    rng = np.random.default_rng(3)
    layers = [FloatLinear(f"l{n}", inputs, outputs, rng.normal(0, 0.3, (outputs // 4, inputs // 4, 4)),
                          rng.normal(0, 0.1, outputs)) for n, (inputs, outputs) in enumerate(((16, 32), (32, 64)))]
    made = quantize(Model.chain("rows", 16, True, layers), rng.normal(0, 0.5, (6, 9, 16)))
    places = {"l0": Place((0, 1), (4, 4)), "l1": Place((0, 1), (8, 8))}
    assert planned(made, cluster(12, 12, bits=bits), places).timing.estimates.count("cycles") == busy


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
