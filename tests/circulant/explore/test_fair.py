"""Dense networks of equal cost: which are trained, and what is said of them."""
from dataclasses import replace

import pytest

from circulant.experiment import load
from circulant.explore.fair import compare, units
from circulant.hw.planner import layer_multiplications
from circulant.project import create
from circulant.run.untrained import sized, untrained
from circulant.sim.quantize.bitwidth_cost import weight_count

CHOSEN = {"metric": "accuracy", "higher_is_better": True, "quantized": 0.98, "multiplications": 2000,
          "weight_memory_bits": 9000, "reason": ""}


@pytest.fixture(scope="module")
def chosen():
    return sized(load("digits-gru", ["model.hidden=32", "data.held_out=200"]), 8)


@pytest.fixture(scope="module")
def network_of():
    """Untrained networks, each made once."""
    known = {}

    def make(experiment):
        key = experiment.model.hidden
        if key not in known:
            known[key] = untrained(experiment)
        return known[key]

    return make


def scored(scores, seen=None):
    """Rows of points with these scores, in their order."""

    def evaluate(points, **options):
        if seen is not None:
            seen.extend(points)
        return [CHOSEN | {"quantized": score} for score, _ in zip(scores, points, strict=True)]

    return evaluate


def test_the_largest_dense_networks_of_equal_cost_are_trained_as_long(chosen, network_of):
    seen = []
    found = compare(chosen, CHOSEN, samples=200, evaluate=scored([0.97] * 4, seen), network_of=network_of)
    assert [row["equal"] for row in found.rows] == ["multiplications"] * 2 + ["weight_memory_bits"] * 2
    assert [point.experiment.quantization.weight_bits for point in seen] == [4, 8, 4, 8]
    for point, row in zip(seen, found.rows, strict=True):
        experiment, count = point.experiment, row["units"]
        assert (experiment.compression.block_size, experiment.model.hidden) == (1, count)
        assert experiment.training.dense_epochs == 120 and not experiment.training.admm_epochs
        larger = replace(experiment, model=replace(experiment.model, hidden=count + 1))
        for each, fits in ((experiment, True), (larger, False)):
            made = network_of(each)
            cost = (sum(map(layer_multiplications, made.stages)) <= 2000 if row["equal"] == "multiplications" else
                    weight_count(made) * experiment.quantization.weight_bits <= 9000)
            assert cost == fits, f"{count} units are the most at equal {row['equal']}"


@pytest.mark.parametrize(("scores", "wrong", "words"), [
    ([0.90, 0.91, 0.90, 0.92], False, "At equal weight bits the block-circulant design (accuracy 98.00%) is better "
                                      "than the best dense network"),
    ([0.99, 0.999, 0.99, 0.999], True, "Block-circulant is the wrong choice here: take the dense network."),
    ([0.90, 0.91, 0.999, 0.99], False, "Block-circulant is not the better choice in everything."),
    ([0.975, 0.981, 0.97, 0.98], False, "is as good as the best dense network"),
])
def test_verdicts(chosen, network_of, scores, wrong, words):
    found = compare(chosen, CHOSEN, samples=10000 if scores[0] != 0.975 else 200, evaluate=scored(scores),
                    network_of=network_of)
    assert found.wrong is wrong
    assert words in " ".join(found.verdicts)
    assert found.verdicts[2].startswith("Each network here has one seed. 1 seed is too few")


def test_a_network_without_units_is_compared_with_nothing(chosen):
    caffe = replace(chosen, model=replace(chosen.model, kind="lenet_caffe", hidden=64))
    assert units(caffe) is None
    assert compare(caffe, CHOSEN, samples=10).verdicts == (
        "There is no dense network to compare with: a model 'lenet_caffe' has no number of units that could be "
        "smaller.",)


def test_dense_networks_that_fail_are_left_out_of_the_verdict(chosen, network_of):
    found = compare(chosen, CHOSEN, samples=200, network_of=network_of, evaluate=lambda points, **options: [
        {"reason": "no room"} for _ in points])
    assert found.verdicts[:2] == ("At equal multiplications there is no dense network: no room (2 times).",
                                  "At equal weight bits there is no dense network: no room (2 times).")
    assert not found.wrong and len(found.verdicts) == 2, "nothing was compared, so that nothing is right or wrong"


def test_a_model_in_python_has_units_where_an_argument_says_so(tmp_path):
    create(tmp_path / "mine")
    own = load(tmp_path / "mine/mine.toml")
    assert units(own) == "hidden"
    seen = []
    compare(sized(own, 8), CHOSEN | {"multiplications": 1500}, samples=200, evaluate=scored([0.9] * 4, seen))
    assert {point.experiment.model.arguments["hidden"] < 32 for point in seen} == {True} and len(seen) == 4
    nameless = replace(own, model=replace(own.model, arguments={"size": 32}))
    assert "give its file one as model.arguments.hidden" in compare(nameless, CHOSEN, samples=10).verdicts[0]


def test_dense_networks_have_as_many_seeds_and_means_are_compared(chosen, network_of):
    seen = []
    others = [CHOSEN | {"seed": 1, "quantized": 0.97}, CHOSEN | {"seed": 2, "quantized": 0.96}]
    found = compare(chosen, CHOSEN, samples=10 ** 6, others=others, network_of=network_of, evaluate=scored(
        [0.99, 0.9, 0.9, 0.98, 0.94, 0.9, 0.9, 0.982, 0.95, 0.9, 0.9, 0.984], seen))
    assert [point.experiment.training.seed for point in seen] == [0] * 4 + [1] * 4 + [2] * 4, "one each at first"
    assert [row["quantized"] for row in found.rows] == pytest.approx([0.96, 0.9, 0.9, 0.982])
    assert len(found.points) == 4
    assert "design (accuracy 97.00% ± 1.00%) is as good as the best dense network" in found.verdicts[0]
    assert "96.00% ± 2.65%" in found.verdicts[0]
    assert "is worse than" in found.verdicts[1] and "98.20% ± 0.20%" in found.verdicts[1]
    assert found.verdicts[2] == "Each network here has 3 seeds."


def test_a_seed_that_fails_leaves_the_mean_of_the_others(chosen, network_of):
    def evaluate(points, **options):
        rows = scored([0.9] * len(points))(points)
        return [row | {"reason": "no room"} if at >= 4 else row for at, row in enumerate(rows)]

    found = compare(chosen, CHOSEN, samples=200, others=[CHOSEN | {"seed": 1}], network_of=network_of,
                    evaluate=evaluate)
    assert [(row["each"], row["reason"]) for row in found.rows] == [([0.9], "")] * 4
    assert found.verdicts[2].startswith("Each network here has one seed.")
