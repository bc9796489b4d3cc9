import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.hw.array.layer_programs import ROWS, layer_program, matrices
from circulant.hw.array.program import AHEAD, MAIN, SECOND, ArrayShape, Matrix, Part, parts
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.sim.arith.circulant import JointProduct
from circulant.sim.kinds.linear import Linear
from tests.hw.drawn_layers import gru, lstm
from tests.hw.golden import product

CASES = {
    "an LSTM": lambda: lstm(1, k=2, inputs=5, hidden=7),
    "a projection": lambda: lstm(1, k=2, inputs=6, hidden=7, projection=5),
    "a GRU": lambda: gru(1, k=2, inputs=5, hidden=9),
    "a GRU that resets before": lambda: gru(1, k=2, inputs=3, hidden=7, reset="before"),
    "a linear layer": lambda: Linear("linear", 9, 11, product(6, 5, 2)),
}
SHAPES = [(1, 1, 1), (4, 2, 4), (3, 4, 1), (6, 3, 2), (2, 7, 1), (16, 1, 4)]
SPACINGS = [(1, 1, 1), (ROWS, ROWS, ROWS), (4, 2, 3)]
UNEVEN = [("a GRU", (6, 2, 4)), ("a GRU", (10, 1, 4)), ("an LSTM", (12, 3, 8)), ("a linear layer", (5, 2, 4)),
          ("a GRU that resets before", (6, 1, 4))]


@pytest.fixture(params=[(name, shape, spacing) for name in CASES for shape, spacing in zip(
    SHAPES, [*SPACINGS, *SPACINGS], strict=True)] + [(*each, (4, 2, 3)) for each in UNEVEN], ids=str)
def program(request):
    name, shape, spacing = request.param
    return layer_program(CASES[name](), ArrayShape(*shape), spacing)


@pytest.fixture(params=[(name, shape) for name in CASES for shape in SHAPES] + UNEVEN, ids=str)
def either(request):
    name, shape = request.param
    return layer_program(CASES[name](), ArrayShape(*shape), SPACINGS[len(name) % 3], EitherFirst)


def all_issues(program):
    return [(command, issue) for command, issues in enumerate(program.commands) for issue in issues]


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 1), (2, 2, 0), (-2, 1, 1)])
def test_an_array_of_no_lanes_is_refused(numbers):
    shown = "ArrayShape(rows={}, columns={}, chains={}".format(*numbers)
    with pytest.raises(ValueError, match=r"^An array must have rows, columns and chains, not " + re.escape(shown)):
        ArrayShape(*numbers)


def test_lanes_and_slots_of_a_shape():
    assert (ArrayShape(6, 4, 2).lanes, ArrayShape(6, 4, 2).slots) == (24, 3)
    assert ArrayShape(22, 11, 8).slots == 3, "the last one is not full"


@pytest.mark.parametrize("shape", [(3, 1, 2), (6, 1, 4), (5, 1, 1)])
def test_rows_that_are_no_multiple_of_the_chains_are_whole_blocks(shape):
    if shape == (5, 1, 1):
        assert layer_program(CASES["an LSTM"](), ArrayShape(*shape), (1, 1, 1)).passes
        return
    with pytest.raises(ValueError, match=re.escape(
            "Rows that are no multiple of the chains must be one of the gates of each matrix, and so must be the "
            f"chains, not {shape[0]}, {shape[1 + 1]} and 4")):
        layer_program(CASES["an LSTM"](), ArrayShape(*shape), (1, 1, 1))


@pytest.mark.parametrize("chains", [3, 6])
def test_chains_and_gates_must_divide_one_another(chains):
    with pytest.raises(ValueError, match="^The chains and the gates of a matrix must divide one another, not "
                                         f"{chains} and 4$"):
        layer_program(CASES["an LSTM"](), ArrayShape(6, 1, chains), (1, 1, 1))


