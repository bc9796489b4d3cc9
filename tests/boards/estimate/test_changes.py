from dataclasses import replace

import pytest

from benchmarks.synthesis import Point, network
from circulant.boards.device import device
from circulant.boards.estimate import variants
from circulant.boards.estimate.changes import changes
from circulant.boards.estimate.estimate import Options, estimate

MADE = network(Point("gru", 12, 20, 4, 40))


def given(multipliers):
    """An array for each layer: its plan is quickly found."""
    return Options(multipliers, objective="throughput")


def found(part, options):
    failed = estimate(MADE, part, options)
    assert not failed.fits
    return {each.key: each for each in changes(MADE, part, options, failed=failed)}


def test_each_change_fits_and_less_does_not():
    part, options = replace(device("LFE5U-25F"), dsps=24), given(40)
    ways = found(part, options)
    assert list(ways)[-1] == "board.device" and ways["board.device"].after == "LFE5U-45F"
    fewer = ways["hardware.multipliers"]
    assert fewer.after == fewer.estimated.figures.multipliers <= 24 and fewer.before == 40 and fewer.estimated.fits
    assert not estimate(MADE, part, given(fewer.after + 5)).fits, "more of them do not"
    assert str(fewer).startswith(f"hardware.multipliers = {fewer.after} instead of 40: {fewer.after} multipliers, ")


def test_bits_are_as_few_as_need_be():
    part, options = replace(device("LFE5U-25F"), block_rams=6), given(15)
    before = estimate(MADE, part, options).taken["block_rams"].used
    part = replace(part, block_rams=int(before) - 1)
    ways = found(part, options)
    narrower = ways["quantization.weight_bits"]
    lost = narrower.before - narrower.after
    assert estimate(variants.narrower_weights(MADE, lost), part, options).fits
    assert lost == 1 or not estimate(variants.narrower_weights(MADE, lost - 1), part, options).fits
    steps = [each.step for key, each in ways.items() if key != "board.device"]
    assert steps == sorted(steps), "the smallest first"


def test_nothing_helps_a_device_that_is_far_too_small():
    part = replace(device("iCE40UP5K"), dsps=1, luts=50)
    assert set(found(part, given(15))) <= {"board.device"}


@pytest.mark.parametrize("budget", [1, 2])
def test_a_budget_too_small_for_a_plan_is_mended_by_larger_blocks_or_not_at_all(budget):
    ways = changes(MADE, device("LFE5U-25F"), given(budget))
    assert all(each.estimated.fits for each in ways)
    assert "hardware.multipliers" not in {each.key for each in ways}
