from types import SimpleNamespace

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.plan.ladders import ladder, layer_entry, layer_multiplications
from circulant.hw.plan.sizes import Sizes
from circulant.hw.planner import plan
from circulant.hw.top import Top, images
from circulant.hw.unit import Site, unelaborated, unit
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.hw import golden, test_cnn
from tests.sim import samples

NETWORKS = {
    **{f"images {seed}": lambda seed=seed: quantize(
        made := test_cnn.model(seed), np.random.default_rng(seed).normal(0, 1, (6, *made.shape)), **test_cnn.BITS)
       for seed in (0, 1, 4)},
    "bidirectional": lambda: quantize(
        both := samples.chain(samples.bidirectional("lstm", 9, 16, projection=8)), samples.data(both)),
    "reset before": lambda: golden.network(4, 8, 4, outputs=5, k_out=1),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_images_are_those_of_the_design_without_an_elaboration(name):
    network = NETWORKS[name]()
    design = generate(network, multipliers=70, objective="throughput")
    found = images(network, design.plans)
    assert found == design.images and found
    assert images(network, plan(network, 70)) == found, "another plan of the same network"


@pytest.mark.parametrize("name", NETWORKS)
def test_blocks_of_units_are_known_before_there_are_any(name):
    network = NETWORKS[name]()
    plans = plan(network, 70)
    with unelaborated():
        found = Top(network, plans, max_steps=2).blocks
    assert Sizes(network)(plans) == found


def test_a_program_is_computed_once():
    network = NETWORKS["bidirectional"]()
    layer, (got, *_) = network.stages[0], plan(network, 70)
    assert got.forward.program(layer.forward) is got.forward.program(layer.forward)
    assert got.forward.program(layer.forward) is not got.backward.program(layer.backward)
    with unelaborated():
        used = Top(network, [got, *plan(network, 70)[1:]]).units[0]._directions["forward"].program
    assert used is got.forward.program(layer.forward)


@pytest.mark.parametrize(("returns", "single"), [("last", True), ("sequence", False)])
def test_a_layer_of_vectors_that_are_no_sequence_keeps_no_ends(returns, single):
    network = golden.network(4, 8, 4, outputs=5, k_out=1, returns=returns)
    with unelaborated():
        found = Top(network, plan(network, 70)).units[1]._banks.single
    assert found == single


@pytest.mark.parametrize(("seed", "marked"), [
    (0, [("conv", False), ("pool", True), ("flatten", False)]),  # The pooling is before a scale, which passes marks.
    (1, [("conv", False), ("conv", False), ("pool", True), ("flatten", False)]),  # And before a residual.
])
def test_marks_are_made_unless_the_layer_behind_counts_what_comes(seed, marked):
    network = NETWORKS[f"images {seed}"]()
    with unelaborated():
        found = [(layer.kind, unit._marked) for layer, unit in zip(
            network.stages, Top(network, plan(network, 70)).units, strict=True) if hasattr(unit, "_marked")]
    assert found == marked


UNKNOWN = SimpleNamespace(name="norm", kind="layer_norm")


@pytest.mark.parametrize("ask", [
    lambda: unit(UNKNOWN, None, Site()), lambda: ladder(UNKNOWN, streams=1, count=1),
    lambda: layer_entry(UNKNOWN, None), lambda: layer_multiplications(UNKNOWN)],
    ids=["unit", "ladder", "entry", "multiplications"])
def test_a_kind_without_an_implementation_is_refused_in_a_sentence(ask):
    with pytest.raises(Refusal, match=r"^The hardware must have a unit for each layer, but has none for 'norm', a "
                                      r"layer of the kind 'layer_norm'; the golden model computes it$"):
        ask()
