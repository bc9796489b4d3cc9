"""What families make of products and logic, against what Yosys made of them; the figures are in docs/measured."""
import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.synthesis import POINTS, network, occupied
from circulant.hw import generate
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.families import FAMILIES, Estimate
from circulant.sim.quantize.bitwidth_cost import DSPS, tiles

MEASURED = Path(__file__).parents[3] / "docs" / "measured"
LOGIC = json.loads((MEASURED / "logic.json").read_text())
ROWS = [(row, family) for row in LOGIC["designs"] for family in row["found"]]


def test_dsp_blocks_of_300_pairs_of_widths_in_all_families_are_those_that_yosys_takes():
    """But for Cyclone V beyond 28 bits, where the estimate may be one too many."""
    measured = json.loads((MEASURED / "dsp-products.json").read_text())
    assert measured["dsps"].keys() == FAMILIES.keys()
    for family, rows in measured["dsps"].items():
        for at, row in enumerate(rows):
            narrow = measured["widths"][at]
            for wide, found in zip(measured["widths"][at:], row, strict=True):
                more = FAMILIES[family].dsps(wide, narrow) - found
                assert more == 0 or (family == "cyclonev" and wide > 28 and more == 1), (family, wide, narrow)


def test_bits_are_priced_by_the_same_formula():
    """The search for widths and the fit of a device know one formula: 27 × 19 bits take four DSP48E1."""
    assert FAMILIES["xc7"].dsps(27, 19) == tiles(27, 19, (25, 18)) == 4
    for family in [each for each in FAMILIES.values() if each.dsp in DSPS.values()]:
        ports = family.dsp.wide, family.dsp.narrow
        widths = [(a, b) for a in range(2, 43) for b in range(2, a)]
        assert all(tiles(a, b, ports) == family.dsps(a, b) == family.dsps(b, a) for a, b in widths)


@pytest.mark.parametrize(("row", "family"), ROWS, ids=lambda each: each if isinstance(each, str) else each["design"])
def test_what_yosys_made_of_a_design_is_foreseen(row, family):
    """DSP blocks and block RAMs exactly, logic within the error that is stated; most were not used to fit it."""
    demand, found = FAMILIES[family].demand(Inventory.from_json(row["resources"])), row["found"][family]
    assert (demand.dsps, demand.block_rams) == (found["dsps"], found["block_rams"])
    for name, estimate, truth in (("look-up tables", demand.luts, occupied(family, found)),
                                  ("flip-flops", demand.flip_flops, found["flip_flops"])):
        assert estimate.least <= truth <= estimate.most, f"{name}: {truth:,}, but {estimate.count:,} are estimated"


def test_designs_that_were_held_out_are_among_them():
    for family in ("xcu", "ecp5"):
        assert sum(family in row["found"] and family not in row["fitted"] for row in LOGIC["designs"]) >= 3


def test_a_design_is_made_of_what_it_was_when_it_was_measured():
    """Or the figures are to be measured again: python -m benchmarks synthesis."""
    point = POINTS[1]
    row, = (row for row in LOGIC["designs"] if row["design"] == point.title)
    design = generate(network(point), multipliers=point.multipliers, objective="throughput")
    now, then = (Inventory.from_json(each) for each in (design.manifest["resources"], row["resources"]))
    assert (now.products, now.memories) == (then.products, then.memories)
    assert {kind: pytest.approx(count, rel=0.05, abs=20) for kind, count in then.logic.items()} == now.logic


def test_estimates_have_two_sides():
    found = Estimate(1000, 0.2)
    assert (found.least, found.most) == (800, 1200)


def test_memories_without_a_place_are_counted():
    found = Inventory(memories=Counter({(5, 30, "distributed"): 3, (100, 30, "block"): 2, (4, 9, "logic"): 1}))
    assert FAMILIES["ice40"].demand(found).unmapped == 3
    assert FAMILIES["ecp5"].demand(found).unmapped == 0
