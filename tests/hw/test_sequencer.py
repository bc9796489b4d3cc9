import pytest

from circulant.hw.sequencer import Sequencer, command, groups
from tests.hw.simulate import RESET, Transfers, run, source, trace

CASES = [  # rows and columns of each matrix, lanes
    ([(4, 3)], 1), ([(4, 3)], 2), ([(4, 3)], 4), ([(5, 1)], 3), ([(1, 1)], 1), ([(1, 4)], 5),
    ([(6, 2), (6, 4)], 3), ([(6, 1), (3, 5), (7, 2)], 4), ([(3, 4), (3, 1)], 2)]
COMMANDS = [(0, 0), (-1, 1), (0, 1), (0, 0), (1, 0), (-1, 0), (-1, 1), (0, 0)]


def orders(shapes):
    """Commands with matrices that there are."""
    return [{"matrix": min(matrix % len(shapes), len(shapes) - 1), "zero": zero} for matrix, zero in COMMANDS]


def golden(shapes, lanes, commands):
    """For each group of rows: matrix, zero, first group, the last one, and (column, address, first) of its products."""
    sizes = [groups(rows, lanes) * columns for rows, columns in shapes]
    for order in commands:
        n = order["matrix"]
        count, columns = groups(shapes[n][0], lanes), shapes[n][1]
        for group in range(count):
            start = sum(sizes[:n]) + group * columns
            yield (n, order["zero"], int(group == 0), int(group == count - 1),
                   [(column, start + column, int(column == 0)) for column in range(columns)])


def observed(shapes, lanes, commands, stall=0.0):
    """The same of a sequencer, and the cycles in which groups end."""
    log, cycles = [], []
    work = list(golden(shapes, lanes, commands))

    def watch():
        while len(cycles) < len(work) or len(log) < cycles[-1] + 30:
            log.append((yield {}))
            if log[-1]["ends_row"]:
                cycles.append(len(log) - 1)

    run(Sequencer(shapes=shapes, lanes=lanes), source("go", commands, Transfers(), stall=stall, seed=lanes), watch())
    seen = []
    for t in cycles:
        shown = log[t]
        products = log[t + 1 - shapes[shown["matrix"]][1]:t + 1]
        seen.append((shown["matrix"], shown["zero"], shown["first_group"], shown["ends"],
                     [(p["column"], p["address"], p["first"]) for p in products]))
        assert {(p["matrix"], p["zero"], p["first_group"]) for p in products} == {seen[-1][:3]}
    return seen, cycles


@pytest.mark.parametrize(("rows", "lanes", "count"), [(1, 1, 1), (4, 4, 1), (5, 4, 2), (8, 4, 2), (9, 4, 3), (2, 7, 1)])
def test_groups(rows, lanes, count):
    assert groups(rows, lanes) == count


def test_a_command_names_one_of_the_matrices():
    assert [command(n).members["matrix"] for n in (1, 2, 3, 5)] == [range(2), range(2), range(3), range(5)]


@pytest.mark.parametrize("stall", [0.0, 0.9])
@pytest.mark.parametrize(("shapes", "lanes"), CASES)
def test_products_come_in_the_order_of_the_weights(shapes, lanes, stall):
    commands = orders(shapes)
    assert observed(shapes, lanes, commands, stall)[0] == list(golden(shapes, lanes, commands))


@pytest.mark.parametrize(("shapes", "lanes"), CASES)
def test_a_group_takes_its_columns_or_the_drain_and_commands_leave_no_gap(shapes, lanes):
    work, cycles = observed(shapes, lanes, orders(shapes))
    steps = [max(len(products), lanes) for *_, products in work]
    steps[0] = len(work[0][-1])  # a command is at work in the cycle after it is accepted, and no drain is busy yet
    assert cycles == [sum(steps[:n + 1]) for n in range(len(steps))]


def test_a_group_that_waits_repeats_its_first_product():
    shown = trace(Sequencer(shapes=[(6, 2)], lanes=3), {
        "go.valid": [1, *[0] * 11], "go.payload": [{"matrix": 0, "zero": 0}] * 12})
    assert shown["column"][1:9] == [0, 1, 0, 0, 1, 0, 0, 0]
    assert shown["address"][1:6] == [0, 1, 2, 2, 3]
    assert shown["ends_row"] == [0, 0, 1, 0, 0, 1, *[0] * 6]
    assert shown["ends"] == [0, 0, 0, 0, 0, 1, *[0] * 6]
    assert shown["go.ready"] == [1, 0, 0, 0, 0, 1, *[1] * 6]


def test_an_idle_sequencer_completes_nothing():
    shown = trace(Sequencer(shapes=[(2, 1)], lanes=1), {"go.valid": [0] * 10})
    assert (shown["ends_row"], shown["ends"], shown["go.ready"]) == ([0] * 10, [0] * 10, [1] * 10)


def test_a_reset_ends_the_command_and_the_wait():
    shown = trace(Sequencer(shapes=[(8, 1)], lanes=4), {
        "go.valid": [1, *[0] * 5, 1, *[0] * 5], "go.payload": [{"matrix": 0, "zero": 0}] * 12,
        RESET: [0, 0, 0, 0, 1, 0, *[0] * 6]})
    assert shown["ends_row"] == [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
