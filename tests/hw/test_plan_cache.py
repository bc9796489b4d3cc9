"""Plans that are found once are those of the network that asks."""
import numpy as np
import pytest

from circulant.hw import plan_cache
from circulant.hw.array.plans import sharings
from circulant.hw.planner import plan
from circulant.hw.resources import parts
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.norm import FloatNorm
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow, Window
from tests.hw.golden import network
from tests.sim import samples

NETWORKS = {
    "gru": samples.model(9, 16, 5, k=(4, 4, 1)),
    "reset before": samples.model(9, 16, 5, k=(4, 4, 1), reset="before"),
    "lstm": samples.chain(samples.lstm(9, 16, projection=8, peephole=True, k=4)),
    "both": samples.chain(samples.bidirectional("lstm", 9, 16, projection=8)),
}


def kept_plans(network, multipliers):
    return plan_cache.plans_of(network, multipliers)


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
def test_a_plan_does_not_depend_on_widths(model):
    x = samples.data(model)
    few, many = (quantize(model, x, weight_bits=bits, activation_bits=bits + 2) for bits in (5, 14))
    assert plan(few, 64) == plan(many, 64) == kept_plans(few, 64) == kept_plans(many, 64)
    assert [*map(plan_cache._sizes, few.layers)] == [*map(plan_cache._sizes, many.layers)]


def test_networks_of_different_sizes_have_different_plans():
    sizes = {tuple(map(plan_cache._sizes, quantize(model, samples.data(model)).layers)) for model in (
        *NETWORKS.values(), samples.model(9, 16, 5, k=(8, 8, 1)), samples.model(9, 16, 4, k=(4, 4, 1)),
        samples.model(8, 16, 5, k=(4, 4, 1)), samples.chain(samples.lstm(9, 16, projection=8, k=4)))}
    assert len(sizes) == len(NETWORKS) + 4


def image_network(k, *, order="pixels", **widths):
    """A residual sum whose body has block size k, then a vector in one of both orders."""
    rng, grid, window = np.random.default_rng(3), (6, 6), Window((3, 3), padding=(1, 1))
    body = tuple(FloatConv(f"body{n}", inputs=8, outputs=8, grid=grid, window=window,
                           weight=rng.normal(0, 0.2, (9, 8 // k, 8 // k, k)),
                           bias=rng.normal(0, 0.1, 8)) for n in range(2))
    layers = (float_model.Residual("sum", 8, grid=grid, body=body, shortcut=(), relu=True),
              FloatFlatten("flatten", 8, grid, order),
              FloatLinear("out", 8 * 36, 4, rng.normal(0, 0.1, (1, 72, 4)), rng.normal(0, 0.1, 4)))
    return quantize(float_model.Model.chain("image", 8, False, layers, (8, *grid)), rng.normal(0, 1, (4, 8, *grid)),
                    **widths)


def test_plans_that_are_kept_are_those_of_the_branches_of_a_sum_and_of_the_order_of_a_vector():
    networks = [image_network(1), image_network(8), image_network(8, order="channels")]
    for made in networks:
        kept, own = kept_plans(made, 100), plan(made, 100)
        assert [(each.cycles, each.multipliers) for each in kept] == [(each.cycles, each.multipliers) for each in own]
    assert len({tuple(map(plan_cache._sizes, made.stages)) for made in networks}) == 3


def test_plans_that_are_kept_are_those_of_the_mode_of_a_norm_and_of_the_sources_of_a_sum():
    x = np.random.default_rng(0).normal(0, 1, (4, 8))
    norms = [quantize(float_model.Model.chain("n", 8, True, (FloatNorm("norm", 8, mode, np.ones(8), np.zeros(8)),)),
                      x[:, None]) for mode in ("layer", "rms")]
    for made in norms:
        assert kept_plans(made, 30) == plan(made, 30)
    nodes = [Node(FloatLinear(name, 8, 8, np.ones((2, 2, 4)) / 9, np.zeros(8)), (source,))
             for name, source in (("a", "x"), ("b", "a"), ("c", "b"))]
    sums = [quantize(float_model.Model("s", (Input("x", Flow(8, sequence=True)),), (
        *nodes, Node(FloatAdd("sum", 8), ("c", other))), ("sum",)), x[:, None]) for other in ("x", "b")]
    for made in sums:
        kept = plan_cache.plans_of(made, 120, beat_blocks=0)
        assert [each.cycles for each in kept] == [each.cycles for each in plan(made, 120, beat_blocks=0)]


def test_kept_plans_of_convolutions_are_of_the_network_that_asks():
    """Its widths count where their memories and products are foreseen."""
    few, many = (image_network(8, weight_bits=bits) for bits in (5, 12))
    narrow, wide = (kept_plans(network, 100) for network in (few, many))
    assert parts(many, wide) == parts(many, plan(many, 100))
    assert parts(few, narrow) == parts(few, plan(few, 100)) != parts(many, wide)


def test_kept_plans_of_layers_that_share_an_array_know_the_layers_that_ask(monkeypatch):
    """They are found once for all networks of the same shapes, and again where a layer gives another vector."""
    asked = []
    monkeypatch.setattr(plan_cache, "_KNOWN", {})
    monkeypatch.setattr(plan_cache, "plan", lambda *given, **options: asked.append(given) or plan(*given, **options))
    one, other = (network(4, 8, 4, outputs=8, seed=seed) for seed in (0, 1))
    first, kept = (plan_cache.plans_of(made, 8, objective="area") for made in (one, other))
    assert len(asked) == 1
    for made, plans in ((one, first), (other, kept)):
        assert [layer for each in sharings(plans) for layer in each.layers] == list(made.stages)
    assert [each.shape for each in first] == [each.shape for each in kept]
    whole = network(4, 8, 4, outputs=8, returns="sequence")
    assert len({tuple(map(plan_cache._sizes, made.stages)) for made in (one, other, whole)}) == 2
