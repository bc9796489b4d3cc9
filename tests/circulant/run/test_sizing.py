"""Levels of logic and the family: those given, or those that a clock and a device stand for."""
import re

import pytest

from circulant.experiment import Board, Experiment, Quantization
from circulant.hardware import Hardware
from circulant.run.sizing import clock, family, latency, levels
from circulant.sim.refusal import Refusal


def of(device="none", multiplier="exact", **hardware):
    return Experiment("small", quantization=Quantization(multiplier=multiplier), hardware=Hardware(**hardware),
                      board=Board(device))


def test_levels_follow_from_a_clock_and_the_family():
    assert (levels(of()), levels(of(levels=9))) == (4, 9)
    assert [levels(of("XCKU060", clock_mhz=mhz)) for mhz in (50, 150, 200, 270)] == [12, 9, 6, 4]
    assert levels(of("LFE5U-85F", clock_mhz=107)) == 4, "that of the design that was routed"


def test_constraints_have_the_clock_that_was_asked_for_or_that_of_the_device():
    assert clock(of()) is None
    assert clock(of("XCKU060", clock_mhz=150)) == 150
    assert (clock(of("LFE5U-85F")), clock(of("XCKU060"))) == (109, 277)
    assert clock(of("LFE5U-85F", levels=9)) < 100, "more levels, a slower clock"
    for multiplier, deep in (("truncated:5", 6), ("mitchell", 11)):
        assert clock(of("LFE5U-85F", multiplier)) == clock(of("LFE5U-85F", levels=deep)), "no register inside"
        assert clock(of("LFE5U-85F", multiplier, levels=12)) == clock(of("LFE5U-85F", levels=12))


def test_a_latency_in_microseconds_has_as_many_cycles_as_the_clock():
    assert (latency(of()), latency(of(latency=70))) == (0, 70)
    assert latency(of("XCKU060", clock_mhz=150, latency_us=0.4)) == 60
    assert latency(of("LFE5U-85F", latency_us=0.5)) == 54, "109 MHz"


@pytest.mark.parametrize(("experiment", "rule"), [
    (of(latency_us=0.5), "hardware.latency_us needs a device, whose family says how long a cycle is, but board.device "
                         "is 'none'; name one, or give hardware.latency in cycles"),
    (of("XCKU060", latency_us=0.5, latency=3), "hardware.latency follows from hardware.latency_us where that is given, "
                                               "but they are 3 and 0.5; give one of them"),
    (of("XCKU060", clock_mhz=100, latency_us=0.009), "hardware.latency_us must be a cycle at least, 0.01 µs at 100 "
                                                     "MHz, not 0.009; raise it")])
def test_a_latency_without_a_clock_is_refused(experiment, rule):
    with pytest.raises(Refusal, match=re.escape(rule)):
        latency(experiment)


def test_the_family_is_that_of_the_device_unless_another_one_is_given():
    assert [family(of(name)) for name in ("none", "LFE5U-85F", "iCE40UP5K", "XCKU060")] == [
        "generic", "ecp5", "ice40", "xilinx"]
    assert family(of("LFE5U-85F", family="generic")) == "generic"


@pytest.mark.parametrize(("experiment", "rule"), [
    (of(clock_mhz=200), "hardware.clock_mhz needs a device, whose family says how fast logic is, but board.device is "
                        "'none'; name one, or give hardware.levels"),
    (of("XCKU060", clock_mhz=300), "hardware.clock_mhz must leave time for 4 levels of logic, on XCKU060 at most 277 "
                                   "MHz, not 300; lower it"),
    (of("XCKU060", "mitchell", clock_mhz=200), "hardware.clock_mhz must leave time for 11 levels of logic of products "
                                               "'mitchell', on XCKU060 at most "),
    (of("XCKU060", clock_mhz=200, levels=5), "hardware.levels follows from hardware.clock_mhz where that is given, but "
                                             "they are 5 and 200; give one of them")])
def test_what_cannot_be_had_is_refused(experiment, rule):
    with pytest.raises(Refusal, match=re.escape(rule)):
        levels(experiment)
