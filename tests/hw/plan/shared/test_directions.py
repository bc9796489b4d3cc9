"""Both directions on one array: golden, and the estimate of their cycles."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.planner import plan
from circulant.hw.top import Top
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from tests.hw import drawn_layers as layers
from tests.hw.plan.shared.drawn_stacks import play

STEPS = 12


@pytest.mark.soak
def test_steps_in_the_middle_of_sequences_take_at_most_the_planned_cycles():
    """Outputs of 7 values each, whose last block begins behind all blocks of both. The directions are some cycles
    apart, which the plan does not know: its cycles are an estimate, here 42 for 40."""
    both = Bidirectional("both", *(replace(layers.gru(seed, k=4, inputs=8, hidden=7), name=f"both.{way}")
                                   for seed, way in ((1, "forward"), (2, "backward"))))
    network = Network.chain("both", 8, True, (both,))
    (pair,) = plan(network, 40, objective="area")
    x = np.random.default_rng(0).integers(-20000, 20000, (4, STEPS, 8))
    found, came, _ = play(network, Top(network, [pair], max_steps=STEPS), x.reshape(-1, 8), ends=STEPS)
    assert (found.reshape(4, STEPS, -1) == network.run_integers(x)).all()
    steps = np.diff(came[2 * STEPS:]).tolist()
    assert 0.95 * pair.cycles <= np.median(steps) <= pair.cycles
