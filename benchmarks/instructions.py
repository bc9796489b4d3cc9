"""Instructions of the generated C beside those of a dense loop: on this machine as Valgrind counts them, on a Cortex-M4
as QEMU does."""
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.synthesis import Point, network
from circulant.hw.c import generate_c
from circulant.sim import child
from circulant.sim.files import temporaries

__all__ = ["of_cortex_m", "of_host", "ratios", "without_cortex_m"]

SIZES, BLOCKS = (256, 512, 1024), (8, 16)

FLAGS = ("-O3", "-march=x86-64-v3")

CORTEX_M = ("-O2", "-mcpu=cortex-m4", "-mthumb", "--specs=rdimon.specs", "-Wl,--section-start=.vectors=0")

MACHINE = ("-machine", "mps2-an386", "-icount", "shift=0", "-semihosting", "-nographic", "-monitor", "none", "-serial",
           "none")
"""A Cortex-M4 of 25 MHz whose instructions take 1 ns each, 40 for a tick of its timer."""

TICK = 40

DENSE = """#include <stdint.h>
int16_t w[{n}][{n}], x[{n}];
int64_t y[{n}];
static void run(void)
{{
    for (int i = 0; i < {n}; i++) {{
        int64_t sum = 0;
        for (int j = 0; j < {n}; j++)
            sum += (int32_t)w[i][j] * x[j];
        y[i] = sum;
    }}
}}
"""
"""A dense layer of 16-bit integers, with sums of 64 bits, as no bound of theirs is known."""

OURS = """#include "point.c"
static point_state state;
static point_input x[POINT_INPUTS];
static point_output y[POINT_OUTPUTS];
static void run(void)
{
    point_run(&state, x, y);
}
"""

MAIN = """
int main(int count, char **arguments)
{
    (void)arguments;
    for (int n = 1; n < count; n++) {
        for (int i = 0; i < (int)(sizeof x / sizeof *x); i++)
            x[i] += (int16_t)(n + i);
        run();
        __asm__ volatile("" : : "r"(y) : "memory");
    }
    return 0;
}
"""

TIMED = """
#include <stdio.h>
#define TIMER ((volatile uint32_t *)0xE000E010)
extern void _start(void);
__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {(void (*)(void))0x20400000, _start};
int main(void)
{
    TIMER[1] = 0xffffff;
    TIMER[0] = 5;
    for (int i = 0; i < 100; i++)
        __asm__ volatile("nop");
    const uint32_t before = TIMER[2];
    run();
    __asm__ volatile("" : : "r"(y) : "memory");
    printf("%lu\\n", (unsigned long)(before - TIMER[2]));
    return 0;
}
"""


def ratios(counted: Callable[[Mapping[str, str]], float], note: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Instructions of a layer, of those of the dense loop, by its inputs and outputs, and block size."""
    found: dict[str, dict[str, float]] = {}
    for size in SIZES:
        note(f"instructions, {size} × {size}")
        dense = counted({"main.c": DENSE.format(n=size)})
        found[str(size)] = {str(k): round(counted({"main.c": OURS, **generate_c(
            network(Point("linear", size, size, k, 0, weight_bits=16))).files}) / dense, 3) for k in BLOCKS}
    return found


def of_host(files: Mapping[str, str]) -> float:
    """Instructions of a ``run`` in ``main.c``, without those with which a program begins and ends."""
    with temporaries.folder() as folder:
        program = _built(folder, files, MAIN, ("gcc", *FLAGS))
        once, often = (_said(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
                              *["again"] * runs], r"Collected : (\d+)") for runs in (1, 5))
    return (often - once) / 4


def of_cortex_m(files: Mapping[str, str]) -> float:
    """Instructions of a ``run`` in ``main.c``, to about one `TICK`."""
    with temporaries.folder() as folder:
        program = _built(folder, files, TIMED, ("arm-none-eabi-gcc", *CORTEX_M))
        return TICK * _said(["qemu-system-arm", *MACHINE, "-kernel", program], r"^(\d+)$")


def without_cortex_m() -> str:
    """The reason for which nothing can be counted on a Cortex-M4, if there is one."""
    missing = [tool for tool in ("arm-none-eabi-gcc", "qemu-system-arm") if not shutil.which(tool)]
    return f"skipped: PATH has no {' and no '.join(missing)}" if missing else ""


def _built(folder: Path, files: Mapping[str, str], main: str, compiler: tuple[str, ...]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text + main if name == "main.c" else text, "utf-8")
    made = child.run([*compiler, "-o", folder / "program", folder / "main.c"], step="compiling", seconds=600)
    assert made.returncode == 0, made.stderr
    return folder / "program"


def _said(command: list[str | Path], form: str) -> int:
    done = child.run(command, step="counting instructions", seconds=600)
    found = re.search(form, done.stdout + done.stderr, re.MULTILINE)
    assert found is not None, done.stderr
    return int(found[1])
