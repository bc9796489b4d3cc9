"""Programs whose rows share lanes: those of nx and nh of a GRU, each with its part of the columns."""
import re

import numpy as np
import pytest

from circulant.hw.array.layer_programs import layer_program, matrices
from circulant.hw.array.program import AHEAD, MAIN, SECOND, ArrayShape
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.array.schedules.merged import placed
from circulant.hw.array.schedules.split_rows import SplitRows, SplitShape
from tests.hw.drawn_layers import gru, lstm

CASES = {
    "an LSTM": lambda: lstm(1, k=2, inputs=5, hidden=7),
    "a GRU": lambda: gru(1, k=2, inputs=5, hidden=9),
    "a GRU that resets before": lambda: gru(1, k=2, inputs=3, hidden=7, reset="before"),
}
SPLIT = {"two blocks a pass": (3, 7, (8, 5, 4)), "a block a pass": (2, 4, (4, 3, 4)), "a group of the input": (
    6, 9, (12, 5, 8)), "a last pass that is not full": (3, 7, (12, 5, 4))}


@pytest.fixture(params=SPLIT.values(), ids=list(SPLIT))
def split(request):
    x, h, numbers = request.param
    layer, shape = gru(1, k=2, inputs=2 * x, hidden=2 * h), SplitShape(*numbers)
    return layer, layer_program(layer, shape, (2, 2, 3), Adjacent)


@pytest.mark.parametrize("leading", [AHEAD, MAIN])
def test_a_split_program_sums_up_all_gates_of_a_block_in_one_pass_whichever_command_leads(split, leading):
    """Where no group is the input's alone, AHEAD has nothing to lead with, and MAIN is the whole step."""
    layer, program = split
    chosen = [AHEAD, MAIN] if leading == AHEAD else [SECOND + 2, SECOND + 1]
    issues = [issue for n in chosen for issue in program.sequences[n]]
    x, h = -(-layer.inputs // 2), -(-layer.hidden // 2)
    groups = -(-(x + h) // program.shape.columns)
    blocks = program.shape.rows // 4
    assert sorted((issue.number, issue.group) for issue in issues) == [
        (n, group) for n in range(-(-h // blocks)) for group in range(groups)]
    assert bool(program.commands[AHEAD]) == (x > program.shape.columns) == bool(program.inputs // program.shape.columns)
    for number in range(len(program.passes)):
        mine = [issue for issue in issues if issue.number == number]
        assert [issue.first for issue in mine] == [True, *[False] * (groups - 1)]
        assert [issue.ends for issue in mine] == [*[False] * (groups - 1), True]
    rows = [program.row_of(number, row) for number in range(len(program.passes)) for row in range(program.shape.rows)]
    there = [each for each in rows if each[1] >= 0]
    assert sorted(there) == [(index, row) for index, count in enumerate((h, 2 * h, h)) for row in range(count)]
    assert [index for index, _ in rows[:4]] == [1, 1, 0, 2] and [row for _, row in rows[:4]] == [0, 1, 0, 0]
    assert not any(issue.joins for issue in issues) and program.joint_gates == (0, 1)


def test_the_lanes_of_a_split_array_hold_the_weights_of_both_rows(split):
    """Those of the input's columns for nx, those of the state's for nh; no block of either is left out."""
    layer, program = split
    x = -(-layer.inputs // 2)
    assert program.parted_at == x % program.shape.columns
    assert program.shape.lane_rows == [row for row in range(program.shape.rows) if row % 4 != 2]
    found = {name: np.zeros((-(-layer.hidden // 2), count, 2), np.int64)
             for name, count in (("nx", x), ("nh", -(-layer.hidden // 2)))}
    places = [issue for issues in program.commands for issue in issues]
    for row in range(3, program.shape.rows, 4):
        for column in range(program.shape.columns):
            for issue, word in zip(places, program.weights(row, column), strict=True):
                block = program.passes[issue.number].first_row + row // 4
                j = issue.group * program.shape.columns + column
                name, at = ("nx", j) if j < x else ("nh", j - x)
                if block < len(found[name]) and at < found[name].shape[1]:
                    found[name][block, at] = word
                else:
                    assert not word.any()
    assert (found["nx"] == layer.candidate.weights).all()
    assert (found["nh"] == layer.candidate_recurrent.weights).all()


def test_lanes_of_a_split_shape():
    shape = SplitShape(8, 19, 4)
    assert (shape.lanes, shape.slots, shape.multipliers(16)) == (6 * 19, 2, 6 * 19 * 23)
    assert shape.couples == [(0, 1), (4, 5)] and ArrayShape(5, 1, 1).couples == [(0, 1), (2, 3)]


@pytest.mark.parametrize("numbers", [(6, 5, 4), (8, 5, 2), (8, 5, 6)])
def test_a_split_array_has_whole_gates(numbers):
    with pytest.raises(ValueError, match="^Rows and chains of a split array must be multiples of the 4 gates, not "
                                         f"{numbers[0]} and {numbers[2]}$"):
        SplitShape(*numbers)


def splitting():
    return gru(1, k=2, inputs=6, hidden=14)


@pytest.mark.parametrize(("make", "columns", "schedule"), [
    (CASES["an LSTM"], 4, Adjacent), (CASES["a GRU that resets before"], 3, Adjacent),
    (CASES["a GRU"], 3, Adjacent), (lambda: gru(1, k=2, inputs=2, hidden=22), 6, Adjacent),
    (splitting, 5, EitherFirst), (splitting, 5, InputFirst)],
    ids=["an LSTM", "a GRU that resets before", "no group saved", "a deeper tree", "vectors apart", "input first"])
def test_what_cannot_share_lanes_is_refused(make, columns, schedule):
    layer, shape = make(), SplitShape(4, columns, 4)
    assert SplitRows.serves(matrices(layer), shape) == (schedule is not Adjacent)
    with pytest.raises(ValueError, match=rf"^Rows that share lanes need adjacent vectors, .* layer '{layer.name}' has "
                                         rf"none for {re.escape(repr(shape))}$"):
        layer_program(layer, shape, (1, 1, 1), schedule)


def test_programs_that_share_a_split_array_part_its_rows_at_one_place():
    found = [layer_program(gru(1, k=2, inputs=2 * x, hidden=12), SplitShape(4, 5, 4), (1, 1, 1), Adjacent)
             for x in (3, 8, 4)]
    assert [each.parted_at for each in found] == [3, 3, 4]
    assert placed(found[:2])[1].whole.parted_at == 3
    with pytest.raises(ValueError, match=r"^Programs whose rows share lanes must have one number of columns at the "
                                         r"head of the group of both vectors, not \[3, 4\]$"):
        placed(found)
    side_by_side = matrices(gru(1, k=2, inputs=6, hidden=6))
    assert not Adjacent.serves(side_by_side, ArrayShape(3, 2, 3))
