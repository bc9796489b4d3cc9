"""Plans of layers: what they add up to, and that programs are computed once."""
from dataclasses import FrozenInstanceError

import pytest

from circulant.hw.array.plans import LayerPlan, PairPlan, ResidualPlan, StreamPlan, ValuesPlan
from circulant.hw.array.program import ArrayShape
from circulant.sim.kinds.linear import Linear
from tests.hw.golden import product, recurrent

GRU = recurrent("after", k=4, inputs=8, hidden=12)
PLAN = LayerPlan(ArrayShape(3, 2, 1), elements=2, multipliers=40, cycles=30, spacing=(3, 3, 3))


def test_a_program_is_computed_once_for_each_layer():
    other = recurrent("after", k=4, inputs=8, hidden=12)
    program = PLAN.program(GRU)
    assert program.shape == PLAN.shape
    assert PLAN.program(GRU) is program
    assert PLAN.program(other) is not program, "the same sizes, but other weights"


def test_a_program_has_the_spacing_of_its_plan():
    layer = Linear("linear", 12, 24, product(6, 3, 4))
    near, far = (LayerPlan(ArrayShape(2, 1, 1), 0, 20, 9, spacing=(each, each, each)) for each in (1, 1 << 30))
    orders = [[issue.number for issue in plan.program(layer).commands[0]] for plan in (near, far)]
    assert orders[0] != orders[1]
    assert orders[1] == sorted(orders[1]), "with rows first, pass follows pass"


def test_other_cycles_keep_the_programs():
    program, found = PLAN.program(GRU), PLAN.taking(25.5)
    assert (found.cycles, PLAN.cycles) == (25.5, 30)
    assert found.program(GRU) is program
    assert found != PLAN
    assert found.taking(30) == PLAN, "programs are no part of what a plan is"


def test_lanes_are_those_of_the_array():
    assert PLAN.lanes == 6
    with pytest.raises(FrozenInstanceError):
        PLAN.cycles = 3


@pytest.mark.parametrize(("forward", "backward", "blocks", "cycles"), [(30, 20, 3, 30), (20, 35, 3, 35), (5, 6, 8, 8)])
def test_a_pair_takes_what_the_slowest_takes(forward, backward, blocks, cycles):
    pair = PairPlan(PLAN.taking(forward), PLAN.taking(backward), blocks)
    assert (pair.cycles, pair.multipliers, pair.streams) == (cycles, 80, 1)


def test_a_stream_has_no_multipliers():
    assert StreamPlan(12).multipliers == 0


def test_branches_add_up_and_wait_for_the_slowest_layer():
    plan = ResidualPlan((PLAN, ValuesPlan(4, 50, 4)), (StreamPlan(70),))
    assert (plan.multipliers, plan.cycles, plan.streams) == (44, 70, 1)
    assert ResidualPlan((PLAN,), ()).cycles == 30
    assert ResidualPlan((), ()).cycles == 0, "nothing takes no time"
