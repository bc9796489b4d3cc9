"""What families make of products and logic, against what Yosys made of them; the figures are in docs/measured."""
import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.drawn_logic import Candidate, made, read
from benchmarks.logic import FITTED, OWN, SHARED, designs, fit, of_family
from benchmarks.synthesis import POINTS, counts, foretold, network, occupied
from circulant.hw import generate
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.families import FAMILIES, Estimate
from circulant.sim.quantize.bitwidth_cost import DSPS, tiles

MEASURED = Path(__file__).parents[3] / "docs" / "measured"
LOGIC = json.loads((MEASURED / "logic.json").read_text())
CONSTANT = "gru 16 → 32, k = 2, 12×16 bits, latency"
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
    """DSP blocks and block RAMs exactly, logic within the error that is stated."""
    demand, found = FAMILIES[family].demand(foretold(row)), row["found"][family]
    # In one design Yosys leaves out bits of two memories that are the same in all words.
    constant = 0.1 * found["block_rams"] if row["design"] == CONSTANT else 0
    assert demand.dsps == found["dsps"] and 0 <= demand.block_rams - found["block_rams"] <= constant
    for name, estimate, truth in (("look-up tables", demand.luts, occupied(family, found)),
                                  ("flip-flops", demand.flip_flops, found["flip_flops"])):
        assert estimate.least <= truth <= estimate.most, f"{name}: {truth:,}, but {estimate.count:,} are estimated"


def test_designs_that_were_held_out_are_among_them():
    for family in ("xcu", "ecp5"):
        assert sum(family in row["found"] and family not in row["fitted"] for row in LOGIC["designs"]) >= 8
        assert sum(family in row["found"] and row["design"] in {point.title for point in SHARED}
                   and family not in row["fitted"] for row in LOGIC["designs"]) >= 4


@pytest.mark.parametrize("family", FITTED)
def test_factors_are_those_of_the_fit(family):
    assert fit(family) == {"luts": FAMILIES[family].luts, "flip_flops": FAMILIES[family].flip_flops}


def same(design, row):
    """A design is made of what it was when Yosys measured it, or the figures are to be measured again: python -m
    benchmarks logic, python -m benchmarks.drawn_logic."""
    made = counts(design)
    now, then = (Inventory.from_json(each["resources"]) for each in (made, row))
    assert (now.products, now.memories) == (then.products, then.memories)
    for kind in ("registers", "sums", "increments", "choices", "thresholds"):
        assert now.logic[kind] == pytest.approx(then.logic[kind], rel=0.05, abs=30), kind
    assert made["quantities"] == pytest.approx(row["quantities"], rel=0.02)


def test_a_design_is_made_of_what_it_was_when_it_was_measured():
    row, = (row for row in LOGIC["designs"] if row["design"] == POINTS[1].title)
    same(generate(network(POINTS[1]), multipliers=POINTS[1].multipliers, objective="throughput"), row)


@pytest.mark.soak
@pytest.mark.parametrize(("title", "make"), [(title, make) for _, title, make in (
    *designs(), *(each for family in OWN for each in of_family(family)))])
def test_every_measured_design_is_made_of_what_it_was(title, make):
    row, = (row for row in LOGIC["designs"] if row["design"] == title)
    same(make(), row)


@pytest.mark.soak
@pytest.mark.parametrize("row", [row for each in read().values() for row in each],
                         ids=lambda row: str(row["candidate"]))
def test_every_drawn_design_is_made_of_what_it_was(row):
    same(made(Candidate(**row["candidate"])), row)


def test_estimates_have_two_sides():
    found = Estimate(1000, 0.2)
    assert (found.least, found.most) == (800, 1200)


def test_memories_without_a_place_are_counted():
    found = Inventory(memories=Counter({(5, 30, "distributed"): 3, (100, 30, "block"): 2, (4, 9, "logic"): 1}))
    assert FAMILIES["ice40"].demand(found).unmapped == 3
    assert FAMILIES["ecp5"].demand(found).unmapped == 0
