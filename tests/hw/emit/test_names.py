"""hw/emit/names.py: names that every tool takes, each once."""
import re

import pytest

from circulant.hw.emit.names import Names, identifier, unnumbered


@pytest.mark.parametrize(("name", "found"), [
    ("data[3].valid", "data_3_valid"), ("port$12$0", "port_12_0"), ("_held_", "held"), ("3x", "n3x"), ("", "unnamed"),
    ("$$", "unnamed"), ("module", "module_"), ("logic", "logic_"), ("größe", "gr_e"), ("clk", "clk"),
])
def test_an_identifier_has_letters_digits_and_underscores_alone(name, found):
    assert identifier(name) == found
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", found)


def test_a_name_is_taken_once():
    names = Names()
    assert [names.take(each) for each in ("x", "x", "x_2", "x", "x.2")] == ["x", "x_2", "x_2_2", "x_3", "x_2_3"]


def test_a_number_of_amaranth_gives_way_to_one_of_its_own():
    names = Names()
    assert [names.take(each) for each in ("rows", "rows$43", "group$73", "U$0")] == ["rows", "rows_2", "group", "U_0"]
    assert unnumbered("top.rows$43.U$1") == "top.rows.U$1"


def test_numbers_leave_out_what_is_taken():
    names = Names()
    names.take("sum_1")
    assert [names.number("sum"), names.number("sum"), names.number("value")] == ["sum_2", "sum_3", "value_1"]
    assert names.take("sum_2") == "sum_2_2"
