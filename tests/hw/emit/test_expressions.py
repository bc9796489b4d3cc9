"""hw/emit/expressions.py: texts of operators. What they mean is proved in test_verilog.py; here is how they read."""
import pytest

from circulant.hw.emit.choices import Choice
from circulant.hw.emit.expressions import (
    ALONE,
    ANYWHERE,
    BRANCH,
    BREAK,
    Expression,
    choice,
    constant,
    operation,
    wrapped,
)
from circulant.hw.emit.rtlil import Chunk
from tests.hw.emit.rtlil_text import cell, module


def read(bits, place):
    """Names as they are; the wire ``sum`` stands for an expression of its own."""
    (name, low, width), = bits
    if not name:
        return Expression(constant(low, width))
    return Expression("p + q", "+") if name == "\\sum" else Expression(name[1:])


def text(made, width):
    found = module("<a:4 <b:4 <c:2 <s:1 <sum:4 >y:8", made)
    return operation(found.cells[0], width, read)


@pytest.mark.parametrize(("made", "width", "found", "place"), [
    (cell("$add", "$1", A="\\a", B="\\b", Y="\\y"), 4, "a + b", ANYWHERE),
    (cell("$add", "$1", A="\\a", B="\\b", Y="\\y"), 5, "a + b", BRANCH),
    (cell("$add", "$1", signed=1, A="\\a", B="\\b", Y="\\y"), 5, "$signed(a) + $signed(b)", ALONE),
    (cell("$add", "$1", A="\\sum", B="\\b", Y="\\y"), 4, "p + q + b", ANYWHERE),
    (cell("$add", "$1", A="\\sum", B="\\b", Y="\\y"), 5, "{p + q} + b", BRANCH),
    (cell("$sub", "$1", A="\\b", B="\\sum", Y="\\y"), 4, "b - (p + q)", ANYWHERE),
    (cell("$mul", "$1", signed=1, A="\\a", B="\\b", Y="\\y"), 8, "$signed(a) * $signed(b)", ALONE),
    (cell("$mul", "$1", A="\\a", B="\\b", Y="\\y"), 8, "a * b", ALONE),
    (cell("$eq", "$1", signed=1, A="\\a", B="\\b", Y="\\y"), 1, "a == b", ANYWHERE),
    (cell("$lt", "$1", signed=1, A="\\a", B="4'1111", Y="\\y"), 1, "$signed(a) < 4'sd15", ANYWHERE),
    (cell("$lt", "$1", A="\\a", B="2'11", Y="\\y"), 1, "a < 4'd3", ANYWHERE),
    (cell("$not", "$1", A="\\sum", Y="\\y"), 4, "~(p + q)", ANYWHERE),
    (cell("$not", "$1", A="\\a", Y="\\y"), 8, "~a", ALONE),
    (cell("$reduce_or", "$1", A="\\a", Y="\\y"), 1, "|a", ANYWHERE),
    (cell("$sshr", "$1", signed=1, A="\\a", B="\\c", Y="\\y"), 4, "$signed(a) >>> c", ALONE),
    (cell("$shl", "$1", A="\\a", B="\\c", Y="\\y"), 8, "a << c", ALONE),
    (cell("$mux", "$1", A="\\a", B="\\b", S="\\s", Y="\\y"), 4, f"s ? b{BREAK}: a", ANYWHERE),
])
def test_an_operation_has_the_text_and_the_places_that_its_widths_allow(made, width, found, place):
    expression = text(made, width)
    assert (expression.text, expression.place) == (found, place)


def test_a_cell_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"of a kind that Amaranth makes of operators, not \$pow"):
        text(cell("$pow", "$1", A="\\a", B="\\b", Y="\\y"), 4)


@pytest.mark.parametrize(("value", "width", "signed", "found"), [
    (1, 1, False, "1'b1"), (1, 1, True, "1'sd1"), (9, 4, False, "4'd9"), (65535, 16, False, "16'd65535"),
    (65536, 17, False, "17'h10000"), (0xdeadbeef, 32, True, "32'shdeadbeef"),
])
def test_small_numbers_are_decimal(value, width, signed, found):
    assert constant(value, width, signed=signed) == found


def test_choices_are_a_chain_by_patterns():
    wires = {name: (Chunk(f"\\{name}", 0, 4),) for name in ("a", "b", "c", "s")}
    tree = Choice(wires["s"], ((("10--", "0000"), wires["a"]), (("---1",), Choice(wires["c"], (
        (("0",), wires["a"]),), wires["b"]))), wires["b"])
    named = choice(tree, lambda bits, place: Expression(f"{bits[0].name[1:]}[{bits[0].low}+{bits[0].width}]" if (
        bits[0].width < 4) else bits[0].name[1:]))
    assert named.text.replace(BREAK, " ") == (
        "((s[2+2] == 2'd2) || (s == 4'd0)) ? a : s[0+1] ? (!c[0+1] ? a : b) : b")


def test_lines_break_between_choices_first_then_at_blanks():
    assert list(wrapped(f"  assign y = s ? a{BREAK}: b;")) == ["  assign y = s ? a : b;"]
    long = f"  assign y = s ? {'a' * 70}{BREAK}: t ? {'b' * 60}{BREAK}: c;"
    assert list(wrapped(long)) == [f"  assign y = s ? {'a' * 70}", f"      : t ? {'b' * 60}", "      : c;"]
    words = list(wrapped("  assign y = " + " + ".join(["operand"] * 30) + ";"))
    assert max(map(len, words)) <= 120
    assert " ".join(line.strip() for line in words) == "assign y = " + " + ".join(["operand"] * 30) + ";"
