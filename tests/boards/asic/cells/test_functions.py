"""Expressions of liberty: their precedence, as Verilog and as a table."""
import pytest

from circulant.boards.asic.cells.functions import parsed
from circulant.sim.refusal import Refusal


@pytest.mark.parametrize(("function", "bits"), [
    ("A B + !C", "10101011"), ("(A^B)'", "11000011"), ("A*B|C", "01010111"), ("A & (B + C)", "00000111"),
    ("!(A&B)&C", "01010100"), ("A'B' + (A (B+C))'", "11111000"), ("1", "11111111")])
def test_precedence_is_libertys(function, bits):
    expression = parsed(function).verilog().replace("1'b", "")
    found = "".join(str(eval(expression, {"A": n >> 2 & 1, "B": n >> 1 & 1, "C": n & 1}) & 1) for n in range(8))
    assert found == bits


def test_a_table_has_the_first_pin_lowest():
    function = parsed("A & !B")
    assert function.pins == ("A", "B")
    assert function.table().tolist() == [False, True, False, False]
    assert parsed("(A^B)^C").table().tolist() == [False, True, True, False, True, False, False, True]
    assert parsed("1").table().tolist() == [True]


@pytest.mark.parametrize("function", ["A &", "(A", "A ? B", "&A", "A)'", "'A'", "A()", ""])
def test_no_expression_is_refused(function):
    with pytest.raises(Refusal, match="must be an expression of pins, not "):
        parsed(function)
