import json

import pytest

from circulant.boards.board import BoardTop, board, boards
from circulant.boards.device import devices
from circulant.boards.pll import PLLS
from circulant.boards.synthesis import FAMILIES
from circulant.hw import generate
from circulant.hw.emit.profile import PROFILES
from circulant.sim.refusal import Refusal
from tests.hw import golden


@pytest.fixture(scope="module")
def described():
    design = generate(golden.network(4, 8, 4, outputs=3, k_out=1), multipliers=9)
    return design.manifest


def test_every_name_of_a_board_is_known():
    for each in boards().values():
        assert each.device in devices() and each.profile in PROFILES
        assert each.synthesis in FAMILIES and each.pll in PLLS, each.name


@pytest.mark.parametrize("name", boards())
def test_a_board_is_a_circuit_with_constraints_and_commands(name, described):
    chosen = board(name)
    top = BoardTop(chosen, described, mhz=chosen.mhz)
    assert top.mhz == chosen.mhz
    files = chosen.make_platform().prepare(top, "top").files
    constraints = next(text for file, text in files.items() if file.endswith((".lpf", ".pcf", ".cst")))
    text = constraints if isinstance(constraints, str) else constraints.decode()
    assert "uart_0__rx" in text and "uart_0__tx" in text
    assert [command[0].partition("-")[0] for command in json.loads(files["build_top.json"])["commands"][:2]] == [
        "yosys", "nextpnr"]


def test_an_unknown_board_names_the_nearest():
    with pytest.raises(Refusal, match=r"^A board must be one of ulx3s-85f, .*, not 'icebraker'; did you mean "
                                      r"'icebreaker'\?$"):
        board("icebraker")


def test_a_clock_that_no_uart_divides_is_refused():
    assert board("icebreaker").divisor(18) == 18
    with pytest.raises(Refusal, match=r"^The clock must be a multiple of the 1,000,000 baud of icebreaker, within 2%, "
                                      r"not 5\.4 MHz"):
        board("icebreaker").divisor(5.4)
