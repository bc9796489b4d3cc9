# amaranth: UnusedElaboratable=no
from itertools import pairwise

import pytest

from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.program import AHEAD, MAIN, SECOND, ArrayShape
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.array.sequencer import Sequencer
from tests.hw.drawn_layers import gru, lstm
from tests.hw.simulate import run

MOST, DEPTH = 40, 64
LAYERS = {"lstm": lambda: lstm(1, k=2, inputs=5, hidden=9), "projected": lambda: lstm(
    1, k=2, inputs=6, hidden=7, projection=5), "gru": lambda: gru(1, k=2, inputs=6, hidden=10)}


def sequencer(name, shape, *form):
    program = layer_program(LAYERS[name](), ArrayShape(*shape), (2, 3, 2), *form)
    return program, Sequencer(program, depth=DEPTH, most=MOST, image=f"{name}_program")


def play(dut, commands, *, have, cycles=400):
    """The issues (cycle, fields) of commands that come one behind the other, while ``have(cycle)`` blocks are there;
    and the cycles in which they are taken, and in which they end."""
    issues, taken, ends = [], [], []

    def agent():
        left = list(commands)
        for cycle in range(cycles):
            drive = {"go.valid": int(bool(left)), "have": have(cycle)} | ({"go.payload": left[0]} if left else {})
            shown = yield drive
            if shown["issue.valid"]:
                issues.append((cycle, {name[6:]: value for name, value in shown.items() if name.startswith("issue.")}
                               | {"group": shown["group"], "address": shown["address"]}))
            if shown["done"]:
                ends.append(cycle)
            if left and shown["go.ready"]:
                taken.append(cycle)
                left.pop(0)

    run(dut, agent())
    return issues, taken, ends


def given(command, *, base=0, zero=0, **leads):
    return {"command": command, "base": base, "zero": zero, **leads}


@pytest.mark.parametrize("shape", [(4, 2, 4), (8, 3, 2), (4, 1, 4, 3)], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_a_step_is_issued_in_the_order_of_its_program(name, shape):
    """Each field of each issue; weights are read in their order, and with every block there no cycle is lost but where
    the drain is taken."""
    program, dut = sequencer(name, shape)
    order = program.given
    issues, taken, ends = play(dut, [given(command, base=5 * command) for command in order],
                               have=lambda cycle: [MOST] * 2)
    wanted = [(command, issue) for command in order for issue in program.commands[command]]
    whole = [fields for _, fields in issues if fields.get("phase", 0) == program.shape.fold - 1]
    assert len(issues) == len(wanted) * program.shape.fold and len(ends) == len(taken) == len(order)
    for place, ((command, issue), fields) in enumerate(zip(wanted, whole, strict=True)):
        assert (fields["number"], fields["group"], fields["first"], fields["ends"]) == (
            issue.number, issue.group, int(issue.first), int(issue.ends))
        assert fields["address"] == 5 * command + issue.group and fields["weight"] == place
    ended = [cycle for cycle, fields in issues if fields["ends"]]
    assert all(late - soon >= program.shape.slots for soon, late in pairwise(ended))
    gaps = [late - soon - 1 for (soon, _), (late, _) in pairwise(issues)]
    assert sum(gaps) <= len(ended) * program.shape.slots


@pytest.mark.parametrize("name", LAYERS)
def test_an_issue_waits_for_its_blocks_and_no_longer(name):
    """A block that comes every fortieth cycle lets those go in the next cycle that need it."""
    program, dut = sequencer(name, (4, 2, 4))
    issues, _, _ = play(dut, [given(MAIN)], have=lambda cycle: [min(MOST, cycle // 40), 0])
    needs = [issue.need for issue in program.commands[MAIN]]
    assert max(needs) > 1 and len(issues) == len(needs)
    for place, ((cycle, _), need) in enumerate(zip(issues, needs, strict=True)):
        assert cycle > 40 * need, "its blocks are there"
        if need > max(needs[:place], default=0):
            assert cycle == 40 * need + 1, "and it goes at once"


@pytest.mark.parametrize(("name", "schedule", "command", "vector"), [
    ("lstm", InputFirst, MAIN, 0), ("projected", InputFirst, SECOND, 1), ("gru", EitherFirst, AHEAD, 2)])
def test_a_command_begins_at_once_where_just_the_blocks_of_its_first_issue_are_there(name, schedule, command, vector):
    program, dut = sequencer(name, (4, 2, 4), schedule)
    need = program.commands[command][0].need
    for there in (need, need - 1):
        have = [there if n == vector else 0 for n in range(program.counts)]
        issues, taken, _ = play(dut, [given(command, **{"leads": 1} if program.either else {})],
                                have=lambda cycle, have=have: have)
        assert len(taken) == 1 and [cycle - taken[0] for cycle, _ in issues][:1] == [1] * (there == need)


def test_a_first_step_waits_for_no_state():
    program, dut = sequencer("lstm", (4, 2, 4))
    issues, _, _ = play(dut, [given(MAIN, zero=1)], have=lambda cycle: [0, 0])
    assert len(issues) == len(program.commands[MAIN])
    assert not play(dut, [given(MAIN)], have=lambda cycle: [0, 0])[0], "another one does"


def test_the_second_vector_has_a_count_of_its_own():
    program, dut = sequencer("projected", (4, 2, 4))
    assert len(play(dut, [given(SECOND)], have=lambda cycle: [0, MOST])[0]) == len(program.commands[SECOND])
    assert not play(dut, [given(SECOND)], have=lambda cycle: [MOST, 0])[0]


@pytest.mark.parametrize("leading", [AHEAD, MAIN])
@pytest.mark.parametrize("schedule", [EitherFirst, Adjacent])
def test_sums_begin_in_the_command_that_leads_and_end_in_the_other_one(schedule, leading):
    """Whichever it is: each pass begins once and ends once, and all its products lie between."""
    program, dut = sequencer("lstm", (4, 2, 4), schedule)
    assert type(program) is schedule
    issues, _, ends = play(dut, [given(leading, leads=1), given(AHEAD + MAIN - leading, leads=0)],
                           have=lambda cycle: [MOST] * 3)
    assert len(issues) == program.cycles and len(ends) == 2
    for number in range(len(program.passes)):
        mine = [fields for _, fields in issues if fields["number"] == number]
        assert [fields["first"] for fields in mine] == [1] + [0] * (len(mine) - 1)
        assert [fields["ends"] for fields in mine] == [0] * (len(mine) - 1) + [1]
    assert sorted(fields["weight"] for _, fields in issues) == list(range(program.cycles))
