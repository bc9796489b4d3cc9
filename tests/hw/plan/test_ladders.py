from types import SimpleNamespace

from circulant.hw.plan.ladders import side_by_side_ladder, useful


def plan(multipliers, cycles):
    return SimpleNamespace(multipliers=multipliers, cycles=cycles)


def figures(plans):
    return [(each.multipliers, each.cycles) for each in plans]


def test_a_useful_plan_is_faster_than_all_smaller_ones():
    found = useful([plan(8, 10), plan(2, 40), plan(4, 40), plan(4, 20), plan(16, 10), plan(12, 12)])
    assert figures(found) == [(2, 40), (4, 20), (8, 10)]


def test_of_equal_multipliers_the_faster_one_is_useful():
    assert figures(useful([plan(4, 30), plan(4, 20)])) == [(4, 20)]


def test_layers_side_by_side_take_the_smallest_plans_of_each_speed():
    first, second = [plan(1, 40), plan(2, 20), plan(4, 10)], [plan(1, 30), plan(3, 15)]
    rungs = [figures(rung) for rung in side_by_side_ladder([first, second])]
    assert rungs == [[(1, 40), (1, 30)], [(2, 20), (1, 30)], [(2, 20), (3, 15)], [(4, 10), (3, 15)]]


def test_no_rung_is_faster_than_the_slowest_layer_can_be():
    rungs = side_by_side_ladder([[plan(1, 50)], [plan(1, 60), plan(2, 5)]])
    assert [figures(rung) for rung in rungs] == [[(1, 50), (1, 60)], [(1, 50), (2, 5)]]
