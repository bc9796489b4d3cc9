from itertools import pairwise

import pytest

from benchmarks import designs
from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.hw.chips.costs import Costs, Goal
from circulant.hw.chips.cut import Place
from circulant.hw.chips.plans import planned
from circulant.hw.chips.search import baselines, best, candidates, columned, exhaustive, search
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import cluster, pair
from tests.random_networks import Random


def chain(seed, sizes, block=4):
    r = Random(seed)
    return r.network([r.linear(f"l{n}", *each, block, relu=True) for n, each in enumerate(pairwise(sizes))], sizes[0])


@pytest.mark.parametrize(("seed", "sizes", "chips", "goal"), [
    (1, (16, 48, 32, 64, 8), (40, 40), Goal()),
    (2, (64, 16, 64, 24, 40), (60, 30, 30), Goal()),
    (3, (24, 24, 48, 24), (25, 50, 75), Goal(1, 0.5)),
    (4, (8, 64, 8, 64, 8, 64, 8), (30, 30, 30), Goal())])
def test_the_search_comes_within_a_hundredth_of_all_placements(seed, sizes, chips, goal):
    costs = Costs(chain(seed, sizes), cluster(*chips, bits=128), goal)
    divided = len(sizes) < 6
    found, (least, _) = costs.cost(best(costs, divided=divided)[0]), exhaustive(costs, divided=divided)
    assert least <= found <= 1.01 * least


def test_layers_go_where_there_is_room_and_halves_are_halved():
    costs = Costs(chain(5, (64,) * 17), cluster(*[60] * 8))
    place = best(costs)[0]
    assert len({n for each in place.values() for n in each.chips}) == 8
    one = costs.cost({name: Place((0,)) for name in costs.nodes})
    assert costs.cost(place) < one / 6, "eight chips are nearly eight times as fast"


def test_slow_links_keep_layers_together():
    network = chain(6, (32, 64, 64, 8))
    fast, slow = (best(Costs(network, cluster(40, 40, bits=bits)))[0] for bits in (256, 1))
    assert any(len(each.chips) > 1 for each in fast.values()) or len({each.chips for each in fast.values()}) > 1
    assert {each.chips for each in slow.values()} == {(0,)}


def test_branches_that_part_and_meet_over_images_stay_together():
    """A circuit adds images whose branches part in it."""
    place = best(Costs(designs.network("resnet8"), cluster(342, 684, 342, 684)))[0]
    for stage in ("stage2", "stage3"):
        assert len({place[f"{stage}_{each}"].chips for each in ("conv1", "conv2", "shortcut_conv")}) == 1
    assert place["add_1"] == place["stage2_conv1"] and len({each.chips for each in place.values()}) > 1


def test_columns_follow_rows_where_they_lower_the_cost():
    """Many values between two layers, few behind them: sums of columns are few words, and both chips make them."""
    costs = Costs(chain(7, (8, 128, 8)), cluster(60, 60, bits=16))
    before = best(costs)
    after, *_ = columned(costs, before[:3])
    assert not any(each.columns for each in before[0].values())
    assert after == {"l0": Place((0, 1), (16, 16)), "l1": Place((0, 1), (16, 16), columns=True)}
    assert costs.cost(after) < costs.cost(before[0])
    assert costs.words(after) == {(1, 0): 2 * 8}, "two blocks of sums, each of eight words"
    found = search(costs.network, costs.cluster)
    assert found.lines() == ["l0: rows, 16 blocks on chip0, 16 blocks on chip1",
                             "l1: columns, 16 blocks on chip0, 16 blocks on chip1"]
    assert found.planned.timing.period < planned(costs.network, costs.cluster, before[0]).timing.period
    assert found.planned.timing.links[1, 0] == costs.words(after)[1, 0]


def test_only_what_is_built_is_a_candidate():
    costs = Costs(pair(), cluster(300, 300))
    assert candidates(costs, "lstm1", [(0, 1)], [300, 300]) == [Place((0,)), Place((1,))]
    assert Place((0, 1), (2, 2)) in candidates(costs, "lstm2", [(0, 1)], [300, 300])


def test_the_plan_found_is_the_best_of_those_planned():
    found = search(pair(), cluster(100, 100))
    assert found.planned.timing.period <= 1.1 * Costs(pair(), cluster(100, 100)).cost(found.planned.placement)
    assert len(found.lines()) == 2 and found.considered > 1


def test_the_baselines_of_the_papers():
    costs = Costs(pair(), cluster(100, 100))
    found = baselines(pair(), cluster(100, 100), costs=costs)
    assert set(found) == {"data", "layers", "traffic"}
    assert found["data"][0] == costs.cost({name: Place((0,)) for name in costs.nodes}) / 2
    assert all(place.whole for place in found["layers"][1].values())
    assert len({place.chips for place in found["traffic"][1].values()}) == 1, "no word is the fewest"


@pytest.mark.parametrize(("chips", "said"), [
    (cluster(3, 3), "Some chips must hold a share of each layer, but 2 with 3, 3 multipliers"),
    (Cluster((Chip("chip0", 60, "ecp5", 1, 1), Chip("chip1", 60, "ecp5", 1, 1)), Link(64)),
     "A part must fit its chip, but that of 'chip0' takes")])
def test_chips_that_are_too_small_are_refused(chips, said):
    with pytest.raises(Refusal, match=said):
        search(pair(), chips)
