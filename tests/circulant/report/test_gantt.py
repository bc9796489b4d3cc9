import pytest
from matplotlib.collections import PolyCollection

from circulant.report.gantt import arrays, closing, draw, engines, rows
from circulant.sim.figures import Figures
from tests.circulant.conftest import LAYERS

GRU, LINEAR = LAYERS
BOTH = {"name": "both", "kind": "bidirectional", "cycles": 12, "floor": 8, "per": "step",
        "forward": GRU | {"name": "both.forward"}, "backward": GRU | {"name": "both.backward", "cycles": 15}}


def hardware(*layers, multipliers=20, per_step=130):
    return {"layers": layers, "multipliers": multipliers,
            "multiplications": {"per_step": per_step, "per_sequence": 240}}


def test_both_directions_have_an_array_of_their_own():
    assert [(each["name"], each["cycles"]) for each in arrays([BOTH, LINEAR])] == [
        ("both, forward", 12), ("both, backward", 15), ("linear", 24)]


def test_rows():
    assert rows([GRU, LINEAR]) == [
        {"name": "gru", "kind": "gru", "array": "2 × 1 lanes, folded over 2 cycles", "chains": "1", "elements": "1",
         "cycles": "12", "floor": "8 (1.50×)",
         "limit": "latency: each step waits for the state of the step before"},
        {"name": "linear", "kind": "linear", "array": "1 × 1 lanes", "chains": "1", "elements": "", "cycles": "24",
         "floor": "24 (1.00×)", "limit": "multipliers: the array works in every cycle"}]


@pytest.mark.parametrize(("per_step", "wanted"), [(130, 7), (140, 7), (141, 8), (0, 12)])
def test_the_floor_of_a_step_or_of_a_vector(per_step, wanted):
    assert Figures.of(hardware(per_step=per_step)).floor == wanted


def test_the_closing_words_are_of_the_slowest_layer_of_a_step():
    assert closing(hardware(GRU, LINEAR)) == (
        "12 cycles per step, 1.71 times the floor of 7; limited by latency in layer 'gru', which takes 1.50 times its "
        "own floor of 8: each step waits for the state of the step before")
    assert closing(hardware(BOTH)).startswith("15 cycles per step, 2.14 times the floor of 7; limited by latency in "
                                              "layer 'both, backward', which takes 1.88 times its own floor of 8: ")


def test_the_closing_words_tell_a_plan_from_an_estimate():
    late = {"latency_spaced": 96, "latency_contiguous": 1200}
    assert "; latency 96 cycles spaced, 1,200 cycles contiguous; " in closing(hardware(GRU) | late)
    about = late | {"estimates": ["latency_contiguous"]}
    assert "; latency 96 cycles spaced, about 1,200 cycles contiguous; " in closing(hardware(GRU) | about)


def test_engines_that_were_compared_are_said_the_chosen_one_first():
    one = {"engines": "one array for all layers", "cycles": 77.5, "latency_spaced": 96, "latency_contiguous": 120,
           "multipliers": 64, "memory_bits": 4100, "reason": "its step is shorter"}
    each = {"engines": "an array for each layer", "cycles": 84, "latency_spaced": None, "multipliers": 60,
            "memory_bits": 300}
    assert engines({"alternatives": [one, each]}) == [
        "chosen: one array for all layers: 77.5 cycles a step, latency 96 cycles spaced, 120 cycles contiguous, 64 "
        "multipliers, 4,100 memory bits, "
        "as its step is shorter",
        "or an array for each layer: 84 cycles a step, 60 multipliers, 300 memory bits"]
    assert engines({"alternatives": [one | {"estimate": True}]})[0].startswith(
        "chosen: one array for all layers: about 77.5 cycles a step, ")
    assert engines({}) == []


def test_the_closing_words_of_vectors():
    assert closing(hardware(LINEAR, per_step=0)) == (
        "24 cycles per vector, 2.00 times the floor of 12; limited by multipliers in layer 'linear', which takes 1.00 "
        "times its own floor of 24: the array works in every cycle")


def test_a_layer_that_does_not_know_its_limit():
    bare = {name: value for name, value in LINEAR.items() if name != "limit"}
    assert closing(hardware(bare, per_step=0)) == "24 cycles per vector, 2.00 times the floor of 12"


def test_the_turns_of_interleaved_streams_may_differ():
    uneven = GRU | {"cycles": 67 / 3, "chart": GRU["chart"] | {"period": 67 / 3}}
    assert rows([uneven])[0]["cycles"] == "22.33"
    assert closing(hardware(uneven)).startswith("22.33 cycles per step, ")
    assert "a step every 22.33 cycles" in draw([uneven]).axes[0].get_title(loc="left")


def test_every_array_with_a_chart_has_a_strip():
    figure = draw([GRU, BOTH, LINEAR])
    assert [axes.get_title(loc="left").partition(":")[0] for axes in figure.axes] == [
        "gru", "both, forward", "both, backward"]
    assert draw([LINEAR]) is None


def test_a_strip_shows_the_step_and_in_pale_those_around_it():
    axes, = draw([GRU]).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(GRU["chart"]["rows"])
    assert axes.get_xlim() == (-3, 14)
    bars = [bar for bar in axes.collections if isinstance(bar, PolyCollection)]
    spans = {alpha: sorted((round(path.get_extents().x0), round(path.get_extents().x1), row)
                           for bar in bars if (bar.get_alpha() == 1.0) == (alpha == 1.0) for path in bar.get_paths()
                           for row in [round(path.get_extents().y0 + 0.36)]) for alpha in (1.0, 0.22)}
    assert spans[1.0] == sorted((*span, row) for row, of in enumerate(GRU["chart"]["rows"].values()) for span in of)
    for start, stop, row in spans[1.0]:
        for turn in (-1, 1):
            assert (start + 12 * turn, stop + 12 * turn, row) in spans[0.22]


def test_an_array_that_layers_share_shows_a_sample_once():
    shared = {name: value for name, value in GRU.items() if name != "chart"} | {
        "cycles": 30.0, "chart": {"rows": {"array: one, input": [[2, 5]], "array: two, input": [[9, 11], [14, 15]]}}}
    axes, = draw([shared, LINEAR]).axes
    assert axes.get_title(loc="left").startswith("A sample on the array of one, two; a step every 30 cycles; limited")
    bars = [bar for bar in axes.collections if isinstance(bar, PolyCollection)]
    assert {bar.get_alpha() for bar in bars} == {1.0} and sum(len(bar.get_paths()) for bar in bars) == 3
    assert axes.get_xlim() == (0, 15)


def test_a_residual_sum_shows_its_branches_and_a_pooling_no_floor():
    conv = {"name": "conv", "kind": "conv", "rows": 2, "columns": 3, "chains": 1, "fold": 1, "cycles": 9, "floor": 9}
    pool = {"name": "pool", "kind": "pool", "cycles": 4, "floor": 0}
    both = {"name": "sum", "kind": "residual", "cycles": 9, "floor": 9, "body": [conv], "shortcut": [pool]}
    found = rows([both])
    assert [row["name"] for row in found] == ["conv", "pool"]
    assert [row["floor"] for row in found] == ["9 (1.00×)", ""]


def test_a_long_title_stays_within_the_picture():
    limit = "multipliers: the array works in every cycle, the multipliers of transforms and activations do not"
    figure = draw([GRU | {"limit": limit, "cycles": 108, "floor": 83}])
    figure.draw_without_rendering()
    axes, = figure.axes
    box = axes._left_title.get_window_extent()
    assert limit.split()[-1] in axes.get_title("left") and 0 <= box.x0 < box.x1 <= figure.bbox.width
