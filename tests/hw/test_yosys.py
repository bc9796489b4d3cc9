"""hw/yosys.py: Yosys is started before its text is there, and says what is wrong with it."""
import pytest
from amaranth._toolchain.yosys import YosysError
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal

from circulant.hw.yosys import Yosys


def adder(name: str = "adder") -> str:
    m, a, b, s = Module(), Signal(4), Signal(4), Signal(5)
    unread = Signal(5)
    m.d.sync += s.eq(a + b)
    m.d.comb += unread.eq(a - b)
    return rtlil.convert(m, name=name, ports=[a, b, s], emit_src=False)


@pytest.mark.parametrize("short", [False, True])
def test_modules_become_verilog(short):
    with Yosys() as yosys:
        text = yosys.verilog("\n".join(map(adder, ("one", "other"))).replace("attribute \\top 1\n", ""), short=short)
    assert text.count("endmodule") == 2
    assert "generator" not in text
    assert ("unread" in text) is not short


def test_short_is_shorter():
    with Yosys() as long, Yosys() as short:
        assert 2 * len(short.verilog(adder(), short=True).split("\n")) < len(long.verilog(adder()).split("\n"))


def test_what_it_cannot_read_is_told_in_its_words():
    with Yosys() as yosys, pytest.raises(YosysError, match="line 1: syntax error"):
        yosys.verilog("module nonsense")


def test_one_that_is_given_nothing_is_stopped():
    with pytest.raises(KeyboardInterrupt), Yosys() as yosys:
        raise KeyboardInterrupt
    assert yosys._process.returncode
