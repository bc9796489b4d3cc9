"""Instructions of the C beside a dense loop's."""
import shutil

import pytest

from benchmarks import instructions
from benchmarks.instructions import of_cortex_m, of_host, ratios, without_cortex_m

LOOP = '''#include <stdint.h>
int16_t x[1], y[1];
static void run(void)
{{
    int n = {n};
    __asm__ volatile("1: {instruction}\\n {jump} 1b" : "+r"(n) :: "cc");
}}
'''

counted_on_host = pytest.mark.skipif(not all(map(shutil.which, ("gcc", "valgrind"))),
                                     reason="gcc or Valgrind is not installed")
counted_on_cortex_m = pytest.mark.skipif(bool(without_cortex_m()), reason=without_cortex_m() or "there")


@counted_on_host
def test_the_c_takes_fewer_instructions_than_a_dense_loop(monkeypatch):
    monkeypatch.setattr(instructions, "SIZES", (256,))
    found = ratios(of_host, lambda text: None)["256"]
    assert found["16"] < found["8"] < 0.7
    monkeypatch.setattr(instructions, "FLAGS", (*instructions.FLAGS, "-DPOINT_ROWS=1"))
    assert ratios(of_host, lambda text: None)["256"]["8"] > 2 * found["8"], "row by row little can be vectorised"


@counted_on_cortex_m
def test_a_cortex_m4_takes_a_fifth_of_a_dense_loop(monkeypatch):
    monkeypatch.setattr(instructions, "SIZES", (256,))
    found = ratios(of_cortex_m, lambda text: None)["256"]
    assert found["16"] < found["8"] <= 0.2


@counted_on_cortex_m
def test_instructions_of_a_cortex_m4_are_counted():
    loops = [of_cortex_m({"main.c": LOOP.format(n=n, instruction="subs %0, #1", jump="bne")}) for n in (10**4, 10**6)]
    assert loops[1] - loops[0] == pytest.approx(2 * (10**6 - 10**4), abs=instructions.TICK)


@counted_on_host
def test_instructions_of_this_machine_are_counted():
    loops = [of_host({"main.c": LOOP.format(n=n, instruction="sub $1, %0", jump="jne")}) for n in (10**4, 10**6)]
    assert loops[1] - loops[0] == 2 * (10**6 - 10**4)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert without_cortex_m() == "skipped: PATH has no arm-none-eabi-gcc and no qemu-system-arm"
