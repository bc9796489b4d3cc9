"""Approximate products in logic are the integers of golden, alone and in designs."""

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.arith.approximate import ApproximateProduct
from circulant.hw.c import generate_c
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.hw.resources import inventory, parts
from circulant.hw.top import Top
from circulant.sim.arith.multiplier import multiplied
from circulant.sim.cosim.verification import verify
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.hw.golden import network
from tests.hw.session import equal_to_golden
from tests.hw.simulate import trace
from tests.sim import samples

KINDS = ("truncated:1", "truncated:5", "mitchell")
EIGHT = {"weight_bits": 8, "activation_bits": 8}


@pytest.mark.parametrize("widths", [(6, 6), (6, 7), (8, 6)])
@pytest.mark.parametrize("name", KINDS)
def test_the_circuit_gives_golden_products_of_all_integers(name, widths):
    a, b = (each.ravel() for each in np.meshgrid(*(np.arange(-(1 << n - 1), 1 << n - 1) for n in widths)))
    found = trace(ApproximateProduct(name, *widths), {"a": a.tolist(), "b": b.tolist()})["o"]
    assert found[:len(a)] == multiplied(name, a, b).tolist()


def gru(name):
    return network(4, 8, 4, outputs=6, returns="sequence", multiplier=name, **EIGHT)


def lstm(name):
    model = samples.chain(samples.lstm(peephole=True, projection=3, scale=0.3))
    assert isinstance(model.layers[0], FloatLstm)
    return quantize(model, samples.data(model), multiplier=name, **EIGHT)


CASES = {"an array each": (gru, 60, {}), "folded, one array": (gru, 8, {"objective": "area"}), "lstm": (lstm, 40, {}),
         "nine levels": (gru, 30, {"levels": 9, "objective": "latency"})}


@pytest.mark.parametrize("name", ["truncated:4", "mitchell"])
@pytest.mark.parametrize(("make", "budget", "options"), CASES.values(), ids=CASES)
def test_a_network_equals_golden_in_as_many_cycles_as_an_exact_one(make, budget, options, name):
    golden, exact = make(name), make("exact")
    plans = plan(golden, budget, **options)
    assert [each.cycles for each in plans] == [each.cycles for each in plan(exact, budget, **options)]
    x = equal_to_golden(golden, Top(golden, plans))
    assert golden.run_integers(x).tolist() != exact.run_integers(x).tolist()


def test_approximate_products_take_no_multiplier_of_the_verilog():
    golden, exact = gru("mitchell"), gru("exact")
    design, usual = (generate(each, multipliers=60, objective="throughput") for each in (golden, exact))
    own = sum(each.copies for each in parts(golden, design.plans).approximate)
    assert design.counted.products == inventory(golden, design.plans).products
    assert usual.counted.multipliers - design.counted.multipliers == own > 0
    assert design.multipliers == usual.multipliers
    assert "ApproximateProduct".lower() not in usual.verilog
    logic, without = (dict(each.manifest["resources"]["logic"]) for each in (design, usual))
    assert logic.pop("logarithms") > 0 and logic == without
    more = [FAMILIES["xcu"].demand(Inventory.from_json(each.manifest["resources"])) for each in (design, usual)]
    assert more[0].dsps < more[1].dsps and more[0].luts.count > more[1].luts.count + 50 * own
    assert more[0].luts.error > more[1].luts.error


@pytest.mark.parametrize("name", ["mitchell", pytest.param("truncated:4", marks=pytest.mark.soak)])
def test_verilog_equals_golden(name, tmp_path):
    golden = gru(name)
    folder = generate(golden, multipliers=60).write(tmp_path / "design")
    rng = np.random.default_rng(0)
    found = verify(folder, golden.vectors(rng.normal(0, 1, (4, 5, 4))))
    assert (found.mismatches, found.words > 0) == (0, True)


def test_what_needs_exact_products_is_refused():
    golden = gru("mitchell")
    with pytest.raises(Refusal, match=r"^hardware\.dsp_packing = '27x18' needs exact products, but those of network "
                                      "'small' are 'mitchell', which take no DSP blocks; set it to 'none'$"):
        generate(golden, dsp_packing="27x18")
    with pytest.raises(Refusal, match=r"^C computes with exact products, but those of network 'small' are 'mitchell'; "
                                      "quantize it with quantization.multiplier = 'exact'$"):
        generate_c(golden)
