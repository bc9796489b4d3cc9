"""Forms of gates with inverted pins, in a small library."""
from dataclasses import replace

import pytest

from circulant.boards.asic.cells.variants import gates, variant
from tests.boards.asic import tiny


@pytest.fixture
def library(tmp_path):
    found = tiny.read(tmp_path)
    base = found.cells["NOR2_1"]
    for name, function, area in (("NOR2B_1", "!(A|!B)", 2.0), ("XNOR2_1", "!(A^B)", 4.0), ("AND2_1", "(A&B)", 3.0)):
        found.cells[name] = replace(base, name=name, area=area, pins=base.pins | {
            "Y": replace(base.pins["Y"], function=function)})
    return found


@pytest.mark.parametrize(("name", "pins", "inverted", "found"), [
    ("XOR2_1", {"A"}, False, "XNOR2_1"), ("XOR2_1", {"A", "B"}, False, "XOR2_1"), ("XOR2_1", set(), True, "XNOR2_1"),
    ("NAND2_1", set(), True, "AND2_1"), ("AND2_1", {"A", "B"}, False, "NOR2_1"), ("NAND2_1", {"A"}, False, "")])
def test_the_smallest_form(library, name, pins, inverted, found):
    chosen = variant(library.cell(name), frozenset(pins), inverted, gates(library))
    assert (chosen[0].name if chosen else "") == found


def test_pins_change_places_where_the_form_has_them_the_other_way_round(library):
    for inverted, names in (("B", {"A": "A", "B": "B", "Y": "Y"}), ("A", {"A": "B", "B": "A", "Y": "Y"})):
        chosen = variant(library.cell("NOR2_1"), frozenset(inverted), False, gates(library))
        assert chosen is not None and (chosen[0].name, chosen[1]) == ("NOR2B_1", names)


def test_a_form_drives_no_less(library):
    strong = library.cells["XOR2_1"].pins["Y"]
    library.cells["XOR2_1"] = replace(library.cells["XOR2_1"], pins=library.cells["XOR2_1"].pins | {
        "Y": replace(strong, most=2 * strong.most)})
    assert variant(library.cell("XOR2_1"), frozenset("A"), False, gates(library)) is None
