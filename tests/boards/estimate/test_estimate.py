from dataclasses import replace

import pytest

from benchmarks.synthesis import Point, network
from circulant.boards.device import Device, device, fit_of
from circulant.boards.estimate.estimate import Options, estimate
from circulant.hw import generate
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.families import FAMILIES
from circulant.sim.refusal import Refusal
from tests.hw import golden

POINT = Point("gru", 12, 20, 4, 15)

THROUGHPUT = Options(multipliers=15, objective="throughput")


@pytest.mark.parametrize(("point", "name", "levels", "reloadable"), [
    (POINT, "LFE5U-25F", 4, False),
    (replace(POINT, layers=2, multipliers=30, objective="latency"), "XC7A100T", 6, False),
    (replace(POINT, objective="latency"), "XCKU060", 4, True)])
def test_an_estimate_is_the_design_that_is_generated(point, name, levels, reloadable):
    """One estimate for ``estimate`` and for ``generate``, of an array for each layer and of one for all."""
    made, part = network(point), device(name)
    options = Options(multipliers=point.multipliers, objective=point.objective, levels=levels, reloadable=reloadable)
    found = estimate(made, part, options)
    design = generate(made, multipliers=point.multipliers, family=FAMILIES[part.family].profile.name, levels=levels,
                      objective=point.objective, reloadable=reloadable)
    counted = replace(design.figures, memory_bits=found.figures.memory_bits) if reloadable else design.figures
    assert found.figures == counted  # Memories of the configuration port are not predicted.
    said = found.as_json()
    assert said["latency_spaced_us"] == pytest.approx(found.figures.latency_spaced / found.mhz)
    assert f"{found.figures.latency_spaced:,} cycles, about" in "\n".join(found.lines())
    if not reloadable:
        assert fit_of(name, design.manifest["resources"]).as_json()["resources"] == {
            each: taken.as_json() for each, taken in found.taken.items()}
    counted = FAMILIES[part.family].demand(Inventory.from_json(design.manifest["resources"]))
    assert found.taken["dsps"].used == counted.dsps
    assert (found.taken["luts"].used, found.taken["flip_flops"].used) == (
        counted.luts.count, counted.flip_flops.count)
    assert found.fits and not found.doubts


def test_what_is_short_is_named_with_its_amount():
    tiny = Device("tiny", "none", "ecp5", dsps=10, block_rams=50, luts=1000, flip_flops=8000)
    found = estimate(network(POINT), tiny, THROUGHPUT)
    assert set(found.shortages) == {"dsps", "luts"} and found.shortages["dsps"] == 5
    assert not found.fits and found.doubts == []
    assert "DSP blocks      15 of 10: 5 too many" in "\n".join(found.lines())
    assert found.as_json()["shortages"] == found.shortages


def test_no_multipliers_are_all_of_the_device():
    found = estimate(network(Point("linear", 64, 64, 4, 0)), device("LFE5U-25F"), Options(objective="throughput"))
    assert 0.7 * 28 <= found.figures.multipliers <= 28
    shared = estimate(network(POINT), device("LFE5U-25F"), Options(objective="area"))
    assert shared.fits and 0.5 * 28 <= shared.figures.multipliers <= 28


def test_the_clock_follows_from_the_levels():
    made = network(POINT)
    four, twelve = (estimate(made, device("LFE5U-25F"), replace(THROUGHPUT, levels=levels)) for levels in (4, 12))
    beside, each = FAMILIES["ecp5"].cycle
    assert four.mhz == pytest.approx(1000 / (beside + 4 * each)) and twelve.mhz < four.mhz
    assert twelve.taken["flip_flops"].used < four.taken["flip_flops"].used


def test_two_products_of_a_block_take_half_the_blocks_and_all_of_a_device_makes_more():
    made = network(Point("linear", 64, 64, 4, 0, weight_bits=8, activation_bits=8))
    small = replace(device("XCKU060"), dsps=40)
    alone, packed = (estimate(made, small, Options(80, objective="throughput", dsp_packing=packing))
                     for packing in ("none", "27x18"))
    assert (alone.taken["dsps"].used, packed.taken["dsps"].used) == (80, 40)
    assert alone.figures == packed.figures and alone.figures.multipliers == 80
    assert not alone.fits and packed.fits
    whole = [estimate(made, small, Options(objective="throughput", dsp_packing=packing)).figures.multipliers
             for packing in ("none", "27x18")]
    assert whole == [40, 80]


@pytest.mark.parametrize(("name", "bits", "message"), [
    ("LFE5U-85F", 8, r"^hardware\.dsp_packing = '27x18' needs DSP blocks with such ports, but those of family 'ecp5'"),
    ("XCKU060", 14, r"^hardware\.dsp_packing = '27x18' needs a recurrent or fully connected layer with two products")])
def test_products_that_cannot_share_a_block_are_refused_as_by_the_generator(name, bits, message):
    made, options = network(Point("linear", 64, 64, 8, 0, weight_bits=bits)), Options(88, dsp_packing="27x18")
    for each in (lambda: estimate(made, device(name), options), lambda: generate(
            made, multipliers=88, family=FAMILIES[device(name).family].profile.name, dsp_packing="27x18")):
        with pytest.raises(Refusal, match=message):
            each()


def test_approximate_products_take_logic_and_time_in_place_of_dsp_blocks():
    exact, *others = (estimate(golden.network(4, 8, 4, multiplier=name, weight_bits=8, activation_bits=8),
                               device("XCKU060"), Options(60, objective="throughput"))
                      for name in ("exact", "truncated:5", "mitchell"))
    for found in others:
        assert (found.figures.multipliers, found.figures.cycles) == (exact.figures.multipliers, exact.figures.cycles)
        assert found.taken["dsps"].used < exact.taken["dsps"].used
        assert found.taken["luts"].used > exact.taken["luts"].used + 1000
    assert exact.mhz > others[0].mhz > others[1].mhz
