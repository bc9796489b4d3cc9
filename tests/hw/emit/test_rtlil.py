"""hw/emit/rtlil.py: text of Amaranth as modules, and bits side by side."""
import pytest

from circulant.hw.emit.rtlil import Case, Chunk, Switch, joined, low_bits, modules, single_bits, span, width_of

TEXT = r"""
attribute \generator "Amaranth"
attribute \src "top.py:3"
module \top
  attribute \src "top.py:5"
  wire width 8 input 0 \a
  wire width 1 input 1 \clk
  wire width 0 input 2 \nothing
  wire width 4 output 3 \y
  wire width 8 $1
  memory width 4 size 16 \mem
  cell $add $2
    parameter \A_WIDTH 8
    parameter \Y_WIDTH 32'00000000000000000000000000001000
    parameter signed \A_SIGNED 1
    connect \A \a
    connect \B { \a [3:0] 4'1x01 }
    connect \Y $1
  end
  process $3
    assign \y [3:0] \a [7:4]
    switch \a [0]
      case 1'1
        assign \y [1] 1'0
      case
    end
  end
  connect $1 \a [7:0]
end
"""


def top():
    (module,) = modules(TEXT)
    return module


def test_wires_have_a_width_and_a_direction():
    module = top()
    assert module.name == "top"
    assert module.attributes == {"generator": '"Amaranth"', "src": '"top.py:3"'}
    assert [(wire.name, wire.width, wire.port) for wire in module.wires.values()] == [
        ("\\a", 8, "input"), ("\\clk", 1, "input"), ("\\nothing", 0, ""), ("\\y", 4, "output"), ("$1", 8, "")]
    assert module.wires["\\a"].attributes == {"src": '"top.py:5"'}
    assert module.wires["\\clk"].attributes == {}, "an attribute belongs to the next thing alone"
    assert (module.memories["\\mem"].width, module.memories["\\mem"].depth) == (4, 16)


def test_a_cell_has_numbers_and_bits_with_the_highest_first():
    (cell,) = top().cells
    assert (cell.kind, cell.name) == ("$add", "$2")
    assert [cell.number(name) for name in ("A_WIDTH", "Y_WIDTH", "A_SIGNED")] == [8, 8, 1]
    assert cell.ports["A"] == (Chunk("\\a", 0, 8),)
    assert cell.ports["B"] == (Chunk("\\a", 0, 4), Chunk("", 0b1001, 4)), "an undefined bit of a constant is zero"


def test_a_process_is_statements_in_order():
    (process,) = top().processes
    assert process == [
        (Chunk("\\y", 0, 4), (Chunk("\\a", 4, 4),)),
        Switch((Chunk("\\a", 0, 1),), [Case(["1"], [(Chunk("\\y", 1, 1), (Chunk("", 0, 1),))]), Case([], [])])]
    assert top().connections == [((Chunk("$1", 0, 8),), (Chunk("\\a", 0, 8),))]


@pytest.mark.parametrize(("text", "error"), [
    ("module \\a\n  sync always\nend\n", "must hold wires, cells, processes, memories and connections, not"),
    ("module \\a\n  cell $add $1", "A cell of RTLIL must have an end, but \\$1 has none"),
    ("module \\a\n  process $1", "A process of RTLIL must have an end"),
])
def test_other_text_is_refused(text, error):
    with pytest.raises(ValueError, match=error):
        list(modules(text))


BITS = (Chunk("a", 3, 2), Chunk("", 0b101, 3), Chunk("b", 0, 4))
"""Two bits, three, four: the highest first."""


def test_bits_are_the_same_as_a_whole_in_parts_and_one_by_one():
    whole = [*(("b", bit) for bit in range(4)), ("", 1), ("", 0), ("", 1), ("a", 3), ("a", 4)]
    assert [chunk[:2] for chunk in single_bits(BITS)] == whole
    for low in range(10):
        for width in range(10 - low):
            part = span(BITS, low, width)
            assert [chunk[:2] for chunk in single_bits(part)] == whole[low:low + width], (low, width)
            assert width_of(part) == width
            assert joined(span(BITS, low + width, 9 - low - width), part) == span(BITS, low, 9 - low)


def test_the_lowest_bits_are_all_where_there_are_no_more():
    assert low_bits(BITS, 20) is BITS
    assert low_bits(BITS, 5) == (Chunk("", 1, 1), Chunk("b", 0, 4))


def test_bits_of_two_wires_are_not_joined():
    assert joined((Chunk("a", 4, 2),), (Chunk("a", 1, 2),)) == (Chunk("a", 4, 2), Chunk("a", 1, 2)), "a bit is missing"
    assert joined((Chunk("b", 3, 2),), (Chunk("a", 1, 2),)) == (Chunk("b", 3, 2), Chunk("a", 1, 2))
    assert joined((Chunk("", 2, 2),), (Chunk("", 1, 3),)) == (Chunk("", 0b10001, 5),)
