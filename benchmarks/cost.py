"""Instructions of the generated C beside those of a dense loop, as Valgrind counts them."""
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.synthesis import Point, network
from circulant.hw.c import generate_c
from circulant.sim import child
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal

__all__ = ["Costs", "measure", "table"]

SIZES, BLOCKS, FLAGS = (256, 512, 1024), (8, 16), ("-O3", "-march=x86-64-v3")

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


@dataclass(frozen=True)
class Costs:
    """Instructions of a layer as a share of the dense loop's, by its inputs and outputs, and block size."""

    c_instructions: dict[str, dict[str, float]]


def measure(note: Callable[[str], None] = lambda text: None) -> Costs:
    """The figures.

    Raises:
        Refusal: when gcc or Valgrind is missing.
    """
    if missing := [tool for tool in ("gcc", "valgrind") if not shutil.which(tool)]:
        raise Refusal(f"Instructions are counted with gcc and Valgrind, but PATH has no {' and no '.join(missing)}; "
                      "install what is missing")
    return Costs(_ratios(note))


def table(found: Costs) -> dict[str, str]:
    """The rows for people."""
    return {f"instructions of the dense loop's, {size} × {size}, k = {k}": f"{value:g}"
            for size, each in found.c_instructions.items() for k, value in each.items()}


def _ratios(note: Callable[[str], None]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for size in SIZES:
        note(f"instructions, {size} × {size}")
        dense = _instructions({"main.c": DENSE.format(n=size) + MAIN})
        found[str(size)] = {str(k): round(_instructions({"main.c": OURS + MAIN, **generate_c(
            network(Point("linear", size, size, k, 0, weight_bits=16))).files}) / dense, 3) for k in BLOCKS}
    return found


def _instructions(files: dict[str, str]) -> float:
    """Instructions of a run, without those with which a program begins and ends."""
    with temporaries.folder() as folder:
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        made = child.run(["gcc", *FLAGS, "-o", folder / "program", folder / "main.c"], step="compiling", seconds=600)
        assert made.returncode == 0, made.stderr
        once, often = (_counted(folder / "program", ["again"] * runs) for runs in (1, 5))
    return (often - once) / 4


def _counted(program: Path, arguments: list[str]) -> int:
    done = child.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *arguments],
                     step="counting instructions", seconds=600)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])
