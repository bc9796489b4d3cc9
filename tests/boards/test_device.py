import re
from dataclasses import fields

import pytest

from circulant.boards.device import Device, device, devices, fits
from circulant.sim.refusal import Refusal


def test_every_device_is_whole():
    assert len(devices()) >= 5
    for name, entry in devices().items():
        assert entry.name == name
        assert isinstance(entry.family, str) and entry.family
        assert all(side >= 16 for side in entry.multiplier) and len(entry.multiplier) == 2
        numbers = [getattr(entry, field.name) for field in fields(Device) if field.type is int]
        assert len(numbers) == 3 and all(type(number) is int and number > 0 for number in numbers), entry


@pytest.mark.parametrize(("name", "multipliers", "memory_kbit"), [
    ("XCKU060", 2760, 1080 * 36), ("5CEA9", 2 * 342, 1220 * 10), ("LFE5U-85F", 156, 208 * 18),
    ("LFE5U-25F", 28, 56 * 18), ("iCE40UP5K", 8, 30 * 4)])
def test_capacities_of_the_data_sheets(name, multipliers, memory_kbit):
    assert (device(name).multipliers, device(name).memory_bits) == (multipliers, memory_kbit * 1024)


def test_unknown_device_names_the_nearest():
    with pytest.raises(Refusal, match=r"^A device must be one of .*, not 'XCKU06'; did you mean 'XCKU060'\?$"):
        device("XCKU06")


def test_shares():
    part = Device("toy", "none", multipliers=8, multiplier=(18, 18), memory_bits=1000, luts=100)
    assert fits(part, 8, 250) == {"multipliers": 1.0, "memory_bits": 0.25}


@pytest.mark.parametrize(("multipliers", "memory_bits", "words"), [
    (9, 1000, "9 multipliers of 8"), (8, 1001, "1,001 memory bits of 1,000"),
    (9, 1001, "9 multipliers of 8 and 1,001 memory bits of 1,000")])
def test_a_design_that_exceeds_a_device_is_refused_with_all_that_it_exceeds(multipliers, memory_bits, words):
    part = Device("toy", "none", multipliers=8, multiplier=(18, 18), memory_bits=1000, luts=100)
    with pytest.raises(Refusal, match=rf"^A design must fit toy, but it needs {re.escape(words)}; lower "):
        fits(part, multipliers, memory_bits)
