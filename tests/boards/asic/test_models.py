"""Models of cells: expressions of liberty as Verilog."""
import pytest

from circulant.boards.asic.models import models, translated
from circulant.sim.refusal import Refusal
from tests.boards.asic import cells


@pytest.mark.parametrize(("function", "bits"), [
    ("A B + !C", "10101011"), ("(A^B)'", "11000011"), ("A*B|C", "01010111"), ("A & (B + C)", "00000111"),
    ("!(A&B)&C", "01010100"), ("1", "11111111")])
def test_precedence_is_libertys(function, bits):
    expression = translated(function).replace("~", "1^").replace("1'b", "")
    found = "".join(str(eval(expression, {"A": n >> 2 & 1, "B": n >> 1 & 1, "C": n & 1})) for n in range(8))
    assert found == bits


@pytest.mark.parametrize("function", ["A &", "(A", "A ? B", "&A"])
def test_no_expression_is_refused(function):
    with pytest.raises(Refusal, match="must be an expression of pins, not "):
        translated(function)


def test_a_module_for_each_cell_that_is_used(tmp_path):
    text = models(cells.read(tmp_path), ["NAND2_1", "DFF_1", "GATE_1", "DFF_1"])
    assert text.count("endmodule") == 3
    assert "assign Y = (~(A & B));" in text
    assert "always @(posedge edge_IQ) IQ <= D;" in text
    assert "always @* if (~CK) M = E | T;" in text and "assign GCK = (CK & M);" in text
