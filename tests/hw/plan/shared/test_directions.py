"""Both directions on one array: exact, and in the planned cycles, for sequences as long as the memories allow."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.design import generate
from circulant.hw.planner import plan
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.verification import verify
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from tests.hw import drawn_layers as layers


def network(returns="sequence", hidden=(7, 7)):
    """Outputs of 7 values each, by default, whose last block begins behind all blocks of both."""
    both = Bidirectional("both", *(
        replace(layers.gru(seed, k=4, inputs=8, hidden=hidden[seed - 1], returns=returns), name=f"both.{way}")
        for seed, way in ((1, "forward"), (2, "backward"))))
    return Network.chain("both", 8, True, (both,))


@pytest.mark.parametrize(("steps", "returns", "hidden", "period"), [
    (3, "sequence", (7, 7), 88 / 3), (5, "last", (7, 7), 33.6),
    (5, "sequence", (4, 16), 42.8)])  # The backward layer is slower, so both sequences of its memory wait.
def test_sequences_one_behind_the_other_take_the_planned_cycles(tmp_path, steps, returns, hidden, period):
    made = network(returns, hidden)
    folder = generate(made, multipliers=40, objective="area", max_steps=steps).write(tmp_path / "design")
    planned, x = Manifest.load(folder).repeats, np.random.default_rng(0).normal(0, 1, (6, steps, 8))
    seen = verify(folder, made.vectors(x), stalls=False)
    assert planned.steps % steps == 0
    assert (seen.mismatches, seen.cycles_per_step) == (0, planned.cycles)
    assert planned.cycles == pytest.approx(period, abs=0.01)


def test_the_period_is_that_of_the_length_of_sequences():
    short, long, usual = (plan(network(), 40, objective="area", **asked)[0] for asked in (
        {"max_steps": 12}, {"max_steps": 128}, {}))
    assert (short.cycles, long.cycles, usual.cycles) == (pytest.approx(448 / 12), 39.75, 39.75)
    assert short.forward.shape == long.forward.shape


def test_where_starts_lead_to_several_periods_the_greatest_is_an_estimate():
    (pair,) = plan(network(), 40, objective="area", max_steps=1)
    assert (pair.forward.repeats, pair.forward.estimated) == (None, True)
