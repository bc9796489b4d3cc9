import pytest

from circulant.boards.pll import PLLS
from circulant.sim.refusal import Refusal


@pytest.mark.parametrize(("kind", "pin", "mhz"), [
    ("ecp5", 25, 100), ("ecp5", 25, 125), ("ecp5", 100, 80), ("ice40", 12, 18), ("ice40", 12, 24), ("gowin", 27, 54),
    ("gowin", 27, 81)])
def test_a_clock_is_made_exactly_where_dividers_do(kind, pin, mhz):
    found = PLLS[kind].nearest(pin, mhz)
    assert found.mhz == mhz
    ratio = found.feedback / found.reference / (2 ** found.output if kind == "ice40" else 1)
    assert pin * ratio == pytest.approx(mhz)


@pytest.mark.parametrize("kind", PLLS)
def test_a_clock_is_never_faster_than_what_is_asked_for(kind):
    pin = {"ecp5": 25, "ice40": 12, "gowin": 27}[kind]
    for mhz in (18, 24, 48) if kind == "ice40" else (25, 50, 60, 75, 100):
        assert 0.95 * mhz <= PLLS[kind].nearest(pin, mhz).mhz <= mhz


def test_a_clock_out_of_reach_is_refused_with_the_nearest():
    with pytest.raises(Refusal, match=r"^The clock must be one that a PLL makes of 12 MHz, not 2 MHz; take 8\.4"):
        PLLS["ice40"].nearest(12, 2)
