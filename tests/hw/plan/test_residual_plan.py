"""Plans of residual sums: both branches at one speed, with the fewest multipliers for it."""
from circulant.hw.array.plans import ResidualPlan
from circulant.hw.layers.residual import waiting
from circulant.hw.plan import conv_plan, residual_plan, stream_plan
from circulant.hw.plan.passes import ladder, layer_entry, layer_multiplications
from tests.hw.layers.test_residual import residual

KINDS = (conv_plan, residual_plan, stream_plan)
"""Files whose ladders are asked for."""


def rungs(layer):
    found = ladder(layer, streams=1, count=36).rungs
    assert all(len(rung) == 1 and isinstance(rung[0], ResidualPlan) for rung in found)
    return [rung[0] for rung in found]


def test_each_branch_has_a_plan_for_each_of_its_layers():
    for plan in rungs(residual("half")):
        assert (len(plan.body), len(plan.shortcut)) == (2, 1)
    assert all(plan.shortcut == () for plan in rungs(residual("same")))


def test_rungs_go_from_the_smallest_to_the_fastest():
    found = rungs(residual("half"))
    assert len(found) > 3
    assert [plan.multipliers for plan in found] == sorted(plan.multipliers for plan in found)
    assert [plan.cycles for plan in found] == sorted((plan.cycles for plan in found), reverse=True)


def test_no_layer_is_larger_than_the_speed_of_all_asks_for():
    layer = residual("half")
    own = [[rung[0] for rung in ladder(each, streams=1, count=1).rungs] for each in (*layer.body, *layer.shortcut)]
    for plan in rungs(layer):
        for chosen, others in zip((*plan.body, *plan.shortcut), own, strict=True):
            assert chosen.cycles <= plan.cycles
            assert all(other.cycles > plan.cycles for other in others if other.multipliers < chosen.multipliers)


def test_the_work_is_that_of_all_layers():
    layer = residual("half")
    work = [layer_multiplications(each) for each in (*layer.body, *layer.shortcut)]
    assert layer_multiplications(layer) == sum(work) > 0


def test_an_entry_names_each_layer_and_what_waits():
    layer = residual("half")
    plan = rungs(layer)[-1]
    entry = layer_entry(layer, plan)
    assert [each["name"] for each in (*entry["body"], *entry["shortcut"])] == ["first", "second", "shortcut"]
    assert (entry["cycles"], entry["multipliers"]) == (plan.cycles, plan.multipliers)
    assert entry["floor"] == -(-layer_multiplications(layer) // plan.multipliers) <= entry["cycles"]
    assert (entry["waiting"]["body"], entry["waiting"]["shortcut"]) == waiting(layer)
