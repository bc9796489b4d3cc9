"""Models of cells: Verilog of what their liberty file states."""
from circulant.boards.asic.cells.models import models
from tests.boards.asic import tiny


def test_a_module_for_each_cell_that_is_used(tmp_path):
    text = models(tiny.read(tmp_path), ["NAND2_1", "DFF_1", "GATE_1", "DFF_1"])
    assert text.count("endmodule") == 3
    assert "assign Y = ~(A&B);" in text
    assert "always @(posedge edge_IQ) IQ <= D;" in text
    assert "always @* if (~CK) M = E | T;" in text and "assign GCK = (CK&M);" in text