def test_every_block_product_is_done_once(program):
    """A lane's words are the weights of its row of the pass and its column of the group: together all, each once."""
    shape, issues = program.shape, all_issues(program)
    done = [[np.zeros((*weights.shape[:2], 1), np.int64) for weights in matrix.weights] for matrix in program.matrices]
    met = [[np.zeros_like(weights) for weights in matrix.weights] for matrix in program.matrices]
    for row in range(shape.rows):
        for column in range(shape.columns):
            words = program.weights(row, column)
            assert len(words) == len(issues) == program.cycles
            for word, (command, issue) in zip(words, issues, strict=True):
                p = program.passes[issue.number]
                matrix, r = program.matrices[p.matrix], p.first_row + row
                j, idle = issue.group * shape.columns + column, True
                for n, part in enumerate(matrix.parts):
                    if r < matrix.rows and j in part.columns and part.vector == int(command == SECOND):
                        met[p.matrix][n][r, j - part.column] += word
                        done[p.matrix][n][r, j - part.column] += 1
                        idle = False
                assert not idle or not word.any(), "an idle lane multiplies by zero"
    for matrix, counts, sums in zip(program.matrices, done, met, strict=True):
        for count, total, weights in zip(counts, sums, matrix.weights, strict=True):
            assert (count == 1).all()
            assert (total == weights).all()


def test_rows_are_interleaved_by_gate():
    matrix = Matrix((Part(product(6, 1, 1), 0, 0),), ("a", "b", "c"))
    rows, bias = matrix.parts[0].product.weights, matrix.parts[0].product.bias
    assert matrix.weights[0].ravel().tolist() == [int(rows[n, 0, 0]) for n in (0, 2, 4, 1, 3, 5)]
    assert matrix.bias.ravel().tolist() == [int(bias[n]) for n in (0, 2, 4, 1, 3, 5)]
    assert (matrix.rows, matrix.blocks, matrix.columns) == (6, 2, 1)
    assert [matrix.places(ArrayShape(12, 1, chains)).banks for chains in (1, 3, 6, 12)] == [1, 1, 2, 4]


def test_the_first_and_the_last_issue_of_a_pass_are_marked(program):
    by_pass = {}
    for _, issue in all_issues(program):
        by_pass.setdefault(issue.number, []).append(issue)
    assert sorted(by_pass) == list(range(len(program.passes)))
    for issues in by_pass.values():
        assert [issue.first for issue in issues] == [True] + [False] * (len(issues) - 1)
        assert [issue.ends for issue in issues] == [False] * (len(issues) - 1) + [True]


def test_passes_cover_the_rows_of_every_matrix(program):
    covered = [[p.first_row for p in program.passes if p.matrix == n] for n in range(len(program.matrices))]
    assert covered == [list(range(0, matrix.rows, program.shape.rows)) for matrix in program.matrices]


def overlapping(issues):
    """Pairs of passes that are both under way in some cycle of a sequence of pass numbers."""
    spans = {n: (issues.index(n), len(issues) - issues[::-1].index(n)) for n in set(issues)}
    return [(a, b) for a in spans for b in spans if a < b and spans[a][0] < spans[b][1] and spans[b][0] < spans[a][1]]


def test_passes_that_overlap_have_slots_of_their_own(program):
    """Within a step, and where AHEAD of the next one comes between MAIN and SECOND of this one."""
    numbers = {command: [issue.number for issue in issues] for command, issues in enumerate(program.commands)}
    assert all(0 <= p.slot < program.slots for p in program.passes)
    step = numbers[AHEAD] + numbers[MAIN] + numbers[SECOND]
    for a, b in overlapping(step):
        assert program.passes[a].slot != program.passes[b].slot
    waiting = {n for n in numbers[AHEAD] if n in numbers[MAIN]}
    for command in (MAIN, SECOND):
        for n in set(numbers[command]) - waiting - set(numbers[AHEAD]):
            assert program.passes[n].slot not in {program.passes[w].slot for w in waiting}, (
                "sums of the next step's AHEAD are kept while this one works")


