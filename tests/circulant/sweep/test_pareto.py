import random

import pytest

from circulant.sweep.goal import loss
from circulant.sweep.pareto import front, fronts, grouped, over_seeds


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


@pytest.fixture
def seeded(rows):
    """The rows of experiment "two" of three seeds; the second of k = 8 is lucky."""
    mine = [row for row in rows if row["experiment"] == "two"]
    luck = {0: 0.0, 1: 0.03, 2: -0.03}
    return [{**row, "seed": seed, "quantized": row["quantized"] + luck[seed] * (row["block_size"] != "1")}
            for seed in luck for row in mine]


def test_a_point_has_the_means_of_its_seeds(seeded):
    merged = over_seeds(seeded)
    assert len(merged) == 8
    for row, first in zip(merged, seeded[:8], strict=True):
        assert (row["seeds"], row["seed"]) == (3, "0 1 2")
        assert row["quantized"] == pytest.approx(first["quantized"])
        assert row["quantized_deviation"] == pytest.approx(0.03 * (first["block_size"] != "1"))
        assert {name: row[name] for name in first if name not in ("seed", "quantized")} == {
            name: first[name] for name in first if name not in ("seed", "quantized")}


def test_no_front_takes_the_luckiest_seed(seeded):
    """By its best seed k = 8 would beat k = 1, by the mean it does not."""
    best = {cost: {(seeded[at]["block_size"], seeded[at]["weight_bits"], seeded[at]["seed"]) for at in points}
            for cost, points in fronts(seeded).items()}
    assert {("1", 8, seed) for seed in range(3)} <= best["memory"], "the network without loss is on the front"
    assert {(size[:3], bits) for size, bits, _ in best["memory"]} == {("1", 8), ("gru", 4), ("gru", 8)}
    assert {cost: len(points) for cost, points in best.items()} == {"memory": 9, "work": 6}


def test_a_failure_and_rows_of_one_seed_stand_alone(seeded):
    failed = [seeded[0] | {"reason": "no"}, *seeded[1:]]
    assert grouped(failed)[0] == [0]
    assert [row.get("seeds", 1) for row in over_seeds(failed)] == [1, *[3] * 7, 2]
    same = [seeded[0], seeded[0] | {"cycles_per_step": 9}, seeded[8]]
    assert grouped(same) == [[0], [1], [2]]
    assert over_seeds(seeded[:8]) == seeded[:8]
