import re
from collections import Counter
from dataclasses import fields, replace

import pytest

from circulant.boards.device import Device, Taken, device, devices, fit_of, fits
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan import families
from circulant.hw.plan.families import FAMILIES
from circulant.sim.refusal import Refusal
from tests.refused import refused

TOY = Device("toy", "none", "xcu", dsps=8, block_rams=4, luts=1000, flip_flops=2000)


def design(products=0, memories=0, luts=0, flip_flops=0, style="block"):
    """Products of 18 × 16 bits, memories of 512 × 36 bits, and bits of which each takes a table or a flip-flop."""
    return Inventory(Counter({(18, 16): products} if products else {}),
                     Counter({(512, 36, style): memories} if memories else {}),
                     Counter({"layers": 1, "block": luts, "registers": flip_flops} if luts or flip_flops else {}))


@pytest.fixture
def measured(monkeypatch):
    """A family whose tables and flip-flops are known within a fifth and a tenth."""
    monkeypatch.setitem(families.FAMILIES, "xcu", replace(
        FAMILIES["xcu"], luts={"block": 1.0}, flip_flops={"registers": 1.0}, errors=(0.2, 0.1)))


def test_every_device_is_whole():
    assert len(devices()) >= 5
    for name, entry in devices().items():
        assert entry.name == name
        assert entry.series and entry.family in FAMILIES
        numbers = [getattr(entry, field.name) for field in fields(Device) if field.type is int]
        assert len(numbers) == 4 and all(type(number) is int and number > 0 for number in numbers), entry


@pytest.mark.parametrize(("name", "held"), [
    ("XCKU060", (2760, 1080, 331680, 663360)), ("XC7VX690T", (3600, 1470, 433200, 866400)),
    ("XC7Z020", (220, 140, 53200, 106400)), ("XC7A35T", (90, 50, 20800, 41600)),
    ("5CEA9", (2 * 342, 1220, 2 * 113560, 4 * 113560)), ("LFE5U-85F", (156, 208, 83640, 83640)),
    ("LFE5U-45F", (72, 108, 43848, 43848)), ("LFE5U-25F", (28, 56, 24288, 24288)),
    ("iCE40UP5K", (8, 30, 5280, 5280))])
def test_capacities_of_the_data_sheets(name, held):
    found = device(name)
    assert (found.dsps, found.block_rams, found.luts, found.flip_flops) == held


def test_unknown_device_names_the_nearest():
    with pytest.raises(Refusal, match=r"^A device must be one of .*, not 'XCKU06'; did you mean 'XCKU060'\?$"):
        device("XCKU06")


def test_shares(measured):
    found = fits(TOY, design(8, 2, 500, 1000))
    assert {name: taken["share"] for name, taken in found.as_json()["resources"].items()} == {
        "dsps": 1.0, "block_rams": 0.25, "luts": 0.5, "flip_flops": 0.5}
    assert str(found) == ("toy: 8 of 8 DSP blocks, 1 of 4 block RAMs, about 500 (± 20%) of 1,000 look-up tables, "
                          "about 1,000 (± 10%) of 2,000 flip-flops")
    assert found.doubts == []


def test_logic_that_was_not_foreseen_is_not_judged():
    """Nor that of manifests in which it was counted, which know no layers."""
    counted = replace(design(8, 8), logic=Counter({"registers": 3000, "choices": 400}))
    assert fits(TOY, design(8, 8)).taken.keys() == fits(TOY, counted).taken.keys() == {"dsps", "block_rams"}


@pytest.mark.parametrize(("found", "words"), [
    (design(9), "9 of 8 DSP blocks (1 too many)"),
    (design(8, 9), "4.5 of 4 block RAMs (0.5 too many)"),
    (design(9, 10), "9 of 8 DSP blocks (1 too many) and 5 of 4 block RAMs (1 too many)"),
    (design(1, 1, 1251, 100), "about 1,250 (± 20%) of 1,000 look-up tables (251 too many)"),
    (design(1, 1, 100, 2300), "about 2,300 (± 10%) of 2,000 flip-flops (300 too many)"),
])
def test_a_design_that_exceeds_a_device_is_refused_with_all_that_it_exceeds_and_with_what_would_do(
        measured, found, words):
    text = refused(fits, TOY, found)
    assert text.startswith(f"A design must fit toy, but it needs {words}; lower hardware.multipliers")
    assert re.search(r"take narrower words or larger blocks, or take \S+, the smallest known one that holds it$", text)


def test_what_only_may_not_fit_is_a_doubt(measured):
    found = fits(TOY, design(1, 1, 1200, 1900))
    assert found.doubts == ["toy may be too small: about 1,200 (± 20%) of 1,000 look-up tables; synthesize before you "
                            "rely on it", "toy may be too small: about 1,900 (± 10%) of 2,000 flip-flops; synthesize "
                            "before you rely on it"]


@pytest.mark.parametrize(("used", "error", "exceeds", "doubtful"), [
    (100, None, False, False), (101, None, True, False), (90, 0.1, False, False), (91, 0.1, False, True),
    (111, 0.1, False, True), (112, 0.1, True, False)])
def test_an_estimate_exceeds_when_the_least_of_it_does(used, error, exceeds, doubtful):
    taken = Taken(used, 100, error)
    assert (taken.exceeds, taken.doubtful) == (exceeds, doubtful)


def test_an_ice40_has_no_place_for_memories_of_look_up_tables():
    with pytest.raises(Refusal, match=r"^A design must fit iCE40UP5K, but it needs a place for 3 memories that lie in "
                                      r"look-up tables, which it has not \(generate with hardware\.family = 'ice40'\); "
                                      r".*take LFE5U-12F, the smallest"):
        fits(device("iCE40UP5K"), design(1, 3, style="distributed"))


def test_a_design_that_is_too_large_for_all():
    with pytest.raises(Refusal, match=r"no known device holds it$"):
        fits(device("LFE5U-25F"), design(10_000))


def test_no_device_asks_nothing():
    assert fit_of("none", {}) is None
    assert fit_of("LFE5U-25F", design(3).as_json()).taken["dsps"].used == 3
