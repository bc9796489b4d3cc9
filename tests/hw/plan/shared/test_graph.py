"""Networks whose layers share an array and have others between them take the cycles that are played for them."""
from functools import cache
from itertools import islice

import numpy as np
import pytest

from benchmarks.draw import draw_graph
from circulant.hw import generate
from circulant.hw.array.plans import LayerPlan, sharings
from circulant.hw.beats import joined_plans
from circulant.hw.design import described
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.dataflow import depths
from circulant.hw.plan.shared import graph
from circulant.hw.plan.shared.apart import apart_plans
from circulant.hw.plan.shared.controls import Waits
from circulant.hw.plan.shared.graph import GraphPlay, exact_plans
from circulant.hw.plan.sizes import Sizes
from circulant.hw.planner import plan
from circulant.hw.resources import figures, period
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.quantize.quantize import quantize
from tests import random_graphs
from tests.hw.golden import blocks
from tests.hw.plan.shared.test_apart import NETWORKS
from tests.hw.simulate import cycles
from tests.hw.test_top import Beats

BUDGET, STEPS = 300, 16

SHORT = (4, 10, 29)
"""Seeds whose graphs have taps, scans, norms, joins, ranges, functions and layers behind whole sequences."""


@cache
def drawn(seed):
    """A network over steps, its plans with one array for some of the fully connected layers and the cycles of each
    stage, of which the greatest is the estimate; None where it has no such plans."""
    rng = np.random.default_rng((7, seed))
    model = random_graphs.graph(seed, nodes=int(rng.integers(4, 11)), every=True)
    if not model.sequence:
        return None
    found = quantize(model, rng.normal(0, 1, (6, 4, model.flow.size)), activation_bits=10, weight_bits=8)
    each = plan(found, BUDGET, levels=int(rng.choice([4, 6])))
    ways = list(apart_plans(found, each, BUDGET, levels=6, beats=int(rng.choice([1, 2, 4]))))
    return (found, joined_plans(found, ways[int(rng.integers(len(ways)))])) if ways else None


@cache
def family(name):
    found = NETWORKS[name]()
    way = next(apart_plans(found, plan(found, BUDGET, levels=6), BUDGET, levels=6, beats=8))
    return found, joined_plans(found, way)


def play_of(found, plans, sizes, **options):
    return GraphPlay(found, plans, sizes, {} if found.arrangement.chain else depths(found, plans, sizes), **options)


def steps_of(found, plans):
    """Cycles in which the hardware takes steps, and those in which they are played; the first one comes at once."""
    dut, form = Beats(found, 0, plans), found.input_format
    sizes, beats = dut.top.blocks, -(-found.flow.size // dut.top.input_block)
    x = np.random.default_rng(1).integers(form.lo, form.hi + 1, (1, STEPS, found.flow.size))
    came, _ = cycles(dut, blocks(list(x), dut.top.input_block), quiet=700)
    return came[beats - 1::beats], [cycle - 1 for cycle, _ in islice(
        play_of(found, plans, sizes).taken_steps(), STEPS)]


@pytest.mark.parametrize("name", NETWORKS)
def test_each_step_of_a_family_is_taken_in_the_cycle_that_is_played(name):
    taken, played = steps_of(*family(name))
    assert taken == played


@pytest.mark.parametrize("seed", [*SHORT, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(40, 140))])
def test_each_step_of_a_random_graph_is_taken_in_the_cycle_that_is_played(seed):
    if found := drawn(seed):
        taken, played = steps_of(*found)
        assert taken == played


def test_the_short_graphs_have_every_kind_that_may_lie_between():
    kinds = {stage.kind for seed in SHORT for stage in drawn(seed)[0].stages}
    assert kinds >= {"activation", "add", "blend", "concat", "decay", "norm", "over_time", "product", "scale", "slice",
                     "taps"}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_period_is_exact_and_no_shorter_than_its_estimate(name):
    found, plans = family(name)
    sizes = Sizes(found)(plans)
    made = exact_plans(found, plans, sizes)
    cycles, (after, turn) = period(found, made), next(each.repeats for each in made if isinstance(each, LayerPlan))
    assert cycles >= period(found, plans)
    taken = [cycle for cycle, _ in islice(play_of(found, made, sizes, start=1).taken_steps(), after + 3 * turn)]
    assert {taken[after + n * turn - 1] - taken[after + (n - 1) * turn - 1] for n in range(1, 4)} == {cycles * turn}
    assert figures(found, made).estimates == () and figures(found, plans).estimates == ("cycles",)
    with unelaborated():
        manifest = described(found, made, Top(found, made), Inventory(), [])
    assert manifest["repeats"] == {"after": after, "steps": turn}


def test_a_network_of_vectors_has_no_steps_that_repeat(tmp_path):
    drawn = draw_graph(50_015)  # Four matrices around a concatenation.
    found = quantize(drawn.model, drawn.data, **drawn.widths)
    design = generate(found, multipliers=40, objective="auto", beat_blocks=4)
    assert any(each.apart for each in sharings(design.plans))
    assert Manifest.load(design.write(tmp_path / "design")).repeats is None


def test_where_nothing_repeats_or_a_kind_is_unknown_the_period_is_an_estimate(monkeypatch):
    found, plans = family("tcn")
    sizes = Sizes(found)(plans)
    monkeypatch.setattr(graph, "MOST", 60)
    made = exact_plans(found, plans, sizes)
    shared = [each for each in made if isinstance(each, LayerPlan) and each.sharing]
    assert all(each.estimated for each in shared) and 5 < shared[0].cycles < 9
    monkeypatch.setattr(graph, "control", lambda *_, **__: None)
    assert exact_plans(found, plans, sizes) == plans
    with pytest.raises(ValueError, match=r"^Stage 't0' must have a control to be played, but taps has none$"):
        play_of(found, plans, sizes)


def test_a_queue_that_is_not_prompt_shows_a_word_a_cycle_later():
    prompt, other = Waits.of_depth(4), Waits.of_depth(4, prompt=False)
    shown = []
    for comes in (True, False, False):
        for queue in (prompt, other):
            queue.move(comes, False)
        shown.append((prompt.offers, other.offers))
    assert shown == [(True, False), (True, True), (True, True)]
