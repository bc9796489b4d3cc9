"""Energy of a few gates, against sums by hand."""
import pytest

from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.power.activity import Activity
from circulant.boards.asic.power.energy import PITCHES, UTILISATION, WIRE, energy
from tests.boards.asic import tiny


@pytest.fixture
def made():
    """An inverter that feeds a flip-flop behind a clock gate."""
    return Netlist("top", {"clk": ("input", [2]), "e": ("input", [3]), "q": ("output", [6])}, {
        "gate": Instance("GATE_1", {"CK": [2], "E": [3], "T": ["0"], "GCK": [4]}),
        "inverter": Instance("INV_1", {"A": [6], "Y": [5]}),
        "flop": Instance("DFF_1", {"CK": [4], "D": [5], "Q": [6]})}, {})


def test_sums_of_all_kinds(tmp_path, made):
    library = tiny.read(tmp_path)
    found = energy(made, library, Activity(
        100, 1, 0, 0, toggles={5: 20, 6: 10}, pulses={4: 50}), [], mhz=100.0, macros={})
    wire = WIRE * PITCHES * ((4 + 1 + 5) / 3 / UTILISATION) ** 0.5
    pin = 1.0 + wire  # Of both nets: a pin of 1 fF, and the wire to it; the supply is 1 V.
    assert found.by_kind["logic"] == pytest.approx(0.2 * (2 + 0.5 * pin) / 1000)
    assert found.by_kind["registers"] == pytest.approx(0.1 * (3 + 0.5 * pin) / 1000)
    # Both edges in half of the cycles at the flip-flop; the clock in each cycle at the gate, that behind it in half.
    assert found.by_kind["clock"] == pytest.approx((0.5 * 2 * 10 + (2 + wire) + 0.5 * pin) / 1000)
    assert found.by_kind["leakage"] == pytest.approx((2 + 4) / 100 / 1000)
    assert found.total == pytest.approx(sum(found.by_kind.values()))


def test_what_does_not_move_costs_leakage_and_the_clock(tmp_path, made):
    found = energy(made, tiny.read(tmp_path), Activity(
        100, 1, 0, 0, toggles={5: 0, 6: 0}, pulses={4: 0}), [], mhz=100.0, macros={})
    assert {kind for kind, value in found.by_kind.items() if value} == {"clock", "leakage"}
