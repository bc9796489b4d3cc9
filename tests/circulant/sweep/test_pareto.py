import random

import pytest

from circulant.sweep.goal import loss
from circulant.sweep.pareto import front, fronts


@pytest.mark.parametrize(("costs", "wanted"), [
    ([], []),
    ([(1, 1)], [0]),
    ([(1, 3), (2, 2), (3, 1)], [0, 1, 2]),
    ([(1, 3), (2, 3), (1, 4), (2, 2)], [0, 3]),
    ([(1, 1), (1, 1), (2, 2)], [0, 1]),
])
def test_front(costs, wanted):
    assert front(costs) == wanted


def test_every_point_is_on_the_front_or_beaten_by_one_that_is():
    rng = random.Random(0)
    costs = [(rng.randrange(20), rng.randrange(20), rng.randrange(20)) for _ in range(200)]
    best = front(costs)
    for at, mine in enumerate(costs):
        beaten = any(costs[b] != mine and all(x <= y for x, y in zip(costs[b], mine, strict=True)) for b in best)
        assert beaten != (at in best), mine


def test_a_lower_error_rate_is_better():
    assert loss({"quantized": 0.2, "higher_is_better": False}) < loss({"quantized": 0.3, "higher_is_better": False})
    assert loss({"quantized": 0.3, "higher_is_better": True}) < loss({"quantized": 0.2, "higher_is_better": True})


def test_fronts_of_each_experiment(rows):
    found = fronts(rows)
    picked = {cost: [(rows[at]["experiment"], rows[at]["block_size"][:3], rows[at]["weight_bits"], rows[at]["budget"])
                     for at in sorted(points)] for cost, points in found.items()}
    # Memory: k = 8 at 4 and 8 bits, and k = 1 at 8 bits; of equals, the budget whose cycles × multipliers are less.
    assert picked["memory"] == [(label, *rest) for label in ("one", "two")
                                for rest in (("1", 8, 16), ("gru", 4, 16), ("gru", 8, 16))]
    # Cycles × multipliers: width does not matter, so that of 8 bits alone stands.
    assert picked["work"] == [(label, *rest) for label in ("one", "two") for rest in (("1", 8, 16), ("gru", 8, 16))]


def test_a_failure_is_on_no_front(rows):
    assert rows[0]["reason"] and not any(0 in points for points in fronts(rows).values())
