"""Sizing by slack: which cells become stronger, and that the best round is kept."""
import pytest

from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.timing import sizing
from circulant.boards.asic.timing.analysis import Late, Stage, Timing
from circulant.boards.asic.timing.sizing import sized
from tests.boards.asic import tiny


def netlist():
    """Three inverters in a row."""
    return Netlist("top", {"clk": ("input", [2]), "i": ("input", [3]), "o": ("output", [6])}, {
        name: Instance("INV_1", {"A": [net], "Y": [net + 1]}) for name, net in (("a", 3), ("b", 4), ("c", 5))}, {})


class Scripted:
    """An analysis whose results are given; each round notes the cells."""

    def __init__(self, *slacks, delays=(1.0, 5.0, 1.0), load=0.001):
        self.slacks, self.changes = list(slacks), []
        self._stages = tuple(Stage(name, "INV_1", load, delay) for name, delay in zip("abc", delays, strict=True))

    def timing(self, ends=1, *, hold=True):
        slack = self.slacks.pop(0)
        late = (Late(slack, self._stages),) if slack < 0 else ()
        return Timing(10.0, slack, "i", "o", self._stages, hold=0.1, late=late)

    def resize(self, cells):
        self.changes.append(dict(cells))


def test_a_cell_becomes_stronger_where_that_wins_more_than_it_costs_the_one_before(tmp_path):
    made, analysis = netlist(), Scripted(-1.0, 0.5, 0.5, load=0.01)
    told = []
    reached = sized(made, tiny.read(tmp_path), analysis, lambda number, timing: told.append((number, timing.slack)))
    # INV_4 drives four times as much; its pin has 2.5 fF more, a quarter of the load before it: c would win 0.5 ns and
    # cost b, which takes five times as long, 0.9.
    assert analysis.changes == [{"a": "INV_4", "b": "INV_4"}] and reached.slack == 0.5
    assert told == [(1, -1.0), (2, 0.5)]
    assert [made.instances[name].cell for name in "abc"] == ["INV_4", "INV_4", "INV_1"]


def test_of_all_rounds_the_best_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(sizing, "MOVES", 1)
    made, analysis = netlist(), Scripted(-5.0, -1.0, -3.0, -1.0, load=0.01)
    assert sized(made, tiny.read(tmp_path), analysis).slack == -1.0
    assert analysis.changes == [{"b": "INV_4"}, {"a": "INV_4"}, {"a": "INV_1"}]  # The last exchange, and it back.
    assert [made.instances[name].cell for name in "abc"] == ["INV_1", "INV_4", "INV_1"]


def test_it_ends_without_a_gain(tmp_path, monkeypatch):
    monkeypatch.setattr(sizing, "PATIENCE", 1)
    monkeypatch.setattr(sizing, "MOVES", 1)
    analysis = Scripted(-1.0, -2.0, -1.0, load=0.01)
    assert sized(netlist(), tiny.read(tmp_path), analysis).slack == -1.0
    assert len(analysis.changes) == 2


@pytest.mark.parametrize("slack", [0.0, 1.0])
def test_a_clock_that_is_met_changes_nothing(tmp_path, slack):
    made, analysis = netlist(), Scripted(slack, slack)
    assert sized(made, tiny.read(tmp_path), analysis).slack == slack
    assert analysis.changes == []
