import pytest

from benchmarks.synthesis import Point, network
from circulant.hw import generate
from circulant.hw.array.parts import Memory, Parts, Product, Transform
from circulant.hw.emit.inventory import Inventory
from circulant.hw.foreseen import foreseen, quantities
from circulant.hw.resources import parts


@pytest.mark.parametrize("point", [Point("gru", 12, 20, 4, 15), Point("linear", 24, 18, 8, 22, weight_bits=8)],
                         ids=lambda point: point.title)
def test_a_design_is_as_foreseen(point):
    design = generate(network(point), multipliers=point.multipliers, objective="throughput")
    counted = Inventory.from_json(design.manifest["resources"])
    found = foreseen(parts(design.network, design.plans), len(design.network.layers))
    assert (found.products, found.memories) == (counted.products, counted.memories)
    for kind in ("registers", "choices"):
        assert found.logic[kind] == pytest.approx(counted.logic[kind], rel=0.25), kind


def test_quantities_are_those_of_the_parts():
    made = Parts([Memory(2, 10, 100), Memory(3, 7, 16, writable=False)], [Product(4, 9, 8)], [Transform(2, 8, 5)])
    found = quantities(made, 1, levels=6)
    assert found == {"layers": 1, "operands": 68, "block": 20, "logic": 21, "segments": 48, "addresses": 2 * 7 + 3 * 4,
                     "values": 80, "butterflies": 240, "rotations": 2 * 2 * 25, "staged operands": 34,
                     "staged butterflies": 120, "staged rotations": 50}


def test_fewer_registers_where_more_levels_are_allowed():
    made = Parts([], [Product(4, 9, 8)], [Transform(2, 8, 5)])
    counts = [foreseen(made, 1, levels=levels).logic["registers"] for levels in (4, 6, 9, 12)]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]


def test_a_profile_says_where_memories_lie():
    made = Parts([Memory(1, 8, 16)])
    assert list(foreseen(made, 1).memories) == [(16, 8, "distributed")]
    assert list(foreseen(made, 1, profile="ice40").memories) == [(16, 8, "registers")]
