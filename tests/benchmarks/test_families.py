"""The benchmark of families beyond recurrent layers: their models; rows of a plan and of a design that is played."""
import numpy as np
import pytest

from benchmarks import families
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow


@pytest.mark.parametrize(("name", "kinds"), [
    ("mlp-4x512", {"linear": 4}), ("tcn-3x128", {"taps": 6, "linear": 7, "add": 3}),
    ("causal-4x64-8", {"norm": 4, "taps": 4, "linear": 4, "add": 4}),
    ("space-576-448", {"rnn": 1, "concat": 1, "linear": 1}),
    ("ds-cnn", {"conv": 5, "depthwise": 4, "pool": 1, "flatten": 1, "linear": 1}),
    ("wavenet-192", {"taps": 4, "linear": 14, "slice": 8, "activation": 8, "product": 4, "add": 4})])
def test_a_family_has_its_layers(name, kinds):
    made = [node.layer.kind for node in families.model(name, 8).nodes]
    assert {kind: made.count(kind) for kind in made} == kinds


def test_a_convolution_sees_earlier_steps_alone():
    model = families.model("tcn-3x128", 8)
    x = np.random.default_rng(0).normal(0, 1, (1, 40, 1))
    later = x.copy()
    later[:, 30:] = 0
    moved = np.abs(model.run(x) - model.run(later)).max((0, 2))
    assert not moved[:30].any() and moved[30:].all()
    first = x.copy()
    first[:, 0] += 1
    seen = np.abs(model.run(x) - model.run(first)).max((0, 2)) > 0
    assert seen[28] and not seen[29:].any()  # Two convolutions of three steps, 1, 2 and 4 apart.


def test_the_separable_network_has_few_multipliers_and_no_published_cycles(monkeypatch):
    monkeypatch.setitem(families.FAMILIES, "ds-cnn", ("separable", (8,), *families.FAMILIES["ds-cnn"][2:]))
    monkeypatch.setitem(families.FEWER, "ds-cnn", 24)
    row, = families.measure(["ds-cnn"], [8], simulate=False)["families"]
    assert 12 < row["multipliers"] <= 24 and row["published"] == {"V80": None}
    assert row["floor_cycles"] <= row["cycles_predicted"] <= 1.6 * row["floor_cycles"]


def test_a_row_is_planned_and_played(monkeypatch):
    monkeypatch.setitem(families.FAMILIES, "space-small", ("space", (8, 4), Flow(8, sequence=True), 99))
    planned = families.measure(["space-small"], [4], multipliers=100, simulate=False)
    row, = planned["families"]
    assert row["floor_cycles"] > 0 and row["multipliers"] <= 100 and row["mismatches"] is None
    found = families.measure(["space-small"], [4], multipliers=100, steps=12)
    played, = found["families"]
    assert (played["mismatches"], played["published"]["V80"]) == (0, 99)
    assert played["cycles_per_step"] == row["cycles_predicted"] >= row["floor_cycles"]
    assert found["table"]["space-small, k = 4"].endswith("words; published latency 99")


def test_a_refused_network_has_the_reason(monkeypatch):
    def refuse(made, x, **options):
        raise Refusal("It must be smaller; choose another one")

    monkeypatch.setattr(families, "measured", refuse)
    found = families.measure(["space-576-448"], [8], simulate=False)
    assert (found["families"], found["table"]) == ([], {
        "space-576-448, k = 8": "It must be smaller; choose another one"})
