# amaranth: UnusedElaboratable=no
import pytest

from circulant.hw.array.dispatch import Dispatch
from circulant.hw.array.either_dispatch import EitherDispatch
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.program import AHEAD, MAIN, SECOND, ArrayShape
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.kinds.recurrent import bank_shape
from tests.hw.drawn_layers import lstm
from tests.hw.simulate import run

BLOCKS, WORK = 3, 6
"""Blocks of an output; cycles that a command takes here."""


def dispatch(*, projection=0, streams=1, room=9, schedule=InputFirst, reloadable=False):
    layer = lstm(1, k=2, inputs=8, hidden=2 * BLOCKS + 2 * bool(projection), projection=projection)
    program = layer_program(layer, ArrayShape(4, 2, 4), (1, 1, 1), schedule)
    banks = bank_shape(layer, program, streams=streams)
    kind = EitherDispatch if program.either else Dispatch
    return kind(program, banks=banks, blocks=BLOCKS, room=room, reloadable=reloadable)


def play(dut, *, inputs, lasts=(), state=None, cycles=200, finishes=True):
    """(cycle, command, base, zero) of the commands that are taken, each of which takes `WORK` cycles, AHEAD as long as
    its input has not come, and what all ports show in these cycles.

    Parameters:
        inputs: of a cycle, whole inputs that have come by then, those that were read included.
        lasts: numbers of the inputs that are the last of their sequence.
        state: of a cycle, whether the recurrent vector has come.
        finishes: whether results of a step are fetched, come and leave.
    """
    given, shows, ring = [], [], dut.last.shape().width
    reader = MAIN if state is None else AHEAD  # Whose end is that of the reading of an input.

    def agent():
        work, command, read, leaving, count = 0, 0, 0, [], 0
        for cycle in range(cycles):
            ends = work == 1
            drive = {"inputs": min(inputs(cycle) - read, ring), "go.ready": int(work <= 1), "done": int(ends),
                     "command": command, "last": sum((read + n in lasts) << (read + n) % ring for n in range(ring)),
                     "fetched": int(bool(leaving) and leaving[0] == (cycle, "ends")),
                     "ends": int(bool(leaving) and leaving[0] == (cycle, "ends")), "leaves": 0}
            if leaving and leaving[0] == (cycle, "ends"):
                leaving.pop(0)
            if leaving and leaving[0] == (cycle, "leaves"):
                drive["leaves"] = 1
                leaving.pop(0)
            if state is not None:
                drive["state"] = int(state(cycle))
            shown = yield drive
            read += ends and command == reader
            waits = work == 2 and command == AHEAD and inputs(cycle) <= read
            work = max(0, work - (not waits))
            if shown["go.valid"] and drive["go.ready"]:
                payload = shown["go.payload"]
                given.append((cycle, payload["command"], payload["base"], payload["zero"]))
                shows.append(shown)
                work, command = WORK, payload["command"]
                count += command == MAIN
                if finishes and command == MAIN:
                    leaving += [(cycle + 2 * WORK, "ends"),
                                *((cycle + 2 * WORK + 1 + n, "leaves") for n in range(BLOCKS))]

    run(dut, agent())
    return given, shows


def test_the_share_of_the_input_comes_before_that_of_the_state():
    """Step after step, with the vectors of the ring in turn; the first of a sequence has no state."""
    dut = dispatch()
    given, _ = play(dut, inputs=lambda cycle: 4, lasts={1}, finishes=True)
    first, second = dut._banks.bases
    assert [each[1:] for each in given] == [
        (AHEAD, first, 0), (MAIN, first, 1), (AHEAD, second, 0), (MAIN, second, 0),
        (AHEAD, first, 0), (MAIN, first, 1), (AHEAD, second, 0), (MAIN, second, 0)]


def test_a_step_waits_for_its_whole_input():
    given, _ = play(dispatch(), inputs=lambda cycle: (cycle >= 50) + (cycle >= 100))
    assert [each[:2] for each in given] == [(50, AHEAD), (50 + WORK, MAIN), (100, AHEAD), (100 + WORK, MAIN)]


@pytest.mark.parametrize(("room", "steps"), [(3, 1), (5, 1), (6, 2), (20, 2)])
def test_a_step_waits_for_room_for_its_output(room, steps):
    """Where nothing leaves; and of two steps at the most the rows have room until they are fetched."""
    given, _ = play(dispatch(room=room), inputs=lambda cycle: 5, finishes=False)
    assert [each[1] for each in given] == [AHEAD, MAIN] * steps


@pytest.mark.parametrize(("streams", "order"), [
    (1, [AHEAD, MAIN, AHEAD, SECOND, MAIN, AHEAD, SECOND, MAIN]),
    (3, [AHEAD, MAIN, AHEAD, MAIN, AHEAD, SECOND, MAIN])])
def test_the_second_vector_is_given_time_where_streams_take_turns(streams, order):
    given, _ = play(dispatch(projection=6, streams=streams, room=30), inputs=lambda cycle: 12)
    assert [each[1] for each in given][:len(order)] == order


def test_steps_are_noted_with_their_stream_and_whether_they_end_a_sequence():
    given, shows = play(dispatch(streams=2, room=30), inputs=lambda cycle: 8, lasts={2, 3})
    mains = [shown for each, shown in zip(given, shows, strict=True) if each[1] == MAIN][:6]
    noted = [shown["steps"][n % len(shown["steps"])] for n, shown in enumerate(mains)]
    assert [(each["first"], each["last"], each["stream"]) for each in noted] == [
        (1, 0, 0), (1, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1)]


@pytest.mark.parametrize(("there", "order"), [(False, [AHEAD, MAIN]), (True, [MAIN, AHEAD])])
def test_what_has_come_whole_leads(there, order):
    """The state of a second step that is there long before its input, or comes behind it."""
    dut = dispatch(schedule=EitherFirst)
    given, shows = play(dut, inputs=lambda cycle: 1 + (cycle >= (100 if there else 40)),
                        state=lambda cycle: cycle >= (60 if there else 120))
    assert [each[1] for each in given][2:4] == order
    assert [shown["go.payload"]["leads"] for shown in shows[:4]] == [1, 0, 1, 0]
    assert given[2][0] >= (60 if there else 40)


def test_a_reloadable_design_says_which_streams_go_on():
    dut = dispatch(streams=2, room=30, reloadable=True)
    _, shows = play(dut, inputs=lambda cycle: 4, lasts={2})
    assert [shown["resuming"] for shown in shows if shown["go.payload"]["command"] == AHEAD] == [0, 1, 3, 2]
    assert shows[-1]["busy"]
