from dataclasses import replace

import pytest

from benchmarks.synthesis import Point, network
from circulant.hw import generate
from circulant.hw.array.parts import Memory, Parts, Product, Transform
from circulant.hw.array.plans import with_protection
from circulant.hw.emit.inventory import Inventory
from circulant.hw.foreseen import foreseen, quantities
from circulant.hw.plan.families import FAMILIES
from circulant.hw.plan_cache import plans_of
from circulant.hw.resources import parts


@pytest.mark.parametrize("point", [Point("gru", 12, 20, 4, 15), Point("linear", 24, 18, 8, 22, weight_bits=8)],
                         ids=lambda point: point.title)
def test_a_design_is_as_foreseen(point):
    design = generate(network(point), multipliers=point.multipliers, objective="throughput")
    counted = Inventory.from_json(design.manifest["resources"])
    found = foreseen(parts(design.network, design.plans), len(design.network.stages))
    assert (found.products, found.memories) == (counted.products, counted.memories)
    assert found.logic == counted.logic
    assert found.logic["registers"] == pytest.approx(design.counted.logic["registers"], rel=0.2)


def test_quantities_are_those_of_the_parts():
    made = Parts([Memory(2, 10, 100), Memory(3, 7, 16, writable=False)], [Product(4, 9, 8)], [Transform(2, 8, 5)])
    found = quantities(made, 1, levels=6)
    assert found == {"layers": 1, "memories": 5, "operands": 68, "block": 20, "logic": 21, "segments": 48,
                     "addresses": 2 * 7 + 3 * 4, "values": 80, "butterflies": 240, "rotations": 2 * 2 * 25,
                     "staged operands": 34, "staged butterflies": 120, "staged rotations": 50}


def test_each_layer_at_a_shared_array_has_its_transforms_and_its_spectra_are_chosen_from():
    def known(layers, objective):
        point = Point("gru", 16, 16, 4, 40, layers=layers, objective=objective)
        made = network(point)
        return quantities(parts(made, plans_of(made, 40, objective=objective, streams=1, levels=4, reloadable=False,
                                               packing="none")), layers)

    one, two, own = known(1, "area"), known(2, "area"), known(2, "throughput")
    assert (one["ports"], one["chosen"], two["ports"]) == (1, 0, 2) and two["chosen"] > 0
    assert "ports" not in own
    assert two["values"] > one["values"], "the chains are shared, the transforms in front of the banks are not"


def test_fewer_registers_where_more_levels_are_allowed():
    made = Parts([], [Product(4, 9, 8)], [Transform(2, 8, 5)])
    counts = [foreseen(made, 1, levels=levels).logic["registers"] for levels in (4, 6, 9, 12)]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]


@pytest.mark.parametrize(("protection", "quantity", "factor"), [("secded", "corrected", 0), ("parity", "checked", 1)])
def test_decoders_take_look_up_tables_for_each_bit_that_they_give(protection, quantity, factor):
    golden = network(Point("linear", 24, 18, 8, 22, weight_bits=8))
    plans = plans_of(golden, 22, objective="throughput", streams=1, levels=4, reloadable=False, packing="none")
    plain, made = (parts(golden, each) for each in (plans, with_protection(plans, protection)))
    bits = quantities(made, 1)[quantity]
    assert bits == sum(each.copies * each.width for each in plain.memories if not each.writable) > 100
    family = FAMILIES["xcu"]
    own, more = (family.demand(foreseen(each, 1)) for each in (plain, made))
    assert own.luts.count + family.decoders[factor] * bits == pytest.approx(more.luts.count, rel=0.05)


def test_what_is_written_back_takes_look_up_tables_besides_its_decoder_and_its_place():
    golden = network(Point("gru", 12, 20, 4, 15))
    plans = plans_of(golden, 15, objective="throughput", streams=1, levels=4, reloadable=False, packing="none")
    made = parts(golden, with_protection(plans, "scrub"))
    read = replace(made, decoders=[each._replace(protection="secded") for each in made.decoders])
    bits, family = quantities(made, 1)["rewritten"], FAMILIES["xcu"]
    assert bits == quantities(made, 1)["corrected"] == quantities(read, 1)["corrected"] > 100
    assert quantities(read, 1)["rewritten"] == 0
    mine, its = (family.demand(foreseen(each, 1)).luts.count for each in (made, read))
    assert mine - its == pytest.approx(family.decoders[2] * bits, abs=1)


def test_a_profile_says_where_memories_lie():
    made = Parts([Memory(1, 8, 16)])
    assert list(foreseen(made, 1).memories) == [(16, 8, "distributed")]
    assert list(foreseen(made, 1, profile="ice40").memories) == [(16, 8, "registers")]