def test_commands_are_told_apart_by_what_they_need(program):
    inputs = {part.column for matrix in program.matrices for part in matrix.parts if part.vector == 0}
    assert inputs
    for issue in program.commands[AHEAD]:
        assert issue.need == 0
    for command in (MAIN, SECOND):
        assert all(issue.need > 0 for issue in program.commands[command])


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_a_group_needs_the_last_block_of_its_own(columns):
    """Five blocks of input and three recurrent ones behind them; a group over the border waits for the vector."""
    x, h = product(2, 5, 2), product(2, 3, 2, bias=False)
    program = InputFirst(ArrayShape(1, columns, 1), [Matrix(parts(JointProduct((x, h)), 0, 5), ("y",))], inputs=5,
                      order=[(0, 0), (0, 1)], spacing=(1, 1, 1))
    for group in range(-(-8 // columns)):
        need = max(0, min(8, (group + 1) * columns) - 5)
        found = {(command, issue.need) for command, issue in all_issues(program) if issue.group == group}
        assert found == {(MAIN if need else AHEAD, need)}


def test_the_second_vector_has_groups_of_its_own():
    program = layer_program(CASES["a projection"](), ArrayShape(2, 3, 1), (1, 1, 1))
    projection = len(program.matrices) - 1
    assert {program.passes[issue.number].matrix for issue in program.commands[SECOND]} == {projection}
    assert {(issue.group, issue.need) for issue in program.commands[SECOND]} == {(0, 3), (1, 4)}


def test_commands_start_one_behind_the_other(program):
    lengths = [len(issues) for issues in program.commands]
    assert [program.start(command) for command in range(3)] == [0, lengths[0], lengths[0] + lengths[1]]
    assert program.cycles == sum(lengths)


def test_every_row_leaves_through_one_chain(program):
    """Row r of a pass in cycle r // I through chain r % I; what is no row of the matrix is marked."""
    shape, left = program.shape, {}
    for chain in range(shape.chains):
        leaving = program.leaving(chain)
        assert len(leaving) == len(program.passes) * shape.slots
        for place, (index, row) in enumerate(leaving):
            p = program.passes[place // shape.slots]
            expected = p.first_row + place % shape.slots * shape.chains + chain
            inside = place % shape.slots * shape.chains + chain < shape.rows
            assert (index, row) == (p.matrix, expected if inside and expected < program.matrices[index].rows else -1)
            if row >= 0:
                left[index, row] = left.get((index, row), 0) + 1
    assert left == {(n, row): 1 for n, matrix in enumerate(program.matrices) for row in range(matrix.rows)}


def test_a_gate_leaves_through_the_chains_of_its_own(program):
    """A memory is written by one chain only."""
    for chain in range(program.shape.chains):
        for index, row in program.leaving(chain):
            if row >= 0:
                matrix = program.matrices[index]
                block, kind = divmod(row, len(matrix.kinds))
                bank = matrix.places(program.shape).place(block)[0]
                assert chain == (bank * len(matrix.kinds) + kind) % program.shape.chains


@given(st.data())
def test_programs_of_any_size_issue_each_group_of_a_pass_once(data):
    rows, x, h = (data.draw(st.integers(1, 5)) for _ in range(3))
    chains = data.draw(st.sampled_from([1, 2, 4]))
    shape = ArrayShape(chains * data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6)), chains)
    spacing = tuple(data.draw(st.integers(1, 9)) for _ in range(3))
    joint = JointProduct((product(2 * rows, x, 1), product(2 * rows, h, 1, bias=False)))
    program = InputFirst(shape, [Matrix(parts(joint, 0, x), ("a", "b"))], inputs=x,
                      order=[(0, row) for row in range(0, 2 * rows, shape.rows)], spacing=spacing)
    groups = -(-(x + h) // shape.columns)
    issued = sorted((issue.number, issue.group) for _, issue in all_issues(program))
    assert issued == [(n, group) for n in range(len(program.passes)) for group in range(groups)]


@pytest.mark.parametrize("leading", [AHEAD, MAIN])
def test_either_first_sums_up_each_pass_whichever_command_leads(either, leading):
    """Its first issue of a step begins it, the last one ends it; blocks become whole behind all of their rows."""
    order = [leading, AHEAD + MAIN - leading, SECOND]
    issues = [(command, issue) for command in order for issue in either.commands[command]]
    passes = {}
    for command, issue in issues:
        leads = command == leading
        begins, ends = issue.first and (issue.alone or leads), issue.ends and (issue.alone or not leads)
        passes.setdefault(issue.number, []).append((begins, ends))
    for found in passes.values():
        assert [begins for begins, _ in found] == [True, *[False] * (len(found) - 1)]
        assert [ends for _, ends in found] == [*[False] * (len(found) - 1), True]
    there = set()
    for command, issue in issues:
        if issue.ends and (issue.alone or command != leading):
            p = either.passes[issue.number]
            matrix, kinds = either.matrices[p.matrix], len(either.matrices[p.matrix].kinds)
            for row in range(p.first_row, min(p.first_row + either.shape.rows, matrix.rows)):
                there.add((p.matrix, row))
                if matrix.completes and row % kinds == kinds - 1:
                    for index, other in enumerate(either.matrices):
                        if other.stage == matrix.stage:
                            of_block = range(row // kinds * len(other.kinds), (row // kinds + 1) * len(other.kinds))
                            assert {(index, each) for each in of_block} <= there


def test_the_shares_of_either_first_read_no_column_of_the_other_vector(either):
    columns = either.shape.columns
    inputs = [range(issue.group * columns, (issue.group + 1) * columns) for issue in either.commands[AHEAD]]
    own = [range(issue.group * columns, (issue.group + 1) * columns) for issue in either.commands[MAIN]]
    for matrix in either.matrices:
        for part in (part for part in matrix.parts if not part.vector):
            group = own if part.column else inputs
            assert set(part.columns) <= {column for each in group for column in each}
            assert not set(part.columns) & {column for each in (inputs if part.column else own) for column in each}
    assert all(issue.need >= 1 for issues in either.commands for issue in issues)


ADJACENT = {
    "an LSTM": (lambda: lstm(1, k=2, inputs=6, hidden=5), (4, 2, 4)),
    "a projection": (CASES["a projection"], (6, 2, 2)),
    "a GRU": (CASES["a GRU"], (6, 2, 4)), "a GRU, row by row": (CASES["a GRU"], (2, 2, 1)),
    "a GRU that resets before": (lambda: gru(1, k=2, inputs=5, hidden=9, reset="before"), (4, 2, 2))}


@pytest.mark.parametrize(("make", "numbers"), ADJACENT.values(), ids=list(ADJACENT))
@pytest.mark.parametrize("leading", [AHEAD, MAIN])
def test_an_adjacent_program_issues_what_golden_sums_up_whichever_command_leads(make, numbers, leading):
    """A group of both vectors comes once, in the command that follows; each pass begins and ends once; weights are
    those of the group."""
    layer, shape = make(), ArrayShape(*numbers)
    program = layer_program(layer, shape, (4, 2, 3), Adjacent)
    assert type(program) is Adjacent
    chosen = [AHEAD, MAIN, SECOND] if leading == AHEAD else [SECOND + 2, SECOND + 1, SECOND]
    issues = [(n, issue, address) for n in chosen
              for issue, address in zip(program.sequences[n], program.addresses[n], strict=True)]
    assert sorted(address for *_, address in issues) == list(range(program.cycles))
    places = [(n, issue.number, issue.group) for n in (AHEAD, MAIN, SECOND) for issue in program.sequences[n]]
    for n, issue, address in issues:
        assert places[address][1:] == (issue.number, issue.group)
        assert (places[address][0] == SECOND) == (n == SECOND)
    passes = {}
    for _, issue, _ in issues:
        passes.setdefault(issue.number, []).append((issue.first, issue.ends))
    for found in passes.values():
        assert [begins for begins, _ in found] == [True, *[False] * (len(found) - 1)]
        assert [ends for _, ends in found] == [*[False] * (len(found) - 1), True]
    inputs = -(-layer.inputs // 2)
    for _, issue, _ in issues[:len(program.sequences[chosen[0]])]:
        matrix = program.matrices[program.passes[issue.number].matrix]
        columns = {j for part in matrix.parts if not part.vector for j in part.columns
                   if j // shape.columns == issue.group}
        assert all((j < inputs) == (leading == AHEAD) for j in columns), "what leads reads one vector"
        assert issue.need == 0


def test_vectors_are_adjacent_only_where_that_saves_a_group_and_the_state_has_one_of_its_own():
    """Blocks of the input, of the recurrent vector, and columns."""
    found = {each: Adjacent.serves(matrices(lstm(1, k=2, inputs=2 * each[0], hidden=2 * each[1])),
                                   ArrayShape(4, each[2], 4))
             for each in [(3, 3, 2), (5, 5, 4), (3, 4, 2), (4, 3, 2), (1, 3, 2), (3, 1, 2), (4, 2, 3), (1, 1, 2)]}
    assert [each for each, adjacent in found.items() if adjacent] == [(3, 3, 2), (5, 5, 4), (1, 3, 2)]
