"""The page of an exploration: decisions as a tree, costs with the errors of their model."""
import re
from dataclasses import replace

import pytest

from circulant.boards.device import device
from circulant.boards.estimate.measured import measured
from circulant.explore.bounds import Bounds, Cost
from circulant.explore.designs import Designs
from circulant.explore.fair import Comparison
from circulant.explore.models import WIDTHS, Decision, Models
from circulant.explore.page import RULES, page, tree
from circulant.run.untrained import sized
from circulant.sweep.point import Point


@pytest.fixture
def models(experiment):
    """8 is kept, 16 left, and behind 8 a table kept."""
    trained = sized(experiment, 8), sized(experiment, {"gru": 8, "linear": 16})
    decisions = [Decision(1, "8", "gru", score=0.98, lost=0.5, kept=True, why="has accuracy 98 %"),
                 Decision(2, "16", "gru", score=0.96, lost=2.5, kept=False, why="has accuracy 96 %"),
                 Decision(3, "gru=8 linear=16", "gru", score=0.98, lost=0.5, kept=True, why="has accuracy 98 %")]
    return Models(trained[-1], tuple(decisions), trained, dense=0.985, metric="accuracy", higher_is_better=True)


@pytest.fixture
def designs(models):
    row = {"reason": "", "broken": [], "experiment": "digits-gru", "metric": "accuracy", "higher_is_better": True,
           "block_size": "gru=8 linear=16", "weight_bits": 8, "activation_bits": 12, "quantized": 0.98, "weights": 2000,
           "cycles_per_step": 108, "multipliers": 28, "weight_memory_bits": 12000, "dsps": 28, "block_rams": 13,
           "luts": 11876, "flip_flops": 9876, "mhz": 109.9}
    rows = row, row | {"weight_bits": 12, "weight_memory_bits": 18000}
    return Designs(rows, 0, (1,), None, (Point("digits-gru", models.chosen),) * 2)


def made(experiment, models, designs):
    found = Bounds(1, 16, (Cost(1, 300, 40000), Cost(8, 108, 9000)), ("every block size fits", "none saves a cycle"))
    return page(experiment, found=found, models=models, designs=designs, fair=Comparison(), command="circulant explore")


def cells(text, title):
    """The rows of a table of the page."""
    table = text.split(f"<h2>{title}</h2>")[1].split("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in table.split("<tr>")[1:]]


def test_each_rule_has_words():
    assert list(RULES) == list(range(1, WIDTHS + 1))


def test_the_tree_goes_on_from_what_was_kept(models):
    picture = tree(models)
    lines, dots = picture.choices[0].traces
    assert list(zip(dots["x"], dots["y"], strict=True)) == [(0, 0), (1, 0), (2, 0), (2, -1)]
    assert dots["marker"]["symbol"] == ["circle", "circle", "x", "circle"]
    assert lines["x"][5:9] == [1, 1.5, 1.5, 2], "from 8 to 16"
    assert picture.title == "Phase I: 4 trainings"


def test_costs_stand_with_the_errors_of_their_model(experiment, models, designs):
    heads, *rows = cells(made(experiment, models, designs), "The cost model and its errors")
    assert heads == ["figure", "chosen design", "error", "measured against"]
    found, clock = measured()["recurrent"], measured()["clock"]
    table = {name: rest for name, *rest in rows}
    assert table["cycles from step to step"][:2] == ["108", "exact"]
    assert table["DSP blocks"] == ["28", "none", f"Yosys, {found['designs']} designs of 16 to 32 units"]
    assert table["look-up tables"][:2] == ["about 11,900", f"{found['luts']['worst']:+.1%} at worst, "
                                                           f"{found['luts']['rms']:.1%} rms"]
    assert table["clock"] == ["about 110 MHz", f"{clock['worst']:+.1%} at worst, {clock['rms']:.1%} rms",
                              f"nextpnr, {clock['designs']} designs"]


def test_of_a_family_that_was_not_measured_no_error_is_known(experiment, models, designs):
    other = "GW2A-18"
    assert device(other).family not in measured()
    point = Point("digits-gru", replace(models.chosen, board=replace(experiment.board, device=other)))
    rows = cells(made(experiment, models, replace(designs, points=(point, point))), "The cost model and its errors")
    table = {name: rest for name, *rest in rows}
    assert table["look-up tables"][1:] == ["not known", f"no design of the family {device(other).family} was measured"]
    assert table["clock"][1:] == ["not known", f"no design of the family {device(other).family} was routed"]
