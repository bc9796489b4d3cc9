import pytest

from circulant.hw.plan.ladders import ladder, layer_entry, layer_multiplications
from circulant.hw.plan.stream_plan import one_for_each, pooled_aside, stream_plan
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.argmax import Argmax
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.kinds.pool import Pool
from circulant.sim.kinds.scale import Scale
from circulant.sim.shape.window import Window

FORM = Format(8, 4)
POOL = Pool("pool", inputs=3, grid=(4, 6), window=Window((2, 2), (2, 2)), mode="max", input_format=FORM,
            output_format=FORM)


def scale(inputs):
    factors = FORM.quantize([0.5] * inputs)
    return Scale("scale", inputs=inputs, scale=factors, shift=factors, factor=FORM, input_format=FORM,
                 output_format=FORM)


def test_a_pooling_takes_a_block_in_each_cycle():
    assert stream_plan(POOL).cycles == 24
    assert stream_plan(POOL, pixels=2).cycles == 12


@pytest.mark.parametrize(("order", "rows", "cycles"), [("pixels", False, 24), ("channels", False, 72)])
def test_a_flattening_out_of_order_takes_a_value_in_each_cycle(order, rows, cycles):
    assert stream_plan(Flatten("flat", 3, grid=(4, 6), order=order, rows=rows, input_format=FORM)).cycles == cycles


def test_a_choice_never_limits():
    assert stream_plan(Argmax("argmax", 10, FORM)).cycles == 1
    assert layer_entry(Argmax("argmax", 10, FORM), stream_plan(Argmax("argmax", 10, FORM)))["multipliers"] == 0


def test_a_scale_takes_some_channels_in_each_cycle():
    assert [(each.multipliers, each.cycles) for each in one_for_each(scale(5), 10)] == [
        (1, 50), (2, 30), (4, 20), (8, 10)]
    assert layer_multiplications(scale(5), 10) == 50
    assert [rung[0].elements for rung in ladder(scale(5), streams=1, count=10).rungs] == [1, 2, 4, 8]


def test_pixels_side_by_side_pool_where_their_windows_lie_side_by_side():
    assert pooled_aside(POOL, 2) == 1
    assert pooled_aside(POOL, 4) == 0, "6 columns are no whole blocks of 4 pixels"
    assert pooled_aside(scale(3), 2) == 0
