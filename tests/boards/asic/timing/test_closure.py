"""Timing closure: when late gates get another structure, and which netlist is kept."""
from contextlib import nullcontext

import pytest

from circulant.boards.asic.mapping import Settings
from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.timing import closure
from circulant.boards.asic.timing.analysis import Late, Stage, Timing
from circulant.boards.asic.timing.closure import closed
from circulant.boards.flow import silent
from circulant.sim.refusal import ToolError
from tests.boards.asic import tiny


@pytest.fixture
def close(tmp_path, monkeypatch):
    """Closes a netlist of a gate, with sizing that ends at the given slacks, one after the other; a new structure adds
    an inverter, and its effort and ends are noted. Returns the slack, the instances and the notes."""
    def run(*slacks, cells=1, fails=None):
        library, notes, left = tiny.read(tmp_path), [], list(slacks)
        made = Netlist("top", {"i": ("input", [2]), "o": ("output", [3])}, {
            "gate": Instance("INV_1", {"A": [2], "Y": [3]})}, {})

        def sized(netlist, library, analysis, told):
            slack = left.pop(0)
            late = (Late(slack, (Stage("a_reg", "DFF_1", 0.0, 0.1), Stage("end_reg", "DFF_1", 0.0, 0.0))),)
            return Timing(10.0, slack, "a_reg", "end_reg", late[0].stages, hold=0.0, late=late if slack < 0 else ())

        def restructured(netlist, library, ends, *, effort, **others):
            notes.append((effort, set(ends)))
            if effort == fails:
                raise ToolError("ABC failed")
            if cells:
                netlist.instances[f"made_{len(notes)}"] = Instance("INV_1", {"A": [2], "Y": [10 + len(notes)]})
                netlist.instances["gate"].pins["A"] = [10 + len(notes)]
            return cells

        monkeypatch.setattr(closure, "Analysis", lambda *arguments, **options: nullcontext())
        monkeypatch.setattr(closure, "sized", sized)
        monkeypatch.setattr(closure, "restructured", restructured)
        reached = closed(made, library, Settings(100.0), file=tmp_path / "netlist.v", libraries=["tiny.lib"],
                         work=tmp_path, show=silent)
        assert not left
        return reached.slack, made, notes
    return run


def test_a_clock_that_sizing_meets_leaves_the_structure_alone(close):
    slack, made, notes = close(0.0)
    assert slack == 0.0 and notes == [] and set(made.instances) == {"gate"}


def test_structures_follow_until_the_clock_is_met(close):
    slack, made, notes = close(-2.0, -1.0, 0.1)
    assert slack == 0.1 and notes == [(0, {"end_reg"})] * 2 and set(made.instances) == {"gate", "made_1", "made_2"}


def test_one_that_gains_nothing_is_taken_back_and_more_effort_follows(close):
    slack, made, notes = close(-2.0, -1.0, -1.0, -1.5)
    assert slack == -1.0 and [effort for effort, _ in notes] == [0, 0, 1]
    assert set(made.instances) == {"gate", "made_1"} and made.instances["gate"].pins["A"] == [11]


def test_an_effort_at_which_a_tool_fails_is_left_out(close):
    slack, made, notes = close(-2.0, 0.0, fails=0)
    assert slack == 0.0 and [effort for effort, _ in notes] == [0, 1] and set(made.instances) == {"gate", "made_2"}


def test_paths_without_gates_end_it(close):
    slack, made, notes = close(-2.0, cells=None)
    assert slack == -2.0 and len(notes) == 1 and set(made.instances) == {"gate"}


def test_gates_that_become_wires_alone_are_analysed_too(close):
    assert close(-2.0, 0.1, cells=0)[0] == 0.1


def test_the_number_of_structures_is_limited(close):
    slack, _, notes = close(*(-10.0 + n for n in range(closure.STRUCTURES + 1)))
    assert slack == -10.0 + closure.STRUCTURES and len(notes) == closure.STRUCTURES
