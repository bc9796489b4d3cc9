"""hw/emit/simplify.py: what says nothing goes, what is said twice stays once, and products stay."""
import pytest

from circulant.hw.emit.rtlil import Chunk
from circulant.hw.emit.simplify import simplify
from tests.hw.emit.rtlil_text import cell, module

A, ZERO = (Chunk("\\a", 0, 4),), (Chunk("", 0, 4),)


@pytest.mark.parametrize(("made", "value"), [
    (cell("$and", "$9", A="\\a", B="4'1111", Y="$1"), A),
    (cell("$and", "$9", A="4'0000", B="\\a", Y="$1"), ZERO),
    (cell("$or", "$9", A="\\a", B="4'0000", Y="$1"), A),
    (cell("$or", "$9", A="\\a", B="4'1111", Y="$1"), (Chunk("", 15, 4),)),
    (cell("$not", "$9", A="4'0101", Y="$1"), (Chunk("", 0b1010, 4),)),
    (cell("$mux", "$9", A="\\a", B="\\b", S="1'0", Y="$1"), A),
    (cell("$mux", "$9", A="\\b", B="\\a", S="1'1", Y="$1"), A),
    (cell("$add", "$9", A="\\a", B="4'0000", Y="$1"), A),
    (cell("$add", "$9", A="4'0000", B="\\a", Y="$1"), A),
    (cell("$mux", "$9", A="\\a", B="\\a", S="\\b [0]", Y="$1"), A),
    (cell("$eq", "$9", A="2'01", B="1'1", Y="$1"), (Chunk("", 1, 4),)),
    (cell("$ne", "$9", A="2'01", B="1'1", Y="$1"), ZERO),
    (cell("$eq", "$9", A="2'10", B="1'1", Y="$1"), ZERO),
    (cell("$shift", "$9", A="\\a", B="1'0", Y="$1"), A),
    (cell("$sshr", "$9", A="\\a", B="1'0", Y="$1"), A),
    (cell("$sub", "$9", signed=1, A="\\a [2:0]", B="1'0", Y="$1"), (Chunk("\\a", 2, 1), Chunk("\\a", 0, 3))),
    (cell("$sub", "$9", A="\\a [2:0]", B="1'0", Y="$1"), (Chunk("", 0, 1), Chunk("\\a", 0, 3))),
])
def test_an_operation_with_a_constant_that_does_nothing_goes(made, value):
    found = module("<a:4 <b:4 >y:4 1:4", made, "connect \\y $1")
    simplify(found)
    assert found.cells == []
    assert found.connections == [((Chunk("\\y", 0, 4),), value)]


@pytest.mark.parametrize("made", [
    cell("$and", "$9", A="\\a", B="4'0111", Y="$1"),
    cell("$sub", "$9", A="4'0000", B="\\a", Y="$1"),
    cell("$mul", "$9", A="\\a", B="4'0000", Y="$1"),
    cell("$mux", "$9", A="\\a", B="\\b", S="\\a [0]", Y="$1"),
])
def test_an_operation_that_does_something_stays_and_so_does_a_product(made):
    found = module("<a:4 <b:4 >y:4 1:4", made, "connect \\y $1")
    simplify(found)
    assert [each.name for each in found.cells] == ["$9"]


def test_the_same_operation_twice_is_done_once_wherever_it_is_read():
    cells = [cell("$xor", "$11", A="\\a", B="\\b", Y="$1"), cell("$xor", "$12", A="\\a", B="\\b", Y="$2"),
             cell("$mul", "$13", A="\\a", B="\\b", Y="$3"), cell("$mul", "$14", A="\\a", B="\\b", Y="$4"),
             cell("$xor", "$15", A="$3", B="$4", Y="\\w")]
    found = module(
        "<a:4 <b:4 >y:4 >z:4 >w:8 1:4 2:4 3:8 4:8", *cells,
        "process $16\n  assign \\z [3:0] 4'0000\n  switch $2 [0]\n    case 1'1\n      assign \\z [3:0] $2\n  end\nend",
        "connect \\y $2")
    simplify(found)
    assert [each.name for each in found.cells] == ["$11", "$13", "$14", "$15"], "both products must stay"
    first = (Chunk("$1", 0, 4),)
    assert found.connections == [((Chunk("\\y", 0, 4),), first)]
    _, switch = found.processes[0]
    assert switch.selector == (Chunk("$1", 0, 1),)
    assert switch.cases[0].body == [(Chunk("\\z", 0, 4), first)]


