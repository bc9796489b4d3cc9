import pytest

from circulant.experiment import load
from circulant.explore.bounds import SIZES, Cost, bounds, cost
from circulant.run.untrained import sized
from circulant.sim.refusal import Refusal


def priced(cycles, refused=()):
    """The costs of a network by block size."""
    return lambda experiment: Cost(
        size := experiment.compression.block_size, cycles=cycles[size], memory_bits=64000 // size,
        reason=f"it needs {64 // size} block RAMs" if size in refused else "")


CYCLES = {1: 800, 2: 420, 4: 230, 8: 130, 16: 90, 32: 90, 64: 95}


def test_below_the_weights_do_not_fit_and_above_no_cycle_is_saved(experiment):
    found = bounds(experiment, price=priced(CYCLES, refused=(1, 2)))
    assert (found.low, found.high) == (4, 16)
    assert found.why == ("k = 2 is out: it needs 32 block RAMs",
                         "no larger block takes fewer than 90 cycles a step")
    assert [each.block_size for each in found.costs] == list(SIZES)


@pytest.mark.parametrize(("limit", "why"), [
    ({"memory_bits": 9000}, "k = 4 is out: it needs 16,000 memory bits, and 9,000 are allowed"),
    ({"cycles": 200}, "k = 4 is out: it takes 230 cycles a step, and 200 are allowed")])
def test_a_limit_raises_the_smallest_size(experiment, limit, why):
    found = bounds(experiment, **limit, price=priced(CYCLES))
    assert (found.low, found.high, found.why[0]) == (8, 16, why)


def test_a_network_that_fits_with_no_block_size(experiment):
    with pytest.raises(Refusal, match="Some block size must give a design that fits LFE5U-25F, but none does; that of "
                                      "64: it needs 1 block RAMs; take a smaller model, or a larger --device"):
        bounds(experiment, price=priced(CYCLES, refused=SIZES))


def test_the_time_ends_before_the_sizes_do(experiment):
    with pytest.raises(Refusal, match=r"^--hours must be enough to plan the block sizes, but the time was over before "
                                      r"that of 1; allow more$"):
        bounds(experiment, deadline=0.0, price=priced(CYCLES))


def test_limits_that_exclude_each_other(experiment):
    with pytest.raises(Refusal, match="Some block size must give a design that fits LFE5U-25F and keeps the limits, "
                                      "but none does; that of 64: it needs 1,000 memory bits, and 900 are allowed and "
                                      "it takes 95 cycles a step, and 80 are allowed; relax a limit, or a larger "
                                      "--device"):
        bounds(experiment, memory_bits=900, cycles=80, price=priced(CYCLES))


def test_the_cost_of_an_untrained_network_is_that_of_its_plan():
    """Larger blocks take fewer cycles and less memory; a block larger than a matrix is refused with its reason."""
    experiment = load("digits-gru", ["board.device='LFE5U-25F'", "hardware.multipliers=0", "model.hidden=32"])
    found, larger, largest = (cost(sized(experiment, size)) for size in (2, 8, 64))
    assert found.reason == larger.reason == ""
    assert found.cycles > larger.cycles > 0 and found.memory_bits > larger.memory_bits > 0
    assert "Block size must not exceed both sides of its matrix (32 × 8), but 64 does" in largest.reason


def test_the_cost_counts_the_levels_of_the_experiment():
    four, nine = (cost(load("digits-gru", ["board.device='LFE5U-85F'", "hardware.multipliers=0",
                                           f"hardware.levels={levels}"])) for levels in (4, 9))
    assert nine.cycles < four.cycles


def test_approximate_products_have_as_many_multipliers_as_look_up_tables_hold():
    exact, truncated = (cost(sized(load("digits-gru", [
        "board.device=LFE5U-12F", "hardware.multipliers=0", "hardware.objective=throughput", "model.hidden=16",
        f"quantization.multiplier={multiplier}"]), 8)) for multiplier in ("exact", "truncated:5"))
    assert truncated.reason == "" and truncated.cycles > 2 * exact.cycles
