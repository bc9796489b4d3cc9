"""The streams of a bidirectional layer: forked, reversed, joined; and sequences that are cut; all states, by ABC."""
import pytest

from benchmarks.formal.check import Proof, available, prove
from tests.hw.bidirectional_properties import Forked, Joined, Limited, Reversed

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

UNITS = {
    "fork to 3": lambda: Forked(3),
    "fork to 2": lambda: Forked(2),
    **{f"vectors of {sizes[0]} and {sizes[1]} in blocks of {k}": lambda case=(sizes, k): Joined(*case)
       for sizes, k in (((3, 1), 2), ((32, 32), 8), ((20, 20), 8), ((1, 2), 2), ((1, 1), 1), ((1, 1), 2), ((5, 7), 4))},
    **{f"reversed sequences of {steps} vectors of {blocks} blocks": lambda case=(blocks, steps): Reversed(*case)
       for blocks, steps in ((1, 1), (2, 2), (1, 3), (2, 3), (3, 2))},
    **{f"sequences of {steps} vectors of {blocks} blocks": lambda case=(blocks, steps): Limited(*case)
       for blocks, steps in ((2, 300), (1, 1), (20, 1024))},
}

QUICK = ("fork to 3", "vectors of 3 and 1 in blocks of 2", "reversed sequences of 1 vectors of 1 blocks",
         "sequences of 300 vectors of 2 blocks")
"""What a person waits for."""

FAULTS = {
    "a vector that ends too late": (lambda: Joined((3, 1), 2, really=(3, 2)), "ok_count"),
    "vectors of other blocks": (lambda: Reversed(2, 2, really=1), "ok_count"),
    "a limit one step later": (lambda: Limited(2, 3, really=4), "ok_last"),
    "a fork that gives away too early": (lambda: Forked(2, fault=True), "ok_once"),
}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.soak) for name in UNITS])
def test_the_properties_hold_in_every_state(name):
    assert prove(UNITS[name]()) == Proof("induction")


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name):
    make, broken = FAULTS[name]
    found = prove(make())
    assert (found.broken, isinstance(found.depth, int)) == (broken, True)