def test_operations_of_other_signs_or_widths_are_others():
    found = module("<a:4 <b:4 >y:8 >z:8 1:8 2:8", cell("$add", "$8", A="\\a", B="\\b", Y="$1"),
                   cell("$add", "$9", signed=1, A="\\a", B="\\b", Y="$2"), "connect \\y $1", "connect \\z $2")
    simplify(found)
    assert len(found.cells) == 2


def test_a_wire_with_a_name_remains_and_is_read_unless_it_is_a_constant():
    found = module("<a:4 <b:4 w:4 v:4 >y:4 >z:4", cell("$and", "$7", A="\\a", B="4'0000", Y="\\w"),
                   cell("$or", "$8", A="\\w", B="\\b", Y="\\y"), cell("$or", "$9", A="\\v", B="\\a", Y="\\z"),
                   "connect \\v 4'1111")
    simplify(found)
    assert found.cells == []
    assert {target[0].name: value for target, value in found.connections} == {
        "\\v": (Chunk("", 15, 4),), "\\w": ZERO, "\\y": (Chunk("\\b", 0, 4),), "\\z": (Chunk("", 15, 4),)}


def test_a_chain_of_nothing_is_followed_to_its_begin():
    """In whatever order the cells stand."""
    chain = [cell("$or", "$8", A="$1", B="4'0000", Y="$2"), cell("$and", "$9", A="\\a", B="4'1111", Y="$1")]
    for order in (chain, chain[::-1]):
        found = module("<a:4 >y:4 1:4 2:4", *order, "connect \\y { $2 [1:0] $2 [3:2] }")
        simplify(found)
        assert found.cells == []
        assert found.connections == [((Chunk("\\y", 0, 4),), (Chunk("\\a", 0, 2), Chunk("\\a", 2, 2)))]


@pytest.mark.parametrize(("selector", "chosen"), [
    ("2'01", "\\a"), ("2'11", "\\b"), ("2'10", "\\b"), ("2'00", "4'0011")])
def test_of_a_choice_that_is_made_only_what_is_chosen_stays(selector, chosen):
    found = module("<a:4 <b:4 >y:4", (
        f"process $1\n  assign \\y [3:0] 4'0000\n  switch {selector}\n    case 2'01\n      assign \\y [3:0] \\a\n"
        "    case 2'1-\n      assign \\y [3:0] \\b\n    case\n      assign \\y [3:0] 4'0011\n  end\nend"))
    simplify(found)
    ((_, first), (target, value)) = found.processes[0]
    assert (first, target) == (ZERO, Chunk("\\y", 0, 4))
    assert value == {"\\a": A, "\\b": (Chunk("\\b", 0, 4),)}.get(chosen, (Chunk("", 3, 4),))


def test_a_choice_by_a_value_that_is_found_to_be_constant_is_made():
    found = module(
        "<a:4 >y:4 1:1", cell("$eq", "$9", A="2'01", B="1'1", Y="$1"),
        "process $2\n  assign \\y [3:0] 4'0000\n  switch $1\n    case 1'1\n      assign \\y [3:0] \\a\n  end\nend")
    simplify(found)
    assert found.processes == [[(Chunk("\\y", 0, 4), ZERO), (Chunk("\\y", 0, 4), A)]]


def test_a_choice_by_no_bits_is_that_of_its_first_case():
    found = module("<a:4 >y:4", "process $1\n  switch {}\n    case \n      assign \\y [3:0] \\a\n  end\nend")
    simplify(found)
    assert found.processes == [[(Chunk("\\y", 0, 4), A)]]
