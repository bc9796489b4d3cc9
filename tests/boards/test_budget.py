
import pytest

from benchmarks.synthesis import Point, network
from circulant.boards.budget import largest, taken, whole
from circulant.boards.device import Device, device, fits
from circulant.hw.plan.families import Demand
from circulant.hw.planner import plan
from circulant.hw.resources import inventory
from circulant.sim.refusal import Refusal
from tests.hw import golden

TOY = Device("toy", "none", "ecp5", dsps=100, block_rams=50, luts=1000, flip_flops=2000)


@pytest.mark.parametrize("each", [1, 2, 4])
def test_a_product_of_several_blocks_counts_them(each):
    assert 100 // each * 0.95 <= largest(lambda multipliers: Demand(each * multipliers, 1), TOY, 100) <= 100 // each


def test_block_rams_count_as_well():
    assert 19 <= largest(lambda multipliers: Demand(multipliers, 2.5 * multipliers), TOY, 100) <= 20


def test_a_budget_too_small_for_any_plan_is_none():
    def demand(multipliers):
        if multipliers < 30:
            raise Refusal("too small")
        return Demand(each * multipliers, 1)

    each = 3
    assert 30 <= largest(demand, TOY, 100) <= 33
    each = 4
    assert largest(demand, TOY, 100) == 30, "the smallest plan, of which the fit then says what is too much"
    with pytest.raises(Refusal, match="too small"):
        largest(demand, Device("tiny", "none", "ecp5", dsps=10, block_rams=50, luts=1000, flip_flops=2000), 10)


@pytest.mark.parametrize("widths", [(12, 16), (18, 24)])
@pytest.mark.parametrize("name", ["LFE5U-45F", "XC7A35T"])
def test_all_of_a_device_is_what_its_blocks_allow(name, widths):
    made = network(Point("linear", 64, 64, 4, 0, weight_bits=widths[0], activation_bits=widths[1]))
    found = whole(device(name), made)
    taken = fits(device(name), inventory(made, plan(made, found))).taken["dsps"]
    assert 0.7 * taken.held <= taken.used <= taken.held, "arrays grow in steps"
    assert (found < taken.held) == (widths == (18, 24)), "a wide product takes several"


@pytest.mark.parametrize("multiplier", ["truncated:5", "mitchell"])
def test_approximate_products_fill_the_look_up_tables(multiplier):
    made, part = golden.network(8, 32, 8, multiplier=multiplier, weight_bits=8, activation_bits=8), device("XC7A35T")
    found = whole(part, made)
    logic = fits(part, taken(made, plan(made, found), max_steps=128, levels=4)).taken["luts"]
    assert 0.7 * logic.held <= logic.used <= logic.held
