"""The spread of seeds: which points are evaluated again, and what is said of them."""
import math

from circulant.explore.designs import Designs
from circulant.explore.seeds import in_turn, repeat, said
from circulant.run.untrained import sized
from circulant.sweep.point import Point

ROW = {"reason": "", "metric": "accuracy", "higher_is_better": True, "dense": 0.99}


def designs(experiment):
    points = [Point("digits-gru", sized(experiment, k)) for k in (16, 8)]
    rows = [ROW | {"block_size": "16", "weight_bits": 5, "quantized": 0.98},
            ROW | {"block_size": "8", "weight_bits": 12, "quantized": 0.97}]
    return Designs(tuple(rows), 0, (), 1, tuple(points))


def test_all_widths_of_the_chosen_and_the_uniform_model_from_each_further_seed(experiment):
    seen = []
    repeat(designs(experiment), 3, evaluate=lambda points, **options: seen.extend(points) or [])
    assert {(point.block_size, point.experiment.training.seed) for point in seen} == {
        ("16", 1), ("16", 2), ("8", 1), ("8", 2)}
    assert len(seen) == 4 * 6 and {point.experiment.quantization.activation_bits for point in seen} == {16}


def test_within_a_time_each_seed_is_whole_before_the_next_one():
    """Nine of twelve dense networks had been trained when the time ended, and none evaluated."""
    seeds, asked = [["a0", "b0"], ["a1", "b1"]], []
    assert in_turn(seeds, lambda points, **options: asked.append(points) or points, 9.0) == ["a0", "b0", "a1", "b1"]
    assert asked == seeds
    asked.clear()
    in_turn(seeds, lambda points, **options: asked.append(points) or points, math.inf)
    assert asked == [["a0", "b0", "a1", "b1"]], "all side by side where there is time"


def test_of_one_seed_nothing_is_repeated(experiment):
    assert repeat(designs(experiment), 1, evaluate=lambda points, **options: points) == ()


def test_what_is_said(experiment):
    """Each model at the bits of weights of its design; a training that failed has no score, and its reason is said."""
    rows = [ROW | {"block_size": "16", "weight_bits": 5, "quantized": 0.96, "dense": 0.985},
            ROW | {"block_size": "16", "weight_bits": 4, "quantized": 0.5},
            ROW | {"block_size": "8", "weight_bits": 12, "quantized": 0.975},
            ROW | {"block_size": "8", "weight_bits": 12, "reason": "no memory"}]
    assert said(designs(experiment), rows) == [
        "Some points of other seeds failed: no memory.",
        "The chosen model (k = 16, 5 bits) has 97.00% ± 1.41% over 2 seeds (dense 98.75% ± 0.35%). 2 seeds "
        "are too few to tell a difference of a point from chance: train three.",
        "The uniform model (k = 8, 12 bits) has 97.25% ± 0.35% over 2 seeds (dense 99.00% ± 0.00%). 2 "
        "seeds are too few to tell a difference of a point from chance: train three."]
    assert said(designs(experiment), ()) == []
