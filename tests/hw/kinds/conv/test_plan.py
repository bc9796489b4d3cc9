import numpy as np

from circulant.hw.kinds.conv.plan import conv_plans, tile_plans
from circulant.hw.plan.ladders import layer_multiplications
from circulant.hw.plan.stream_plan import one_for_each, pooled_aside, stream_plan
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.kinds.pool import Pool
from circulant.sim.kinds.scale import Scale
from circulant.sim.shape.window import Window
from tests.sim.kinds.test_conv import conv


def test_plans_do_the_work_and_leave_in_time():
    layer = conv(6, 16, 4, (9, 8), Window((3, 3)))
    plans = list(conv_plans(layer))
    assert {plan.shape.fold for plan in plans} > {1, 2}
    for plan in plans:
        assert plan.cycles * plan.multipliers >= layer_multiplications(layer) == 7 * 6 * 9 * 4 * 2 * 5
        assert plan.shape.rows // plan.shape.chains <= plan.shape.cycles // plan.shape.passes
    assert min(plan.cycles for plan in plans) == 9 * 8 * 2, "the input gives a block in a cycle"


def test_units_without_multipliers():
    form = Format(8, 4)
    assert stream_plan(Pool("p", inputs=3, grid=(6, 4), window=Window((2, 2), (2, 2)), mode="max", input_format=form,
                            output_format=form)).cycles == 24
    assert stream_plan(Flatten("f", 3, grid=(6, 4), order="pixels", rows=False,
                               input_format=form)).cycles == 24, "blocks pass"
    assert stream_plan(Flatten("f", 3, grid=(6, 4), order="channels", rows=True, input_format=form)).cycles == 72
    norm = Scale("s", 3, *np.zeros((2, 3), np.int64), form, form, form)
    assert [(plan.multipliers, plan.cycles) for plan in one_for_each(norm, 10)] == [(1, 30), (2, 20), (4, 10)]


def test_tiles_take_fewer_multiplications():
    layer = conv(1, 6, 1, (28, 28), Window((5, 5), padding=(2, 2)))
    plans = {pixels: list(tile_plans(layer, pixels, leave=0)) for pixels in (2, 4)}
    assert {plan.multiplications for plan in plans[4]} == {28 * 7 * 5 * 6 * 13}
    assert {plan.multiplications for plan in plans[2]} == {28 * 14 * 5 * 6 * 8}
    assert all(plan.cycles * plan.multipliers >= plan.multiplications for plan in plans[2] + plans[4])
    assert not list(tile_plans(conv(2, 6, 2, (28, 28), Window((5, 5), padding=(2, 2))), 4, leave=0)), "not dense"


def test_pixels_side_by_side_in_a_pooling():
    form = Format(8, 4)
    assert pooled_aside(Pool("p", inputs=3, grid=(6, 8), window=Window((2, 2), (2, 2)), mode="max", input_format=form,
                             output_format=form), 4) == 2
    assert pooled_aside(Pool("p", inputs=3, grid=(6, 8), window=Window((3, 3), (2, 2)), mode="max", input_format=form,
                             output_format=form), 4) == 0, "they overlap"
    assert pooled_aside(Flatten("f", 3, grid=(6, 4), order="pixels", rows=False, input_format=form), 4) == 0
