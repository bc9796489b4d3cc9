"""The fuzz of networks: it draws every kind of layer and odd geometry, and calls a network exact only where it is."""
import numpy as np
import pytest

from benchmarks import fuzz
from benchmarks.draw import KINDS, draw, draw_graph
from benchmarks.fuzz import trial
from circulant.hw.c import Emulator
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal

SEEDS = range(120)


def test_the_draws_cover_kinds_geometry_and_options():
    drawn = [draw(seed) for seed in SEEDS]
    assert [each.kind for each in drawn[:7]] == list(KINDS)
    layers = [layer for each in drawn for layer in each.model.layers]
    assert {layer.kind for layer in layers} == {
        "linear", "gru", "lstm", "reverse", "concat", "conv", "depthwise", "pool", "flatten", "scale", "activation",
        "add", "over_time", "gate", "repeat", "rnn"}
    windows = [layer.window for layer in layers if layer.kind == "conv"]
    assert any(window.sees_padding_alone for window in windows)
    assert any(max(window.stride) > max(window.kernel) for window in windows)
    assert any(max(window.dilation) > 1 for window in windows)
    assert any(1 in layer.grid for layer in layers if layer.kind == "conv")
    assert {each.streams for each in drawn} == {1, 2, 3}
    assert {each.argmax for each in drawn} == {True, False}
    assert len({each.widths["activation_bits"] for each in drawn}) > 10


def test_a_seed_draws_the_same_network_again():
    first, second = draw(7), draw(7)
    assert (first.title, first.widths) == (second.title, second.widths)
    np.testing.assert_array_equal(first.data, second.data)


def test_most_networks_can_be_quantized():
    refused = 0
    for seed in SEEDS:
        drawn = draw(seed)
        try:
            quantize(drawn.model, drawn.data, **drawn.widths)
        except Refusal:
            refused += 1
    assert refused < len(SEEDS) / 10


def test_graphs_have_several_ports_and_every_join():
    drawn = [draw_graph(seed) for seed in range(40)]
    assert {layer.kind for each in drawn for layer in each.model.layers} >= {
        "linear", "gru", "lstm", "scale", "activation", "add", "product", "difference", "maximum", "minimum", "concat",
        "slice", "over_time"}
    assert {len(each.model.inputs) for each in drawn} == {1, 2, 3}
    assert len({len(each.model.outputs) for each in drawn}) > 3
    assert any(len({flow.sequence for flow in each.model.flows.values()}) == 2 for each in drawn), "different rates"
    assert any(each.model.readers[name] for each in drawn for name in each.model.outputs), "an output in the middle"


def test_a_graph_is_exact_by_what_it_was_compared_with(monkeypatch):
    monkeypatch.setattr(fuzz, "stalled", lambda *given: 0)
    found = fuzz.graph_trial(3, four_state=True)
    assert (found.outcome, found.compared, found.reason) == ("exact", ("Icarus", "Verilator"), "")
    monkeypatch.setattr(fuzz, "stalled", lambda *given: 2)
    assert fuzz.graph_trial(3, four_state=False).reason == "2 words differ from the golden model"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_graphs_are_exact_under_random_stalls(seed):
    assert fuzz.graph_trial(seed, four_state=False).outcome == "exact"


def test_an_equal_network_is_exact_by_what_it_was_compared_with():
    found = trial(0, verilog=False)
    assert (found.outcome, found.compared, found.reason) == ("exact", ("C",), "")


@pytest.mark.parametrize("fault", ["wrong word", "exception"])
def test_a_network_that_differs_or_raises_has_failed(monkeypatch, fault):
    def run(self, x):
        if fault == "exception":
            raise ZeroDivisionError("a fault of the program")
        wrong = self.network.run_integers(x)
        wrong[0, 0] += 1
        return wrong

    monkeypatch.setattr(Emulator, "run_integers", run)
    found = trial(0, verilog=False)
    assert found.outcome == "failed"
    if fault == "wrong word":
        assert found.reason == "C: 1 words differ from the golden model"
    else:
        assert found.reason.startswith("ZeroDivisionError at test_fuzz.py:")
        assert found.reason.endswith(": a fault of the program")


def test_what_no_comparison_takes_is_refused_with_its_reason(monkeypatch):
    def refuse(*arguments, **options):
        raise Refusal("The network must be another one; choose it")

    monkeypatch.setattr(fuzz, "affordable", refuse)
    found = trial(2, verilog=False)
    assert (found.outcome, found.reason, found.compared) == (
        "exact", "Icarus: The network must be another one; choose it", ("C",))
    monkeypatch.setattr(fuzz, "Emulator", refuse)
    found = trial(2, verilog=False)
    assert (found.outcome, found.reason) == ("refused", "C: The network must be another one; choose it; Icarus: The "
                                             "network must be another one; choose it")


def test_graphs_of_both_directions_are_exact_in_c():
    """Graphs of one input and one output of which steps are taken again from the last one."""
    drawn = [draw(seed) for seed in range(6, 980, len(KINDS))]
    turned = [each for each in drawn if any(layer.kind == "reverse" for layer in each.model.layers)]
    assert len(turned) >= 6
    for each in turned[:6]:
        network = quantize(each.model, each.data, **each.widths)
        vectors = network.vectors(each.data)
        assert np.array_equal(Emulator(network).run_integers(vectors.inputs), vectors.outputs), each.title


def test_figures_count_outcomes(monkeypatch):
    outcomes = iter(["exact", "exact", "refused", "failed"])
    asked = []

    def made(seed, *, verilog):
        asked.append(verilog)
        return fuzz.Trial(seed, "a network", next(outcomes), "why", ("C",))

    monkeypatch.setattr(fuzz, "trial", made)
    monkeypatch.setattr(fuzz.hostile, "measure", lambda **_: {"refused": 2, "taken": 1, "tracebacks": 0, "hangs": 0})
    monkeypatch.setattr(fuzz.paces, "measure", lambda *, count, **_: {
        "equal": count - 1, "different": 1, "refused": 0, "failed": 0, "shared": count, "faults": [
            {"seed": 1, "reason": "period 3 planned, 4 measured"}]})
    figures = fuzz.measure(networks=4, hardware=2, files=3, shared=5)
    assert figures["table"]["planned and measured cycles"] == (
        "5: 4 equal, 1 different, 0 refused, 0 failed; 5 with shared arrays")
    assert figures["table"]["failed: seed 1"] == "period 3 planned, 4 measured"
    assert [figures[name] for name in ("networks", "exact", "refused", "failed", "files", "tracebacks")] == [
        4, 2, 1, 1, 3, 0]
    assert sum(asked) == 2
    assert [each["seed"] for each in figures["failures"]] == [3]
