"""A copy of the Verilog writes its signals; words become blocks of signed elements."""
import numpy as np

from circulant.sim.arith.fixed import Format
from circulant.sim.arith.trace import Tensor
from circulant.sim.cosim.diverge.observe import blocks, instrumented, read
from circulant.sim.cosim.diverge.taps import Signal, Tap

ONE, TWO = Signal("a", "x", 8), Signal("b", "y", 8)
TENSOR = {"t": Tensor(np.zeros((1, 1, 4), np.int64), Format(4, 0))}


def test_each_signal_is_written_in_its_module_to_a_file_of_its_own(tmp_path):
    text, files = instrumented("module a (\n);\nendmodule\nmodule b (\n);\nendmodule\n", [ONE, TWO, ONE], "clk")
    first, second = text.split("module b (")
    assert first.count("$fwrite") == second.count("$fwrite") == 1
    assert '"%h\\n", x)' in first and '"%h\\n", y)' in second
    (tmp_path / files[ONE]).write_text("0f\nxx\n")
    (tmp_path / files[TWO]).write_text("10\n")
    assert read(tmp_path, files) == {ONE: [15, 0], TWO: [16]}


def test_elements_lie_from_the_low_bits_on_and_have_signs():
    tap = Tap("l", "transform", TENSOR, (ONE,), 2)
    assert blocks(tap, {ONE: [0xf7, 0x08]})[ONE].tolist() == [[7, -1], [-8, 0]]


def test_cells_side_by_side_make_a_block_over_several_cycles():
    tap = Tap("l", "gate", TENSOR, (ONE, TWO), 4)
    assert blocks(tap, {ONE: [1, 3, 5], TWO: [2, 4, 6]})[ONE].tolist() == [[1, 2, 3, 4], [3, 4, 5, 6]]
