"""The path of the state, cycle by cycle, in docs/archive/engine.md: what plans say today."""
from pathlib import Path

from benchmarks import stacks
from circulant.hw.array.bank_shape import write_latency
from circulant.hw.array.lanes import array_latency
from circulant.hw.array.output_pipeline import pipeline_latency
from circulant.hw.plan.shared.cost import steady_step
from circulant.hw.plan.step_cost import stages
from circulant.hw.planner import plan

LEVELS = 6


def column(shape):
    network = stacks.network(shape, 8)
    (made,) = plan(network, 2760, levels=LEVELS, beat_blocks=0)
    period, _, events = steady_step(made.alone(network.stages[0]), made.elements)
    _, main, second, blocks, seconds, results = (f"{each[0]} to {each[-1]}" if each else "–" for each in events.all)
    chain, cell = pipeline_latency(8, LEVELS), stages(network.stages[0], made.elements, made.shape)[0]
    return {"products of the state are issued": main,
            "+ memories, product, tree": array_latency(8, made.shape) - chain,
            "+ inverse transform": chain,
            "gates are taken": blocks, "+ gates, cell, state": cell.latency,
            "+ transform": write_latency(8, LEVELS), "m can be read": seconds,
            "products of m are issued": second, "the state is there": results,
            "+ transform: the next step": f"{period:g} cycles"}


def test_the_archive_has_the_path_of_today():
    wide, small = (column(each) for each in (stacks.PAPERS[0], stacks.SHAPES[0]))
    text = Path("docs/archive/engine.md").read_text("utf-8")
    for name, cycles in wide.items():
        assert f"| {name} | {cycles} | {small[name]} |\n" in text
