import pytest

from circulant.hw.convplan import conv_multiplications, conv_plans, stream_plan
from circulant.sim.fixed import Format
from circulant.sim.flatten import Flatten
from circulant.sim.pool import Pool
from circulant.sim.refusal import Refusal
from circulant.sim.window import Window
from tests.sim.test_conv import conv


def test_plans_do_the_work_and_leave_in_time():
    layer = conv(6, 16, 4, (9, 8), Window((3, 3)))
    plans = list(conv_plans(layer))
    assert {plan.shape.fold for plan in plans} > {1, 2}
    for plan in plans:
        assert plan.cycles * plan.multipliers >= conv_multiplications(layer) == 7 * 6 * 9 * 4 * 2 * 5
        assert plan.shape.rows // plan.shape.chains <= plan.shape.cycles // plan.shape.passes
    assert min(plan.cycles for plan in plans) == 9 * 8 * 2, "the input gives a block in a cycle"


def test_units_without_multipliers():
    form = Format(8, 4)
    assert stream_plan(Pool("p", 3, (6, 4), Window((2, 2), (2, 2)), "max", form, form)).cycles == 24
    assert stream_plan(Flatten("f", 3, (6, 4), "pixels", False, form)).cycles == 72
    assert stream_plan(Flatten("f", 3, (6, 4), "pixels", True, form)).cycles == 72


@pytest.mark.parametrize("window", [Window((3, 3), (2, 2)), Window((2, 2), (2, 2), (1, 0))])
def test_windows_that_overlap_or_reach_beyond_are_refused(window):
    form = Format(8, 4)
    with pytest.raises(Refusal, match=r"^Layer 'pool': hardware pools windows that neither overlap nor reach beyond"):
        stream_plan(Pool("pool", 3, (6, 6), window, "max", form, form))
